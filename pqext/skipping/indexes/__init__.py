"""Index types, one module each: the entry of each object, how it is computed, and which objects it excludes."""
