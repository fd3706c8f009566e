"""Any Arrow table that Spark has types for, written with any options, is read equal by Spark, and so is what the
file says of itself: statistics, sizes and page index, as parquet-java sees them, are those of the values.
"""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pyarrow.types as is_
import pytest
from core import statistics_checks, strategies
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions
from spark import parquet_java
from spark.parquet_java import ParquetJava

import pqext
from reference import chunk_statistics, page_headers, values
from reference.chunk_statistics import Leaf
from reference.effort import share

REFUSED = {
    "time_ms": "knows no times of day in milliseconds",
    "time_s": "the same: stored in milliseconds",
    "timestamp_ns": "has no nanoseconds",
    "timestamp_wide": "the same",
    "float16": "has no half floats",
    "decimal76": "has 38 digits at most",
    "interval": "does not know the type",
}
"""Types whose columns Spark refuses to read, and why: it says so when it sees the schema."""

READABLE = {name: kind for name, kind in strategies.SCALARS.items() if name not in REFUSED}
# Spark's timestamps are 64 bits of microseconds: profile="spark" refuses values beyond them.
READABLE["timestamp_s"] = READABLE["timestamp_s"][0], st.integers(-(2**43), 2**43)
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
SETTINGS = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    max_examples=share(0.04),
)


@pytest.fixture(scope="module")
def reader(spark: Any) -> Iterator[Any]:
    """The session, which knows times of day, and whose columnar reader takes any number of columns."""
    changed = {"spark.sql.timeType.enabled": "true", "spark.sql.codegen.maxFields": "1000"}
    before = {name: spark.conf.get(name) for name in (*changed, VECTORIZED)}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


VECTORIZED = "spark.sql.parquet.enableVectorizedReader"


@pytest.fixture(scope="module")
def java(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ParquetJava]:
    with parquet_java.compiled(spark, tmp_path_factory.mktemp("classes")) as found:
        yield found


def read(
    spark: Any, folder: Path, vectorized: bool, keep: Callable[[Any], Any] = lambda frame: frame, **options: str
) -> dict[str, list[Any]]:
    """The columns of each file of a folder, with the rows that ``keep`` leaves, all read by one job."""
    spark.conf.set(VECTORIZED, str(vectorized).lower())
    frame = spark.read.options(**options).parquet(str(folder))
    table = keep(frame).select("*", "_metadata.file_name").toArrow()
    files = table.column("file_name").to_pylist()
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.iterdir()):
        rows = pa.array([name == path.name for name in files], pa.bool_())
        found[path.name] = values.columns(table.drop_columns("file_name").filter(rows))
    return found


def spark_values(table: pa.Table) -> list[tuple[str, list[Any]]]:
    """The values as they are, but integers of 64 unsigned bits as decimals, and durations as integers."""
    return [
        (field.name, [_in_spark(field.type, value) for value in found])
        for field, (_, found) in zip(table.schema, values.columns(table), strict=True)
    ]


def _in_spark(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if is_.is_run_end_encoded(kind):
        return _in_spark(kind.value_type, value)
    if is_.is_uint64(kind):
        return value, 0
    if is_.is_duration(kind):  # which Parquet stores as a number, and tells only Arrow what it counts
        return value // NANOSECONDS[kind.unit]
    if is_.is_struct(kind):
        return tuple(_in_spark(field.type, child) for field, child in zip(kind, value, strict=True))
    if is_.is_map(kind):
        return [(_in_spark(kind.key_type, key), _in_spark(kind.item_type, item)) for key, item in value]
    if is_.is_nested(kind):
        return [_in_spark(kind.value_type, element) for element in value]
    return value


@pytest.mark.slow
@SETTINGS
@given(st.data())
def test_spark_reads_arbitrary_tables_with_arbitrary_options(reader: Any, data: st.DataObject) -> None:
    table = data.draw(strategies.tables(READABLE, depth=2, width=(4, 8)))
    choices = [
        data.draw(strategies.options(table.schema, encrypted=False, alp=False, brotli=False)) for _ in range(3)
    ]
    check_values(reader, table, choices, [data.draw(st.booleans())], spark_values(table))


@pytest.mark.slow
@SETTINGS
@given(st.data())
def test_spark_reads_arbitrary_encrypted_tables(reader: Any, java: ParquetJava, data: st.DataObject) -> None:
    """Keys come from a ``DecryptionPropertiesFactory`` of the tests by their key metadata, as from a KMS."""
    table = data.draw(strategies.tables(READABLE, depth=2, width=(4, 8)))
    paths = [leaf.dotted_path for leaf in strategies.leaves(table.schema)]
    choices = [
        data.draw(strategies.options(table.schema, encrypted=False, alp=False, brotli=False))
        # Spark's library leaves the levels of pages of version 2 in plaintext: specs/encryption.md.
        | {"encryption": data.draw(strategies.encryptions(paths)), "page_version": 1}
        for _ in range(3)
    ]
    check_values(reader, table, choices, [data.draw(st.booleans())], spark_values(table), **parquet_java.DECRYPTED)


UNABLE = 'of the class "org.apache.spark.sql.execution.datasources.parquet.VectorizedReaderBase"'
"""In the message where Spark's columnar reader lacks a type in an encoding, such as unsigned integers in
BYTE_STREAM_SPLIT, which ``profile="spark"`` does not write; its row reader has it."""


def check_values(
    reader: Any, table: pa.Table, choices: list[dict[str, Any]], readers: list[bool], expected: Any, **options: Any
) -> None:
    """Spark reads ``expected`` of files written with each of ``choices``, by its columnar reader or by rows."""
    with tempfile.TemporaryDirectory() as folder:
        for at, choice in enumerate(choices):
            pqext.write_table(table, Path(folder, f"{at}.parquet"), **choice)
        for vectorized in readers:
            try:
                files = read(reader, Path(folder), vectorized, **options)
            except (PySparkException, Py4JJavaError) as error:
                if not vectorized or UNABLE not in str(error):
                    raise
                files = read(reader, Path(folder), False, **options)
            for name, found in files.items():
                assert found == expected, (name, vectorized)


NUMBERS = {
    name: (READABLE[name][0], st.floats(allow_nan=False, width=width).map(lambda number: number + 0.0))
    for name, width in (("float", 32), ("double", 64))
}
COMPARED = NUMBERS | {
    name: READABLE[name]
    for name in (
        "boolean", "int8", "int32", "int64", "uint8", "uint32", "uint64", "string", "binary", "fixed", "decimal9",
        "decimal18", "decimal38",
    )
}
"""Types whose Python values Spark takes for literals. No NaN and no -0.0: by bounds, which leave NaN out, and by
dictionaries without the other zero, Spark loses rows in any writer's files (specs/statistics.md). What is written for
it is tested by itself."""
OPERATORS = [operator.eq, operator.lt, operator.ge]


@pytest.mark.slow
@pytest.mark.spec("statistics.bounds", "page-index.read-by-others")
@SETTINGS
@given(st.data())
def test_spark_loses_no_row_to_statistics_indexes_and_bloom_filters(reader: Any, data: st.DataObject) -> None:
    table = data.draw(strategies.tables(COMPARED, depth=0, plain=True).filter(len))
    name = data.draw(st.sampled_from(table.column_names))
    value = table[name][data.draw(st.integers(0, len(table) - 1))].as_py()
    compare = data.draw(st.sampled_from(OPERATORS))
    literal = Decimal(value) if isinstance(value, int) and value >= 2**63 else value

    def keep(frame: Any) -> Any:
        column = frame[name]
        same = functions.lit(literal).cast(frame.schema[name].dataType)
        return frame.where(column.isNull() if value is None else compare(column, same))

    kept = [
        found is None if value is None else found is not None and compare(found, value)
        for found in table[name].to_pylist()
    ]
    expected = spark_values(table.filter(pa.array(kept, pa.bool_())))
    choices = [
        data.draw(strategies.options(table.schema, encrypted=False, alp=False, brotli=False)) for _ in range(3)
    ]
    check_values(reader, table, choices, [data.draw(st.booleans())], expected, keep=keep)


@pytest.mark.spec("bloom.zeros")
def test_spark_finds_zeros_of_both_signs_with_a_bloom_filter(reader: Any, tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([0.5, -0.0, -1.0])})
    pqext.write_table(table, tmp_path / "t.parquet", bloom_filters=True)
    for vectorized in (True, False):
        found = read(reader, tmp_path, vectorized, lambda frame: frame.where("c = 0.0D"))
        assert found["t.parquet"] == values.columns(table.slice(1, 1))


@pytest.mark.slow
@SETTINGS
@given(st.data())
def test_parquet_java_reads_correct_statistics_and_page_indexes(
    java: ParquetJava, data: st.DataObject
) -> None:
    table = data.draw(strategies.tables(strategies.CORE, depth=2, plain=True))
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False))
    encrypted = data.draw(st.booleans())
    if encrypted:
        paths = [leaf.dotted_path for leaf in strategies.leaves(table.schema)]
        options |= {"encryption": data.draw(strategies.encryptions(paths))}
    chosen = pqext.WriteOptions(**options)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "t.parquet")
        pqext.write_table(table, path, **options)
        groups = java.row_groups(path, encrypted=encrypted)
    leaves = chunk_statistics.leaves(table)
    start = 0
    for group in groups:
        rows = range(start, start + group[0]["rows"])
        for leaf, chunk in zip(leaves, group, strict=True):
            note(f"{leaf.path} of {rows}: {chunk}")
            check_chunk(leaf, chunk, rows, chosen)
        start = rows.stop
    assert start == len(table)


def check_chunk(leaf: Leaf, chunk: dict[str, Any], rows: range, chosen: pqext.WriteOptions) -> None:
    """What parquet-java sees of a chunk is what its values say."""
    expected = leaf.statistics(rows)
    assert (chunk["path"], chunk["values"]) == (leaf.path, expected.entries)
    assert chunk["codec"].lower() == chosen.compression_of(leaf.path)
    wanted, indexed = chosen.statistics_of(leaf.path), chosen.has_page_index(leaf.path)
    # parquet-java does not know the total order, and looks at no bounds in an order that it does not know.
    ordered = not is_.is_floating(leaf.type) or chosen.float_order == "type"
    assert chunk["nulls"] == (expected.nulls if wanted else None)
    bounds = (chunk["minimum"], chunk["maximum"])
    if wanted and ordered:
        statistics_checks.check_bounds(leaf, bounds, expected, chosen.bound_bytes)
    else:
        assert bounds == (None, None)
    if wanted:
        found = (chunk["definition_levels"], chunk["repetition_levels"])
        statistics_checks.check_levels(leaf, found, expected)
        assert chunk["byte_array_bytes"] == expected.byte_array_bytes
    assert ("pages" in chunk) == indexed
    if not indexed:
        assert "minima" not in chunk
        return
    assert chunk["pages"][0]["first_row"] == 0
    assert chunk["pages"][-1]["last_row"] == len(rows) - 1
    pages = [leaf.statistics(rows[page["first_row"] : page["last_row"] + 1]) for page in chunk["pages"]]
    assert sum(page.entries for page in pages) == expected.entries
    assert ("minima" in chunk) == (wanted and ordered and not any(page.nothing_but_nan for page in pages))
    if "minima" not in chunk:
        return
    assert chunk["null_counts"] == [page.nulls for page in pages]
    assert chunk["null_pages"] == [page.nulls == page.entries for page in pages]
    for low, high, page in zip(chunk["minima"], chunk["maxima"], pages, strict=True):
        if page.nulls == page.entries:
            assert (low, high) == (b"", b"")
        else:
            statistics_checks.check_bounds(leaf, (low, high), page, chosen.bound_bytes)
    present = [at for at, page in enumerate(pages) if page.nulls < page.entries]
    sides = [[chunk[side][at] for at in present] for side in ("minima", "maxima")]
    statistics_checks.check_order(leaf, chunk["order"], *sides)
    levels = zip(
        _cut(chunk["page_definition_levels"], len(pages)), _cut(chunk["page_repetition_levels"], len(pages)), pages,
        strict=True,
    )
    for definition, repetition, page in levels:
        statistics_checks.check_levels(leaf, (definition, repetition), page)


def _cut(numbers: list[int], parts: int) -> list[list[int]]:
    size = len(numbers) // parts
    return [numbers[at * size : (at + 1) * size] for at in range(parts)]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_spark_rejects_types_excluded_from_the_round_trip(reader: Any, name: str, tmp_path: Path) -> None:
    kind, _ = strategies.SCALARS[name]
    pqext.write_table(pa.table({"c": pa.array([None], kind)}), tmp_path / "t.parquet")
    with pytest.raises((PySparkException, Py4JJavaError), match=r"Illegal Parquet type|not yet supported|DECIMAL_PREC"):
        read(reader, tmp_path, vectorized=True)


@pytest.mark.slow
@pytest.mark.spec("encryption.v2.plaintext-levels")
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_spark_does_not_read_encrypted_pages_of_version_2(
    reader: Any, java: ParquetJava, algorithm: Any, tmp_path: Path
) -> None:
    """It takes their levels for plaintext, ours and Arrow's; ``profile="spark"`` refuses to write them."""
    table = pa.table({"l": [[1.5], [], [None, -2.0]]})
    ours = pqext.encryption.FileEncryption(strategies.FOOTER_KEY, "f", algorithm=algorithm)
    theirs = pe.create_encryption_properties(strategies.FOOTER_KEY, encryption_algorithm=algorithm)
    for version in (1, 2):
        folder = tmp_path / str(version)
        folder.mkdir()
        pqext.write_table(table, folder / "pqext.parquet", encryption=ours, page_version=version)
        pq.write_table(
            table, folder / "arrow.parquet", encryption_properties=theirs, data_page_version=f"{version}.0",
            store_schema=False,
        )
    found = read(reader, tmp_path / "1", True, **parquet_java.DECRYPTED)
    assert found == dict.fromkeys(["arrow.parquet", "pqext.parquet"], values.columns(table))
    for path in sorted((tmp_path / "2").iterdir()):
        folder = tmp_path / path.stem
        folder.mkdir()
        path.rename(folder / path.name)
        with pytest.raises((PySparkException, Py4JJavaError), match="FAILED_READ_FILE"):
            read(reader, folder, True, **parquet_java.DECRYPTED)


CODECS = sorted(set(strategies.LEVELS) - {"brotli"})
POOLS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int32": [0, -1, 2**31 - 1, -(2**31), 7],
    "int64": [0, -1, 2**63 - 1, -(2**63), 7],
    "float": [1.5, float("nan"), -0.0, float("-inf")],
    "double": [1.5, float("nan"), -0.0, float("-inf")],
    "string": ["", "a", "abé" * 9, "abc"],
    "fixed": [b"abcde", b"abcdf", b"\xff\0\0\0\0"],
    "decimal38": [Decimal("1.5"), Decimal(-(10**38) + 1).scaleb(-5, values.EXACT), Decimal(0)],
}
"""Values of each physical type."""

NESTINGS: dict[str, tuple[str, Any, Any]] = {
    "required": ("", lambda kind: kind, lambda pool, row: pool[row % len(pool)]),
    "optional": ("", lambda kind: kind, lambda pool, row: pool[row % len(pool)] if row % 4 else None),
    "list": (".list.element", pa.list_, lambda pool, row: [None, *pool][: row % 6] if row % 5 else None),
    "struct": (
        ".a.list.element", lambda kind: pa.struct([pa.field("a", pa.list_(pa.field("element", kind, False)), False)]),
        lambda pool, row: {"a": pool[: row % 4]} if row % 5 else None,
    ),
    "map": (
        ".key_value.value", lambda kind: pa.map_(pa.string(), kind),
        lambda pool, row: [("k", pool[row % len(pool)]), ("n", None)][: row % 3] if row % 5 else None,
    ),
}
"""For each the path of the leaf below the column, the type around a scalar and the value of a row."""


def grid() -> tuple[pa.Table, dict[str, str]]:
    """A column for each physical type, encoding and nesting; and the encodings of the leaves that hold its values."""
    fields, arrays, encodings = [], [], {}
    for name, pool in POOLS.items():
        scalar = strategies.CORE[name][0]
        physical = strategies.leaves(pa.schema([("c", scalar)]))[0].leaf_type.physical
        suitable = [one for one in strategies.SUITABLE[physical] if one != "alp"]
        for encoding in [*suitable, *(["rle_dictionary"] if name != "boolean" else [])]:
            for nesting, (below, around, value) in NESTINGS.items():
                column = f"{name}-{encoding}-{nesting}"
                fields.append(pa.field(column, around(scalar), nesting != "required"))
                arrays.append(pa.array([value(pool, row) for row in range(45)], around(scalar)))
                encodings[column + below] = encoding
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), encodings


@pytest.fixture(scope="module")
def grid_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """The grid in a file for each codec and page version, whose pages are in the encodings asked for."""
    table, encodings = grid()
    folder = tmp_path_factory.mktemp("grid")
    for codec in CODECS:
        for version in (1, 2):
            path = folder / f"{codec}-{version}.parquet"
            pqext.write_table(
                table, path, compression=codec, page_version=version, page_rows=7, row_group_rows=30,
                encodings={leaf: one for leaf, one in encodings.items() if one != "rle_dictionary"},
            )
            check_encodings(path, encodings, version)
    return table, folder


def check_encodings(path: Path, encodings: dict[str, str], version: int) -> None:
    data, footer = path.read_bytes(), pq.read_metadata(path)
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            chunk = footer.row_group(group).column(at)
            if chunk.path_in_schema not in encodings:
                continue  # keys of maps
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            pages = page_headers.pages(data, start, chunk.total_compressed_size)
            found = {(page.kind, page.encoding) for page in pages if page.kind != "DICTIONARY_PAGE"}
            kind = "DATA_PAGE_V2" if version == 2 else "DATA_PAGE"
            assert found == {(kind, encodings[chunk.path_in_schema].upper())}, chunk.path_in_schema


@pytest.mark.slow
@pytest.mark.parametrize("vectorized", [True, False])
def test_spark_reads_every_encoding_codec_page_version_and_nesting(
    reader: Any, grid_files: tuple[pa.Table, Path], vectorized: bool
) -> None:
    table, folder = grid_files
    found = read(reader, folder, vectorized)
    assert len(found) == 2 * len(CODECS)
    expected = values.columns(table)
    for name, columns in found.items():
        for (column, theirs), (_, ours) in zip(columns, expected, strict=True):
            assert theirs == ours, (name, column)
