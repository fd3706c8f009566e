"""Find pairs of geometries that satisfy a predicate or are nearest to each other."""
