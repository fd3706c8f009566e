"""Python starts Spark's daemons with what their workers import already there: each worker would take a second for it.

Sessions that tests start in processes of their own (`test_session.py`, `test_connect.py`) go without.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pkgutil import walk_packages

ONCE = "pyspark.sql.worker.lookup_data_sources"  # asked once in a session

if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"] and sys.orig_argv[3] != ONCE:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # what is forked has no threads
    for name in ("pandas", "pyspark.sql.conversion", "pyspark.sql.pandas.types", "pqext.spark", sys.orig_argv[3]):
        import_module(name)
    for module in walk_packages(import_module("pqext.spark").__path__, "pqext.spark."):
        import_module(module.name)
    gc.collect()
    gc.freeze()
