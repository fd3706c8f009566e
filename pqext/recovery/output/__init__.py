"""The recovered file, with nulls in the place of lost chunks."""
