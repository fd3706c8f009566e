"""Logical types: what stored values mean, what Arrow type shows them, and the way between the two."""
