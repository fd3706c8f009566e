"""Output of a recovery: its destination, temporary files, the new file, and nulls for lost chunks.

Chunks are copied to the new file byte for byte. Its footer states only facts that their pages confirm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from isal import isal_zlib

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.footer.writing import COPIED_BYTES, copy_bytes
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
from pqext.core.io.sink import Sink
from pqext.core.io.source import PathSource, Source
from pqext.core.io.sources.locations import locate, may_be_same_file
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.candidates.assessments import Assessment
from pqext.recovery.candidates.candidates import CandidateGroup, Candidates, end_of, file_metadata, shift_chunk


def check_distinct(
    source: Any, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Raise ``ValueError`` if ``dest`` is the damaged file itself, even through a URL, a link or an open file."""
    read = source.path if isinstance(source, Source) else locate(source, filesystem, storage_options)
    written = dest if hasattr(dest, "write") else locate(dest)
    if written is source or may_be_same_file(read, written):
        raise ValueError("dest must differ from the damaged source file; write to a new path")


class TemporaryFiles:
    """Temporary folder that is created on first use and removed on exit."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._count = 0

    def create_path(self) -> str:
        """Return an unused path in the folder, without creating the file."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="pqext-recover-")
        self._count += 1
        return os.path.join(self._folder.name, f"{self._count}.parquet")

    def download(self, source: Source) -> Source:
        """Copy a remote file to a local file, so that several passes fetch it only once. Errors state the remote path.

        Raises ``SourceError`` if the bytes cannot be fetched, which does not count as damage.
        """
        path = self.create_path()
        with open(path, "xb") as file:
            for start in range(0, source.size, COPIED_BYTES):
                file.write(source.read(start, min(COPIED_BYTES, source.size - start)).data)
        copy = PathSource(path)
        copy.path = source.path
        return copy

    def __enter__(self) -> TemporaryFiles:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def write(dest: Any, candidates: Candidates, groups: Iterable[tuple[Source, CandidateGroup]]) -> None:
    """Copy the chunks of ``groups``, each from its source file, to ``dest``."""
    written = []
    with Sink(dest) as sink:
        sink.write(MAGIC)
        for source, group in groups:
            chunks: list[ColumnMetaData | None] = []
            for chunk in group.chunks:
                assert chunk is not None
                start = start_of(chunk)
                made = shift_chunk(chunk, sink.offset - start)
                made.encoding_stats = chunk.encoding_stats
                chunks.append(made)
                copy_bytes(source, start, end_of(chunk), sink)
            written.append(CandidateGroup(group.rows, chunks, group.evidence))
        sink.write(serialise_footer(file_metadata(candidates, written)))


_PAGE_ROWS = 1 << 20


class NullPageSource(Source):
    """Source that appends pages of nulls, held in memory, to the bytes of a damaged file."""

    def __init__(self, source: Source, pages: bytes) -> None:
        super().__init__(source.path, source.size + len(pages))
        self.is_remote, self.merge_gap, self.window_bytes = source.is_remote, source.merge_gap, source.window_bytes
        self._inner = source
        self._null_pages = pages

    def _fetch(self, offset: int, length: int) -> Bytes:
        end = self._inner.size
        if offset + length <= end:
            return self._inner.read(offset, length)
        head = self._inner.read(offset, end - offset).tobytes() if offset < end else b""
        return view(head + self._null_pages[max(offset - end, 0) : offset + length - end])

    def close(self) -> None:
        """Do nothing, because the damaged file belongs to the caller."""


class NullFiller:
    """Generator of chunks of nulls that replace lost chunks of optional columns."""

    def __init__(self, source: Source, candidates: Candidates, limits: Limits) -> None:
        self._source = source
        self._columns = {node.name: node for node in from_elements(candidates.elements, limits).root.children}
        self._has_names = len(self._columns) == len(from_elements(candidates.elements, limits).root.children)
        self._null_pages = bytearray()

    @property
    def source(self) -> Source:
        """Source of the damaged file and of all generated chunks of nulls."""
        return NullPageSource(self._source, bytes(self._null_pages))

    def fill(self, assessment: Assessment) -> CandidateGroup | None:
        """Return the row group with lost columns replaced by nulls.

        Returns None if rows can be recovered without nulls, no column or every column is lost, column names are not
        unique, a chunk has too few values, or a lost column is required. The reasons in ``assessment.damaged`` mention
        required columns.
        """
        group = assessment.group
        missing = [name for name, node in self._columns.items() if None in group.chunks[_leaves(node)]]
        lost = missing or [name for name in assessment.lost_columns if name not in group.nulls]
        if assessment.recoverable_rows or not lost or not self._has_names or not set(lost) <= self._columns.keys():
            return None
        if len(lost) + len(group.nulls) == len(self._columns):
            return None
        if any(chunk is not None and chunk.num_values < group.rows for chunk in group.chunks):
            return None  # no column has that many rows
        required = [name for name in lost if self._columns[name].repetition is not FieldRepetitionType.OPTIONAL]
        for name in required:
            assessment.damaged[name] += "; the column is required and cannot be filled with nulls"
        if required:
            return None
        chunks = list(group.chunks)
        for name in lost:
            node = self._columns[name]
            chunks[_leaves(node)] = [self._add_null_chunk(leaf, group.rows) for leaf in node.leaves()]
        reasons = {name: assessment.lost_columns[name] for name in lost}
        return replace(group, chunks=chunks, nulls={**group.nulls, **reasons})

    def _add_null_chunk(self, leaf: SchemaNode, rows: int) -> ColumnMetaData:
        start = self._source.size + len(self._null_pages)
        sizes = [min(_PAGE_ROWS, rows - at) for at in range(0, rows, _PAGE_ROWS)]
        for size in sizes:
            self._null_pages += _encode_null_page(leaf, size)
        stored = self._source.size + len(self._null_pages) - start
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


def _encode_null_page(leaf: SchemaNode, rows: int) -> bytes:
    """Encode a data page of ``rows`` nulls: one run of zeros for each type of level, and no values."""
    levels = [highest for highest in (leaf.max_repetition_level, leaf.max_definition_level) if highest]
    body = b"".join(_encode_zeros(rows, highest) for highest in levels)
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
        crc=_to_signed(isal_zlib.crc32(body)),
        data_page_header=header,
    )
    return encode(about) + body


def _to_signed(checksum: int) -> int:
    return checksum - (1 << 32) if checksum >> 31 else checksum


def _encode_zeros(count: int, highest: int) -> bytes:
    """Encode ``count`` levels of 0 as one run, preceded by the length of its bytes."""
    run, remaining = bytearray(), count << 1
    while remaining >= 0x80:
        run.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    run.append(remaining)
    run += bytes((highest.bit_length() + 7) // 8)
    return len(run).to_bytes(4, "little") + bytes(run)


def rewritten_groups(
    path: str, candidates: Candidates, assessments: Sequence[Assessment], limits: Limits
) -> list[tuple[Source, CandidateGroup]]:
    """Return the row groups of the rewritten file ``path``, one for each assessment.

    The list is empty if the rewritten file and the candidates differ in schema or row counts.
    """
    source = PathSource(path)
    footer = read_footer(source, limits).metadata
    groups = footer.row_groups
    same = list(footer.schema) == list(candidates.elements)
    if not same or [group.num_rows for group in groups] != [item.recoverable_rows for item in assessments]:
        return []
    return [
        (
            source,
            replace(item.group, rows=item.recoverable_rows, chunks=[chunk.meta_data for chunk in group.columns]),
        )
        for group, item in zip(groups, assessments, strict=True)
    ]
