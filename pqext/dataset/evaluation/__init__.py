"""Expressions on Arrow data: which rows a condition keeps, and what is computed of columns."""
