"""Properties of columns that lie in metadata: names, Spark types, instants and shredding."""
