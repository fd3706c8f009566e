"""A store as it is on disk: its objects, folders and keys, and the objects that a filter cannot match."""
