"""Notations of filters other than Python expressions: SQL text, lists of tuples, and JSON."""
