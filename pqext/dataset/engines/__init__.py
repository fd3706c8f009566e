"""Scans as data sources of other engines. The engines push columns and conditions down to the scans."""
