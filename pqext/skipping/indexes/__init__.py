"""The kinds of index: what is kept of each object, how it is found, and which objects it refuses. A file a kind."""
