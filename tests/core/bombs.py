"""Files of some kilobytes that claim gigabytes, each a way in which few bytes stand for many values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from core import raw_files
from core.raw_files import OPTIONAL, REPEATED, REQUIRED, Column, group, leaf

from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.compression import compress
from pqext.core.format.metadata import (
    CompressionCodec,
    ConvertedType,
    DictionaryPageHeader,
    Encoding,
    FileMetaData,
    LogicalType,
    PageHeader,
    PageType,
    SchemaElement,
    Type,
    VariantType,
)
from pqext.core.format.thrift import decode, encode

MANY = 1 << 24


def varint(number: int) -> bytes:
    """LEB128."""
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def run(count: int, value: int, width: int = 1) -> bytes:
    """One run of the hybrid encoding."""
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little")


def prefixed(data: bytes) -> bytes:
    """Levels behind their length."""
    return struct.pack("<I", len(data)) + data


def deltas(count: int, step: int = 0, first: int = 0) -> bytes:
    """DELTA_BINARY_PACKED numbers in one block that needs no bits."""
    block = (count // 128 + 1) * 128
    return varint(block) + varint(1) + varint(count) + varint(first * 2) + varint(step * 2) + b"\0"


def edited(data: bytes, change: Callable[[FileMetaData], Any]) -> bytes:
    """The file with another footer."""
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = decode(FileMetaData, data[-8 - size : -8])
    footer.schema, footer.row_groups = list(footer.schema), list(footer.row_groups)
    for row_group in footer.row_groups:
        row_group.columns = list(row_group.columns)
    change(footer)
    return data[: -8 - size] + serialise_footer(footer)


def claiming(rows: int) -> bytes:
    """One value, in a row group that claims ``rows`` rows."""
    data = raw_files.write([leaf("a", REQUIRED)], [Column(struct.pack("<i", 7), 1)], 1)

    def change(footer: FileMetaData) -> None:
        footer.row_groups[0].num_rows = footer.num_rows = rows
        meta = footer.row_groups[0].columns[0].meta_data
        assert meta is not None
        meta.num_values = rows

    return edited(data, change)


def with_dictionary(element: SchemaElement, values: bytes, count: int, column: Column, rows: int) -> bytes:
    """A file whose column has a dictionary page of ``count`` ``values``."""
    data = raw_files.write([element], [column], rows)
    header = encode(PageHeader(
        type=PageType.DICTIONARY_PAGE, uncompressed_page_size=len(values), compressed_page_size=len(values),
        dictionary_page_header=DictionaryPageHeader(num_values=count, encoding=Encoding.PLAIN),
    ))  # fmt: skip
    page = header + values

    def change(footer: FileMetaData) -> None:
        meta = footer.row_groups[0].columns[0].meta_data
        assert meta is not None
        meta.dictionary_page_offset = 4
        meta.data_page_offset = 4 + len(page)
        meta.total_compressed_size += len(page)
        meta.total_uncompressed_size += len(page)

    return edited(data[:4] + page + data[4:], change)


def nulls(kind: Type, count: int = MANY, **more: Any) -> bytes:
    return raw_files.write([leaf("a", OPTIONAL, kind, **more)], [_nulls(count)], count)


def _nulls(count: int) -> Column:
    return Column(prefixed(run(count, 0)), count)


def looked_up(kind: Type, value: bytes, count: int = MANY, **more: Any) -> bytes:
    """One dictionary value, so many times."""
    column = Column(b"\0", count, encoding=Encoding.RLE_DICTIONARY)  # indices of no bits
    return with_dictionary(leaf("a", REQUIRED, kind, **more), value, 1, column, count)


def geometries(logical: LogicalType, corners: list[tuple[float, float]], count: int) -> bytes:
    """One polygon, so many times."""
    ring = [*corners, corners[0]]
    wkb = struct.pack("<BIII", 1, 3, 1, len(ring)) + b"".join(struct.pack("<dd", *corner) for corner in ring)
    return looked_up(Type.BYTE_ARRAY, prefixed(wkb), count, logicalType=logical)


def encoded(kind: Type, values: bytes, encoding: Encoding, count: int = MANY, **more: Any) -> bytes:
    return raw_files.write([leaf("a", REQUIRED, kind, **more)], [Column(values, count, encoding=encoding)], count)


def wide(columns: int, count: int) -> bytes:
    """Columns of nothing but nulls."""
    names = [leaf(f"c{i}", OPTIONAL, Type.INT64) for i in range(columns)]
    return raw_files.write(names, [_nulls(count)] * columns, count)


def empty_lists(count: int, depth: int = 1) -> bytes:
    elements = [group(f"g{i}", REPEATED, 1) for i in range(depth - 1)] + [leaf("x", REPEATED)]
    width = depth.bit_length()
    values = prefixed(run(count, 0, width)) + prefixed(run(count, 0, width))
    return raw_files.write(elements, [Column(values, count)], count)


def elements_of_one_list(count: int) -> bytes:
    values = prefixed(run(1, 0) + run(count - 1, 1)) + prefixed(run(count, 1))
    column = Column(values + deltas(count), count, encoding=Encoding.DELTA_BINARY_PACKED)
    return raw_files.write([leaf("x", REPEATED)], [column], 1)


def compressed(codec: CompressionCodec, size: int) -> bytes:
    column = Column(b"", size // 8, codec=codec, stored=compress(codec, bytes(size)).tobytes(), claimed=size)
    return raw_files.write([leaf("a", REQUIRED, Type.INT64)], [column], size // 8)


def variants(count: int, *, shredded: bool) -> bytes:
    """Variants without a value in ``typed_value``, or null ones, in nothing but runs."""
    marked = LogicalType(VARIANT=VariantType(specification_version=1))
    parts = [leaf("metadata", REQUIRED, Type.BYTE_ARRAY), leaf("value", OPTIONAL, Type.BYTE_ARRAY)]
    columns = [Column(deltas(count) + deltas(count), count, encoding=Encoding.DELTA_BYTE_ARRAY), _nulls(count)]
    if shredded:
        parts.append(leaf("typed_value", OPTIONAL, Type.INT64))
        columns.append(
            Column(prefixed(run(count, 1)) + deltas(count), count, encoding=Encoding.DELTA_BINARY_PACKED)
        )
    return raw_files.write([group("v", REQUIRED, len(parts), logicalType=marked), *parts], columns, count)


def deep(columns: int, levels: int) -> bytes:
    elements = []
    for i in range(columns):
        elements += [group(f"c{i}" if not at else "g", REQUIRED, 1) for at in range(levels)] + [leaf("x", REQUIRED)]
    return raw_files.write(elements, [Column(struct.pack("<i", 1), 1)] * columns, 1)


def lying_header(count: int) -> bytes:
    """A page header that claims ``count`` values and 2 GiB."""
    return raw_files.write([leaf("a", REQUIRED)], [Column(b"", count, claimed=(1 << 31) - 1, codec=6)], count)


def files() -> dict[str, bytes]:
    """All of them by name."""
    text = prefixed(b"x" * 4096)
    fixed = {"type_length": 1 << 20}
    decimal = {"converted_type": ConvertedType.DECIMAL, "precision": 9, "scale": 2}
    return {
        "rows of one value": claiming((1 << 63) - 1),
        "rows of one value, fewer": claiming(1 << 40),
        "nulls": nulls(Type.INT64),
        "nulls of wide values": nulls(Type.FIXED_LEN_BYTE_ARRAY, 1 << 20, type_length=(1 << 31) - 1),
        "null strings": nulls(Type.BYTE_ARRAY),
        "null booleans": nulls(Type.BOOLEAN),
        "null INT96": nulls(Type.INT96),
        "null decimals": nulls(Type.INT32, **decimal),
        "a number looked up": looked_up(Type.INT64, bytes(8)),
        "a decimal looked up": looked_up(Type.INT32, bytes(4), **decimal),
        "an INT96 looked up": looked_up(Type.INT96, bytes(8) + struct.pack("<i", 2440588)),
        "a boolean looked up": looked_up(Type.BOOLEAN, bytes(1)),
        "an empty text looked up": looked_up(Type.BYTE_ARRAY, bytes(4)),
        "a long text looked up": looked_up(Type.BYTE_ARRAY, text, 1 << 20),
        "a longer text looked up": looked_up(Type.BYTE_ARRAY, text, 1 << 24),
        "a wide value looked up": looked_up(Type.FIXED_LEN_BYTE_ARRAY, bytes(1 << 13), 1 << 24, type_length=1 << 13),
        "a value wider than the file": looked_up(Type.FIXED_LEN_BYTE_ARRAY, bytes(8), 10, **fixed),
        "booleans in one run": encoded(Type.BOOLEAN, prefixed(run(MANY, 1)), Encoding.RLE),
        "deltas": encoded(Type.INT64, deltas(MANY), Encoding.DELTA_BINARY_PACKED),
        "rising deltas": encoded(Type.INT32, deltas(MANY, 1), Encoding.DELTA_BINARY_PACKED),
        "empty texts": encoded(Type.BYTE_ARRAY, deltas(MANY), Encoding.DELTA_LENGTH_BYTE_ARRAY),
        "prefixes that grow": encoded(
            Type.BYTE_ARRAY, deltas(1 << 15, 1) + deltas(1 << 15, 0, 1) + b"x" * (1 << 15), Encoding.DELTA_BYTE_ARRAY,
            1 << 15,
        ),
        "ALP": encoded(Type.DOUBLE, b"\0" * 64, Encoding.ALP),
        "a hundred columns": wide(100, 1 << 22),
        "a hundred columns, fewer rows": wide(100, 1 << 20),
        "empty lists": empty_lists(MANY),
        "empty lists, forty deep": empty_lists(1 << 20, 40),
        "one long list": elements_of_one_list(MANY),
        "gzip": compressed(CompressionCodec.GZIP, 8 << 20),
        "brotli": compressed(CompressionCodec.BROTLI, 1 << 28),
        "zstd": compressed(CompressionCodec.ZSTD, 1 << 28),
        "snappy": compressed(CompressionCodec.SNAPPY, 1 << 20),
        "lz4": compressed(CompressionCodec.LZ4_RAW, 8 << 20),
        "a lying page header": lying_header(MANY),
        "variants": variants(MANY, shredded=False),
        "fewer variants": variants(1 << 22, shredded=False),
        "shredded variants": variants(1 << 22, shredded=True),
        "a deep schema": deep(60, 97),
        "a schema too deep": deep(30, 200),
    }
