"""Byte ranges and files: local paths, object stores, locks, and files that appear when complete."""
