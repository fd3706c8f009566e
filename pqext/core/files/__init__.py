"""Files made from files without decoding a page, and column chunks that lie in other files."""
