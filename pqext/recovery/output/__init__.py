"""The recovered file, and a record of what it does not contain."""
