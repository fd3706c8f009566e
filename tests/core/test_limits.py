"""Limits at their boundaries: a file that needs exactly a limit is read, and rejected if the limit is one lower.

What a file needs is measured by pyarrow and a reader of Thrift's compact protocol, not by pqext.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import Limits
from pqext.core.io.sources.locations import open_source
from pqext.core.read.pages.page import raw_pages
from reference.compact import Reader
from reference.page_headers import of_column

TABLE = pa.table({"a": pa.array(range(300), pa.int64()), "l": [[[[k]]] for k in range(300)]})


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    layout = {"compression": "uncompressed", "dictionary": False, "encodings": "plain", "page_rows": 300}
    pqext.write_table(TABLE, out, **{**layout, **options})
    return out.getvalue()


def fields_at(data: bytes, offset: int) -> dict[int, Any]:
    return {id: value for id, _, value in Reader(data, offset).struct()}


def fields(struct: Any) -> dict[int, Any]:
    return {id: value for id, _, value in struct}


def footer_bytes(data: bytes) -> int:
    return int(pq.read_metadata(io.BytesIO(data)).serialized_size)


def schema_depth(data: bytes) -> int:
    """The root, and the groups and the leaf of a path."""
    schema = pq.read_metadata(io.BytesIO(data)).schema
    return max(len(schema.column(index).path.split(".")) for index in range(len(schema))) + 1


def page_bytes(data: bytes) -> int:
    return max(len(page.body) for column in range(2) for page in of_column(data, column))


def page_header_bytes(data: bytes) -> int:
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    bodies = [[len(page.body) for page in of_column(data, column)] for column in range(2)]
    return max(group.column(column).total_compressed_size - sum(sizes) for column, sizes in enumerate(bodies))


def first_chunk(data: bytes) -> dict[int, Any]:
    footer = fields_at(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    return fields(fields(footer[4][2][0])[1][2][0])


def column_index_bytes(data: bytes) -> int:
    return int(first_chunk(data)[7])


def offset_index_bytes(data: bytes) -> int:
    return int(first_chunk(data)[5])


def bloom_filter_bytes(data: bytes) -> int:
    return int(fields_at(data, fields(first_chunk(data)[3])[14])[1])


def read_header(data: bytes, limits: Limits) -> object:
    return pqext.open(data, limits=limits).schema


def read_rows(data: bytes, limits: Limits) -> object:
    return pqext.read_table(data, limits=limits)


def read_pages(data: bytes, limits: Limits) -> object:
    with pqext.open(data) as file:
        spans = open_source(data).spans([file.row_groups[0].chunk(column).byte_range for column in range(2)])
    return [list(raw_pages(span, limits)) for span in spans]


def read_from_chunk(name: str) -> Callable[[bytes, Limits], object]:
    return lambda data, limits: getattr(pqext.open(data, limits=limits).row_groups[0].chunk(0), name)


CASES: list[tuple[str, dict[str, Any], Callable[[bytes], int], Callable[[bytes, Limits], object]]] = [
    ("footer_bytes", {}, footer_bytes, read_header),
    ("schema_depth", {}, schema_depth, read_header),
    ("page_bytes", {}, page_bytes, read_rows),
    ("page_bytes", {"compression": "zstd"}, lambda data: page_bytes(written()), read_rows),
    ("page_bytes", {"page_version": 2}, page_bytes, read_rows),
    ("page_bytes", {}, page_bytes, read_pages),
    ("page_header_bytes", {}, page_header_bytes, read_rows),
    ("page_header_bytes", {}, page_header_bytes, read_pages),
    ("page_index_bytes", {"page_rows": 10}, column_index_bytes, read_from_chunk("column_index")),
    ("page_index_bytes", {"page_rows": 10}, offset_index_bytes, read_from_chunk("offset_index")),
    ("bloom_filter_bytes", {"bloom_filters": {"a": True}}, bloom_filter_bytes, read_from_chunk("bloom_filter")),
]


@pytest.mark.parametrize(("name", "options", "measure", "read"), CASES)
def test_file_at_a_limit_is_read_and_beyond_it_is_rejected(
    name: str, options: dict[str, Any], measure: Callable[[bytes], int], read: Callable[[bytes, Limits], object]
) -> None:
    data = written(**options)
    size = measure(data)
    assert read(data, Limits(**{name: size})) is not None
    with pytest.raises(pqext.LimitError, match=rf"{name}={size - 1}\b"):
        read(data, Limits(**{name: size - 1}))
