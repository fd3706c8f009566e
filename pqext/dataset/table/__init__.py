"""Combine many files into one table: partition columns, a common schema, and the request for each file."""
