"""Read, write, merge and rewrite footers in every format."""
