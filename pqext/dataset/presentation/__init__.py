"""Convert values to text, JSON, WKT and Python objects, for readers that do not support the original types."""
