"""Footers with a jump table: what is looked up by it, the schema, and the footer that is read so."""
