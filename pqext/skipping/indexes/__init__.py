"""Index types, one module each. A type defines the entry of an object, its computation and its use in queries."""
