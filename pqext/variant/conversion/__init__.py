"""Convert variants from and to Python objects, Arrow columns and tables."""
