"""Choose the engine of a read; ``engine="native"`` is Spark's own Parquet reader with files pruned by pqext.

The driver plans the read, drops files without matches, and passes the other files to Spark with an explicit schema. A
VARIANT value that is stored in a typed leaf only (:mod:`pqext.spark.reading.native_files`) is a plain column in Spark,
without Python. Other VARIANT values are read from the shredded struct. A VARIANT column of the result, or one with
different shredding in different files, is read as VARIANT.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.dataset.expressions import Column, Spatial, VariantField
from pqext.dataset.planning.projection import ComputedColumn
from pqext.spark.base.files import is_remote
from pqext.spark.reading.native_reading import NativeRead, condition_leaves, variant_fields
from pqext.spark.reading.planning import ReadPlan, plan_read
from pqext.spark.reading.request import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["python", "native", "auto"]
ENGINES: tuple[Engine, ...] = ("python", "native", "auto")

_logger = logging.getLogger(__name__)
_PATTERN = re.compile(r"[*?{}\[\]\\:]")
_ASCII_ESCAPE = re.compile(r"%[0-7][0-9A-Fa-f]")


@dataclass(frozen=True)
class EngineChoice:
    """Chosen engine and the reasons, the plan, and the read by Spark's own reader for engine ``native``."""

    engine: Literal["python", "native"]
    reasons: tuple[str, ...] = ()
    plan: ReadPlan | None = None
    reading: NativeRead | None = None


def check_engine(engine: str) -> None:
    """Raise ``ValueError`` for an unknown engine."""
    if engine not in ENGINES:
        hint = did_you_mean(str(engine), ENGINES)
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}{hint}")


def choose_engine(query: Query, engine: Engine, spark: SparkSession | None) -> EngineChoice:
    """Plan ``query`` and choose the engine that reads it.

    Raises ``UnsupportedError`` with all obstacles if ``engine`` is ``native`` and Spark's reader cannot read the files.
    """
    check_engine(engine)
    if engine == "python":
        return EngineChoice("python")
    choice = _plan_engine(query, engine, spark)
    _logger.info("engine=%r reads with %r: %s", engine, choice.engine, "; ".join(choice.reasons))
    return choice


def _plan_engine(query: Query, engine: Engine, spark: SparkSession | None) -> EngineChoice:
    obstacles = [*_find_obstacles(query, spark)]
    plan = reading = None
    if not obstacles:
        target = query.values_schema()
        plan = plan_read(query, target.names, pages=False)
        try:
            reading = NativeRead.plan(query, target, plan)
            obstacles = reading.obstacles()
        except UnsupportedError as error:  # of a column that is not read
            obstacles = [f"Spark does not support {error.feature} in column {escape_text(str(error.column))}"]
    if obstacles and engine == "native":
        raise UnsupportedError(
            f"Spark's own reader cannot run this read: {'; '.join(obstacles)}. Omit engine, or pass engine=\"auto\"",
            feature="engine native",
        )
    if obstacles or reading is None:
        return EngineChoice("python", tuple(obstacles), plan)
    objections = reading.objections()
    if engine == "auto" and objections:
        return EngineChoice("python", tuple(objections), plan)
    return EngineChoice("native", (*reading.reasons(), *objections), plan, reading)


def _find_obstacles(query: Query, spark: SparkSession | None) -> Iterator[str]:
    """Yield the properties of a query that Spark's reader does not support."""
    if spark is not None and type(spark).__module__.startswith("pyspark.sql.connect"):
        yield "on Spark Connect the client does not plan reads"
    remote = [file for file in query.files if is_remote(file)]
    if remote:
        yield "files in object stores are read by pqext"
    odd = [file for file in query.files if not remote and _has_unsupported_name(file)]
    if odd:
        yield f"{escape_text(odd[0])} has a name that Spark treats as a pattern or a hidden file"
    if query.metrics_path is not None:
        yield "metrics_path records reads by tasks of pqext"
    if query.memory_bytes is not None:
        yield "memory_bytes limits tasks of pqext"
    if query.invalid_utf8 != "raise":
        yield "invalid_utf8 is applied by pqext"
    if query.table is not None:
        yield "the files belong to a table, whose log states their columns and deleted rows"
    elif query.unified is not None:
        yield 'schema="union" is applied by pqext'
    if query.partitions.paths is not None or query.partitions.rows is not None:
        yield "columns of include_file_paths and include_row_numbers are added by pqext"
    elif not remote:
        yield from _find_folder_obstacles(query)
    if query.bbox is not None or any(isinstance(leaf, Spatial) for leaf in condition_leaves(query.where)):
        yield "boxes and conditions on geometries are evaluated by pqext"
    for column in query.columns or ():
        if isinstance(column, ComputedColumn) and not isinstance(column.field, Column | VariantField):
            yield f"column {escape_text(column.name)} is computed by pqext"
    for field in variant_fields(query).values():
        if len(field.column.path) != 1:
            yield f"{field} is within a VARIANT that is itself within a column"


def _has_unsupported_name(file: str) -> bool:
    path = os.path.splitdrive(file)[1].replace(os.sep, "/")
    return _PATTERN.search(path) is not None or os.path.basename(file)[:1] in ("_", ".")


def _find_folder_obstacles(query: Query) -> Iterator[str]:
    root, names = query.partitions.root, query.partitions.schema.names
    if not names:
        return
    for file in query.files:
        folders = os.path.relpath(os.path.dirname(file), root).split(os.sep)
        if [part.partition("=")[0] for part in folders] != names or not all("=" in part for part in folders):
            yield f"the folders of {escape_text(file)} are not {'/'.join(f'{name}=...' for name in names)}"
            return
        if "%" in _ASCII_ESCAPE.sub("", "".join(folders)):
            yield f"the folders of {escape_text(file)} have escapes that Spark does not decode as UTF-8"
            return
