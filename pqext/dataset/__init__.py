"""Datasets of many files: expressions over rows, what statistics refuse, and scans.

Start at ``expressions`` (the tree), then ``binding`` (expression meets schema), ``pruning`` (row groups),
``evaluate`` (rows) and ``scan``, which joins them.
"""
