"""Any Arrow table, written with any options, comes back equal, here and elsewhere, in the encodings asked for."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import statistics_checks, strategies
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import pqext
from pqext.core.format.metadata import Encoding
from reference import chunk_statistics, page_headers, values
from reference.effort import share

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def written(table: pa.Table, options: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


@settings(suppress_health_check=SLOW_TO_DRAW)
@given(st.data())
def test_arbitrary_table_round_trips_with_arbitrary_options(data: st.DataObject) -> None:
    table = data.draw(strategies.tables())
    options = data.draw(strategies.options(table.schema))
    file_bytes = written(table, options)
    decryption = strategies.DECRYPTION if "encryption" in options else None
    read_options = pqext.ReadOptions(decryption=decryption, threads=data.draw(st.sampled_from([1, 2])))
    expected = values.columns(table)
    with pqext.open(file_bytes, read_options) as file:
        found = file.read()
        found.validate(full=True)
        assert values.columns(found) == expected
        assert [field.nullable for field in found.schema] == [field.nullable for field in table.schema]
        assert file.num_rows == len(table)
        batches = list(file.iter_batches(data.draw(st.integers(1, 50))))
        assert values.columns(pa.Table.from_batches(batches, file.arrow_schema)) == expected
        for group in file.row_groups:
            check_encodings(options, group)
    if table.num_rows and decryption is None:
        check_page_headers(file_bytes, options, table.schema)


def allowed(options: dict[str, Any], path: str) -> set[str]:
    """The encodings in which values of a leaf may be stored, by what was asked for."""
    asked = options["encodings"]
    named = isinstance(asked, dict) and path in asked
    name = asked if isinstance(asked, str) else asked.get(path, "plain")
    dictionary = options["dictionary"]
    with_dictionary = dictionary.get(path, not named) if isinstance(dictionary, dict) else dictionary and not named
    if name == "auto":
        found = set(page_headers.ENCODINGS.values()) - {"ALP", "PLAIN_DICTIONARY", "BIT_PACKED"}
    else:
        found = {name.upper()}
    return found | {"RLE_DICTIONARY"} if with_dictionary else found - {"RLE_DICTIONARY"}


def check_encodings(options: dict[str, Any], group: pqext.core.read.reader.RowGroup) -> None:  # type: ignore[name-defined]
    """The footer names no encoding but those asked for, and those of levels and dictionaries."""
    for chunk in group.chunks():
        named = {Encoding(encoding).name for encoding in chunk.metadata.encodings}
        assert named <= allowed(options, chunk.node.dotted_path) | {"RLE", "PLAIN"}


def check_page_headers(data: bytes, options: dict[str, Any], schema: pa.Schema) -> None:
    """Every data page is in an encoding that was asked for, and a dictionary is never beside pages that need none."""
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    for at, leaf in enumerate(strategies.leaves(schema)):
        for group in range(footer.num_row_groups):
            pages = page_headers.of_column(data, at, group)
            stored = {page.encoding for page in pages if page.kind != "DICTIONARY_PAGE"}
            assert stored <= allowed(options, leaf.dotted_path), leaf.dotted_path
            assert {page.kind for page in pages} <= {
                "DICTIONARY_PAGE", "DATA_PAGE_V2" if options["page_version"] == 2 else "DATA_PAGE",
            }
            has_dictionary = [page.kind for page in pages].count("DICTIONARY_PAGE")
            assert has_dictionary == ("RLE_DICTIONARY" in stored)
            column = footer.row_group(group).column(at)
            # pyarrow calls ALP unknown.
            assert {"UNKNOWN" if encoding == "ALP" else encoding for encoding in stored} <= set(column.encodings)
            assert sum(page.values for page in pages if page.kind != "DICTIONARY_PAGE") == column.num_values


@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.5))
@given(st.data())
def test_pyarrow_duckdb_and_polars_read_the_same_values(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(strategies.CORE, depth=2, plain=True))
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False))
    expected = values.columns(table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        path.write_bytes(written(table, options))
        assert values.columns(pq.ParquetFile(path, page_checksum_verification=True).read()) == expected
        for name, read in (("duckdb", read_by_duckdb), ("polars", read_by_polars)):
            note(name)
            try:
                found = read(path)
            except BaseException as error:  # polars' panics are no Exceptions
                if not any(words in str(error) for words in UNABLE[name]):
                    raise
                continue
            assert values.columns(found) == expected


UNABLE = {
    "duckdb": ["BYTE_STREAM_SPLIT encoding is only supported for"],
    # The last is of BYTE_STREAM_SPLIT in a required leaf below an optional struct that is null for a whole page.
    "polars": ["Not yet supported", "validity mask length must match"],
}
"""Where other readers give up on files that pyarrow reads, in words of their messages."""


def read_by_duckdb(path: Path) -> pa.Table:
    return duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table()


def read_by_polars(path: Path) -> pa.Table:
    return pl.read_parquet(path, use_pyarrow=False).to_arrow()


@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.5))
@given(st.data())
def test_statistics_match_those_written_by_pyarrow(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(strategies.CORE, depth=1, plain=True).filter(len))
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False))
    options |= {"statistics": True, "bound_bytes": 1000, "float_order": "type", "row_group_bytes": 1 << 20}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.parquet", Path(folder) / "theirs.parquet"
        ours.write_bytes(written(table, options))
        rows = options["row_group_rows"]
        pq.write_table(table, theirs, row_group_size=rows, store_schema=False, store_decimal_as_integer=True)
        assert pyarrow_statistics(ours) == pyarrow_statistics(theirs)
        assert duckdb_statistics(ours) == duckdb_statistics(theirs)


@pytest.mark.spec("statistics.bounds", "statistics.null-count", "statistics.nan-count", "statistics.truncation")
@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.25))
@given(st.data())
def test_pyarrow_and_duckdb_read_statistics_that_match_the_values(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(strategies.CORE, depth=2, plain=True))
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False)) | {"float_order": "type"}
    chosen = pqext.WriteOptions(**options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        path.write_bytes(written(table, options))
        footer = pq.read_metadata(path)
        columns = "path_in_schema, num_values, stats_null_count, stats_nan_count, min_is_exact, max_is_exact"
        theirs = iter(duckdb.sql(f"SELECT {columns} FROM parquet_metadata('{path}')").fetchall())
    leaves = chunk_statistics.leaves(table)
    start = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        rows = range(start, start + group.num_rows)
        start = rows.stop
        for at, leaf in enumerate(leaves):
            note(f"{leaf.path} of {rows}")
            expected, column = leaf.statistics(rows), group.column(at)
            name, entries, nulls, nans, *exact = next(theirs)
            assert column.num_values == entries == expected.entries
            assert name.replace(", ", ".") == column.path_in_schema == leaf.path
            if not chosen.statistics_of(leaf.path):
                assert (column.statistics, nulls, nans) == (None, None, None)
                continue
            assert column.statistics.null_count == nulls == expected.nulls
            assert nans == (expected.nans if pa.types.is_floating(leaf.type) else None)
            bounds = statistics_checks.raw_bounds(column.statistics)
            statistics_checks.check_bounds(leaf, bounds, expected, chosen.bound_bytes)
            ends = zip(bounds, (expected.minimum, expected.maximum), strict=True)
            assert exact == [None if bound is None else bound == value for bound, value in ends]
    assert start == len(table)


OPERATORS = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


@pytest.mark.spec("statistics.bounds", "page-index.read-by-others")
@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.25))
@given(st.data())
def test_polars_loses_no_rows_to_statistics(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(strategies.CORE, depth=0, plain=True).filter(len))
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False))
    frame = pl.DataFrame(pl.from_arrow(table))
    name = data.draw(st.sampled_from(frame.columns))
    value = frame[name][data.draw(st.integers(0, len(table) - 1))]
    column = pl.col(name)
    question = column.is_null() if value is None else getattr(column, data.draw(st.sampled_from(OPERATORS)))(
        pl.lit(value, dtype=frame.schema[name])
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        path.write_bytes(written(table, options))
        try:
            found = pl.scan_parquet(path, use_statistics=True).filter(question).collect()
        except BaseException as error:
            if not any(words in str(error) for words in UNABLE["polars"]):
                raise
            return
    assert values.columns(found.to_arrow()) == values.columns(frame.filter(question).to_arrow())


def pyarrow_statistics(path: Path) -> list[Any]:
    footer = pq.read_metadata(path)
    found = []
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            statistics = footer.row_group(group).column(at).statistics
            path = footer.row_group(group).column(at).path_in_schema
            if statistics is None:
                found.append((path, None, None, None))
            elif not statistics.has_min_max:
                found.append((path, statistics.null_count, None, None))
            else:
                found.append((path, statistics.null_count, repr(statistics.min_raw), repr(statistics.max_raw)))
    return found


def duckdb_statistics(path: Path) -> list[Any]:
    columns = "row_group_id, path_in_schema, num_values, stats_null_count, stats_min_value, stats_max_value"
    return duckdb.sql(f"SELECT {columns} FROM parquet_metadata('{path}')").fetchall()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("rows", [0, 5])
def test_table_without_columns_preserves_its_row_count(version: int, rows: int) -> None:
    table = pa.table({"a": pa.array(range(rows), pa.int8())}).select([])
    data = written(table, {"page_version": version})
    with pqext.open(data) as file:
        assert file.num_rows == rows
        assert file.read().num_columns == 0
        assert len(file.read()) == rows


@pytest.mark.parametrize("name", sorted(strategies.SCALARS))
@pytest.mark.parametrize("rows", [0, 3])
def test_all_null_column_of_any_type_round_trips(name: str, rows: int) -> None:
    kind, _ = strategies.SCALARS[name]
    table = pa.table({"c": pa.array([None] * rows, kind), "l": pa.array([[None]] * rows, pa.list_(kind))})
    for encodings in ("plain", "auto"):
        with warnings.catch_warnings():
            data = written(table, {"encodings": encodings})
            found = pqext.read_table(data)
        assert values.columns(found) == values.columns(table)
