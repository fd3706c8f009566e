"""Bind a condition to a file's schema, and prune row groups and pages by the file's metadata."""
