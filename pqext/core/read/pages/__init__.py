"""Pages of a column chunk: which are read, and how they are decoded."""
