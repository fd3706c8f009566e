"""Schema of a file without a footer: its source, the possible physical types, and mismatches with pages."""
