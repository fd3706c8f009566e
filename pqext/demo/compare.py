"""Compare pqext with other readers of the same file: every value and every null."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pqext.report.model import Box

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_ROWS = 200_000
"""Files with more rows are not compared."""

_EXACT = Context(prec=10_000)

Row = tuple[str | None, bytes | None]
"""A variant as canonical JSON and a geometry as WKB. None is null; the text ``null`` is JSON null."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the VARIANT column and the geometry column of the demo's files."""

    variant: str
    geometry: str = "geom"


def canonical(text: str | None) -> str | None:
    """Return JSON text with sorted keys and normalised numbers, so that 2, 2.0 and 2.00 are equal.

    >>> canonical('{"b": 2.00, "a": 1e2}') == canonical('{"a":100,"b":2}')
    True
    """
    if text is None:
        return None
    value = json.loads(text, parse_int=_number, parse_float=_number)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _number(text: str) -> dict[str, str]:
    # An object with an improbable key distinguishes numbers from equal strings.
    return {"\ufdd0": str(_EXACT.normalize(Decimal(text)) if Decimal(text) else Decimal())}


def by_pqext(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as pqext reads them on this machine, without Spark."""
    from pqext import variant
    from pqext.core.read.reader import ParquetFile

    with ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[columns.variant, columns.geometry]):
            texts = variant.to_json(batch.column(columns.variant)).to_pylist()
            yield from zip(map(canonical, texts), batch.column(columns.geometry).to_pylist(), strict=True)


def read_with_spark(spark: SparkSession, path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as Spark's own Parquet reader returns them."""
    from pyspark.sql import functions as F

    frame = spark.read.parquet(str(path)).select(
        F.to_json(F.col(_quote(columns.variant, "`"))), F.expr(f"st_asbinary({_quote(columns.geometry, '`')})")
    )
    for text, wkb in frame.collect():
        yield canonical(text), None if wkb is None else bytes(wkb)


def spark_reads(spark: SparkSession, path: Path) -> bool:
    """Return whether Spark's own reader supports all types of the file. (Spark 4.1 rejects geometries.)"""
    from pyspark.errors import AnalysisException

    try:
        spark.read.parquet(str(path))
    except AnalysisException as error:
        if error.getCondition() != "PARQUET_TYPE_ILLEGAL":
            raise
        return False
    return True


def read_with_duckdb(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows as DuckDB returns them."""
    import duckdb

    variant, geometry = _quote(columns.variant, '"'), _quote(columns.geometry, '"')
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT CAST(CAST({variant} AS JSON) AS VARCHAR), ST_AsWKB({geometry}) FROM read_parquet(?)", [str(path)]
        )
        while block := rows.fetchmany(10_000):
            for text, wkb in block:
                yield canonical(text), None if wkb is None else bytes(wkb)


def duckdb_version() -> str | None:
    """Return the version of DuckDB; None if it is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        return None
    import duckdb

    return str(duckdb.__version__)


def difference(expected: Iterable[Row], actual_rows: Iterable[Row]) -> str | None:
    """Describe how two sets of rows differ, ignoring order; return None if they are equal."""
    missing, extra = Counter(expected), Counter(actual_rows)
    missing, extra = missing - extra, extra - missing
    if not missing and not extra:
        return None
    example: Any = next(iter(missing or extra))
    return f"{missing.total()} rows missing, {extra.total()} unexpected rows, such as {str(example)[:200]}"


def spark_count(
    spark: SparkSession, path: Path, columns: Columns, box: Box | None, lower_limit: tuple[str, float] | None
) -> int:
    """Count the rows that Spark's own reader returns for a query, written as in plain Spark."""
    from pyspark.sql import functions as F

    from pqext.spark.functions import try_variant_get
    from pqext.spark.pushdown.variant_paths import spark_path
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
    return sum(any(shapely.box(*part).intersects(geometry) for part in _parts(box)) for geometry in geometries)


def duckdb_count(path: Path, columns: Columns, box: Box | None, lower_limit: tuple[str, float] | None) -> int:
    """Count the rows that DuckDB returns for a query."""
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
            for x0, y0, x1, y1 in _parts(box)
        ]
        conditions.append("(" + " OR ".join(boxes) + ")")
    with duckdb.connect() as connection:
        query = f"SELECT count(*) FROM read_parquet(?) WHERE {' AND '.join(conditions)}"
        result = connection.execute(query, [str(path)]).fetchone()
    return int(result[0]) if result is not None else 0


def has_expected_count(count: Callable[[], int], expected: int) -> bool:
    """Return whether ``count`` returns ``expected``. Return False if it raises, as readers do on overwritten pages."""
    try:
        return count() == expected
    except Exception:  # engines raise various errors on invalid pages
        return False


def _parts(box: Box) -> list[tuple[float, float, float, float]]:
    return [(xmin, box.ymin, xmax, box.ymax) for xmin, xmax in box.spans()]


def _quote(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote
