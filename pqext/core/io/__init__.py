"""Byte ranges and files: local paths, object stores, locks, and atomic writes."""
