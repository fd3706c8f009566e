"""Arrow types to Spark's and back, and arrays in the exact type that is asked for."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pyspark.sql import types as T

from pqext import geo
from pqext.core.base.errors import UnsupportedError
from pqext.spark.base.arrays import conform, conform_batch
from pqext.spark.base.types import (
    MARK,
    create_marked_struct,
    file_schema,
    is_marked_struct,
    parse_type,
    spark_schema,
    to_exchange_schema,
    to_exchange_type,
    variant_target,
)
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from pqext.variant.types import variant_field, variant_type


@pytest.mark.parametrize(
    ("arrow", "spark"),
    [
        (pa.int8(), T.ByteType()),
        (pa.uint8(), T.ShortType()),
        (pa.uint32(), T.LongType()),
        (pa.uint64(), T.DecimalType(20, 0)),
        (pa.float16(), T.FloatType()),
        (pa.large_string(), T.StringType()),
        (pa.dictionary(pa.int32(), pa.string()), T.StringType()),
        (pa.binary(16), T.BinaryType()),
        (pa.uuid(), T.BinaryType()),
        (pa.decimal128(9, 2), T.DecimalType(9, 2)),
        (pa.date32(), T.DateType()),
        (pa.time32("ms"), T.TimeType(3)),
        (pa.timestamp("ms", "Europe/Paris"), T.TimestampType()),
        (pa.timestamp("ns"), T.TimestampNTZType()),
        (pa.list_(pa.int32()), T.ArrayType(T.IntegerType())),
        (pa.large_list(pa.int32()), T.ArrayType(T.IntegerType())),
        (pa.map_(pa.string(), pa.int16()), T.MapType(T.StringType(), T.ShortType())),
        (pa.struct([pa.field("a", pa.bool_(), nullable=False)]), T.StructType([T.StructField("a", T.BooleanType())])),
    ],
)
def test_every_arrow_type_has_a_lossless_spark_type(arrow: pa.DataType, spark: T.DataType) -> None:
    assert spark_schema(pa.schema([pa.field("c", arrow, nullable=False)]))["c"].dataType == spark


def test_type_without_a_spark_equivalent_is_rejected_by_column() -> None:
    with pytest.raises(UnsupportedError, match=r"a\.b"):
        spark_schema(pa.schema([pa.field("a", pa.struct([pa.field("b", pa.decimal256(50, 0))]))]))


@pytest.mark.parametrize(
    ("crs", "edges", "expected"),
    [
        (None, "planar", T.GeometryType(4326)),
        ("OGC:CRS84", "planar", T.GeometryType(4326)),
        ("EPSG:3857", "planar", T.GeometryType(3857)),
        ("srid:0", "planar", T.GeometryType(0)),
        (None, "spherical", T.GeographyType(4326)),
        (None, "vincenty", T.BinaryType()),
        ("EPSG:2193", "planar", T.BinaryType()),
        ("srid:99999", "planar", T.BinaryType()),
    ],
)
def test_geometry_is_a_spark_type_if_its_crs_is_known_and_else_marked_wkb(
    crs: str | None, edges: geo.types.Edges, expected: T.DataType
) -> None:
    field = geo.geometry_field("g", crs, edges)
    schema = spark_schema(pa.schema([field]))
    assert schema["g"].dataType == expected
    back, stated = geo.types.type_of(file_schema(schema).field("g")), geo.types.type_of(field)
    assert back is not None
    assert stated is not None
    # Spark's own reader takes an unknown CRS in capitals only.
    assert back == (replace(stated, crs="SRID:0") if crs == "srid:0" else stated)


def test_variant_round_trips_through_the_spark_type() -> None:
    schema = spark_schema(pa.schema([variant_field("v"), pa.field("s", pa.struct([variant_field("inner")]))]))
    assert schema["v"].dataType == T.VariantType()
    assert schema["s"].dataType["inner"].dataType == T.VariantType()
    assert file_schema(schema).field("v").equals(variant_field("v"), check_metadata=True)


def test_shredded_variant_round_trips_as_a_marked_struct() -> None:
    storage = storage_struct(shredding_schema("a STRUCT<b: INT>, c ARRAY<STRING>"))
    spark = create_marked_struct(storage)
    assert is_marked_struct(spark)
    assert spark["metadata"].metadata == {MARK: "1"}
    assert file_schema(T.StructType([T.StructField("v", spark)])).field("v").type.equals(storage)


def test_shredded_leaf_of_a_type_that_spark_would_change_is_rejected() -> None:
    storage = storage_struct(shredding_schema("id UUID"))
    with pytest.raises(UnsupportedError, match="Spark has no type for shredded field 'id'"):
        spark_schema(pa.schema([pa.field("v", storage)]))


def test_rebuilt_nested_slices_preserve_their_rows() -> None:
    type = pa.struct(
        [pa.field("m", pa.map_(pa.string(), pa.uint64())), pa.field("l", pa.large_list(pa.struct([("x", pa.uint8())])))]
    )
    rows = [
        {"m": [("a", 2**63), ("b", None)], "l": [{"x": 1}, None]},
        None,
        {"m": None, "l": []},
        {"m": [], "l": [{"x": None}, {"x": 255}]},
    ]
    array = pa.array(rows, type)
    schema = to_exchange_schema(spark_schema(pa.schema([pa.field("c", type)])))
    for start in range(len(rows)):
        part = array[start : start + 2]
        batch = conform_batch(pa.RecordBatch.from_arrays([part], names=["c"]), schema)
        batch.validate(full=True)
        assert batch.schema.equals(schema)
        assert batch.to_pydict()["c"] == part.cast(schema.field("c").type).to_pylist()


def test_missing_column_or_field_is_rejected_and_not_filled_with_nulls() -> None:
    batch = pa.record_batch({"a": [1], "s": [{"x": 1}]})
    with pytest.raises(ValueError, match="column 'b' is missing or repeated in a, s"):
        conform_batch(batch, pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    with pytest.raises(ValueError, match="column 's' has no field 'y', only x"):
        conform_batch(batch, pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.int64())]))]))


def test_variant_is_exchanged_in_spark_field_order_with_nulls() -> None:
    array = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x00"}, None], variant_type())
    exchanged = conform(array, to_exchange_type(T.VariantType()))
    assert [field.name for field in exchanged.type] == ["value", "metadata"]
    assert conform(exchanged, variant_type()).equals(array)
    assert exchanged.null_count == 1


def test_required_group_passes_its_nulls_to_its_members() -> None:
    storage = storage_struct(shredding_schema("a INT"))
    loose = pa.struct([pa.field("a", pa.struct([("value", pa.binary()), ("typed_value", pa.int32())]))])
    array = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"]), pa.nulls(1, pa.binary()), pa.array([{"a": None}], loose)],
        names=["metadata", "value", "typed_value"],
    )
    normal = conform(array, storage)
    normal.validate(full=True)
    assert normal.field("typed_value").field("a").null_count == 0
    assert normal.to_pylist()[0]["typed_value"] == {"a": {"value": None, "typed_value": None}}


def test_value_that_spark_cannot_represent_exactly_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="when"):
        conform(pa.array([1], pa.timestamp("ns")), pa.timestamp("us"), "when")


def test_types_are_parsed_by_ddl_name() -> None:
    assert parse_type("Double") == T.DoubleType()
    assert parse_type("bigint") == T.LongType()
    assert parse_type("DECIMAL(9, 2)") == T.DecimalType(9, 2)
    nested = T.StructType([T.StructField("a", T.ArrayType(T.MapType(T.StringType(), T.DecimalType(9, 2))))])
    assert (
        parse_type("STRUCT<a: ARRAY<MAP<STRING, DECIMAL(9, 2)>>>")
        == parse_type("a array<map<string, dec(9,2)>>")
        == nested
    )
    assert parse_type("array<variant>") == T.ArrayType(T.VariantType())
    for wrong in ("no such type", "array<no>", "array<int", "map<int>"):
        with pytest.raises(ValueError, match="type"):
            parse_type(wrong)


def test_variant_values_are_cast_to_the_arrow_type_of_a_spark_type() -> None:
    wanted = pa.struct(
        [("v", variant_type()), ("t", pa.list_(pa.time32("ms"))), ("m", pa.map_(pa.string(), pa.date32()))]
    )
    assert variant_target(parse_type("v variant, t array<time(3)>, m map<string, date>")) == wanted
    with pytest.raises(ValueError, match=r"time\(4\): VARIANT values can be cast to TIME with 0, 3 or 6 digits only"):
        variant_target(T.TimeType(4))


def test_wkb_is_exchanged_as_spark_struct_with_srid() -> None:
    wkb = pa.array([b"\x01", None])
    exchanged = conform(wkb, to_exchange_type(T.GeometryType(3857)))
    assert exchanged.to_pylist() == [{"srid": 3857, "wkb": b"\x01"}, None]
    assert conform(exchanged, pa.binary()).equals(wkb)


def test_conversions_preserve_values() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    array = pa.array([moment], pa.timestamp("ms", "Europe/Paris"))
    assert conform(array, pa.timestamp("us", "UTC")).to_pylist() == [moment]
    assert conform(pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0)).to_pylist() == [Decimal(2**64 - 1)]
