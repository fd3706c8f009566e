"""Concatenate files by copying their row groups byte for byte, without decoding pages.

The bytes of each file between the magic number and its page index are copied in one range, so that every offset in its
metadata moves by the same distance. Page indexes are collected and written before the footer; offset indexes contain
offsets and are serialised again. Spec: "File format" (layout), "Page Index" (layout).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.footer.merge import FooterMerge, Merge
from pqext.core.footer.thrift_footer import MAGIC, Footer, serialise_footer
from pqext.core.footer.writing import copy_bytes, open_input, read_unencrypted_footer
from pqext.core.format.extension.framing import add_entries, payloads_by_uuid
from pqext.core.format.extension.structure import extensions as extensions_of
from pqext.core.format.extension.structure import set_extension
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, OffsetIndex, RowGroup
from pqext.core.format.thrift import Struct, decode, encode
from pqext.core.io.sink import Sink
from pqext.core.io.source import Source
from pqext.core.schema.annotations import extension_name

Unknown = Literal["reject", "drop", "keep"]


def concatenate(
    sources: Iterable[Any],
    dest: Any,
    *,
    key_value_metadata: Merge | Mapping[str, str] = "merge",
    extensions: Unknown = "reject",
    limits: Limits = DEFAULT_LIMITS,
) -> int:
    """Concatenate Parquet files with the same schema into ``dest``, a path or a binary file object.

    Returns the number of rows written. The schemas must be equal apart from the name of the root. Pages, statistics,
    page indexes, Bloom filters and sorting columns are preserved. If a file orders a column's bounds differently from
    the first file, its bounds of that column are dropped. For ``key_value_metadata``, ``"merge"`` retains all pairs,
    with the value of the first file that has the key; ``"first"`` retains the pairs of the first file; ``"equal"``
    requires equal pairs; and a mapping replaces the pairs. ``extensions`` applies to extensions and to unknown fields,
    which may contain offsets that become wrong: ``"reject"`` raises an error, ``"drop"`` removes them, and ``"keep"``
    copies them unchanged from the row groups and from the footer of the first file. Page boxes
    (:mod:`pqext.geo.page_boxes`) contain no offsets and are always preserved.

    Raises ``ValueError`` if the files cannot be combined, ``UnsupportedError`` for files that are partly encrypted or
    have chunks in other files, and ``CorruptFileError`` for corrupt footers. No file remains at ``dest`` after an
    error.

    >>> import pqext
    >>> for name, ids in {"a.parquet": [1, 2], "b.parquet": [3]}.items():
    ...     pqext.write_table({"id": ids}, name)
    >>> pqext.concatenate(["a.parquet", "b.parquet"], "all.parquet")
    3
    >>> pqext.read_table("all.parquet").to_pydict()
    {'id': [1, 2, 3]}
    """
    if extensions not in get_args(Unknown):
        raise ValueError(f"extensions must be one of {', '.join(get_args(Unknown))}, not {extensions!r}")
    if isinstance(sources, (str, bytes)):
        raise TypeError(f"sources must be a list of files, not {type(sources).__name__}")
    job = _Concatenation(key_value_metadata, extensions, limits)
    inputs = list(sources)
    if not inputs:
        raise ValueError("no files to concatenate: pass at least one file")
    with Sink(dest) as sink:
        sink.write(MAGIC)
        for source in inputs:
            with open_input(source) as opened:
                job.append(opened, sink)
        metadata = job.finish(sink)
        if metadata.num_rows >= 1 << 63:
            raise CorruptFileError(f"the files have {metadata.num_rows} rows in total, more than a footer can record")
        sink.write(serialise_footer(metadata))
    return metadata.num_rows


@dataclass
class _Indexes:
    """Serialised column index and offset index of a chunk, to be written before the footer."""

    chunk: ColumnChunk
    column: bytes | None
    offset: bytes | None


class _Concatenation:
    def __init__(self, pairs: Merge | Mapping[str, str], unknown: Unknown, limits: Limits) -> None:
        self._merge = FooterMerge(pairs)
        self._unknown = unknown
        self._limits = limits
        self._groups: list[RowGroup] = []
        self._indexes: list[list[_Indexes]] = []

    def append(self, source: Source, sink: Sink) -> None:
        footer = read_unencrypted_footer(source, self._limits)
        metadata = footer.metadata
        if self._unknown != "keep" and any(_has_unknown_fields(struct) for struct in _iter_structures(metadata)):
            if self._unknown == "reject":
                raise UnsupportedError(
                    "the metadata has an extension or an unknown field, which may contain offsets: "
                    'pass extensions="drop" or extensions="keep"',
                    feature="concatenating extensions", path=source.path,
                )
            for struct in _iter_structures(metadata):
                _remove_unknown_fields(struct)
        self._merge.add(metadata, source.path)
        groups = list(metadata.row_groups)
        for group in groups:
            group.columns = list(group.columns)
        end = _data_end([chunk for group in groups for chunk in group.columns], footer)
        shift = sink.offset - len(MAGIC)
        self._merge.remove_foreign_bounds(metadata, [group.columns for group in groups])
        for group in groups:
            results = [self._read_shifted_indexes(chunk, source, shift, footer.offset) for chunk in group.columns]
            for chunk in group.columns:
                _move(chunk, shift, footer.offset)
            if group.file_offset:
                group.file_offset = _move_offset(group.file_offset, shift, footer.offset)
            group.ordinal = len(self._groups) if len(self._groups) < 1 << 15 else None
            self._groups.append(group)
            self._indexes.append(results)
        copy_bytes(source, len(MAGIC), end, sink)

    def finish(self, sink: Sink) -> FileMetaData:
        """Write the page indexes, and return the merged footer."""
        for group in self._indexes:
            for item in group:
                item.chunk.column_index_offset, item.chunk.column_index_length = _write(sink, item.column)
        for group in self._indexes:
            for element in group:
                element.chunk.offset_index_offset, element.chunk.offset_index_length = _write(sink, element.offset)
        return self._merge.finish(self._groups)

    def _read_shifted_indexes(self, chunk: ColumnChunk, source: Source, shift: int, end: int) -> _Indexes:
        column = _read(source, chunk.column_index_offset, chunk.column_index_length)
        raw = _read(source, chunk.offset_index_offset, chunk.offset_index_length)
        if raw is not None:
            index, _ = decode(OffsetIndex, raw, limits=self._limits, base=chunk.offset_index_offset or 0)
            for location in index.page_locations:
                location.offset = _move_offset(location.offset, shift, end)
            raw = encode(index)
        return _Indexes(chunk, column, raw)


def _read(source: Source, offset: int | None, length: int | None) -> bytes | None:
    return source.read(offset, length).tobytes() if offset is not None and length else None


def _write(sink: Sink, data: bytes | None) -> tuple[int, int] | tuple[None, None]:
    if data is None:
        return None, None
    offset = sink.offset
    sink.write(data)
    return offset, len(data)


def _metadata(chunk: ColumnChunk) -> ColumnMetaData:
    if chunk.file_path is not None:
        raise UnsupportedError(
            f"a column chunk is in another file, {chunk.file_path!r}: concatenate that file instead",
            feature="concatenating summary files",
        )
    if chunk.meta_data is None:
        raise CorruptFileError("a column chunk has no metadata")
    return chunk.meta_data


def _data_end(chunks: list[ColumnChunk], footer: Footer) -> int:
    """Return the end of the bytes to copy: the start of the page index or, if data follows the page index, of the
    footer.
    """
    indexes, data = [footer.offset], [len(MAGIC)]
    for chunk in chunks:
        about = _metadata(chunk)
        # Some writers store 0 if there is no page.
        starts = [at for at in (about.data_page_offset, about.dictionary_page_offset) if at]
        begin, length = min(starts, default=len(MAGIC)), about.total_compressed_size
        if begin < len(MAGIC) or length < 0 or begin + length > footer.offset:
            message = f"a column chunk of {length} bytes at offset {begin} is outside the data of its file"
            raise CorruptFileError(message)
        data.append(begin + length)
        if about.bloom_filter_offset is not None:
            data.append(about.bloom_filter_offset + (about.bloom_filter_length or 1))
        indexes += [at for at in (chunk.column_index_offset, chunk.offset_index_offset) if at is not None]
    start = min(indexes)
    return start if start >= max(data) else footer.offset


def _move_offset(offset: int, shift: int, end: int) -> int:
    """Return ``offset`` increased by ``shift``. An offset of 0 or less means that it is unset, and is returned
    unchanged.

    Raises ``CorruptFileError`` if ``offset`` is after ``end``.
    """
    if offset > end:
        raise CorruptFileError(f"offset {offset} is outside the data of its file, which ends at {end}")
    return offset + shift if offset > 0 else offset


def _move(chunk: ColumnChunk, shift: int, end: int) -> None:
    about = _metadata(chunk)
    for name in ("data_page_offset", "index_page_offset", "dictionary_page_offset", "bloom_filter_offset"):
        if getattr(about, name):
            setattr(about, name, _move_offset(getattr(about, name), shift, end))
    chunk.file_offset = _move_offset(chunk.file_offset, shift, end)


def _has_unknown_fields(struct: Struct) -> bool:
    """Return whether the structure has unknown fields, or an extension that may contain offsets.

    An unknown union member does not count, since it is preserved as the union's value.
    """
    return extensions_of(struct) is not None if type(struct).is_union else _movable_entries(struct)[1]


def _remove_unknown_fields(struct: Struct) -> None:
    if type(struct).is_union:
        set_extension(struct, None, replace=True)
    else:
        retained = _movable_entries(struct)[0]
        struct.unknown = ()
        add_entries(struct, retained)


def _movable_entries(struct: Struct) -> tuple[dict[UUID, bytes], bool]:
    """Return the extension entries that remain valid if the chunk is moved, and whether the chunk has other entries or
    unknown fields.
    """
    stored = extensions_of(struct) if isinstance(struct, ColumnMetaData) else None
    try:
        result = None if stored is None else payloads_by_uuid(stored)
    except (CorruptFileError, UnsupportedError):
        result = None
    if result is None:
        return {}, bool(struct.unknown)
    retained = {uuid: payload for uuid, payload in result.items() if extension_name(uuid) is not None}
    return retained, len(retained) < len(result) or len(struct.unknown) > 1


def _iter_structures(struct: Struct) -> Iterator[Struct]:
    """Yield the structure and all structures nested in it."""
    remaining = [struct]
    while remaining:
        struct = remaining.pop()
        yield struct
        for name, is_list in _nested_fields(type(struct)):
            value = getattr(struct, name)
            if value is not None:
                remaining.extend(value if is_list else (value,))


@cache
def _nested_fields(struct_type: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """Return the names of the fields that contain structures, and whether each is a list."""
    return tuple(
        (field.name, field.is_list)
        for field in struct_type.fields
        if isinstance(field.type, type) and issubclass(field.type, Struct)
    )
