"""Claims: what some evidence says of the row groups of a file, in the form of a footer that is yet to be proved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.thrift_footer import FootedSource, Footer
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, KeyValue, RowGroup, SchemaElement
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import Source

Assigned = Literal["footer", "moved", "contradicted", "only", "regular", "told"]
"""A footer, one before which bytes are missing or too many, one that values contradict, and the ways in which
pages alone are parted."""


@dataclass(slots=True)
class ClaimedGroup:
    """A row group of ``rows`` rows and its chunks, a leaf each; ``None`` for one whose place is not known.

    ``checksums``: every page has one, so that those which are kept are as they were written; ``intact``: all fit, where
    pages told of the row group. ``may_count_rows``: some page is of version 2, or not known. ``assigned`` is what told
    to which columns its pages belong: a footer, or the schema, in a way as
    :class:`~pqext.recovery.row_groups.search.PageGroup` has them. ``extent`` is where its pages lie, where they told
    of it. ``nulls`` are top-level columns whose chunks are nulls in the place of lost ones, and why those are lost;
    ``refused`` are columns of which a chunk is not taken although its place is known, and why.
    """

    rows: int
    chunks: list[ColumnMetaData | None]
    evidence: str
    number: int | None = None
    checksums: bool = False
    intact: bool = False
    may_count_rows: bool = True
    assigned: Assigned = "footer"
    extent: tuple[int, int] | None = None
    nulls: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """Where its first page begins."""
        return min((start_of(chunk) for chunk in self.chunks if chunk is not None), default=0)


@dataclass(slots=True)
class Claims:
    """The schema, and row groups in the order of their rows."""

    elements: Sequence[SchemaElement]
    schema_from: str
    groups: list[ClaimedGroup] = field(default_factory=list)
    pairs: Sequence[KeyValue] | None = None
    created_by: str | None = None


def end_of(chunk: ColumnMetaData) -> int:
    """Where the chunk ends."""
    return start_of(chunk) + chunk.total_compressed_size


def first_of_each(groups: Iterable[ClaimedGroup]) -> list[int]:
    """For each row group, the position of the first row group whose chunks all lie where its own do."""
    seen: dict[tuple[tuple[int, int] | None, ...], int] = {}
    found = []
    for number, group in enumerate(groups):
        extents = tuple(None if chunk is None else (start_of(chunk), end_of(chunk)) for chunk in group.chunks)
        found.append(seen.setdefault(extents, number))
    return found


class ClaimedSource(FootedSource):
    """A source that is read by claims in the place of its own footer."""

    def __init__(self, source: Source, metadata: FileMetaData, limits: Limits) -> None:
        super().__init__(source.path, source.size)
        self.is_remote, self.merge_gap, self.window_bytes = source.is_remote, source.merge_gap, source.window_bytes
        raw = view(encode(metadata))
        self.footer = Footer(decode(FileMetaData, raw, limits=limits)[0], source.size, len(raw), raw)
        self._inner = source

    def _fetch(self, offset: int, length: int) -> Bytes:
        return self._inner.read(offset, length)

    def close(self) -> None:
        """Nothing: whoever opened the file closes it."""


def file_metadata(claims: Claims, groups: Iterable[ClaimedGroup]) -> FileMetaData:
    """A footer over ``groups``, of which every chunk has a place."""
    made = []
    for group in groups:
        chunks = [ColumnChunk(file_offset=0, meta_data=chunk) for chunk in group.chunks if chunk is not None]
        made.append(
            RowGroup(
                columns=chunks,
                total_byte_size=sum(chunk.total_uncompressed_size for chunk in group.chunks if chunk is not None),
                num_rows=group.rows,
                total_compressed_size=sum(chunk.total_compressed_size for chunk in group.chunks if chunk is not None),
            )
        )
    return FileMetaData(
        version=2,
        schema=list(claims.elements),
        num_rows=sum(group.num_rows for group in made),
        row_groups=made,
        key_value_metadata=claims.pairs,
        created_by=claims.created_by,
    )


def moved(chunk: ColumnMetaData, distance: int) -> ColumnMetaData:
    """What is needed to read a chunk so many bytes further on: nothing of its values, no index or filter."""
    dictionary = chunk.dictionary_page_offset  # some writers put 0 where there is none
    return ColumnMetaData(
        type=chunk.type,
        encodings=list(chunk.encodings),
        path_in_schema=list(chunk.path_in_schema),
        codec=chunk.codec,
        num_values=chunk.num_values,
        total_uncompressed_size=chunk.total_uncompressed_size,
        total_compressed_size=chunk.total_compressed_size,
        data_page_offset=chunk.data_page_offset + distance,
        dictionary_page_offset=dictionary + distance if dictionary else None,
    )


def true_pairs(pairs: Sequence[KeyValue] | None) -> list[KeyValue] | None:
    """Key-value metadata without what it says of values: boxes and types of geometries, which rows may contradict."""
    if pairs is None:
        return None
    kept = []
    for pair in pairs:
        if pair.key == "geo":
            try:
                about = json.loads(pair.value or "")
                for column in about["columns"].values():
                    column.pop("bbox", None)
                    column["geometry_types"] = []
                pair = KeyValue(key="geo", value=json.dumps(about))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                continue
        kept.append(pair)
    return kept
