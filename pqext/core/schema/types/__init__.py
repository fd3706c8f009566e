"""Logical types: interpretation of stored values, their Arrow types, and conversion between both."""
