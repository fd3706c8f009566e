"""How the tests' Spark sessions are quick to start and to run."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

SPARK_4_1 = version("pyspark").startswith("4.1.")

native_geometry = pytest.mark.skipif(SPARK_4_1, reason="Spark 4.1 reads and writes no GEOMETRY in Parquet by itself")
"""For what Spark's own reader and writer of Parquet do with geometries."""

_UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
QUICK_JAVA = {"JDK_JAVA_OPTIONS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_UNVERIFIED}"}
"""Tests end before Java's second compiler pays off, or the verification of each class of Spark."""

_inherited = os.environ.get("PYTHONPATH")
QUICK_WORKERS = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).with_name("workers")), *([_inherited] if _inherited else [])])
}
"""Python workers begin with what they import: ``workers/sitecustomize.py``."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings by which Spark compiles nothing, for many expressions on few rows."""


def one_query(*frames: Any) -> list[list[Any]]:
    """The rows of each frame, by one query for all: a query takes longer than few rows do."""
    marked = [frame.select(F.lit(number).alias("frame"), "*") for number, frame in enumerate(frames)]
    found: list[list[Any]] = [[] for _ in frames]
    for row in _union(marked).collect():
        found[row.frame].append(row)
    return found


def _union(frames: list[Any]) -> Any:
    """In halves, since Spark goes through all of a plan each time that it grows."""
    middle = len(frames) // 2
    return _union(frames[:middle]).union(_union(frames[middle:])) if middle else frames[0]


def ids(*frames: Any) -> list[list[int]]:
    """The sorted ``id`` of each frame, by one query."""
    return [sorted(row.id for row in rows) for rows in one_query(*(frame.select("id") for frame in frames))]


def by_conditions(frame: Any, conditions: list[Any]) -> list[list[int]]:
    """The sorted ``id`` of the rows of ``frame`` for which Spark finds each condition true, by one query."""
    told = [F.expr(one) if isinstance(one, str) else one for one in conditions]
    rows = sorted(frame.select("id", F.array(*told)).collect())
    return [[row[0] for row in rows if row[1][at]] for at in range(len(told))]
