"""Choose the paths of a VARIANT column to index, from a sample of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.expressions import col
from pqext.dataset.files.sources import find_sources
from pqext.dataset.reading import scan
from pqext.skipping.indexes.index import Index, index_type_named
from pqext.variant.access.path import format_path
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.schema import Object, Primitive, ShreddingSchema
from pqext.variant.types import struct_chunks

_FILES = 8


def variant_indexes(
    sources: Any,
    column: str,
    *,
    index_types: Sequence[str] = ("minmax",),
    sample_rows: int = 10_000,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **inference: Any,
) -> list[Index]:
    """Return indexes on the common paths of a VARIANT column, for use with :func:`build`.

    The paths are those outside arrays that :func:`pqext.variant.infer_schema` would shred. Numbers with a fraction are
    indexed as ``double``. A filter uses the indexes of the type that the filter requests.

    Args:
        sources: The Parquet files, as for :func:`build`; eight of them, evenly spread, are sampled.
        column: The name of the column.
        index_types: Index types, by their names in stores; each is used for the paths whose type it supports.
        sample_rows: Number of rows to sample.
        options: Options to read the files, including keys.
        limits: Limits on memory and counts for untrusted files.
        filesystem: A file system of pyarrow or fsspec, or an obstore store, in which ``sources`` are paths.
        storage_options: Credentials and other settings of the object store of a URL.
        inference: Further options of :func:`pqext.variant.infer_schema`, such as ``min_frequency``.

    Raises:
        ValueError: If the column does not exist or is not a VARIANT, or an index type is unknown.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping, variant
        >>> events = variant.parse_json(['{"mag": 5.25, "at": {"place": "Fiji"}}', '{"mag": 2, "at": {}}'])
        >>> pqext.write_table(pyarrow.table({"event": events}), "quakes.parquet")
        >>> for index in skipping.variant_indexes("quakes.parquet", "event"):
        ...     print(index)
        minmax of event[$.at.place: STRING]
        minmax of event[$.mag: DOUBLE]
    """
    types = {kind: index_type_named(kind) for kind in index_types}
    for kind, index_type in types.items():
        if index_type is None:
            raise ValueError(f"unknown index type {kind!r}: register it with register_index")
    files = find_sources(sources, filesystem, storage_options)
    step = -(-len(files) // _FILES)
    sample = files[::step]
    per_file = -(-sample_rows // len(sample))
    chunks = []
    for file in sample:
        rows = scan([file], [column], options=options, limits=limits).limit(per_file).to_table()
        chunks += struct_chunks(rows.column(column))
    schema = infer_schema(pa.chunked_array(chunks), sample_rows=sample_rows, **inference)
    return [
        index
        for path, type in _leaves(schema, ())
        for index_type in types.values()
        if index_type is not None
        and _supports(index := index_type(col(column).variant(format_path(path), type)), type)
    ]


def _leaves(schema: ShreddingSchema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the paths of scalars, with the type that filters on them should use."""
    if isinstance(schema, Object):
        for name, inner in schema.fields:
            yield from _leaves(inner, (*path, name))
    elif isinstance(schema, Primitive):
        is_number = pa.types.is_decimal(schema.type) or pa.types.is_floating(schema.type)
        yield path, pa.float64() if is_number else schema.type


def _supports(index: Index, values: pa.DataType) -> bool:
    """Return whether an index supports the type of its operand."""
    try:
        index.cell_type(values)
    except TypeError:
        return False
    return True
