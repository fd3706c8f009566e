"""Files without their footers, and what recovery makes of them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pqext
from pqext.recovery import Recovery


def footer_of(data: bytes) -> int:
    """Where the footer begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def extent(data: bytes, group: int, column: int) -> tuple[int, int]:
    """Where a chunk begins and ends, as pyarrow sees it."""
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(column)
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    return start, start + chunk.total_compressed_size


def by_pqext(table: pa.Table, **options: Any) -> bytes:
    """A file of pqext, with checksums."""
    made = io.BytesIO()
    pqext.write_table(table, made, **options)
    return made.getvalue()


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    """A file of pyarrow, with checksums."""
    made = io.BytesIO()
    pq.write_table(table, made, **{"write_page_checksum": True, **options})
    return made.getvalue()


def recovered(data: bytes, **options: Any) -> tuple[Recovery, pa.Table | None]:
    """The report, and the rows of the new file as pyarrow reads them."""
    made = io.BytesIO()
    report = pqext.recover(data, made, **options)
    if not report.written:
        assert made.getvalue() == b""
        return report, None
    assert pqext.verify(made.getvalue()).ok
    return report, pq.read_table(io.BytesIO(made.getvalue()))


def without_footer(data: bytes, **options: Any) -> tuple[Recovery, pa.Table | None]:
    """The same of a file that has lost its footer."""
    return recovered(data[: footer_of(data)], **options)
