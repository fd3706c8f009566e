"""How the tests' Spark sessions are quick to start and to run."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

SPARK_4_1 = version("pyspark").startswith("4.1.")

native_geometry = pytest.mark.skipif(SPARK_4_1, reason="Spark 4.1 reads and writes no GEOMETRY in Parquet by itself")
"""For what Spark's own reader and writer of Parquet do with geometries."""

QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Tests end before Java's second compiler pays off."""

_inherited = os.environ.get("PYTHONPATH")
QUICK_WORKERS = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).with_name("workers")), *([_inherited] if _inherited else [])])
}
"""Python workers begin with what they import: ``workers/sitecustomize.py``."""
