"""Logical types: interpretation of stored values as Arrow types, and conversion in both directions."""
