"""Jump tables: extensions of a Thrift footer that contain the offsets of its structures for each column and row group.

With a jump table, a reader opens one of 100,000 columns without parsing the rest. Other readers ignore the table.
``specs/binary-protocol-extensions.md`` specifies the layout. Spec: "Binary Protocol Extensions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from struct import Struct as Packed
from uuid import UUID

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import OWN_METADATA
from pqext.core.format.extension.framing import frame, unframe
from pqext.core.format.extension.structure import append_readable, extensions
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import LazyStructs, decode, encode, read_uleb, struct_list_header
from pqext.core.kernels.thrift import schema_tree
from pqext.core.kernels.thrift.footer_lists import nested_struct_offsets, struct_offsets
from pqext.core.kernels.thrift.reader import StructIndex, scan_fields

JUMP_TABLE = UUID("5d0c8b5e-7f0b-4a9e-9a55-6e2f3b9a41c7")
"""UUID of the extension."""
BLOCK_BYTES = 4096
LEAST_BLOCK_BYTES = 256
"""Minimum block size. The checksums of smaller blocks would be larger than the footer."""
VERSION = 1
MAGIC = b"PQXJ"
_HEAD = Packed("<4s19I")
ROOT_BYTES = _HEAD.size + 4
NAME_BYTES, TOP_BYTES, GROUP_BYTES, PLACE_BYTES, CRC_BYTES = 8, 12, 12, 4, 4
_ORDER_BYTES = 3
"""Size of a column order without fields: a header and two stop bytes."""


@dataclass(frozen=True, slots=True)
class Root:
    """Root of a jump table: counts, offsets of the footer's lists, and a checksum. It ends the table and is read first.

    For each list, ``header`` is the offset of its count, and ``start`` the offset of its first structure.
    ``order_bytes`` is the size of a column order, or 0 if the table does not cover column orders.
    """

    version: int
    thrift_bytes: int
    block_bytes: int
    columns: int
    row_groups: int
    tops: int
    elements: int
    schema_header: int
    schema_start: int
    schema_end: int
    groups_header: int
    groups_start: int
    groups_end: int
    orders_header: int
    orders_start: int
    orders_end: int
    order_bytes: int
    section_bytes: int
    crc_list: int

    @property
    def top_columns_offset(self) -> int:
        """Offset, in the sections, of the top-level columns, which follow the name hashes."""
        return self.tops * NAME_BYTES

    @property
    def row_groups_offset(self) -> int:
        """Offset, in the sections, of the row groups."""
        return self.top_columns_offset + (self.tops + 1) * TOP_BYTES

    @property
    def chunk_offsets_offset(self) -> int:
        """Offset, in the sections, of the column chunk offsets."""
        return self.row_groups_offset + self.row_groups * GROUP_BYTES

    @property
    def thrift_blocks(self) -> int:
        """Number of blocks in the footer."""
        return -(-self.thrift_bytes // self.block_bytes)

    @property
    def blocks(self) -> int:
        """Number of blocks in the footer and the sections."""
        return self.thrift_blocks - (-self.section_bytes // self.block_bytes)

    @property
    def size(self) -> int:
        """Size of the table in bytes."""
        return self.section_bytes + self.blocks * CRC_BYTES + ROOT_BYTES

    def encode(self) -> bytes:
        """Return the serialised root, which ends the table."""
        head = _HEAD.pack(MAGIC, *astuple(self))
        return head + crc32(head).to_bytes(4, "little")

    @classmethod
    def decode(cls, data: bytes) -> Root | None:
        """Parse the root at the end of an extension.

        Return None for other bytes or another version. Raises ``CorruptFileError`` if the root is corrupt.
        """
        if len(data) != ROOT_BYTES or data[:4] != MAGIC:
            return None
        if crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise CorruptFileError("the jump table's root does not match its checksum")
        result = cls(*_HEAD.unpack_from(data)[1:])
        if result.version != VERSION:
            return None
        lists = (
            result.schema_header,
            result.schema_start,
            result.schema_end,
            result.groups_header,
            result.groups_start,
            result.groups_end,
            *((result.orders_header, result.orders_start, result.orders_end) if result.order_bytes else ()),
            result.thrift_bytes,
        )
        sections = result.chunk_offsets_offset + (result.columns + 1) * result.row_groups * PLACE_BYTES
        is_whole = list(lists) == sorted(lists) and sections == result.section_bytes
        if not is_whole or result.block_bytes < LEAST_BLOCK_BYTES:
            raise CorruptFileError("the jump table's root is inconsistent")
        return result


def has_correct_table(footer: bytes) -> bool | None:
    """Return whether the jump table of a serialised footer is correct; None without a jump table.

    Raises ``CorruptFileError`` for a corrupt frame.
    """
    fields, end = scan_fields(footer, limits=OWN_METADATA)
    stored = footer[fields[-1][3] : end - 1] if fields else b""
    table = unframe(stored[read_uleb(stored, 0)[1] :], JUMP_TABLE) if stored[-16:] == JUMP_TABLE.bytes else None
    return None if table is None else table == build(footer[: fields[-1][2]] + b"\x00")


def build(serialised_footer: bytes) -> bytes | None:
    """Build the jump table of a serialised footer without an extension. Return None if its layout is unsupported.

    A layout is unsupported if fields are repeated or out of order, if the schema or the row groups cannot be indexed,
    if counts differ from the number of columns, or if there are no columns.
    """
    metadata, end = decode(FileMetaData, serialised_footer, limits=OWN_METADATA)
    fields, _ = scan_fields(serialised_footer, limits=OWN_METADATA)
    spans = {id: (value, stop) for id, _, _, value, stop in fields}
    lists = [_index(metadata.schema), _index(metadata.row_groups)]
    ids = [id for id, *_ in fields]
    if end != len(serialised_footer) or len(spans) != len(ids) or ids != sorted(ids) or None in lists:
        return None
    schema, groups = (index for index in lists if index is not None)
    starts = struct_offsets(schema)
    tops = _locate_top_columns(schema, starts)
    if tops is None:
        return None
    columns = int(tops[-1, 2])
    orders = _locate_orders(spans.get(7), len(metadata.column_orders or ()), serialised_footer)
    if not columns or (orders[3] and len(metadata.column_orders or ()) != columns):
        return None
    result = _locate_row_groups(metadata, groups, columns, serialised_footer)
    if result is None:
        return None
    heads, chunks = result
    ends = struct_offsets(groups)
    names = schema_tree.elements(schema)[0]
    hashes = np.array([crc32(_encode(names[int(at)])) for at in tops[:-1, 1]], np.uint32)
    by_hash = np.stack([hashes, np.arange(len(hashes), dtype=np.uint32)], axis=1)
    by_hash = by_hash[np.lexsort((by_hash[:, 1], by_hash[:, 0]))]
    parts = (by_hash, tops, heads, chunks)
    sections = b"".join([part.astype("<u4").tobytes() for part in parts])
    crcs = [
        crc32(data[at : at + BLOCK_BYTES])
        for data in (memoryview(serialised_footer)[: end - 1], sections)
        for at in range(0, len(data), BLOCK_BYTES)
    ]
    listed = np.array(crcs, "<u4").tobytes()
    root = Root(
        VERSION,
        end - 1,
        BLOCK_BYTES,
        columns,
        len(groups),
        len(tops) - 1,
        len(schema),
        spans[2][0],
        int(starts[0]),
        int(starts[-1]),
        spans[4][0],
        int(ends[0]),
        int(ends[-1]),
        *orders,
        len(sections),
        crc32(listed),
    )
    return sections + listed + root.encode()


def encode_with_jump_table(metadata: FileMetaData) -> tuple[bytes, str | None]:
    """Serialise the footer with its jump table. Return the bytes, and the reason if the table is omitted, otherwise
    None.

    The table is omitted with a reason if it would be too long, and without a reason if the layout is unsupported, as
    described at :func:`build`. Raises ``ValueError`` if the footer has another extension, because readers locate the
    table from the end of the file.
    """
    if extensions(metadata) is not None:
        raise ValueError(
            "footer='thrift+index' uses the same extension as extensions['file']; omit the extension, or choose "
            "another footer"
        )
    serialised = encode(metadata)
    table = build(serialised)
    if table is None:
        return serialised, None
    return append_readable(serialised, frame(table, JUMP_TABLE), "a jump table")


def _index(structures: Sequence[object] | None) -> StructIndex | None:
    return structures.undecoded_index if isinstance(structures, LazyStructs) else None


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _locate_top_columns(schema: StructIndex, starts: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the offset, element and first leaf of each top-level column.

    The last row contains their ends. Return None if the layout of the schema is unsupported.
    """
    _, odd, children, repetition, typed = schema_tree.elements(schema)
    fault, _, (_, _, first_leaf, last_leaf, ends, _) = schema_tree.levels(children, repetition, typed, 1 << 16)
    if fault or odd >= 0:
        return None
    result, at = [], 1
    while at < len(schema):
        result.append((starts[at], at, first_leaf[at]))
        at = ends[at]
    return np.array([*result, (starts[-1], len(schema), last_leaf[0])], np.int64)


def _locate_orders(span: tuple[int, int] | None, count: int, serialised_footer: bytes) -> tuple[int, int, int, int]:
    """Return the offsets of header, start and end of the column orders, and the size of each order.

    Return zeros if there are no orders, or an order has another size than ``_ORDER_BYTES``.
    """
    if span is None or not count:
        return 0, 0, 0, 0
    start, stop = span[0] + len(struct_list_header(count)), span[1]
    held = np.frombuffer(serialised_footer, np.uint8, stop - start, start)
    if len(held) != count * _ORDER_BYTES or held.reshape(count, _ORDER_BYTES)[:, 1:].any():
        return 0, 0, 0, 0
    return span[0], start, stop, _ORDER_BYTES


def _locate_row_groups(
    metadata: FileMetaData, groups: StructIndex, columns: int, serialised_footer: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the start, column list offset and end of each row group, and the chunk offsets of each column.

    Return None if the column list of a row group has another length or header, or cannot be indexed.
    """
    ends = struct_offsets(groups)
    header = struct_list_header(columns)
    heads = np.zeros((len(groups), 3), np.int64)
    chunks = np.zeros((columns + 1, len(groups)), np.int64)
    for at in range(len(groups)):
        inner = nested_struct_offsets(groups, at, columns)
        if inner is None:  # not indexed, because there are too many or they differ
            result = _index(metadata.row_groups[at].columns)
            if result is None or len(result) != columns:
                return None
            inner = struct_offsets(result)
        first = int(inner[0])
        if serialised_footer[first - len(header) : first] != header:
            return None
        heads[at] = ends[at], first - len(header), ends[at + 1]
        chunks[:, at] = inner
    return heads, chunks
