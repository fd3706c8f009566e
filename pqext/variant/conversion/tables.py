"""Variants as tables with typed columns, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import VariantError
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.types.marks import UUID_MARK
from pqext.variant.coercion import as_variants
from pqext.variant.conversion.arrow import from_arrow
from pqext.variant.conversion.rows import all_rows, one_array
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.edit import Action, edit
from pqext.variant.shredding import faults as shredding_faults
from pqext.variant.shredding.choice import shredding
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
"""The encoded variant null."""


def to_table(array: VariantLike, schema: Any = "infer", *, residual: str = "residual") -> pa.Table:
    """A table with a typed column for each field of the objects, and what is left as a variant column.

    ``schema`` says which columns of which types: the object that :func:`pqext.variant.shredding_schema` takes in
    any form (``"id BIGINT, user STRUCT<name: STRING>"``, an Arrow type, a mapping of options as the writer's
    ``shredding`` takes it), or ``"infer"``, the default. Objects become struct columns, arrays lists, and fields
    without a type, as well as arrays whose elements have none, variant columns.

    The last column, named ``residual``, is a variant with all that the typed columns do not hold: fields that are
    not in the schema, values that are of another type than their column, fields that are JSON's null, and whole
    rows that are no objects. It is null where nothing is left. Nothing is lost: :func:`from_table` gives equal
    variants back. Exact numbers go to a column when it holds them exactly. An array goes to its list column when
    all of its elements are of the column's type or null; otherwise it is left whole.

    Where the values are no objects, ``"infer"`` finds no columns, and the residual is all there is: use
    :func:`pqext.variant.get` with the path ``"$"`` for a column of single values. Null rows are null in all columns.

    To get a pandas frame, ``variant.to_table(table["event"]).to_pandas()``; :func:`to_python` gives dicts.

    Raises ``ValueError`` or ``TypeError`` for a schema that is none or not that of an object, ``ValueError`` when a
    field has the residual's name, and ``VariantError`` with the row for bytes that break the encoding.

    >>> from pqext import variant
    >>> table = variant.to_table(variant.parse_json(['{"id": 1, "name": "x"}', '{"id": "two"}']), "id INT, name STRING")
    >>> table.select(["id", "name"]).to_pylist()
    [{'id': 1, 'name': 'x'}, {'id': None, 'name': None}]
    >>> variant.to_json(table["residual"]).to_pylist()
    [None, '{"id":"two"}']
    """
    array = as_variants(array)
    how = shredding(schema)
    whole = [unshred(chunk) for chunk in struct_chunks(array)]
    found = how.schema_for(pa.chunked_array(whole, variant_type()))
    if how.schema is not None and not isinstance(found, Object):
        raise ValueError("columns are the fields of an object; take single values by variant.get(array, '$', type)")
    chosen = found if isinstance(found, Object) else None
    fields = [] if chosen is None else [_field(name, member) for name, member in chosen.fields]
    if residual in [field.name for field in fields]:
        raise ValueError(f"a column is named {residual!r} already; choose another name for the residual")
    table_schema = pa.schema([*fields, variant_field(residual)])
    batches = []
    row = 0
    for chunk in whole:
        columns = [chunk] if chosen is None else _columns(chunk, chosen, how.coerce, row)
        batches.append(pa.RecordBatch.from_arrays(columns, schema=table_schema))
        row += len(chunk)
    return pa.Table.from_batches(batches, table_schema)


def from_table(table: pa.Table, *, residual: str = "residual") -> pa.ChunkedArray:
    """The variants of which :func:`to_table` made ``table``: objects of its columns, with what the residual holds.

    Null columns, and null fields within struct columns, are absent from the object; nulls in lists are variant nulls. A
    row is null where all columns and the residual are. A table without a column named ``residual`` gives the objects
    of its columns, or null where all are null. Each row's value equals the one that
    ``to_table`` was given, unless it was told ``coerce="json"``, which makes doubles of decimals.

    Raises as :func:`pqext.variant.from_arrow`.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"id": 1}', '{"id": "two", "x": null}', '[3]'])
    >>> variant.equals(array, variant.from_table(variant.to_table(array, "id INT")).combine_chunks()).to_pylist()
    [True, True, True]
    """
    check_table(table)
    found = []
    for batch in table.to_batches():
        has_residual = residual in batch.schema.names
        left = unshred(batch.column(residual)) if has_residual else pa.nulls(batch.num_rows, variant_type())
        found.append(_joined(batch.drop_columns([residual]) if has_residual else batch, left))
    return pa.chunked_array(found, variant_type())


def _joined(typed: pa.RecordBatch, left: pa.StructArray) -> pa.StructArray:
    """The objects of the typed columns with what is left laid over them; what is left alone where these are null."""
    rows = typed.num_rows
    if not typed.num_columns:
        return left
    present = reduce(pc.or_, [column.is_valid() for column in typed.columns])
    objects = pa.StructArray.from_arrays(typed.columns, fields=list(typed.schema), mask=pc.invert(present))
    base, over = VariantInput(from_arrow(objects)), VariantInput(left)
    laid = one_array(all_rows(lambda start: edit(base, start, 0, Action.ACTION_OVERLAY, [], over, False, False), rows))
    return pa.concat_arrays([laid, left]).take(pc.if_else(present, np.arange(rows), np.arange(rows, 2 * rows)))


def _field(name: str, schema: ShreddingSchema) -> pa.Field:
    """The column of a field of the schema."""
    if _is_variant(schema):
        return variant_field(name)
    if isinstance(schema, Object):
        return pa.field(name, pa.struct([_field(*member) for member in schema.fields]))
    if isinstance(schema, Array):
        return pa.field(name, pa.list_(_field("element", schema.element)))
    assert isinstance(schema, Primitive)
    return pa.field(name, schema.type, metadata=UUID_MARK if schema.type == UUID else None)


def _is_variant(schema: ShreddingSchema) -> bool:
    """Are the values kept as variants: those without a type, and arrays of which some part has none?"""
    return isinstance(schema, Untyped) or (isinstance(schema, Array) and _has_untyped(schema.element))


def _has_untyped(schema: ShreddingSchema) -> bool:
    return any(isinstance(node, Untyped) for _, _, node in walk(schema))


def _columns(chunk: pa.StructArray, schema: Object, coerce: Coerce, first_row: int) -> list[pa.Array]:
    """The typed columns of a chunk of whole variants, and what is left."""
    try:
        shredded = shred(chunk, schema, coerce=coerce)
    except VariantError as error:
        raise shredding_faults.moved(error, first_row) from None
    metadata = child(shredded, "metadata")
    assert metadata is not None
    if shredded.null_count:
        metadata = pc.if_else(shredded.is_valid(), metadata, pa.scalar(None, pa.binary()))
    parts = [child(shredded, name) for name in ("value", "typed_value")]
    taken = _take(pa.StructArray.from_arrays(parts, ["value", "typed_value"]), metadata, schema)
    columns = taken.column.flatten()
    typed = taken.column.is_valid()
    empty = pc.and_(typed, pc.invert(reduce(pc.or_, [column.is_valid() for column in columns])))
    rest = _group(taken.rest.field("value"), _with_validity(taken.rest.field("typed_value"), pc.or_(empty, taken.kept)))
    left = pc.and_(pc.or_(taken.left, empty), shredded.is_valid())
    group = pa.StructArray.from_arrays(rest.flatten(), fields=list(rest.type), mask=pc.invert(left))
    return [*columns, build(group, metadata, compile_schema(schema_of_group(group.type)), first_row=first_row)]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A column made of a group, and the group without what is in the column.

    ``left`` says which rows of the group have anything left, ``kept`` in which of them the typed part has.
    """

    column: pa.Array
    rest: pa.StructArray
    left: pa.BooleanArray
    kept: pa.BooleanArray


def _take(group: pa.StructArray, metadata: pa.Array, schema: ShreddingSchema) -> _Taken:
    value, none = group.field("value"), pa.array(np.zeros(len(group), bool))
    if _is_variant(schema):
        schema = schema_of_group(group.type)
        there = pa.StructArray.from_arrays(group.flatten(), fields=list(group.type), mask=metadata.is_null())
        column = build(there, metadata, compile_schema(schema), missing_is_null=True)
        return _Taken(column, _group(pa.nulls(len(group), pa.binary())), none, none)
    typed = group.field("typed_value")
    if isinstance(schema, Primitive):
        return _Taken(typed, _group(value), value.is_valid(), none)
    if isinstance(schema, Object):
        taken = [_take(typed.field(i), metadata, member) for i, (_, member) in enumerate(schema.fields)]
        fields = [_field(*member) for member in schema.fields]
        mask = typed.is_null()
        column = pa.StructArray.from_arrays([part.column for part in taken], fields=fields, mask=mask)
        below = reduce(pc.or_, [part.left for part in taken])
        kept = pc.and_(typed.is_valid(), pc.or_(below, value.is_valid()))
        names = [name for name, _ in schema.fields]
        rest = _with_validity(pa.StructArray.from_arrays([part.rest for part in taken], names), kept)
        return _Taken(column, _group(value, rest), pc.or_(value.is_valid(), kept), kept)
    assert isinstance(schema, Array)
    elements = _take(typed.values, metadata, schema.element)
    lacking = pc.and_not(elements.left, pc.fill_null(pc.equal(typed.values.field("value"), _NULL), False))
    counts = np.concatenate([[0], np.cumsum(lacking.to_numpy(zero_copy_only=False))])
    offsets = typed.offsets.to_numpy()
    kept = pc.and_(typed.is_valid(), pa.array(counts[offsets[1:]] > counts[offsets[:-1]]))
    type = _field("", schema).type
    buffers = [_bits(pc.and_not(typed.is_valid(), kept)), typed.buffers()[1]]
    column = pa.Array.from_buffers(type, len(typed), buffers, children=[elements.column])
    return _Taken(column, _group(value, _with_validity(typed, kept)), pc.or_(value.is_valid(), kept), kept)


def _group(value: pa.Array, typed: pa.Array | None = None) -> pa.StructArray:
    if typed is None:
        return pa.StructArray.from_arrays([value], ["value"])
    return pa.StructArray.from_arrays([value, typed], ["value", "typed_value"])


def _bits(valid: pa.BooleanArray) -> pa.Buffer:
    """The validity bitmap of an array whose rows are valid as said."""
    return pa.concat_arrays([valid]).buffers()[1]


def _with_validity(array: pa.Array, valid: pa.BooleanArray) -> pa.Array:
    """An object's or an array's column, null where ``valid`` is not true; its children stay as they are."""
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_buffers(array.type, len(array), [_bits(valid)], children=_children(array))
    buffers = [_bits(valid), array.buffers()[1]]
    return pa.Array.from_buffers(array.type, len(array), buffers, children=[array.values])


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(i) for i in range(array.type.num_fields)]
