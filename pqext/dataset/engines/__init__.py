"""Scans as sources of other engines, which push their own columns and conditions down."""
