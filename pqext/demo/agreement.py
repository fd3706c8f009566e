"""Compare other readers with pqext: the values they return, and the row groups they read for queries."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from pqext.core.base.text import with_noun
from pqext.core.read.reader import ParquetFile
from pqext.demo.questions import DemoQuery
from pqext.report.model import Agreement, Box, Question, Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_ROWS = 200_000
"""Files with more rows are not compared."""

MAX_COPIED_BYTES = 256 << 20
"""Larger files are not copied and overwritten."""

_EXACT = Context(prec=10_000)

Row = tuple[str | None, bytes | None]
"""A variant as canonical JSON and a geometry as WKB. None is null; the text ``null`` is JSON null."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the VARIANT column and the geometry column of the demo's files."""

    variant: str
    geometry: str = "geom"


def normalize_json(text: str | None) -> str | None:
    """Return JSON text with sorted keys and normalised numbers, so that 2, 2.0 and 2.00 are equal.

    >>> normalize_json('{"b": 2.00, "a": 1e2}') == normalize_json('{"a":100,"b":2}')
    True
    """
    if text is None:
        return None
    value = json.loads(text, parse_int=_number, parse_float=_number)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _number(text: str) -> dict[str, str]:
    # An object with an improbable key distinguishes numbers from equal strings.
    return {"\ufdd0": str(_EXACT.normalize(Decimal(text)) if Decimal(text) else Decimal())}


def _read_with_pqext(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as pqext reads them on this machine, without Spark."""
    from pqext import variant

    with ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[columns.variant, columns.geometry]):
            texts = variant.to_json(batch.column(columns.variant)).to_pylist()
            yield from zip(map(normalize_json, texts), batch.column(columns.geometry).to_pylist(), strict=True)


def _read_with_spark(spark: SparkSession, path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as Spark's own Parquet reader returns them."""
    from pyspark.sql import functions as F

    frame = spark.read.parquet(str(path)).select(
        F.to_json(F.col(_quote(columns.variant, "`"))), F.expr(f"st_asbinary({_quote(columns.geometry, '`')})")
    )
    for text, wkb in frame.collect():
        yield normalize_json(text), None if wkb is None else bytes(wkb)


def _reads_geometries(spark: SparkSession, path: Path) -> bool:
    """Return whether Spark's own reader supports all types of the file. (Spark 4.1 rejects geometries.)"""
    from pyspark.errors import AnalysisException

    try:
        spark.read.parquet(str(path))
    except AnalysisException as error:
        if error.getCondition() != "PARQUET_TYPE_ILLEGAL":
            raise
        return False
    return True


def _read_with_duckdb(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as DuckDB returns them."""
    import duckdb

    variant, geometry = _quote(columns.variant, '"'), _quote(columns.geometry, '"')
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT CAST(CAST({variant} AS JSON) AS VARCHAR), ST_AsWKB({geometry}) FROM read_parquet(?)", [str(path)]
        )
        while block := rows.fetchmany(10_000):
            for text, wkb in block:
                yield normalize_json(text), None if wkb is None else bytes(wkb)


def _duckdb_version() -> str | None:
    """Return the version of DuckDB; None if it is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        return None
    import duckdb

    return str(duckdb.__version__)


def describe_difference(expected: Iterable[Row], actual_rows: Iterable[Row]) -> str | None:
    """Describe how two sets of rows differ, ignoring order; return None if they are equal."""
    missing, extra = Counter(expected), Counter(actual_rows)
    missing, extra = missing - extra, extra - missing
    if not missing and not extra:
        return None
    example: Any = next(iter(missing or extra))
    counts = f"{with_noun(missing.total(), 'row')} missing, {with_noun(extra.total(), 'unexpected row')}"
    return f"{counts}, such as {str(example)[:200]}"


def _spark_count(
    spark: SparkSession, path: Path, columns: Columns, box: Box | None, lower_limit: tuple[str, float] | None
) -> int:
    """Count the rows of a file that match ``box`` and ``lower_limit`` with Spark's own Parquet reader.

    ``lower_limit`` is a path in the VARIANT column and the minimum of its value.
    """
    from pyspark.sql import functions as F

    from pqext.spark.functions import try_variant_get
    from pqext.spark.pushdown.variant_column import spark_path
    from pqext.variant.access.path import parse

    frame = spark.read.parquet(str(path))
    if lower_limit is not None:
        variant, spelled = F.col(_quote(columns.variant, "`")), spark_path(parse(lower_limit[0]))
        if spelled is None:  # Spark does not support the path, so pqext extracts the value from its result
            result = try_variant_get(variant, lower_limit[0], "double")
        else:
            result = F.try_variant_get(variant, spelled, "double")
        frame = frame.where(result >= lower_limit[1])
    if box is None:
        return int(frame.count())
    # Spark has no spatial predicates, so points are tested here.
    import shapely

    frame = frame.select(F.expr(f"st_asbinary({_quote(columns.geometry, '`')})"))
    geometries = [shapely.from_wkb(bytes(wkb)) for (wkb,) in frame.collect() if wkb is not None]
    return sum(any(shapely.box(*part).intersects(geometry) for part in _rectangles(box)) for geometry in geometries)


def duckdb_count(path: Path, columns: Columns, box: Box | None, lower_limit: tuple[str, float] | None) -> int:
    """Count the rows of a file that match ``box`` and ``lower_limit`` with DuckDB; see :func:`_spark_count`."""
    import duckdb

    from pqext.variant.access.path import parse

    conditions = []
    if lower_limit is not None:
        value = _quote(columns.variant, '"')
        for step in parse(lower_limit[0]):
            value += f"[{step + 1}]" if isinstance(step, int) else f".{_quote(step, chr(34))}"
        conditions.append(f"TRY_CAST({value} AS DOUBLE) >= {lower_limit[1]!r}")
    if box is not None:
        boxes = [
            f"{_quote(columns.geometry, chr(34))} && "
            f"'POLYGON(({x0} {y0}, {x1} {y0}, {x1} {y1}, {x0} {y1}, {x0} {y0}))'::GEOMETRY"
            for x0, y0, x1, y1 in _rectangles(box)
        ]
        conditions.append("(" + " OR ".join(boxes) + ")")
    with duckdb.connect() as connection:
        query = f"SELECT count(*) FROM read_parquet(?) WHERE {' AND '.join(conditions)}"
        result = connection.execute(query, [str(path)]).fetchone()
    return int(result[0]) if result is not None else 0


def _has_expected_count(count: Callable[[], int], expected: int) -> bool:
    """Return whether ``count()`` is ``expected``. False if it raises an error, as readers do on overwritten pages."""
    try:
        return count() == expected
    except Exception:  # engines raise various errors on invalid pages
        return False


def _rectangles(box: Box) -> list[tuple[float, float, float, float]]:
    """Return the bounds of the box as (xmin, ymin, xmax, ymax); two rectangles if it wraps around the antimeridian."""
    return [(xmin, box.ymin, xmax, box.ymax) for xmin, xmax in box.spans()]


def _quote(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote


class File(Protocol):
    """Interface of a file with its label in the report."""

    @property
    def label(self) -> str: ...
    @property
    def file(self) -> Path: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader to compare: functions that return all rows of a file, and the number of matches of a query.

    ``distinguishes_nulls`` is true if the reader distinguishes a VARIANT that is JSON null from a null.
    """

    name: str
    rows: Callable[[Path], Iterable[Row]]
    count: Callable[[Path, DemoQuery], int]
    distinguishes_nulls: bool = True


def compare_readers(
    spark: SparkSession, files: Iterable[File], questions: list[tuple[DemoQuery, Question]], columns: Columns,
    scratch: Path,
) -> tuple[Agreement, ...]:
    """Compare the values and query results of the other readers with pqext's.

    Returns one result for each reader and file.
    """
    own = f"Spark {spark.version}, its own reader"
    readers = [
        Reader(
            own,
            lambda path: _read_with_spark(spark, path, columns),
            lambda path, item: _spark_count(spark, path, columns, item.box, _lower_limit(item)),
        )
    ]
    version = _duckdb_version()
    if version is not None:
        readers.append(
            Reader(
                f"DuckDB {version}",
                lambda path: _read_with_duckdb(path, columns),
                lambda path, item: duckdb_count(path, columns, item.box, _lower_limit(item)),
                distinguishes_nulls=False,
            )
        )
    results = []
    for file in files:
        small = _count_rows(file.file) <= MAX_ROWS
        expected = list(_read_with_pqext(file.file, columns)) if small else None
        for reader in readers:
            if reader.name == own and not _reads_geometries(spark, file.file):
                results.append(Agreement(own, file.label, None, "this version of Spark does not read geometries"))
            else:
                results.append(_compare_reader(reader, file, expected, questions, scratch))
        if version is None:
            results.append(Agreement("DuckDB", file.label, None, 'optional; "pip install duckdb" adds this comparison'))
    return tuple(results)


def _compare_reader(
    reader: Reader, file: File, expected: list[Row] | None, questions: list[tuple[DemoQuery, Question]], scratch: Path
) -> Agreement:
    if expected is None:
        return Agreement(reader.name, file.label, None, f"more than {MAX_ROWS:,} rows")
    json_nulls = 0
    if not reader.distinguishes_nulls:
        json_nulls = sum(text == "null" for text, _ in expected)
        expected = [(None if text == "null" else text, wkb) for text, wkb in expected]
    differs = describe_difference(expected, reader.rows(file.file))
    for item, question in questions:
        if differs is None and (rows := reader.count(file.file, item)) != question.num_rows:
            differs = f"{question.title}: {rows} rows instead of {question.num_rows}"
    note = f"{with_noun(len(expected), 'row')} and {with_noun(len(questions), 'answer')} the same"
    if json_nulls:
        note += f"; it has no JSON null apart from null ({with_noun(json_nulls, 'row')})"
    pruned = _query_pruned_copies(reader, file, questions, scratch)
    return Agreement(reader.name, file.label, differs is None, differs or note, pruned)


def _query_pruned_copies(reader: Reader, file: File, questions: list[tuple[DemoQuery, Question]], scratch: Path) -> str:
    """Run each query on a copy of the file. In the copy, the row groups that pqext skips are overwritten.

    Return a description of the queries that still return the correct number of rows.
    """
    if file.file.stat().st_size > MAX_COPIED_BYTES:
        return "not tried on a file of this size"
    enough: dict[str, int] = {}
    more: dict[str, int] = {}
    with TemporaryDirectory(dir=scratch, prefix="_damaged-") as folder:
        for i, (one, question) in enumerate(questions):
            copy = Path(folder) / f"{i}.parquet"
            retained = _find_reading(question, file.label).row_groups
            overwrite_pages(file.file, retained, copy)
            survived = _has_expected_count(lambda copy=copy, one=one: reader.count(copy, one), question.num_rows)  # type: ignore[misc]
            (enough if survived else more)[question.title] = len(retained)
    total = _find_reading(questions[0][1], file.label).row_groups_total if questions else 0
    return _describe_needs(enough, more, total)


def _describe_needs(sufficient_counts: dict[str, int], extra_counts: dict[str, int], total: int) -> str:
    """List the queries that a reader can answer by reading only the row groups that pqext reads.

    Both mappings contain the number of row groups that pqext reads for each query, by the query's title.
    """
    if not extra_counts:
        return f"no more than pqext: {_join_counts(sufficient_counts.values())} of {total}" if sufficient_counts else ""
    if not sufficient_counts:
        return f"more than pqext's {_join_counts(extra_counts.values())} of {total}"
    fewer, others = (
        ", ".join(f"{n} ({title})" for title, n in item.items()) for item in (sufficient_counts, extra_counts)
    )
    return f"no more than pqext's {fewer}; more than its {others}; of {total}"


def _join_counts(counts: Iterable[int]) -> str:
    *most, last = map(str, counts)
    return f"{', '.join(most)} and {last}" if most else last


def _find_reading(question: Question, label: str) -> Reading:
    return next(reading for reading in question.readings if reading.file == label)


def _lower_limit(question: DemoQuery) -> tuple[str, float] | None:
    return None if question.threshold is None else (question.threshold.path, question.threshold.value)


def _count_rows(path: Path) -> int:
    with ParquetFile(path) as file:
        return file.num_rows


def overwrite_pages(path: Path, retained_groups: Collection[int], copy: Path) -> int:
    """Copy ``path`` to ``copy`` and overwrite the pages outside ``retained_groups``. Return the size of these pages."""
    with ParquetFile(path) as file:
        ranges = [
            group.chunk(leaf).byte_range
            for group in file.row_groups
            if group.index not in retained_groups
            for leaf in file.schema.leaves
        ]
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    with copy.open("r+b") as target:
        for start, length in ranges:
            target.seek(start)
            target.write(b"\xff" * length)
    return sum(length for _, length in ranges)
