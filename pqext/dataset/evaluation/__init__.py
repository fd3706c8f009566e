"""Evaluate conditions and computed values on Arrow data."""
