"""Pages that refer to a long dictionary entry very often: only the rows of a batch are expanded."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import col
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, GeometryType, LogicalType

ROWS = 20_000
TEXT = "text" * 15_000
POLYGON = shapely.to_wkb(shapely.Point(0, 0).buffer(1, quad_segs=940))
LIMITS = pqext.Limits(memory_bytes=64 << 20, memory_expansion=0)
"""A twentieth of the values of a page."""


def repeated(entries: pa.Array, nulls: bool = False) -> pa.DictionaryArray:
    rows = np.arange(ROWS, dtype=np.int32)
    indices = pa.array(rows % len(entries), mask=rows % 3 == 1 if nulls else None)
    return pa.DictionaryArray.from_arrays(indices, entries)


def stored(column: pa.Array) -> bytes:
    """Written by pyarrow, which makes one page of the column."""
    out = io.BytesIO()
    pq.write_table(pa.table({"id": range(ROWS), "v": column}), out, store_schema=False)
    return out.getvalue()


def as_geometry(data: bytes) -> bytes:
    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[2].logicalType = LogicalType(GEOMETRY=GeometryType())

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), annotate, out)
    return out.getvalue()


def in_lists(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), column)


FILES = {
    "text": lambda: stored(repeated(pa.array([TEXT]))),
    "two texts": lambda: stored(repeated(pa.array([TEXT, TEXT[1:]]))),
    "text and nulls": lambda: stored(repeated(pa.array([TEXT]), nulls=True)),
    "binary": lambda: stored(repeated(pa.array([TEXT.encode()]))),
    "lists": lambda: stored(in_lists(repeated(pa.array([TEXT])))),
    "polygon": lambda: as_geometry(stored(repeated(pa.array([POLYGON])))),
}


@pytest.fixture(scope="module", params=FILES)
def data(request: pytest.FixtureRequest) -> bytes:
    return FILES[request.param]()


def expected(data: bytes, rows: Iterable[int]) -> list[object]:
    """The rows of the column, by pyarrow without expanding its dictionary."""
    column = pq.read_table(io.BytesIO(data), read_dictionary=["v", "v.list.element"])["v"].combine_chunks()
    return column.take(pa.array(list(rows))).to_pylist()


def test_one_row_of_a_page_is_read_within_the_memory_limit(data: bytes) -> None:
    with pqext.open(data, limits=LIMITS) as file:
        assert file.head(5)["v"].to_pylist() == expected(data, range(5))
        batches = file.iter_batches(1)
        assert [next(batches).column("v")[0].as_py() for _ in range(4)] == expected(data, range(4))
        last = file.read(rows={0: [range(ROWS - 3, ROWS)]})
        assert last["v"].to_pylist() == expected(data, range(ROWS - 3, ROWS))
        assert last["v"].nbytes < 4 * len(TEXT)


def test_filter_that_matches_one_row_stays_within_the_memory_limit(data: bytes) -> None:
    found = pqext.read_table(data, filter=col("id").isin([7, 15_001]), limits=LIMITS)
    assert found["v"].to_pylist() == expected(data, [7, 15_001])
    assert pqext.scan(data, limits=LIMITS).limit(3).to_table()["v"].to_pylist() == expected(data, range(3))


def test_all_batches_of_a_page_are_read_within_the_memory_limit(data: bytes) -> None:
    at = 0
    step = ROWS // 8
    sample = set(range(0, ROWS, step))
    for batch in pqext.open(data, limits=LIMITS).iter_batches():
        for row in sample & set(range(at, at + batch.num_rows)):
            assert [batch.column("v")[row - at].as_py()] == expected(data, [row])
        at += batch.num_rows
    assert at == ROWS


def test_table_beyond_the_memory_limit_is_rejected(data: bytes) -> None:
    with pytest.raises(pqext.LimitError, match="memory_bytes"):
        pqext.read_table(data, limits=LIMITS)


@pytest.mark.parametrize("form", ["string", "view", "dictionary"])
def test_chunk_that_abandons_its_dictionary_is_read_in_every_layout(form: str) -> None:
    values = ["x" * 60_000] * 2_000 + [f"{n}" + "y" * 60_000 for n in range(40)]
    out = io.BytesIO()
    pq.write_table(pa.table({"v": values}), out, store_schema=False, dictionary_pagesize_limit=1 << 20)
    file = pqext.open(out.getvalue(), limits=LIMITS, strings=form)
    assert file.read(rows={0: [range(1_998, 2_002)]})["v"].to_pylist() == values[1_998:2_002]
    assert next(iter(file.iter_batches(3))).column("v").to_pylist() == values[:3]
