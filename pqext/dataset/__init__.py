"""Datasets of many files: expressions over rows, what statistics refuse, and scans.

``scan`` is what users hold: a request, which the planner plans and the executor runs. Below them, each folder imports
only those named before it: ``files`` (which files), ``expressions`` (what is asked of rows), ``evaluation`` (answered
on Arrow data), ``notations`` (written as SQL or JSON), ``pruning`` (answered from metadata), ``planning`` (what will be
read), ``execution`` (how), ``table`` (many files as one), ``writing`` (files of a folder written together) and
``engines`` (for polars and DuckDB).
"""
