"""Combine many files into one table: partition columns, one schema, and the request to each file."""
