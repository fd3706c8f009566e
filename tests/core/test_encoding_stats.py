"""A page whose header names another encoding by a flipped bit gives no rows that would be believed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest
from recovery.cut_files import by_pqext, by_pyarrow, recovered

import pqext
from pqext.core.base.errors import CorruptDataWarning, ParquetError
from pqext.core.footer.encoding_statistics import excess_encodings
from pqext.core.format.metadata import ColumnMetaData, Encoding, PageEncodingStats, PageHeader, PageType
from pqext.core.format.thrift import decode

ROWS = 500
TEXTS = pa.table({"x": pa.array([f"{row % 7}a{row}" for row in range(ROWS)], pa.binary())})
BYTES = pa.table({"x": pa.array([bytes([row % 5]) for row in range(ROWS)], pa.binary(1))})
FLOATS = pa.table({"x": pa.array([row / 7 for row in range(ROWS)], pa.float32())})
MIXED = pa.table({"x": pa.array([bytes([row * row % 251]) for row in range(ROWS * 6)], pa.binary(1))})
UNTOLD = {"write_statistics": False, "compression": "none"}
FILES = {
    "delta": (TEXTS, by_pyarrow(TEXTS, use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"}, **UNTOLD)),
    "delta, ours": (
        TEXTS, by_pqext(TEXTS, dictionary=False, encodings="delta_byte_array", statistics=False, page_index=False)
    ),
    "dictionary": (BYTES, by_pyarrow(BYTES, **UNTOLD)),
    "dictionary, version 2": (BYTES, by_pyarrow(BYTES, data_page_version="2.0", **UNTOLD)),
    "split": (FLOATS, by_pyarrow(FLOATS, use_dictionary=False, column_encoding={"x": "BYTE_STREAM_SPLIT"}, **UNTOLD)),
    "mixed": (
        MIXED,
        by_pyarrow(MIXED, dictionary_pagesize_limit=100, data_page_size=200, write_batch_size=100, **UNTOLD),
    ),
}


def encoding(header: PageHeader) -> Encoding | None:
    about = header.data_page_header or header.data_page_header_v2
    return None if about is None else about.encoding


def misnamed(data: bytes) -> Iterator[bytes]:
    """The file with each bit flipped that gives a data page another encoding and changes nothing else of its header."""
    at, stop = 4, pqext.open(data).row_groups[0].chunk(0).byte_range
    while at < sum(stop):
        header, begin = decode(PageHeader, data, at)
        for place in range(at, begin):
            for bit in range(8):
                made = bytearray(data)
                made[place] ^= 1 << bit
                try:
                    other, end = decode(PageHeader, bytes(made), at)
                except ParquetError:
                    continue
                about = other.data_page_header or other.data_page_header_v2
                if end == begin and about is not None and about.encoding != encoding(header) is not None:
                    about.encoding = encoding(header)
                    if other == header:
                        yield bytes(made)
        at = begin + header.compressed_page_size


@pytest.mark.parametrize("name", FILES)
@pytest.mark.spec("layout.chunk-encoding")
def test_page_with_an_inconsistent_encoding_is_rejected(name: str) -> None:
    table, data = FILES[name]
    flips = list(misnamed(data))
    assert len(flips) >= 2
    rows = table["x"].to_pylist()
    for flipped in flips:
        with pqext.open(flipped, on_corrupt="skip") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", CorruptDataWarning)
            found = file.read()["x"].to_pylist()
            lost = {row for one in file.damage for row in range(one.start, one.stop)}
        assert found == [value for row, value in enumerate(rows) if row not in lost]
        report, made = recovered(flipped)
        assert not report.is_certified or made == table
        assert "layout.chunk-encoding" in {one.rule for one in pqext.verify(flipped).faults} or lost


def chunk(encodings: list[Encoding], counts: dict[Encoding, int]) -> ColumnMetaData:
    """Metadata that lists ``encodings`` and counts data pages."""
    stats = [
        PageEncodingStats(page_type=PageType.DATA_PAGE, encoding=one, count=count) for one, count in counts.items()
    ]
    with pqext.open(FILES["dictionary"][1]) as file:
        about = file.row_groups[0].chunk(0).metadata
    about.encodings, about.encoding_stats = encodings, stats
    return about


PLAIN, RLE, INDICES, OLD = Encoding.PLAIN, Encoding.RLE, Encoding.RLE_DICTIONARY, Encoding.PLAIN_DICTIONARY
DELTA = Encoding.DELTA_BYTE_ARRAY


@pytest.mark.parametrize(
    ("encodings", "counts", "found", "odd"),
    [
        ([PLAIN, RLE, INDICES], {INDICES: 3}, {INDICES: 3}, set()),
        ([PLAIN, RLE, OLD], {OLD: 3}, {INDICES: 3}, set()),
        ([PLAIN, RLE, INDICES], {INDICES: 1}, {PLAIN: 1}, {PLAIN}),
        ([PLAIN, RLE, INDICES], {INDICES: 1}, {DELTA: 1}, {DELTA}),
        ([PLAIN, RLE, INDICES], {PLAIN: 9, INDICES: 3}, {PLAIN: 10, INDICES: 2}, {PLAIN}),
        ([PLAIN, RLE, INDICES], {PLAIN: 3}, {INDICES: 3}, set()),  # the counts contradict the list
        ([PLAIN, RLE, INDICES], {DELTA: 3}, {INDICES: 3}, set()),
        ([PLAIN, RLE, DELTA], {INDICES: 3}, {INDICES: 3}, set()),  # the list contradicts both
        ([PLAIN, RLE, INDICES], {INDICES: 4}, {PLAIN: 3}, set()),  # counts of other pages
        ([PLAIN, RLE, INDICES], {}, {DELTA: 1}, set()),
    ],
)
@pytest.mark.spec("layout.chunk-encoding")
def test_encoding_list_decides_whether_pages_or_counts_are_wrong(
    encodings: list[Encoding], counts: dict[Encoding, int], found: dict[Encoding, int], odd: set[Encoding]
) -> None:
    assert excess_encodings(chunk(encodings, counts), found) == odd
