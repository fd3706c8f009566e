"""File format of data-skipping stores: names, metadata, parts, Bloom filters.

The meaning of indexes, and the files that a filter may skip, are determined in the folders above.
"""
