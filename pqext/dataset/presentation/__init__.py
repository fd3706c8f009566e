"""Convert values for readers without their types: to text, JSON, WKT and Python objects."""
