"""Detect the contents of a damaged file: footers, pages, and the leaves that pages can belong to."""
