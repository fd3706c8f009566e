"""Scans as data sources of other engines, which push columns and conditions down to them."""
