"""The page headers of a column chunk, read without pqext: what each page claims, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reference.compact import Reader

KINDS = {0: "DATA_PAGE", 2: "DICTIONARY_PAGE", 3: "DATA_PAGE_V2"}
ENCODINGS = {
    0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 4: "BIT_PACKED", 5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY", 8: "RLE_DICTIONARY", 9: "BYTE_STREAM_SPLIT", 10: "ALP",
}


@dataclass(frozen=True)
class Page:
    """``levels`` names the encodings of definition and repetition levels in a page of version 1."""

    kind: str
    encoding: str
    values: int
    levels: tuple[str, str] | None
    body: bytes


def pages(data: bytes, start: int, length: int) -> list[Page]:
    """All pages of the chunk of ``length`` bytes at ``start``."""
    found = []
    at = start
    while at < start + length:
        reader = Reader(data, at)
        header: dict[int, Any] = {id: value for id, _, value in reader.struct()}
        detail = {id: value for id, _, value in header.get(5) or header.get(7) or header[8]}
        encoding = ENCODINGS[detail[4] if 8 in header else detail[2]]
        levels = (ENCODINGS[detail[3]], ENCODINGS[detail[4]]) if 5 in header else None
        body = data[reader.at : reader.at + header[3]]
        found.append(Page(KINDS[header[1]], encoding, detail[1], levels, body))
        at = reader.at + header[3]
    assert at == start + length
    return found


def of_column(data: bytes, column: int, row_group: int = 0) -> list[Page]:
    """All pages of a column chunk, which pyarrow finds."""
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(row_group).column(column)
    start = chunk.dictionary_page_offset if chunk.dictionary_page_offset is not None else chunk.data_page_offset
    return pages(data, start, chunk.total_compressed_size)
