"""Which paths of a VARIANT column are worth an index: those that a sample of its values shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.expressions import col
from pqext.dataset.files.sources import find_sources
from pqext.dataset.reading import scan
from pqext.skipping.indexes.index import Index, kind_called
from pqext.variant.access.path import format_path
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.schema import Object, Primitive, ShreddingSchema
from pqext.variant.types import struct_chunks

_FILES = 8


def variant_indexes(
    sources: Any,
    column: str,
    *,
    kinds: Sequence[str] = ("minmax",),
    sample_rows: int = 10_000,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **inference: Any,
) -> list[Index]:
    """Indexes on the paths that the values of a VARIANT column share, for :func:`build`.

    The paths are those that :func:`pqext.variant.infer_schema` would shred, outside arrays. Numbers with a fraction are
    indexed as ``double``; a filter is answered by an index of the type that it asks for.

    Args:
        sources: The Parquet files, as for :func:`build`; the sample comes from eight of them, spread over all.
        column: The name of the column.
        kinds: Which kinds of index, by their names in stores, where they take the type of a path.
        sample_rows: Rows that are looked at.
        options: How the files are read, keys among it.
        limits: Bounds on memory and counts, for files of strangers.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which ``sources`` are paths.
        storage_options: Credentials and other settings of the object store that URLs name.
        inference: Further options of :func:`pqext.variant.infer_schema`, such as ``min_frequency``.

    Raises:
        ValueError: For a column that is not there or no VARIANT, and an unknown kind.

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
    made = {kind: kind_called(kind) for kind in kinds}
    for kind, found in made.items():
        if found is None:
            raise ValueError(f"there is no kind of index called {kind!r}")
    files = find_sources(sources, filesystem, storage_options)
    step = -(-len(files) // _FILES)
    chosen = files[::step]
    per_file = -(-sample_rows // len(chosen))
    chunks = []
    for file in chosen:
        rows = scan([file], [column], options=options, limits=limits).limit(per_file).to_table()
        chunks += struct_chunks(rows.column(column))
    schema = infer_schema(pa.chunked_array(chunks), sample_rows=sample_rows, **inference)
    return [
        one
        for path, type in _leaves(schema, ())
        for kind in made.values()
        if kind is not None and _takes(one := kind(col(column).variant(format_path(path), type)), type)
    ]


def _leaves(schema: ShreddingSchema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """The paths of single values, with the types by which filters ask for them."""
    if isinstance(schema, Object):
        for name, inner in schema.fields:
            yield from _leaves(inner, (*path, name))
    elif isinstance(schema, Primitive):
        is_number = pa.types.is_decimal(schema.type) or pa.types.is_floating(schema.type)
        yield path, pa.float64() if is_number else schema.type


def _takes(index: Index, values: pa.DataType) -> bool:
    """Does a kind of index take the values of its operand?"""
    try:
        index.cell_type(values)
    except TypeError:
        return False
    return True
