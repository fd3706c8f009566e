"""The ways to write a filter besides Python: SQL text, lists of tuples, and JSON."""
