"""Convert arrays to an exact Arrow type, including field names, field order and nullability.

Spark requires batches to match the exchange schema exactly, and the writer needs non-nullable groups where the
shredding specification requires them. Arrays are therefore rebuilt level by level.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.spark.base.types import to_exchange_type
from pqext.variant.shredding.schema import schema_of_storage, storage_struct
from pqext.variant.types import variant_type


def conform_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert ``batch`` to exactly the columns and types of ``schema``, matched by name.

    Raises ``ValueError`` if a column is missing from ``batch`` or occurs more than once. Missing columns are never
    filled with nulls.
    """
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            raise ValueError(f"column {field.name!r} is missing or repeated in {', '.join(batch.schema.names)}")
        columns.append(conform(batch.column(index), field.type, field.name))
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform(array: pa.Array, type: pa.DataType, path: str = "$") -> pa.Array:
    """Convert ``array`` to ``type``, matching struct fields by name, and WKB with ``struct<srid, wkb>``.

    Raises ``UnsupportedError`` with ``path`` if ``type`` cannot represent a value, such as a timestamp with nanoseconds
    in a type with microseconds.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.equals(type):
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_struct(type):
        return (
            _wkb_to_struct(array, type)
            if _is_binary(array.type)
            else _conform_struct(array, type, path, is_dense=False)
        )
    if _is_binary(type) and pa.types.is_struct(array.type) and array.type.get_field_index("wkb") >= 0:
        return pc.struct_field(array, "wkb").cast(type)
    if pa.types.is_map(type):
        return _conform_map(array, type, path)
    if pa.types.is_list(type):
        return _conform_list(array, type, path)
    return _conform_leaf(array, type, path)


def variant_from_spark(values: pa.Array) -> pa.Array:
    """Convert variants from Spark, unshredded or shredded, to an array of VARIANT storage structs.

    Raises ``TypeError`` for other types than null and structs with ``metadata``.
    """
    if pa.types.is_null(values.type):
        return values.cast(variant_type())
    if not pa.types.is_struct(values.type) or values.type.get_field_index("metadata") < 0:
        raise TypeError(f"expected VARIANT, or a struct of metadata and value, not {values.type}")
    return conform(values, storage_struct(schema_of_storage(values.type)))


def variant_to_spark(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert a variant array to Spark's representation of a VARIANT column."""
    values = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return conform(values, to_exchange_type(T.VariantType()))


def _conform_struct(array: pa.StructArray, type: pa.StructType, path: str, is_dense: bool) -> pa.Array:
    """Convert a struct. If ``is_dense``, a null struct becomes a struct whose members are null."""
    source = {field.name: index for index, field in enumerate(array.type)}
    members = array.flatten() if is_dense else [array.field(index) for index in range(array.type.num_fields)]
    children = []
    for field in type:
        if field.name not in source:
            raise ValueError(f"column {path!r} has no field {field.name!r}, only {', '.join(source)}")
        member = members[source[field.name]]
        member_path = f"{path}.{field.name}"
        if not field.nullable and pa.types.is_struct(field.type) and pa.types.is_struct(member.type):
            children.append(_conform_struct(member, field.type, member_path, is_dense=True))
        else:
            children.append(conform(member, field.type, member_path))
    mask = array.is_null() if array.null_count and not is_dense else None
    return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)


def _wkb_to_struct(wkb: pa.Array, type: pa.StructType) -> pa.Array:
    """Convert WKB to Spark's struct of SRID and WKB, with the SRID that the metadata of ``type`` declares."""
    srid = int(type.field("wkb").metadata[b"srid"])
    children = [pa.repeat(pa.scalar(srid, pa.int32()), len(wkb)), wkb.cast(pa.binary())]
    return pa.StructArray.from_arrays(children, fields=list(type), mask=wkb.is_null() if wkb.null_count else None)


def _conform_list(array: pa.Array, type: pa.ListType, path: str) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if pa.types.is_struct(type.value_type) and not type.value_field.nullable and pa.types.is_struct(array.values.type):
        values = _conform_struct(array.values, type.value_type, f"{path}.element", is_dense=True)
    else:
        values = conform(array.values, type.value_type, f"{path}.element")
    return pa.Array.from_buffers(
        type, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values]
    )


def _conform_map(array: pa.MapArray, type: pa.MapType, path: str) -> pa.Array:
    children = [
        conform(array.keys, type.key_type, f"{path}.key"),
        conform(array.items, type.item_type, f"{path}.value"),
    ]
    entries = pa.StructArray.from_arrays(children, fields=[type.key_field, type.item_field])
    return pa.Array.from_buffers(
        type, len(array), array.buffers()[:2], array.null_count, array.offset, children=[entries]
    )


def _conform_leaf(array: pa.Array, type: pa.DataType, path: str) -> pa.Array:
    try:
        if pa.types.is_uint64(array.type) and pa.types.is_decimal(type):
            array = array.cast(pa.decimal128(20, 0))
        return array.cast(type)
    except pa.ArrowInvalid as error:
        remedy = "exclude the column with columns="
        if pa.types.is_timestamp(array.type) and not path.endswith((".element", ".key", ".value")):
            name = "timestamp_ntz" if array.type.tz is None else "timestamp"
            remedy += f", or drop the digits beyond microseconds with col({path!r}).cast({name!r}).alias({path!r})"
        raise UnsupportedError(
            f"Spark cannot represent a value of {array.type}: {error}; {remedy}",
            feature=str(array.type),
            column=path,
        ) from None


def _is_binary(type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))
