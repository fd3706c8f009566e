"""Decode pages and column chunks."""
