"""Iceberg tables, through ``pyiceberg``."""
