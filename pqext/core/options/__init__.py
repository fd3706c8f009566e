"""Options of the reader and the writer."""
