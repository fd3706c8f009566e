"""Slots of a column: values and nulls gathered into Arrow buffers."""
