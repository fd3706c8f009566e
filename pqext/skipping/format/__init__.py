"""File format of data-skipping stores: names, metadata, parts, Bloom filters.

The meaning of indexes, and which files a filter can skip, are determined in the packages above this one.
"""
