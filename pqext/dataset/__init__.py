"""Datasets of many files: expressions over rows, pruning by statistics, and scans.

Users hold a ``scan``: a request, which the planner plans and the executor runs. Below them, each folder imports only
the folders before it: ``files`` (find and open files), ``expressions`` (conditions and values), ``evaluation``
(expressions on Arrow data), ``notations`` (SQL, tuples, JSON), ``pruning`` (expressions on metadata), ``planning``
(what to read), ``execution`` (reading), ``table`` (many files as one table), ``writing`` (atomic saves) and
``engines`` (polars and DuckDB).
"""
