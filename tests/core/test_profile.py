"""profile="spark": what is stored in place of types that Spark's own reader refuses, and what is refused."""

from __future__ import annotations

import io
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest

import pqext
from pqext.core.base.errors import UnsupportedError
from reference import page_headers


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, profile="spark", **options)
    return out.getvalue()


def field(kind: pa.DataType, **marks: str) -> pa.Field:
    return pa.field("c", kind, metadata={f"PARQUET:{name}": value for name, value in marks.items()} or None)


ADAPTED = {
    "half floats": (field(pa.float16()), [1.5, None], "FLOAT", "", pa.float32()),
    "nanoseconds": (field(pa.timestamp("ns")), [5000, None], "INT64", "TIMESTAMP", pa.timestamp("us")),
    "nanoseconds in UTC": (
        field(pa.timestamp("ns", "UTC")), [5000, None], "INT64", "TIMESTAMP", pa.timestamp("us", "UTC")
    ),
    "milliseconds of the day": (field(pa.time32("ms")), [5, None], "INT64", "TIME", pa.time64("us")),
    "times in UTC": (
        field(pa.time64("us"), is_adjusted_to_utc="true"), [5, None], "INT64", "TIME", pa.time64("us")
    ),
    "UUIDs": (
        field(pa.binary(16), logical_type="UUID"), [uuid.UUID(int=5).bytes, None], "FIXED_LEN_BYTE_ARRAY", "",
        pa.binary(16),
    ),
    "unsigned integers": (field(pa.uint64()), [2**64 - 1, None], "INT64", "INTEGER", pa.uint64()),
    "INT96 on request": (
        field(pa.timestamp("ns"), physical_type="INT96"), [5, None], "INT96", "", pa.timestamp("ns")
    ),
    "milliseconds": (field(pa.timestamp("ms")), [5, None], "INT64", "TIMESTAMP", pa.timestamp("ms")),
}


@pytest.mark.parametrize("name", ADAPTED)
@pytest.mark.parametrize("nested", [False, True])
def test_each_type_is_stored_as_the_nearest_lossless_spark_type(name: str, nested: bool) -> None:
    declared, values, physical, logical, shown = ADAPTED[name]
    array = pa.array(values, declared.type)
    if nested:
        declared, array = pa.field("c", pa.list_(declared.with_name("element"))), pa.array([values], pa.list_(declared))
    data = written(pa.table([array], schema=pa.schema([declared])))
    node = pqext.open(data).schema.leaves[0]
    assert node.physical_type is not None
    assert (node.physical_type.name, node.logical_name) == (physical, logical)
    found = pqext.open(data).read()["c"].combine_chunks()
    found = found.flatten() if nested else found
    assert (found.type, found.is_valid().to_pylist()) == (shown, [True, False])
    if logical == "TIME":
        assert node.logical_type.TIME.isAdjustedToUTC is False  # type: ignore[union-attr]
        assert found.to_pylist()[0].microsecond == (5000 if "milli" in name else 5)
    else:
        assert pq.read_table(io.BytesIO(data)).num_rows
        assert found[0] == pa.scalar(values[0], ADAPTED[name][0].type).cast(shown)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.timestamp("ns"), 5001), (pa.time64("ns"), 5001)]
)
def test_digits_finer_than_spark_types_are_rejected(kind: pa.DataType, value: int) -> None:
    with pytest.raises(ValueError, match=r"'c'.*lose data"):
        written(pa.table({"c": pa.array([value], kind)}))


FAR = (2**63 - 1) // 1000


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("physical_type", ["INT64", "INT96"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_timestamps_beyond_spark_microseconds_are_rejected(
    unit: str, physical_type: str, sign: int
) -> None:
    most = sign * (FAR // (1000 if unit == "s" else 1))
    declared = field(pa.timestamp(unit), **({"physical_type": "INT96"} if physical_type == "INT96" else {}))
    element = pa.field("c", pa.list_(declared.with_name("element")))
    for nested in (False, True):
        def table(values: list[int | None]) -> pa.Table:
            column = [[value] for value in values] if nested else values  # noqa: B023
            kept = element if nested else declared  # noqa: B023
            return pa.table([pa.array(column, kept.type)], schema=pa.schema([kept]))

        assert pqext.open(written(table([most, None]))).num_rows == 2
        with pytest.raises(UnsupportedError, match=r"'c[\w.]*': non-null value 1 .* is -?\d+ m?s since 1970"):
            written(table([0, None, most + 2 * sign]))


def test_float_dictionary_with_one_zero_contains_both() -> None:
    for kind in (pa.float32(), pa.float64()):
        for zeros in ([0.0], [-0.0], [0.0, -0.0], []):
            values = [*zeros, 1.5] * 50
            data = written(pa.table({"c": pa.array(values, kind)}))
            found = pqext.open(data).read()["c"].to_pylist()
            assert list(map(str, found)) == list(map(str, values))
            assert pqext.verify(data).ok
            page = page_headers.of_column(data, 0)[0]
            assert (page.kind, page.values) == ("DICTIONARY_PAGE", 1 + (2 if zeros else 0))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([Decimal(1)], pa.decimal256(39, 0)), "38 digits"),
        (pa.array([None], pa.month_day_nano_interval()), "INTERVAL"),
        (pa.array([[None]], pa.list_(pa.month_day_nano_interval())), "INTERVAL"),
    ],
)
def test_types_without_a_spark_equivalent_are_rejected_by_column(array: pa.Array, message: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"'c[\w.]*'.*{message}"):
        written(pa.table({"c": array}))


def test_codecs_missing_from_spark_are_rejected() -> None:
    with pytest.raises(ValueError, match="brotli"):
        written(pa.table({"c": [1]}), compression="brotli")
    with pytest.raises(ValueError, match="brotli"):
        written(pa.table({"c": [1]}), compression={"c": "brotli"})
    with pytest.raises(ValueError, match='profile must be None or "spark"'):
        pqext.write_table(pa.table({"c": [1]}), io.BytesIO(), profile="hive")


def test_encrypted_pages_use_the_version_that_spark_reads() -> None:
    encryption = pqext.encryption.FileEncryption(b"0123456789012345")
    with pytest.raises(ValueError, match="page_version=1"):
        written(pa.table({"c": [1]}), encryption=encryption, page_version=2)
    assert written(pa.table({"c": [1]}), encryption=encryption)[:4] == b"PARE"
    assert written(pa.table({"c": [1]}), page_version=2)[:4] == b"PAR1"


@pytest.mark.spec("statistics.type-order-floats")
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("order", ["type", "ieee754"])
def test_floats_have_bounds_if_there_is_no_nan(kind: pa.DataType, order: Any) -> None:
    table = pa.table({"c": pa.array([1.5, 2.5, float("nan"), 0.5], kind)})
    groups = pqext.open(written(table, row_group_rows=2, page_rows=1, float_order=order)).row_groups
    bounds = [group.chunk(0).bounds() for group in groups]
    assert [(one.minimum, one.maximum, one.has_nan) for one in bounds] == [(1.5, 2.5, False), (None, None, True)]
    assert [group.chunk(0).column_index is None for group in groups] == [False, True]
    assert [group.chunk(0).offset_index is None for group in groups] == [False, False]


OWN = pyproj.CRS("+proj=lcc +lat_1=40 +datum=WGS84").to_json()


@pytest.mark.parametrize(("crs", "taken"), [("EPSG:3857", True), ("OGC:CRS84", True), (OWN, False)])
def test_geometries_require_a_crs_that_spark_parses(crs: str, taken: bool) -> None:
    from pqext import geo

    table = pa.Table.from_arrays([geo.from_points([1.0], [2.0])], schema=pa.schema([geo.geometry_field("g", crs)]))
    if taken:
        assert pqext.open(written(table)).schema.leaves[0].logical_name == "GEOMETRY"
    else:
        with pytest.raises(UnsupportedError, match=r"'g'.*CRS"):
            written(table)


def test_types_within_a_variant_are_unchanged() -> None:
    from pqext import variant

    values = variant.parse_json(pa.array(['{"a": 1}']))
    table = pa.Table.from_arrays([values], schema=pa.schema([variant.variant_field("v")]))
    assert pqext.open(written(table, shredding={"v": "STRUCT<a: BIGINT>"})).read().num_rows == 1
    with pytest.raises(UnsupportedError, match="within a VARIANT"):
        written(table, shredding={"v": pa.struct([("a", pa.timestamp("ns"))])})


def test_file_struct_is_stored_without_annotation() -> None:
    kind = pa.struct([("uri", pa.string()), ("offset", pa.int64())])
    schema = pa.schema([field(kind, logical_type="FILE")])
    table = pa.table([pa.array([{"uri": "x", "offset": 1}], kind)], schema=schema)
    assert pqext.open(written(table)).schema.root.children[0].logical_name == ""
    assert pq.read_table(io.BytesIO(written(table)))["c"].to_pylist() == [{"uri": "x", "offset": 1}]
