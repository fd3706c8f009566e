"""Footers with a jump table: the table, look-ups with it, and the footer and schema read that way."""
