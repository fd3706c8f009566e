"""Claims about the row groups of a damaged file, their inconsistencies, and the verdicts of reading them."""
