"""Convert values for readers that lack their types: to text, JSON, WKT and Python objects."""
