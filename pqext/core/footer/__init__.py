"""Footers in every format: read, written, merged and rewritten."""
