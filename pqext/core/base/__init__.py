"""Foundations of every layer: errors, limits, buffers and memory budgets."""
