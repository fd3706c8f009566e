"""Assemble row groups from pages using a schema."""
