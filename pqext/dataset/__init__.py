"""Datasets of many files: expressions over rows, pruning by statistics, and scans.

Users work with a ``scan``: a request that the planner plans and the executor runs. Below it, each folder imports only
the folders listed before it: ``files`` (find and open files), ``expressions`` (conditions and values), ``evaluation``
(expressions on Arrow data), ``notations`` (SQL, tuples, JSON), ``pruning`` (expressions on metadata), ``planning``
(what to read), ``execution`` (reading), ``table`` (many files as one table), ``writing`` (atomic saves) and ``engines``
(polars and DuckDB).
"""
