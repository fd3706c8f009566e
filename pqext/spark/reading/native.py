"""``engine="native"``: files and paths chosen by pqext's planner, rows read by Spark's own Parquet reader.

The driver plans, drops the files that cannot match, and gives Spark the others with an explicit schema. A value within
a VARIANT that lies in a typed leaf alone (:mod:`pqext.spark.reading.native_files`) is a plain column to Spark, so that
no row passes through Python. A VARIANT of which other values are asked is read as its shredded struct, and one that is
wanted whole, or is shredded in several ways, by Spark as VARIANT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.dataset.expressions import Column, Spatial, VariantField
from pqext.dataset.planning.projection import Computed
from pqext.spark.base.files import is_remote
from pqext.spark.reading.native_reading import NativeRead, fields_of, leaves_of
from pqext.spark.reading.planning import ReadPlan, plan_read
from pqext.spark.reading.request import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["python", "native", "auto"]
ENGINES: tuple[Engine, ...] = ("python", "native", "auto")

_PATTERN = re.compile(r"[*?{}\[\]\\:]")
_ASCII_ESCAPE = re.compile(r"%[0-7][0-9A-Fa-f]")


@dataclass(frozen=True)
class Choice:
    """The engine that reads, why, and for ``native`` what it reads."""

    engine: Literal["python", "native"]
    reasons: tuple[str, ...] = ()
    plan: ReadPlan | None = None
    reading: NativeRead | None = None


def check_engine(engine: str) -> None:
    """Raise ``ValueError`` for the name of no engine."""
    if engine not in ENGINES:
        raise ValueError(f"engine is one of {', '.join(ENGINES)}, not {engine!r}{did_you_mean(str(engine), ENGINES)}")


def choose(query: Query, engine: Engine, spark: SparkSession | None) -> Choice:
    """Plan ``query`` and decide which engine reads it.

    Raises ``UnsupportedError`` naming every obstacle where ``engine`` is ``native`` and Spark's reader cannot read it.
    """
    check_engine(engine)
    if engine == "python":
        return Choice("python")
    obstacles = [*_obstacles(query, spark)]
    plan = reading = None
    if not obstacles:
        target = query.values_schema()
        plan = plan_read(query, target.names, pages=False)
        reading = NativeRead.of(query, target, plan)
        obstacles = reading.obstacles()
    if obstacles and engine == "native":
        raise UnsupportedError(
            f"Spark's own reader cannot read this: {'; '.join(obstacles)}. Leave engine out, or give engine=\"auto\"",
            feature="engine native",
        )
    if obstacles or reading is None:
        return Choice("python", tuple(obstacles), plan)
    objections = reading.objections()
    if engine == "auto" and objections:
        return Choice("python", tuple(objections), plan)
    return Choice("native", (*reading.reasons(), *objections), plan, reading)


def _obstacles(query: Query, spark: SparkSession | None) -> Iterator[str]:
    """What of a query alone keeps Spark's reader from it."""
    if spark is not None and type(spark).__module__.startswith("pyspark.sql.connect"):
        yield "on Spark Connect the client does not plan reads"
    remote = [file for file in query.files if is_remote(file)]
    if remote:
        yield "files in stores are read by pqext"
    odd = [file for file in query.files if not remote and _is_odd(file)]
    if odd:
        yield f"{escape_text(odd[0])} has a name that Spark takes for a pattern or leaves out as hidden"
    if query.metrics_path is not None:
        yield "metrics_path asks what tasks of pqext have read"
    if query.memory_bytes is not None:
        yield "memory_bytes limits tasks of pqext"
    if query.invalid_utf8 != "raise":
        yield "invalid_utf8 is followed by pqext"
    if query.unified is not None:
        yield 'schema="union" is made by pqext'
    if query.partitions.paths is not None or query.partitions.rows is not None:
        yield "include_file_paths and include_row_numbers are made by pqext"
    elif not remote:
        yield from _folder_obstacles(query)
    if query.bbox is not None or any(isinstance(leaf, Spatial) for leaf in leaves_of(query.where)):
        yield "boxes and conditions on geometries are evaluated by pqext"
    for one in query.columns or ():
        if isinstance(one, Computed) and not isinstance(one.field, Column | VariantField):
            yield f"column {escape_text(one.name)} is computed by pqext"
    for field in fields_of(query).values():
        if len(field.column.path) != 1:
            yield f"{field} is within a VARIANT that is itself within a column"


def _is_odd(file: str) -> bool:
    path = os.path.splitdrive(file)[1].replace(os.sep, "/")
    return _PATTERN.search(path) is not None or os.path.basename(file)[:1] in ("_", ".")


def _folder_obstacles(query: Query) -> Iterator[str]:
    root, names = query.partitions.root, query.partitions.schema.names
    if not names:
        return
    for file in query.files:
        folders = os.path.relpath(os.path.dirname(file), root).split(os.sep)
        if [part.partition("=")[0] for part in folders] != names or not all("=" in part for part in folders):
            yield f"the folders of {escape_text(file)} are not {'/'.join(f'{name}=...' for name in names)}"
            return
        if "%" in _ASCII_ESCAPE.sub("", "".join(folders)):
            yield f"the folders of {escape_text(file)} have escapes that Spark does not take for UTF-8"
            return
