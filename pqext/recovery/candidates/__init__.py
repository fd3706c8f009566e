"""Candidate row groups of a damaged file, their inconsistencies, and the results of checking them."""
