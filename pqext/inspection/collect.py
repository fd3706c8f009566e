"""Report of :func:`pqext.inspect`, created from a footer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import render_text
from pqext.core.footer.flatbuffers.reading import has_matching_footer
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, has_correct_table
from pqext.core.footer.thrift_footer import ENCRYPTED_MAGIC, FLATBUFFERS, ends_in_flat_footer
from pqext.core.format import metadata as format
from pqext.core.format.extension.framing import payloads_by_uuid
from pqext.core.format.predicate import Bounds
from pqext.core.io.source import FileSource
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.read.second_copy import SECOND_COPY
from pqext.core.schema.annotations import extension_name
from pqext.core.schema.facts import LeafDescription, RowGroupDescription
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types.geometries import geometry_type_names
from pqext.inspection.model import Column, Extension, Field, FileFacts, FooterFacts, RowGroup
from pqext.inspection.values import enum_name, format_bound, logical_type

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, slots=True)
class Report(FileFacts):
    """Report on the layout of a file. It can be printed as text, or converted to data with :meth:`to_dict`.

    ``row_groups`` lists the requested row groups; ``num_row_groups`` is the number of all row groups.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from pqext.inspection.rendering import render

        yield from render(self)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return str(self)


_JUMP_TABLE = "jump table"


def inspect(
    source: FileSource,
    *,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    max_chunks: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Describe a Parquet file from its footer, without reading values.

    Args:
        source: Path, URL, bytes or binary file, as for :func:`pqext.open`.
        columns: Names, or dotted paths of fields or leaves, whose column chunks are described; all if None.
        row_groups: Indexes of the row groups to describe; all if None.
        max_chunks: Maximum number of column chunks to describe; the schema is always complete.
        limits: Limits of the reader.
        decryption: Keys of an encrypted file; without them a plaintext footer still shows encrypted columns.
        filesystem: File system of the source, as for :func:`pqext.open`.
        storage_options: Options of the object store, as for :func:`pqext.open`.

    Returns:
        A report that can be printed.

    Raises:
        CorruptFileError: If the footer is corrupt.
        ValueError: If a column or row group does not exist.

    Example:
        >>> import pqext
        >>> pqext.write_table({"id": [1, 2, 3]}, "ids.parquet")
        >>> report = pqext.inspect("ids.parquet")
        >>> column = report.row_groups[0].columns[0]
        >>> report.num_rows, column.codec, column.minimum, column.maximum
        (3, 'SNAPPY', '1', '3')
    """
    options = ReadOptions(decryption=decryption, geoparquet=False, arrow_schema=False)
    with ParquetFile(source, options, limits=limits, filesystem=filesystem, storage_options=storage_options) as file:
        leaves = _select_nodes(file.schema, columns)
        groups = list(range(len(file.row_groups))) if row_groups is None else list(row_groups)
        for index in groups:
            if not 0 <= index < len(file.row_groups):
                raise ValueError(f"row group {index} does not exist; the file has {len(file.row_groups)} row groups")
        try:
            return _build_report(file, leaves, groups, len(leaves) * len(groups) if max_chunks is None else max_chunks)
        except ParquetError as error:
            error.locate(path=file.path)
            raise


def _build_report(file: ParquetFile, leaves: list[SchemaNode], groups: list[int], max_chunks: int) -> Report:
    extensions = tuple(_extensions(file))  # first: reads structures not decoded yet
    return Report(
        path=file.path,
        size=file.source.size,
        version=file.metadata.version,
        created_by=file.metadata.created_by,
        num_rows=file.num_rows,
        num_columns=len(file.schema.leaves),
        num_row_groups=len(file.row_groups),
        key_value_metadata=tuple((pair.key, pair.value) for pair in file.metadata.key_value_metadata or ()),
        schema=tuple(_fields(file.schema.root)),
        row_groups=tuple(
            _row_group(file.row_groups[index], file.schema, leaves, max(0, max_chunks - i * len(leaves)))
            for i, index in enumerate(groups)
        ),
        extensions=extensions,
        footer=_footer_facts(file, extensions),
    )


def _footer_facts(file: ParquetFile, extensions: Sequence[Extension]) -> FooterFacts:
    footer = file.footer
    held = [length for item in extensions if item.place == "file" for name, length in item.holds if name == _JUMP_TABLE]
    alone = footer.format == "flatbuffers"
    raw = None if alone else file.source.read(footer.offset, footer.length)
    flat = int.from_bytes(raw[-25:-21].tobytes(), "little") if raw is not None and ends_in_flat_footer(raw) else None
    agree = None
    if raw is not None and flat is not None:
        agree = footer.format == "thrift" and has_matching_footer(raw)
    elif held:
        agree = _is_valid_jump_table(bytes(footer.raw))
    return FooterFacts(
        offset=footer.offset,
        length=footer.length,
        encrypted=file.source.read(file.source.size - 4, 4).tobytes() == ENCRYPTED_MAGIC,
        form="flatbuffers" if alone else "thrift",
        jump_table=sum(held) if held else None,
        flatbuffers=flat,
        agrees=agree,
        read_by=None if flat is None else "thrift" if footer.format == "thrift" else "flatbuffers",
    )


def _is_valid_jump_table(footer: bytes) -> bool:
    try:
        return bool(has_correct_table(footer))
    except ParquetError:
        return False


def describe(file: ParquetFile, max_chunks: int) -> Report:
    """Describe an open file. Statistics are included for the first ``max_chunks`` column chunks."""
    return _build_report(file, list(file.schema.leaves), list(range(len(file.row_groups))), max_chunks)


def _select_nodes(schema: Schema, columns: Sequence[str] | None) -> list[SchemaNode]:
    if columns is None:
        return list(schema.leaves)
    chosen: dict[int, SchemaNode] = {}
    for column in columns:
        node = schema.find(column)
        if node is None:
            known = {name for leaf in schema.leaves for name in (leaf.path[0], leaf.dotted_path)}
            raise ValueError(f"unknown column {column!r}{did_you_mean(column, sorted(known))}")
        chosen.update((leaf.leaf_start, leaf) for leaf in node.leaves())
    return [chosen[index] for index in sorted(chosen)]


def _fields(root: SchemaNode) -> Iterator[Field]:
    pending = list(reversed(root.children))
    while pending:
        node = pending.pop()
        yield Field(
            path=node.path,
            repetition=node.repetition.name.lower(),
            physical_type=_physical_type(node),
            logical_type=_logical_type(node),
            max_definition_level=node.max_definition_level,
            max_repetition_level=node.max_repetition_level,
            field_id=node.field_id,
            column=node.leaf_start if node.is_leaf else None,
        )
        pending.extend(reversed(node.children))


def _logical_type(node: SchemaNode) -> str | None:
    text = logical_type(node.logical_type)
    if node.calendar is None:
        return text
    return f"{text}, legacy calendar" if text else "legacy calendar"


def _physical_type(node: SchemaNode) -> str | None:
    if node.physical_type is None:
        return None
    return node.physical_type.name if node.type_length is None else f"{node.physical_type.name}({node.type_length})"


def _row_group(group: RowGroupDescription, schema: Schema, leaves: list[SchemaNode], max_chunks: int) -> RowGroup:
    return RowGroup(
        index=group.index,
        rows=group.num_rows,
        compressed=group.compressed_bytes,
        uncompressed=group.uncompressed_bytes,
        sorting=tuple(_format_sort_column(schema, column) for column in group.sorting),
        num_chunks=len(leaves),
        columns=tuple(_column(group.chunk(leaf)) for leaf in leaves[:max_chunks]),
    )


def _format_sort_column(schema: Schema, column: format.SortingColumn) -> str:
    known = 0 <= column.column_idx < len(schema.leaves)
    name = schema.leaves[column.column_idx].dotted_path if known else f"column {column.column_idx}"
    return f"{name} {'descending' if column.descending else 'ascending'}"


def _column(chunk: LeafDescription) -> Column:
    leaf = chunk.node
    if chunk.is_hidden:
        return Column(path=leaf.path, column=leaf.leaf_start, encrypted=chunk.is_encrypted)
    # A chunk in another file cannot be read, but it is described.
    bounds = chunk.bounds() if chunk.file_path is None else Bounds()
    spatial, counts = chunk.geospatial_statistics, chunk.counts
    types = _geospatial_types(spatial)
    return Column(
        path=leaf.path,
        column=leaf.leaf_start,
        encodings=tuple(enum_name(format.Encoding, encoding) for encoding in chunk.encodings),
        codec=enum_name(format.CompressionCodec, chunk.codec),
        num_values=chunk.num_values,
        compressed=chunk.compressed_bytes,
        uncompressed=chunk.uncompressed_bytes,
        offset=chunk.byte_range[0],
        file_path=chunk.file_path,
        minimum=format_bound(leaf, bounds.minimum),
        maximum=format_bound(leaf, bounds.maximum),
        null_count=counts.nulls,
        nan_count=counts.nans,
        distinct_count=counts.distinct,
        bounding_box=_box(spatial.bbox) if spatial is not None else None,
        geospatial_types=types,
        geometry_types=None if types is None else geometry_type_names(types),
        dictionary=chunk.has_dictionary,
        column_index=chunk.has_column_index,
        offset_index=chunk.has_offset_index,
        bloom_filter=chunk.has_bloom_filter,
        encrypted=chunk.is_encrypted,
        extensions=_supported_entries(chunk.stored_extension),
    )


def _box(box: format.BoundingBox | None) -> dict[str, float] | None:
    if box is None:
        return None
    names = [f"{axis}{end}" for axis in "xyzm" for end in ("min", "max")]
    values = {name: getattr(box, name) for name in names}
    # An axis with only one bound is not reported.
    return {
        name: value
        for name, value in values.items()
        if values[name[0] + "min"] is not None and values[name[0] + "max"] is not None
    }


def _geospatial_types(spatial: format.GeospatialStatistics | None) -> tuple[int, ...] | None:
    if spatial is None or spatial.geospatial_types is None:
        return None
    return tuple(spatial.geospatial_types)


def _extensions(file: ParquetFile) -> Iterator[Extension]:
    for place, payload in file.extensions.items():
        yield Extension(place, len(payload), payload[:16].hex(), _supported_entries(payload))


def _supported_entries(payload: bytes | None) -> tuple[tuple[str, int], ...]:
    """Return the names and sizes of the entries that pqext supports in an extension; empty if it is corrupt."""
    if payload is None:
        return ()
    try:
        result = payloads_by_uuid(payload)
    except ParquetError:
        return ()
    named = {SECOND_COPY: "second copy", JUMP_TABLE: _JUMP_TABLE, FLATBUFFERS: "FlatBuffers footer"}
    names = ((named.get(uuid) or extension_name(uuid), len(part)) for uuid, part in (result or {}).items())
    return tuple((name, size) for name, size in names if name is not None)
