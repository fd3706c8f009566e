"""Stores built, refreshed, compacted and upgraded."""
