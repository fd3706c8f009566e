"""The files of the data-skipping metadata store, byte by byte: names, metadata, parts, Bloom filters.

Implements document 001. What an index means, and which files a filter may skip, is decided above.
"""
