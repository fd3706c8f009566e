"""Parse and validate the options of reads and saves."""
