"""Schema of a file: nodes, logical types, the Arrow schema, and the registry of annotations."""
