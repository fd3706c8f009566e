"""Compiled inner loops for data-skipping stores."""
