"""Variants as Spark passes them to Python and takes them back."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

from pqext.spark.base.arrays import conform
from pqext.spark.base.types import exchange_type
from pqext.variant.shredding.schema import schema_of_storage, storage_struct
from pqext.variant.types import variant_type


def normal_variant(values: pa.Array) -> pa.Array:
    """A variant as Spark passes it, unshredded or shredded, in the storage struct's own Arrow type."""
    if pa.types.is_null(values.type):
        return values.cast(variant_type())
    if not pa.types.is_struct(values.type) or values.type.get_field_index("metadata") < 0:
        raise TypeError(f"expected VARIANT, or a struct of metadata and value, not {values.type}")
    return conform(values, storage_struct(schema_of_storage(values.type)))


def to_spark(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A variant array as a column of VARIANT."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return conform(whole, exchange_type(T.VariantType()))
