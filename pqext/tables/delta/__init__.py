"""Delta tables, through ``deltalake``."""
