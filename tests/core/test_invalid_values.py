"""Values outside their column's type: an error when their rows are requested, or null; other rows are read.

The other rows are what pyarrow reads of the same file; the validity of the values is what DuckDB says of them.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import CorruptFileError
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import (
    ConvertedType,
    DecimalType,
    FileMetaData,
    IntType,
    LogicalType,
    MicroSeconds,
    StringType,
    TimeType,
    TimeUnit,
)

ROWS = 3_000
BAD = 1_234


def stored(values: list[Any], kind: pa.DataType, logical: LogicalType) -> bytes:
    """A file of pyarrow whose column ``v``, also within lists, is of another logical type than it was written as."""
    column = pa.array(values, kind)
    lists = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), column)
    out = io.BytesIO()
    pq.write_table(pa.table({"id": range(ROWS), "v": column, "l": lists}), out, store_schema=False)

    def annotate(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name in ("v", "element"):
                element.logicalType = logical
                element.converted_type = ConvertedType.UTF8 if logical.STRING is not None else None
                if logical.DECIMAL is not None:
                    element.scale, element.precision = logical.DECIMAL.scale, logical.DECIMAL.precision

    target = io.BytesIO()
    rewrite_footer(io.BytesIO(out.getvalue()), annotate, target)
    return target.getvalue()


def numbers(bad: Any) -> list[Any]:
    return [bad if row == BAD else None if row % 7 == 0 else row % 100 for row in range(ROWS)]


def big_endian(values: list[Any], width: int) -> list[bytes | None]:
    return [None if value is None else value.to_bytes(width, "big", signed=True) for value in values]


TIME = LogicalType(TIME=TimeType(isAdjustedToUTC=False, unit=TimeUnit(MICROS=MicroSeconds())))
DECIMAL = LogicalType(DECIMAL=DecimalType(scale=2, precision=5))
FILES: dict[str, Callable[[], bytes]] = {
    "time": lambda: stored(numbers(90_000_000_000), pa.int64(), TIME),
    "negative time": lambda: stored(numbers(-1), pa.int64(), TIME),
    "decimal of 32 bits": lambda: stored(numbers(1_234_567), pa.int32(), DECIMAL),
    "decimal of 64 bits": lambda: stored(numbers(10**15), pa.int64(), DECIMAL),
    "decimal of fixed bytes": lambda: stored(big_endian(numbers(10**15), 8), pa.binary(8), DECIMAL),
    "decimal of bytes": lambda: stored(big_endian(numbers(-(10**15)), 9), pa.binary(), DECIMAL),
    "byte": lambda: stored(numbers(300), pa.int32(), LogicalType(INTEGER=IntType(bitWidth=8, isSigned=True))),
    "text": lambda: stored(
        [b"\xff" if value == "bad" else None if value is None else b"%d" % value for value in numbers("bad")],
        pa.binary(), LogicalType(STRING=StringType()),
    ),
}  # fmt: skip


def expected(name: str) -> list[Any]:
    """The valid values, as the specification reads them; the invalid one is None."""
    values = numbers(None)
    if "time" in name:
        return [None if value is None else datetime.time(microsecond=value) for value in values]
    if "decimal" in name:
        return [None if value is None else Decimal(value).scaleb(-2) for value in values]
    return [value if value is None or name == "byte" else str(value) for value in values]


@pytest.fixture(scope="module", params=FILES)
def case(request: pytest.FixtureRequest) -> tuple[bytes, list[Any]]:
    return FILES[request.param](), expected(request.param)


def test_rows_next_to_an_invalid_value_are_readable(case: tuple[bytes, list[Any]]) -> None:
    data, values = case
    with pqext.open(data) as file:
        assert file.head(5).select(["v", "l"]).to_pylist() == [{"v": v, "l": [v]} for v in values[:5]]
        rows = [range(BAD - 3, BAD), range(BAD + 1, BAD + 4)]
        kept = [value for part in rows for value in values[part.start : part.stop]]
        assert file.read(["v"], rows={0: rows})["v"].to_pylist() == kept
        assert file.read(["id"]).num_rows == ROWS
        batches = file.iter_batches(BAD, ["l"])
        assert next(batches).column("l").to_pylist() == [[value] for value in values[:BAD]]
        with pytest.raises(CorruptFileError, match="invalid_values") as caught:
            next(batches)
        assert caught.value.column == "l.list.element"


@pytest.mark.parametrize("columns", [None, ["v"], ["l"]])
def test_filters_that_exclude_an_invalid_value_succeed(
    case: tuple[bytes, list[Any]], columns: list[str] | None
) -> None:
    data, values = case
    found = pqext.read_table(data, columns=columns, filter=(col("id") < BAD) | (col("id") == BAD + 1))
    name = "v" if columns is None else columns[0]
    chosen = [*values[:BAD], values[BAD + 1]]
    assert found[name].to_pylist() == (chosen if name == "v" else [[value] for value in chosen])
    most = pqext.read_table(data, columns=columns, filter=col("id") != BAD)
    others = [value for row, value in enumerate(values) if row != BAD]
    assert most[name].to_pylist() == (others if name == "v" else [[value] for value in others])
    with pytest.raises(CorruptFileError, match="invalid_values"):
        pqext.read_table(data, columns=columns, filter=col("id") == BAD)


def test_invalid_values_are_null_on_request(case: tuple[bytes, list[Any]]) -> None:
    data, values = case
    table = pqext.read_table(data, invalid_values="null")
    assert table["v"].to_pylist() == values
    assert table["l"].to_pylist() == [[value] for value in values]
    assert pqext.read_table(data, invalid_values="null", filter=col("v").is_null()).num_rows == values.count(None)


def without_nulls() -> bytes:
    """Times of which one lies beyond the day, in pages of 100 rows, in a file whose statistics count no nulls."""
    values = [90_000_000_000 if row == BAD else row for row in range(ROWS)]
    out = io.BytesIO()
    table = pa.table({"id": range(ROWS), "v": pa.array(values, pa.int64())})
    pq.write_table(table, out, store_schema=False, write_page_index=True, max_rows_per_page=100)

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[2].logicalType = TIME

    target = io.BytesIO()
    rewrite_footer(io.BytesIO(out.getvalue()), annotate, target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (col("v").is_null(), {BAD}),
        (~col("v").is_null(), {*range(ROWS)} - {BAD}),
        (col("v") >= datetime.time(0), {*range(ROWS)} - {BAD}),
        (col("v") > datetime.time(0, 0, 0, 100), {*range(101, ROWS)} - {BAD}),
        ((col("id") > BAD - 2) & col("v").is_null(), {BAD}),
    ],
    ids=str,
)  # fmt: skip
def test_statistics_do_not_hide_values_read_as_null(condition: Any, expected: set[int]) -> None:
    scan = pqext.scan(without_nulls(), invalid_values="null", filter=condition)
    assert set(scan.to_table()["id"].to_pylist()) == expected
    assert scan.count() == len(expected)


def test_aggregates_exclude_values_read_as_null() -> None:
    scan = pqext.scan(without_nulls(), invalid_values="null")
    assert (scan.null_count("v"), scan.max("v").as_py()) == (1, datetime.time(microsecond=ROWS - 1))
    names = pqext.scan(FILES["text"](), invalid_values="null")
    assert names.max("v").as_py() == max(filter(None, expected("text")))


def test_duckdb_rejects_the_same_time_and_text(tmp_path: Path) -> None:
    for name in ("time", "text"):
        (tmp_path / "f.parquet").write_bytes(FILES[name]())
        with pytest.raises(duckdb.Error, match=r"(?i)invalid"):
            duckdb.sql(f"select v from '{tmp_path / 'f.parquet'}'").fetchall()


def test_invalid_values_of_required_columns_remain_errors() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"v": [1, 90_000_000_000]}, pa.schema([pa.field("v", pa.int64(), False)])), out)

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[1].logicalType = TIME

    target = io.BytesIO()
    rewrite_footer(io.BytesIO(out.getvalue()), annotate, target)
    with pytest.raises(CorruptFileError, match="required"):
        pqext.read_table(target.getvalue(), invalid_values="null", arrow_schema=False)


def test_rewriting_replaces_invalid_values_with_null(case: tuple[bytes, list[Any]], tmp_path: Path) -> None:
    data, values = case
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    source.write_bytes(data)
    report = pqext.repair(source, target, invalid_values="null")
    assert (report.rows, report.invalid, report.damage) == (ROWS, 2, ())
    assert pq.read_table(target)["v"].to_pylist() == values
