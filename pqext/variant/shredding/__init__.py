"""Shredding of variants into typed columns: choosing or inferring the schema, shredding and reconstruction."""
