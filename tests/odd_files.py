"""Files that other readers refuse or misread: page headers that count wrongly, decimals without bytes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

import pqext
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import DataPageHeaderV2, DecimalType, FileMetaData, LogicalType
from pqext.core.format.thrift import encode
from pqext.core.read.leaf_runs import span_of
from pqext.core.read.pages.page import raw_pages


def with_header(data: bytes, change: Callable[[DataPageHeaderV2], None], column: int = 0, page: int = 0) -> bytes:
    """The file with another header of one data page of version 2, in the first row group."""
    made = bytearray(data)
    with pqext.open(data) as file:
        chunk = file.row_groups[0].chunk(column)
        pages = raw_pages(
            span_of(file, chunk), chunk.limits, None, has_dictionary=chunk.metadata.dictionary_page_offset is not None
        )
        raw = [one for one in pages if one.header.data_page_header_v2 is not None][page]
        before = encode(raw.header)
        assert made[raw.offset : raw.offset + len(before)] == before
        assert raw.header.data_page_header_v2 is not None
        change(raw.header.data_page_header_v2)
        after = encode(raw.header)
        assert len(after) == len(before)
        made[raw.offset : raw.offset + len(before)] = after
    return bytes(made)


def empty_decimals(*, dictionary: bool) -> bytes:
    """DECIMAL(9,2) in byte arrays: 0.01, one of no bytes, 5.12 and null, five times."""
    plain, out = io.BytesIO(), io.BytesIO()
    table = pa.table({"d": pa.array([b"\x01", b"", b"\x02\x00", None] * 5, pa.binary())})
    pq.write_table(table, plain, use_dictionary=dictionary, store_schema=False, write_statistics=False)

    def change(metadata: FileMetaData) -> None:
        element = metadata.schema[1]
        element.logicalType = LogicalType(DECIMAL=DecimalType(scale=2, precision=9))
        element.converted_type, element.scale, element.precision = 5, 2, 9

    rewrite_footer(plain, change, out)
    return out.getvalue()
