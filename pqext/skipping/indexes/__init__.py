"""Index types: the entry of each object, how it is computed, and which objects it excludes. A module per type."""
