"""Encode pages and column chunks."""
