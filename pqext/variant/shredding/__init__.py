"""Variants as typed columns: the schema, chosen or inferred; into the columns, and back."""
