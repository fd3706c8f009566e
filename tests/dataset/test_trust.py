"""Evidence that lies loses rows where it is trusted, and none with ``trust_statistics=False``.

Each file is written with one kind of evidence. Then its data is changed, or what the evidence says of it.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col, geo, variant
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import ColumnIndex, ColumnMetaData, FileMetaData
from pqext.core.format.thrift import decode, encode
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.verification import verify

HIDDEN = 777_777
"""What the data really holds where the evidence saw ``WRITTEN``."""
WRITTEN = 6
ROWS = 100
AT = 25
TYPED = "c.typed_value.a.typed_value"
PLAIN: dict[str, Any] = {
    "compression": "uncompressed", "dictionary": False, "checksums": False, "page_rows": 10, "row_group_rows": 50,
    "statistics": False, "page_index": False, "bloom_filters": False,
}  # fmt: skip


def written(values: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": values}), out, **PLAIN | options)
    return out.getvalue()


def numbers(**options: Any) -> bytes:
    """Fives, and a six that is ``HIDDEN`` in truth."""
    return replaced(written([5] * AT + [WRITTEN] + [5] * (ROWS - AT - 1), **options), "<q", WRITTEN, HIDDEN)


def replaced(data: bytes, form: str, old: float, new: float) -> bytes:
    """``data`` with another value in the first place that holds ``old``: pages come before all that tells of them."""
    was, becomes = struct.pack(form, old), struct.pack(form, new)
    assert was in data
    return data.replace(was, becomes, 1)


def change_metadata(data: bytes, change: Callable[[ColumnMetaData], None], column: str = "c") -> bytes:
    """The file with something else in the footer about the chunks of a column."""
    out = io.BytesIO()

    def all_chunks(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                if chunk.meta_data is not None and ".".join(chunk.meta_data.path_in_schema) == column:
                    change(chunk.meta_data)

    rewrite_footer(io.BytesIO(data), all_chunks, out)
    return out.getvalue()


def without_statistics(chunk: ColumnMetaData) -> None:
    chunk.statistics = None


def nulls(number: int | None) -> Callable[[ColumnMetaData], None]:
    """So many nulls, or all."""

    def change(chunk: ColumnMetaData) -> None:
        assert chunk.statistics is not None
        chunk.statistics.null_count = chunk.num_values if number is None else number
        if number is None:
            chunk.statistics.min_value = chunk.statistics.max_value = None
            chunk.geospatial_statistics = None

    return change


def no_nan(chunk: ColumnMetaData) -> None:
    assert chunk.statistics is not None
    chunk.statistics.nan_count = 0


def indexed(data: bytes, change: Callable[[ColumnIndex], None], column: str = "c") -> bytes:
    """The file with another column index for the first chunk of a column, before the footer, and no statistics."""
    with pqext.open(data) as file:
        index = file.row_groups[0].chunk(column).column_index
        end = file.footer.offset
    assert index is not None
    index = decode(ColumnIndex, encode(index))[0]
    change(index)
    raw = encode(index)
    out = io.BytesIO()

    def change_chunks(metadata: FileMetaData) -> None:
        for chunk in metadata.row_groups[0].columns:
            if chunk.meta_data is not None and ".".join(chunk.meta_data.path_in_schema) == column:
                chunk.column_index_offset, chunk.column_index_length = end, len(raw)

    rewrite_footer(io.BytesIO(data[:end] + raw + data[end:]), change_chunks, out)
    return change_metadata(out.getvalue(), without_statistics, column)


def all_null(index: ColumnIndex) -> None:
    pages = len(index.null_pages)
    index.null_pages, index.null_counts = [True] * pages, [10] * pages
    index.min_values = index.max_values = [b""] * pages
    index.definition_level_histograms = None


def no_nulls(index: ColumnIndex) -> None:
    index.null_counts, index.definition_level_histograms = [0] * len(index.null_pages), None


def points(**options: Any) -> bytes:
    xs = [5.0] * AT + [float(WRITTEN)] + [5.0] * (ROWS - AT - 1)
    described = {"c": {"crs": "OGC:CRS84", **options}}
    data = written(geo.from_points(xs, [0.0] * ROWS), geometry=described, page_index=True, statistics=True)
    return replaced(data, "<d", WRITTEN, 77.0)


def drop_box(chunk: ColumnMetaData) -> None:
    chunk.geospatial_statistics = None


def covered() -> bytes:
    """Points whose boxes lie in columns beside them, and in nothing else."""
    xs = [5.0] * AT + [float(WRITTEN)] + [5.0] * (ROWS - AT - 1)
    data = written(
        geo.from_points(xs, [0.0] * ROWS), geometry={"c": {"crs": "OGC:CRS84", "covering": True, "page_boxes": False}},
        geoparquet=True, statistics=True,
    )
    return change_metadata(replaced(data, "<d", WRITTEN, 77.0), drop_box)


def shredded(**options: Any) -> bytes:
    """Numbers below ``$.a``, whose typed column saw ``WRITTEN``."""
    texts = [f'{{"a": {WRITTEN if i == AT else 5}}}' for i in range(ROWS)]
    data = written(variant.parse_json(pa.array(texts)), shredding={"c": "a BIGINT"}, **options)
    return replaced(data, "<q", WRITTEN, HIDDEN)


def residual(page_index: bool) -> bytes:
    """A fraction among numbers, in a residual of which the evidence says that it is empty."""
    texts = [f'{{"a": {HIDDEN + 0.5 if i == AT else i}}}' for i in range(ROWS)]
    data = written(
        variant.parse_json(pa.array(texts)), shredding={"c": "a BIGINT"}, statistics=True, page_index=page_index
    )
    if page_index:
        return change_metadata(indexed(data, all_null, "c.typed_value.a.value"), without_statistics, TYPED)
    return change_metadata(data, nulls(None), "c.typed_value.a.value")


SIX = col("c") == HIDDEN
FAR = col("c").intersects((76.0, -1.0, 78.0, 1.0))
SOME = pa.array([None if i == AT else 5 for i in range(ROWS)], pa.int64())
NUMBER = col("c").variant("$.a", "int64") == HIDDEN
FRACTION = col("c").variant("$.a", "double") == HIDDEN + 0.5

LIES: dict[str, Callable[[], tuple[bytes, Any, int]]] = {
    "statistics": lambda: (numbers(statistics=True), SIX, 1),
    "statistics, a list": lambda: (numbers(statistics=True), col("c").isin([HIDDEN, HIDDEN + 1]), 1),
    "statistics, nulls": lambda: (change_metadata(written(SOME, statistics=True), nulls(0)), col("c").is_null(), 1),
    "statistics, all null": lambda: (change_metadata(written(SOME, statistics=True), nulls(None)), col("c") == 5, 99),
    "statistics, all null, asked for any": lambda: (
        change_metadata(written(SOME, statistics=True), nulls(None)), col("c").is_not_null(), 99
    ),
    "statistics, NaN": lambda: (
        change_metadata(written(pa.array([5.0, float("nan")] * 50), statistics=True), no_nan), col("c").is_nan(), 50
    ),
    "column index": lambda: (change_metadata(numbers(statistics=True, page_index=True), without_statistics), SIX, 1),
    "column index, nulls": lambda: (
        indexed(written(SOME, statistics=True, page_index=True), no_nulls), col("c").is_null(), 1
    ),
    "Bloom filter": lambda: (numbers(bloom_filters=True), SIX, 1),
    "Bloom filter, a list": lambda: (numbers(bloom_filters=True), col("c").isin([HIDDEN]), 1),
    "box": lambda: (points(page_boxes=False), FAR, 1),
    "boxes of pages": lambda: (change_metadata(points(), drop_box), FAR, 1),
    "all geometries null": lambda: (change_metadata(points(page_boxes=False), nulls(None)), FAR, 1),
    "covering": lambda: (covered(), FAR, 1),
    "shredded, statistics": lambda: (shredded(statistics=True), NUMBER, 1),
    "shredded, column index": lambda: (
        change_metadata(shredded(statistics=True, page_index=True), without_statistics, TYPED), NUMBER, 1
    ),
    "shredded, Bloom filter": lambda: (
        shredded(statistics={TYPED: False}, bloom_filters={TYPED: True}), NUMBER, 1
    ),
    "residual": lambda: (residual(False), FRACTION, 1),
    "residual, pages": lambda: (residual(True), FRACTION, 1),
}


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", LIES)
@pytest.mark.spec("statistics.trust", "geo.pruning.trust")
def test_false_statistics_lose_rows_only_if_trusted(name: str) -> None:
    data, filter, rows = LIES[name]()
    assert pqext.read_table(data, filter=filter).num_rows < rows
    assert pqext.read_table(data, filter=filter, trust_statistics=False).num_rows == rows
    assert pqext.scan(data, filter=filter, trust_statistics=False).count() == rows
    (task,) = pqext.scan(data, filter=filter, trust_statistics=False).plan(pages=True)
    assert all(group.prune_reason is None and group.rows is None for group in task.row_groups)


@pytest.mark.parametrize("name", LIES)
@pytest.mark.spec("statistics.trust")
def test_verify_detects_false_statistics_and_names_the_remedy(name: str) -> None:
    report = verify(LIES[name]()[0])
    if name == "covering":  # columns of their own, which only GeoParquet's metadata ties to the geometries
        return
    assert not report.ok
    assert any("trust_statistics=False" in count.advice for count in report.counts), report


@pytest.mark.spec("statistics.trust")
def test_untrusted_null_count_omits_no_part_of_a_value() -> None:
    texts = [f'{{"a": {i if i == AT else chr(34) + "x" + chr(34)}}}' for i in range(ROWS)]
    data = written(variant.parse_json(pa.array(texts)), shredding={"c": "a STRING"}, statistics=True)
    data = change_metadata(data, nulls(None), "c.typed_value.a.value")
    wanted = [col("c").variant("$.a", "string")]
    expected = ["x"] * AT + [str(AT)] + ["x"] * (ROWS - AT - 1)
    assert pqext.read_table(data, wanted).column(0).to_pylist() != expected
    assert pqext.read_table(data, wanted, trust_statistics=False).column(0).to_pylist() == expected


@pytest.mark.spec("statistics.trust")
def test_untrusted_statistics_are_not_read() -> None:
    data = bytearray(written(list(range(ROWS)), statistics=True, page_index=True, bloom_filters=True))
    with pqext.open(bytes(data)) as file:
        for group in file.metadata.row_groups:
            (chunk,) = group.columns
            about = chunk.meta_data
            assert about is not None
            for start, length in (
                (chunk.column_index_offset, chunk.column_index_length),
                (chunk.offset_index_offset, chunk.offset_index_length),
                (about.bloom_filter_offset, about.bloom_filter_length),
            ):
                assert start is not None
                assert length is not None
                data[start : start + length] = b"\xff" * length
    assert pqext.read_table(bytes(data), filter=col("c") == 31, trust_statistics=False)["c"].to_pylist() == [31]
    with pqext.open(bytes(data), pqext.ReadOptions(trust_statistics=False)) as file:
        assert file.read(rows={0: [range(20, 23)]})["c"].to_pylist() == [20, 21, 22]
        chunk = file.row_groups[0].chunk(0)
        assert (chunk.pages, chunk.page_locations, chunk.page_bounds()) == (None, None, [])
        assert chunk.metadata.statistics is not None
    with pytest.raises(DamagedIndexWarning):
        pqext.read_table(bytes(data), filter=col("c") == 31)


def test_strict_count_reads_rows_that_statistics_prove() -> None:
    data = bytearray(written(list(range(ROWS)), statistics=True, page_index=True, checksums=True))
    with pqext.open(bytes(data)) as file:
        about = file.metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        data[about.data_page_offset + about.total_compressed_size - 1] ^= 1
    matching = pqext.scan(bytes(data), filter=col("c") >= 0)
    assert matching.count() == ROWS
    with pytest.raises(pqext.CorruptFileError, match="checksum"):
        pqext.scan(bytes(data), filter=col("c") >= 0, strict=True).count()


def test_strict_reading_rejects_a_corrupt_bloom_filter() -> None:
    data = bytearray(written(list(range(0, 2 * ROWS, 2)), statistics=False, page_index=False, bloom_filters=True))
    with pqext.open(bytes(data)) as file:
        for group in file.metadata.row_groups:
            about = group.columns[0].meta_data
            assert about is not None
            assert about.bloom_filter_offset is not None
            data[about.bloom_filter_offset : about.bloom_filter_offset + 8] = b"\xff" * 8
    with pytest.raises(DamagedIndexWarning, match="ignored a Bloom filter"):
        pqext.read_table(bytes(data), filter=col("c") == 31)
    with pytest.raises(pqext.CorruptFileError) as caught:
        pqext.read_table(bytes(data), filter=col("c") == 31, strict=True)
    assert caught.value.column == "c"
