"""Indexes of VARIANT columns: the paths that occur in each object, and the choice of paths whose values to index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.expressions import Base, Column, Expression, IsNull, VariantField, col
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.files.sources import find_sources
from pqext.dataset.reading import scan
from pqext.skipping.indexes.index import Collector, Index, index_type_named
from pqext.variant import faults
from pqext.variant.access.path import as_path, format_path
from pqext.variant.coercion import as_variants
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.infer import Survey
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import Object, Primitive, ShreddingSchema
from pqext.variant.types import is_variant_type, struct_chunks

_DEPTH = 8
"""Maximum names of an indexed path; deeper paths may exist."""
_MOST = 10_000
"""Maximum number of paths; the paths of an object with more are unknown."""
_FILES = 8
"""Maximum number of files in a sample."""


@dataclass(frozen=True, init=False)
class VariantPaths(Index):
    """Paths of all fields that occur in the VARIANT values of each object.

    If the path of a value does not occur, the object is excluded for conditions on the value, except ``is_null``.
    """

    name = "paths"

    def __init__(self, operand: str | Base) -> None:
        Index.__init__(self, operand)
        if not isinstance(self.operand, Column):
            raise TypeError(f"a VariantPaths index needs a VARIANT column, not the value {self.operand}")

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        if not is_variant_type(values):
            raise TypeError(f"a VariantPaths index needs a VARIANT column; {self.operand} has type {values}")
        return pa.list_(pa.string())

    def collector(self, values: pa.DataType) -> Collector:
        return _Paths()

    def applies_to(self, leaf: Expression) -> bool:
        fields = operands(leaf)
        return len(fields) == 1 and isinstance(fields[0], VariantField) and fields[0].column.equals(self.operand)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        (field,) = operands(leaf)
        if isinstance(leaf, IsNull) or not isinstance(field, VariantField):
            return None
        names = []
        for step in as_path(field.path)[:_DEPTH]:
            if not isinstance(step, str):
                break
            names.append(step)
        if not names:
            return None
        rows = np.asarray(pc.list_parent_indices(cells))
        is_path = np.asarray(pc.equal(cells.flatten(), format_path(tuple(names))))
        may = np.bincount(rows[is_path], minlength=len(cells)) > 0
        return pa.array(may, mask=np.asarray(pc.is_null(cells)))


class _Paths:
    def __init__(self) -> None:
        self._survey = Survey(_MOST, _DEPTH)

    def add(self, values: pa.Array) -> None:
        for chunk in struct_chunks(as_variants(values)):
            status, _ = self._survey.add(VariantInput(unshred(chunk)), len(chunk))
            if status != 0:
                raise faults.error(status)

    def cell(self) -> pa.Array:
        if self._survey.full:
            return pa.nulls(1, pa.list_(pa.string()))
        paths: list[tuple[str, ...] | None] = []
        for node in self._survey.places():
            above: Sequence[str] | None = () if node["parent"] < 0 else paths[node["parent"]]
            if node["parent"] >= 0 and (node["name"] is None or above is None):  # paths within arrays
                paths.append(None)
            elif node["parent"] < 0:
                paths.append(())
            else:
                paths.append((*(above or ()), node["name"].decode()))
        names = sorted({format_path(path) for path in paths if path})
        return pa.array([names], pa.list_(pa.string()))


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
        filesystem: A file system of pyarrow or fsspec, or an obstore store, that contains ``sources``.
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
    """Yield the path of each scalar in a shredding schema, and the type with which filters should request it."""
    if isinstance(schema, Object):
        for name, inner in schema.fields:
            yield from _leaves(inner, (*path, name))
    elif isinstance(schema, Primitive):
        is_number = pa.types.is_decimal(schema.type) or pa.types.is_floating(schema.type)
        yield path, pa.float64() if is_number else schema.type


def _supports(index: Index, values: pa.DataType) -> bool:
    """Return whether ``index`` supports values of type ``values``."""
    try:
        index.cell_type(values)
    except TypeError:
        return False
    return True
