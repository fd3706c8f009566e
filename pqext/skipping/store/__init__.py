"""A store on disk: its objects, folders and keys, and the objects that cannot match a filter."""
