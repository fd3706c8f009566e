"""Combine files without decoding pages: concatenation, summary files, and checks of file sets."""
