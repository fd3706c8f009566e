"""Column properties from metadata: names, recorded Spark types, INT96 instants and shredding."""
