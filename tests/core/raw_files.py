"""Files laid out by hand, page by page, for schemas and values that no writer here would make."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnMetaData,
    DataPageHeader,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    KeyValue,
    PageHeader,
    PageType,
    RowGroup,
    SchemaElement,
    Type,
)
from pqext.core.format.thrift import encode
from reference import fixed_layouts

REQUIRED, OPTIONAL, REPEATED = FieldRepetitionType


def group(name: str, repetition: FieldRepetitionType, children: int, **more: Any) -> SchemaElement:
    return SchemaElement(name=name, repetition_type=repetition, num_children=children, **more)


def leaf(name: str, repetition: FieldRepetitionType, kind: Type = Type.INT32, **more: Any) -> SchemaElement:
    return SchemaElement(name=name, repetition_type=repetition, type=kind, **more)


@dataclass
class Column:
    """One leaf of the only row group: PLAIN ``values``, and a level an entry (``None``: the leaf has no such levels).

    ``stored`` takes the place of the page's bytes, compressed by ``codec``; ``claimed`` that of their size.
    ``encoding`` is that of ``values``; levels may be BIT_PACKED instead of RLE, their highest one among them.
    """

    values: bytes
    entries: int
    definition: Sequence[int] | None = None
    repetition: Sequence[int] | None = None
    codec: int = 0
    stored: bytes | None = None
    claimed: int | None = None
    encoding: Encoding = Encoding.PLAIN
    level_encoding: Encoding = Encoding.RLE


def levels(values: Sequence[int]) -> bytes:
    """The levels as runs of the hybrid encoding, behind their length."""
    runs = b""
    for level, run in groupby(values):
        header = len(list(run)) << 1
        while header >= 0x80:
            runs += bytes([header & 0x7F | 0x80])
            header >>= 7
        runs += bytes([header, level])
    return struct.pack("<I", len(runs)) + runs


def body(column: Column) -> bytes:
    """The page's bytes before compression."""
    parts = []
    for level in (column.repetition, column.definition):
        if level is not None and column.level_encoding == Encoding.BIT_PACKED:
            parts.append(fixed_layouts.bit_packed(list(level), max(level).bit_length()))
        elif level is not None:
            parts.append(levels(level))
    return b"".join(parts) + column.values


def write(
    elements: Sequence[SchemaElement], columns: Sequence[Column], rows: int, *, metadata: dict[str, str] | None = None
) -> bytes:
    """The file; ``elements`` leave out the root, whose children are those of the first level."""
    tops, index = 0, 0
    while index < len(elements):
        tops += 1
        index += _span(elements, index)
    data, chunks = b"PAR1", []
    paths = list(_paths(elements))
    for (path, element), column in zip(paths, columns, strict=True):
        whole = body(column)
        stored = whole if column.stored is None else column.stored
        header = encode(
            PageHeader(
                type=PageType.DATA_PAGE,
                uncompressed_page_size=len(whole) if column.claimed is None else column.claimed,
                compressed_page_size=len(stored),
                data_page_header=DataPageHeader(
                    num_values=column.entries, encoding=column.encoding,
                    definition_level_encoding=column.level_encoding,
                    repetition_level_encoding=column.level_encoding,
                ),
            )
        )
        meta = ColumnMetaData(
            type=element.type, encodings=[column.encoding, column.level_encoding], path_in_schema=path,
            codec=column.codec,
            num_values=column.entries, total_uncompressed_size=len(header) + len(whole),
            total_compressed_size=len(header) + len(stored), data_page_offset=len(data),
        )
        data += header + stored
        chunks.append(ColumnChunk(file_offset=0, meta_data=meta))
    footer = FileMetaData(
        version=2,
        schema=[SchemaElement(name="schema", num_children=tops), *elements],
        num_rows=rows,
        row_groups=[RowGroup(columns=chunks, total_byte_size=len(data), num_rows=rows)],
        key_value_metadata=[KeyValue(key=k, value=v) for k, v in (metadata or {}).items()] or None,
    )
    return data + serialise_footer(footer)


def _span(elements: Sequence[SchemaElement], index: int) -> int:
    """Elements of the subtree at ``index``."""
    count = 1
    for _ in range(elements[index].num_children or 0):
        count += _span(elements, index + count)
    return count


def _paths(elements: Sequence[SchemaElement]) -> Any:
    open_groups: list[list[Any]] = []
    for element in elements:
        path = [name for name, _ in open_groups] + [element.name]
        if element.num_children:
            open_groups.append([element.name, element.num_children])
            continue
        yield path, element
        while open_groups:
            open_groups[-1][1] -= 1
            if open_groups[-1][1]:
                break
            open_groups.pop()


def byte_arrays(*values: bytes) -> bytes:
    """PLAIN byte arrays."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def int32(*values: int) -> bytes:
    """PLAIN INT32."""
    return struct.pack(f"<{len(values)}i", *values)


def int64(*values: int) -> bytes:
    """PLAIN INT64."""
    return struct.pack(f"<{len(values)}q", *values)
