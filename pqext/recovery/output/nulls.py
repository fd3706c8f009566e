"""Nulls in the place of lost chunks: pages of an optional column without a single value."""

from __future__ import annotations

from dataclasses import replace

from isal import isal_zlib

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import (
    ColumnMetaData,
    CompressionCodec,
    DataPageHeader,
    Encoding,
    FieldRepetitionType,
    PageHeader,
    PageType,
)
from pqext.core.format.thrift import encode
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.claims.claims import ClaimedGroup, Claims
from pqext.recovery.claims.verdicts import Verdict

_PAGE_ROWS = 1 << 20


class WithNulls(Source):
    """The bytes of a damaged file and behind them those of pages of nulls, which are in no file."""

    def __init__(self, source: Source, made: bytes) -> None:
        super().__init__(source.path, source.size + len(made))
        self.is_remote, self.merge_gap, self.window_bytes = source.is_remote, source.merge_gap, source.window_bytes
        self._inner = source
        self._made = made

    def _fetch(self, offset: int, length: int) -> Bytes:
        end = self._inner.size
        if offset + length <= end:
            return self._inner.read(offset, length)
        before = self._inner.read(offset, end - offset).tobytes() if offset < end else b""
        return view(before + self._made[max(offset - end, 0) : offset + length - end])

    def close(self) -> None:
        """Nothing: whoever opened the file closes it."""


class Filling:
    """Puts chunks of nulls into row groups that lost chunks of optional columns."""

    def __init__(self, source: Source, claims: Claims, limits: Limits) -> None:
        self._source = source
        self._columns = {node.name: node for node in from_elements(claims.elements, limits).root.children}
        self._has_names = len(self._columns) == len(from_elements(claims.elements, limits).root.children)
        self._made = bytearray()

    @property
    def source(self) -> Source:
        """The damaged file and all chunks of nulls that were made."""
        return WithNulls(self._source, bytes(self._made))

    def fill(self, verdict: Verdict) -> ClaimedGroup | None:
        """The row group with nulls in the place of the columns that are gone.

        ``None`` where nothing is gone, no column is left, or one that is gone is required: ``verdict`` says so then.
        """
        group = verdict.group
        missing = [name for name, node in self._columns.items() if None in group.chunks[_leaves(node)]]
        gone = missing or [name for name in verdict.gone if name not in group.nulls]
        if verdict.rows_left or not gone or not self._has_names or not set(gone) <= self._columns.keys():
            return None
        if len(gone) + len(group.nulls) == len(self._columns):
            return None
        if any(chunk is not None and chunk.num_values < group.rows for chunk in group.chunks):
            return None  # no column has so many rows
        required = [name for name in gone if self._columns[name].repetition is not FieldRepetitionType.OPTIONAL]
        for name in required:
            verdict.damaged[name] += "; the column is required, so that nulls cannot stand in its place"
        if required:
            return None
        chunks = list(group.chunks)
        for name in gone:
            node = self._columns[name]
            chunks[_leaves(node)] = [self._chunk(leaf, group.rows) for leaf in node.leaves()]
        lost = {name: verdict.gone[name] for name in gone}
        return replace(group, chunks=chunks, nulls={**group.nulls, **lost})

    def _chunk(self, leaf: SchemaNode, rows: int) -> ColumnMetaData:
        start = self._source.size + len(self._made)
        sizes = [min(_PAGE_ROWS, rows - at) for at in range(0, rows, _PAGE_ROWS)]
        for size in sizes:
            self._made += _page(leaf, size)
        stored = self._source.size + len(self._made) - start
        return ColumnMetaData(
            type=leaf.leaf_type.physical,
            encodings=[int(Encoding.PLAIN), int(Encoding.RLE)],
            path_in_schema=list(leaf.path),
            codec=int(CompressionCodec.UNCOMPRESSED),
            num_values=rows,
            total_uncompressed_size=stored,
            total_compressed_size=stored,
            data_page_offset=start,
        )


def _leaves(node: SchemaNode) -> slice:
    return slice(node.leaf_start, node.leaf_stop)


def _page(leaf: SchemaNode, rows: int) -> bytes:
    """A data page of ``rows`` nulls: levels of 0, each kind in one run, and no values."""
    levels = [highest for highest in (leaf.max_repetition_level, leaf.max_definition_level) if highest]
    body = b"".join(_zeros(rows, highest) for highest in levels)
    header = DataPageHeader(
        num_values=rows,
        encoding=Encoding.PLAIN,
        definition_level_encoding=Encoding.RLE,
        repetition_level_encoding=Encoding.RLE,
    )
    about = PageHeader(
        type=PageType.DATA_PAGE,
        uncompressed_page_size=len(body),
        compressed_page_size=len(body),
        crc=_signed(isal_zlib.crc32(body)),
        data_page_header=header,
    )
    return encode(about) + body


def _signed(checksum: int) -> int:
    return checksum - (1 << 32) if checksum >> 31 else checksum


def _zeros(count: int, highest: int) -> bytes:
    """Levels of 0 in a run, behind the length of the run."""
    run, left = bytearray(), count << 1
    while left >= 0x80:
        run.append(left & 0x7F | 0x80)
        left >>= 7
    run.append(left)
    run += bytes((highest.bit_length() + 7) // 8)
    return len(run).to_bytes(4, "little") + bytes(run)
