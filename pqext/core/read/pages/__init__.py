"""Select and decode the pages of a column chunk."""
