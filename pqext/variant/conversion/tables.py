"""Convert variants to tables with typed columns, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.types.marks import UUID_MARK
from pqext.variant import faults
from pqext.variant.coercion import as_variants
from pqext.variant.conversion.arrow import concatenate_variants, from_arrow, write_rows
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.edit import Action, edit
from pqext.variant.shredding.choice import parse_shredding
from pqext.variant.shredding.plan import compile_schema
from pqext.variant.shredding.reconstruct import build, unshred
from pqext.variant.shredding.schema import (
    UUID,
    Array,
    Object,
    Primitive,
    ShreddingSchema,
    Untyped,
    schema_of_group,
    walk,
)
from pqext.variant.shredding.shredder import Coerce, shred
from pqext.variant.types import VariantLike, child, struct_chunks, variant_field, variant_type

_NULL = pa.scalar(b"\0", pa.binary())
"""Encoded variant null."""


def to_table(array: VariantLike, schema: Any = "infer", *, residual: str = "residual") -> pa.Table:
    """Convert variants to a table with a typed column per field, and a variant column for the residual.

    ``schema`` determines the columns and types: an object schema in any format that
    :func:`pqext.variant.shredding_schema` accepts (``"id BIGINT, user STRUCT<name: STRING>"``, an Arrow type, a mapping
    of options as in the writer's ``shredding``), or ``"infer"``, the default. Objects become struct columns, arrays
    lists; fields without a type, and arrays whose elements have none, become variant columns.

    The last column, named ``residual``, is a variant with all data that the typed columns do not contain: fields
    outside the schema, values that do not have the type of their column, JSON nulls in fields, and rows that are not
    objects. It is null if nothing remains. The conversion is lossless: :func:`from_table` returns equal variants. Exact
    numbers are stored in a column if it can represent them exactly. An array is stored in its list column if all of its
    elements are null or of the column's type; otherwise it remains in the residual.

    If the values are not objects, ``"infer"`` creates no columns, only the residual: use
    :func:`pqext.variant.get` with the path ``"$"`` for a column of single values. Null rows are null in all columns.

    Use ``variant.to_table(table["event"]).to_pandas()`` for a pandas frame, and :func:`to_python` for dicts.

    Raises ``ValueError`` or ``TypeError`` if the schema is invalid or not an object schema, ``ValueError`` if a
    field has the residual's name, and ``VariantError`` with the row if bytes violate the encoding.

    >>> from pqext import variant
    >>> table = variant.to_table(variant.parse_json(['{"id": 1, "name": "x"}', '{"id": "two"}']), "id INT, name STRING")
    >>> table.select(["id", "name"]).to_pylist()
    [{'id': 1, 'name': 'x'}, {'id': None, 'name': None}]
    >>> variant.to_json(table["residual"]).to_pylist()
    [None, '{"id":"two"}']
    """
    array = as_variants(array)
    shredding = parse_shredding(schema)
    whole = [unshred(chunk) for chunk in struct_chunks(array)]
    result = shredding.schema_for(pa.chunked_array(whole, variant_type()))
    if shredding.schema is not None and not isinstance(result, Object):
        raise ValueError("the schema must be an object schema; use variant.get(array, '$', type) for single values")
    chosen = result if isinstance(result, Object) else None
    fields = [] if chosen is None else [_column_field(name, member) for name, member in chosen.fields]
    if residual in [field.name for field in fields]:
        raise ValueError(f"a column already has the name {residual!r}; pass residual= with another name")
    table_schema = pa.schema([*fields, variant_field(residual)])
    batches = []
    row = 0
    for chunk in whole:
        columns = [chunk] if chosen is None else _split_chunk(chunk, chosen, shredding.coerce, row)
        batches.append(pa.RecordBatch.from_arrays(columns, schema=table_schema))
        row += len(chunk)
    return pa.Table.from_batches(batches, table_schema)


def from_table(table: pa.Table, *, residual: str = "residual") -> pa.ChunkedArray:
    """Reverse :func:`to_table`: combine the columns of ``table`` into objects, with the fields of the residual.

    Null columns, and null fields within struct columns, are absent from the object; nulls in lists are variant nulls. A
    row is null if all columns and the residual are. In a table without a column named ``residual``, each row becomes an
    object of its columns, or null if all are null. Each row equals the input of ``to_table``, unless the
    schema used ``coerce="json"``, which converts decimals to doubles.

    Raises the errors of :func:`pqext.variant.from_arrow`.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"id": 1}', '{"id": "two", "x": null}', '[3]'])
    >>> variant.equals(array, variant.from_table(variant.to_table(array, "id INT")).combine_chunks()).to_pylist()
    [True, True, True]
    """
    check_table(table)
    chunks = []
    for batch in table.to_batches():
        has_residual = residual in batch.schema.names
        residual_rows = unshred(batch.column(residual)) if has_residual else pa.nulls(batch.num_rows, variant_type())
        chunks.append(_overlay_residual(batch.drop_columns([residual]) if has_residual else batch, residual_rows))
    return pa.chunked_array(chunks, variant_type())


def _overlay_residual(typed_columns: pa.RecordBatch, residual: pa.StructArray) -> pa.StructArray:
    """Add the fields of the residual to the objects of the typed columns.

    In rows whose typed columns are all null, the result is the residual.
    """
    rows = typed_columns.num_rows
    if not typed_columns.num_columns:
        return residual
    present = reduce(pc.or_, [column.is_valid() for column in typed_columns.columns])
    objects = pa.StructArray.from_arrays(
        typed_columns.columns, fields=list(typed_columns.schema), mask=pc.invert(present)
    )
    base, overlay = VariantInput(from_arrow(objects)), VariantInput(residual)

    def write(start: int) -> Any:
        return edit(base, start, 0, Action.ACTION_OVERLAY, [], overlay, False, False)

    merged = concatenate_variants(write_rows(write, rows))
    return pa.concat_arrays([merged, residual]).take(pc.if_else(present, np.arange(rows), np.arange(rows, 2 * rows)))


def _column_field(name: str, schema: ShreddingSchema) -> pa.Field:
    """Return the Arrow field of the column for a field of the schema."""
    if _is_variant(schema):
        return variant_field(name)
    if isinstance(schema, Object):
        return pa.field(name, pa.struct([_column_field(*member) for member in schema.fields]))
    if isinstance(schema, Array):
        return pa.field(name, pa.list_(_column_field("element", schema.element)))
    assert isinstance(schema, Primitive)
    return pa.field(name, schema.type, metadata=UUID_MARK if schema.type == UUID else None)


def _is_variant(schema: ShreddingSchema) -> bool:
    """Return whether a schema node becomes a variant column, because the node or its array element is untyped."""
    return isinstance(schema, Untyped) or (isinstance(schema, Array) and _has_untyped(schema.element))


def _has_untyped(schema: ShreddingSchema) -> bool:
    return any(isinstance(node, Untyped) for _, _, node in walk(schema))


def _split_chunk(chunk: pa.StructArray, schema: Object, coerce: Coerce, first_row: int) -> list[pa.Array]:
    """Split unshredded variants into typed columns and a residual, which is the last array."""
    try:
        shredded = shred(chunk, schema, coerce=coerce)
    except (UnsupportedError, VariantError) as error:
        raise faults.shift_row(error, first_row) from None
    metadata = child(shredded, "metadata")
    assert metadata is not None
    if shredded.null_count:
        metadata = pc.if_else(shredded.is_valid(), metadata, pa.scalar(None, pa.binary()))
    parts = [child(shredded, name) for name in ("value", "typed_value")]
    extracted = _extract(pa.StructArray.from_arrays(parts, ["value", "typed_value"]), metadata, schema)
    columns = extracted.column.flatten()
    typed = extracted.column.is_valid()
    empty = pc.and_(typed, pc.invert(reduce(pc.or_, [column.is_valid() for column in columns])))
    typed_rest = _apply_validity(extracted.rest.field("typed_value"), pc.or_(empty, extracted.has_typed_rest))
    rest = _build_group(extracted.rest.field("value"), typed_rest)
    is_residual = pc.and_(pc.or_(extracted.has_rest, empty), shredded.is_valid())
    group = pa.StructArray.from_arrays(rest.flatten(), fields=list(rest.type), mask=pc.invert(is_residual))
    return [*columns, build(group, metadata, compile_schema(schema_of_group(group.type)), first_row=first_row)]


@dataclass(frozen=True, slots=True)
class _ExtractedColumn:
    """Typed column extracted from a group, and ``rest``, the residual of the group.

    ``has_rest`` flags rows with a residual, and ``has_typed_rest`` rows with a residual within ``typed_value``.
    """

    column: pa.Array
    rest: pa.StructArray
    has_rest: pa.BooleanArray
    has_typed_rest: pa.BooleanArray


def _extract(group: pa.StructArray, metadata: pa.Array, schema: ShreddingSchema) -> _ExtractedColumn:
    """Extract the typed column of a schema node from a group."""
    value, none = group.field("value"), pa.array(np.zeros(len(group), bool))
    if _is_variant(schema):
        schema = schema_of_group(group.type)
        present = pa.StructArray.from_arrays(group.flatten(), fields=list(group.type), mask=metadata.is_null())
        column = build(present, metadata, compile_schema(schema), missing_is_null=True)
        return _ExtractedColumn(column, _build_group(pa.nulls(len(group), pa.binary())), none, none)
    typed = group.field("typed_value")
    if isinstance(schema, Primitive):
        return _ExtractedColumn(typed, _build_group(value), value.is_valid(), none)
    if isinstance(schema, Object):
        members = [_extract(typed.field(i), metadata, member) for i, (_, member) in enumerate(schema.fields)]
        fields = [_column_field(*member) for member in schema.fields]
        mask = typed.is_null()
        column = pa.StructArray.from_arrays([part.column for part in members], fields=fields, mask=mask)
        below = reduce(pc.or_, [part.has_rest for part in members])
        has_typed_rest = pc.and_(typed.is_valid(), pc.or_(below, value.is_valid()))
        names = [name for name, _ in schema.fields]
        rest = _apply_validity(pa.StructArray.from_arrays([part.rest for part in members], names), has_typed_rest)
        has_rest = pc.or_(value.is_valid(), has_typed_rest)
        return _ExtractedColumn(column, _build_group(value, rest), has_rest, has_typed_rest)
    assert isinstance(schema, Array)
    elements = _extract(typed.values, metadata, schema.element)
    has_remainder = pc.and_not(elements.has_rest, pc.fill_null(pc.equal(typed.values.field("value"), _NULL), False))
    counts = np.concatenate([[0], np.cumsum(has_remainder.to_numpy(zero_copy_only=False))])
    offsets = typed.offsets.to_numpy()
    has_typed_rest = pc.and_(typed.is_valid(), pa.array(counts[offsets[1:]] > counts[offsets[:-1]]))
    type = _column_field("", schema).type
    buffers = [_validity_bitmap(pc.and_not(typed.is_valid(), has_typed_rest)), typed.buffers()[1]]
    column = pa.Array.from_buffers(type, len(typed), buffers, children=[elements.column])
    rest = _build_group(value, _apply_validity(typed, has_typed_rest))
    return _ExtractedColumn(column, rest, pc.or_(value.is_valid(), has_typed_rest), has_typed_rest)


def _build_group(value: pa.Array, typed_columns: pa.Array | None = None) -> pa.StructArray:
    if typed_columns is None:
        return pa.StructArray.from_arrays([value], ["value"])
    return pa.StructArray.from_arrays([value, typed_columns], ["value", "typed_value"])


def _validity_bitmap(valid: pa.BooleanArray) -> pa.Buffer:
    """Return a validity bitmap with the bits of ``valid``."""
    return pa.concat_arrays([valid]).buffers()[1]


def _apply_validity(array: pa.Array, valid: pa.BooleanArray) -> pa.Array:
    """Return a column of objects or arrays that is null where ``valid`` is false. Its children are unchanged."""
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_buffers(array.type, len(array), [_validity_bitmap(valid)], children=_children(array))
    buffers = [_validity_bitmap(valid), array.buffers()[1]]
    return pa.Array.from_buffers(array.type, len(array), buffers, children=[array.values])


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(i) for i in range(array.type.num_fields)]
