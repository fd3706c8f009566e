"""Compiled inner loops of the data-skipping store."""
