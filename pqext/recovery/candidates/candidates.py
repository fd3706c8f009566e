"""Candidate row groups of a damaged file, in the layout of a footer, before they are checked."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.thrift_footer import Footer, SourceWithFooter
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, KeyValue, RowGroup, SchemaElement
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements

Assigned = Literal["footer", "moved", "contradicted", "only", "regular", "row_group_rows"]
"""Basis of the assignment of pages to columns."""


@dataclass(slots=True)
class CandidateGroup:
    """Row group of ``rows`` rows. ``chunks`` has an entry for each leaf: None if the location of the chunk is unknown.

    ``number`` is the position of the row group in the footer, or None if it was located by its pages. ``checksums``
    means that every page has a checksum, so recovered pages are unmodified. ``intact`` means that all checksums match,
    if the row group was located by its pages. ``may_count_rows`` means that a page is or may be a V2 page. ``assigned``
    is the basis of the assignment of pages to columns. ``extent`` is the byte range of the pages, if the row group was
    located by its pages. ``nulls`` maps top-level columns whose lost chunks were replaced with nulls to the reason
    of the loss. ``rejected`` maps columns with a located chunk that is not used to the reason.
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
    rejected: dict[str, str] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """Offset of the first page; 0 if no chunk is located."""
        return min((start_of(chunk) for chunk in self.chunks if chunk is not None), default=0)


@dataclass(slots=True)
class Candidates:
    """Candidate row groups in row order, with the schema, its origin, key-value metadata and writer of the file."""

    elements: Sequence[SchemaElement]
    schema_from: str
    groups: list[CandidateGroup] = field(default_factory=list)
    pairs: Sequence[KeyValue] | None = None
    created_by: str | None = None


def end_of(chunk: ColumnMetaData) -> int:
    """Return the end offset of the chunk."""
    return start_of(chunk) + chunk.total_compressed_size


def first_equal_groups(groups: Iterable[CandidateGroup]) -> list[int]:
    """Map each row group to the first row group whose chunks occupy the same byte ranges.

    Returns positions in ``groups``.
    """
    firsts: dict[tuple[tuple[int, int] | None, ...], int] = {}
    positions = []
    for number, group in enumerate(groups):
        extents = tuple(None if chunk is None else (start_of(chunk), end_of(chunk)) for chunk in group.chunks)
        positions.append(firsts.setdefault(extents, number))
    return positions


class CandidateSource(SourceWithFooter):
    """Source that is read with candidate metadata instead of its own footer."""

    def __init__(self, source: Source, metadata: FileMetaData, limits: Limits) -> None:
        super().__init__(source.path, source.size)
        self.is_remote, self.merge_gap, self.window_bytes = source.is_remote, source.merge_gap, source.window_bytes
        raw = view(encode(metadata))
        self.footer = Footer(decode(FileMetaData, raw, limits=limits)[0], source.size, len(raw), raw)
        self._inner = source

    def _fetch(self, offset: int, length: int) -> Bytes:
        return self._inner.read(offset, length)

    def close(self) -> None:
        """Do nothing, because the damaged file belongs to the caller."""


def file_metadata(candidates: Candidates, groups: Iterable[CandidateGroup]) -> FileMetaData:
    """Build a footer for ``groups``. All their chunks must have a location."""
    row_groups = []
    for group in groups:
        chunks = [ColumnChunk(file_offset=0, meta_data=chunk) for chunk in group.chunks if chunk is not None]
        row_groups.append(
            RowGroup(
                columns=chunks,
                total_byte_size=sum(chunk.total_uncompressed_size for chunk in group.chunks if chunk is not None),
                num_rows=group.rows,
                total_compressed_size=sum(chunk.total_compressed_size for chunk in group.chunks if chunk is not None),
            )
        )
    return FileMetaData(
        version=2,
        schema=list(candidates.elements),
        num_rows=sum(group.num_rows for group in row_groups),
        row_groups=row_groups,
        key_value_metadata=candidates.pairs,
        created_by=candidates.created_by,
    )


def shift_chunk(chunk: ColumnMetaData, distance: int) -> ColumnMetaData:
    """Return the metadata of a chunk that has moved by ``distance`` bytes, without statistics and indexes."""
    dictionary = chunk.dictionary_page_offset  # some writers store 0 for a missing dictionary
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


def remove_value_metadata(pairs: Sequence[KeyValue] | None) -> list[KeyValue] | None:
    """Return key-value metadata without the boxes and types of geometries, which recovered rows may contradict.

    An invalid ``geo`` entry is removed. Returns None if ``pairs`` is None.
    """
    if pairs is None:
        return None
    result = []
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
        result.append(pair)
    return result


def remove_footer_columns(
    metadata: FileMetaData, elements: Sequence[SchemaElement], dropped_columns: Collection[str]
) -> FileMetaData:
    """Return the footer without the top-level columns in ``dropped_columns``.

    ``elements`` is the schema without these columns.
    """
    tops = from_elements(metadata.schema).root.children
    retained = [leaf.leaf_start for top in tops if top.name not in dropped_columns for leaf in top.leaves()]
    orders = metadata.column_orders
    has_orders = orders and max(retained, default=0) < len(orders)
    groups = [
        RowGroup(columns=[group.columns[leaf] for leaf in retained], total_byte_size=0, num_rows=group.num_rows)
        for group in metadata.row_groups
    ]
    return FileMetaData(
        version=metadata.version,
        schema=list(elements),
        num_rows=metadata.num_rows,
        row_groups=groups,
        created_by=metadata.created_by,
        column_orders=[orders[leaf] for leaf in retained] if orders and has_orders else None,
    )
