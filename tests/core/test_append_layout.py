"""Columns that are appended are stored like those of the file, whoever wrote it; pyarrow and DuckDB read all rows."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import geopandas
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import geo, variant

D = decimal.Decimal
NOON = dt.datetime(2026, 5, 1, 12, 0, 0, 250)


def parquet_schema(path: Path) -> str:
    return str(pq.ParquetFile(path).schema).partition("\n")[2]


def append(path: Path, table: pa.Table, **options: Any) -> None:
    """Append ``table``, after which the schema is what it was and the file is sound."""
    before = parquet_schema(path)
    pqext.write_table(table, path, append=True, **options)
    assert parquet_schema(path) == before
    assert pqext.verify(path).ok


def reject(path: Path, table: pa.Table, message: str, **options: Any) -> None:
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError), match=message):
        pqext.ParquetWriter(path, table.schema, append=True, **options)
    assert path.read_bytes() == before


def by_duckdb(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = duckdb.sql(f"from '{path}'").to_arrow_table().to_pylist()
    return rows


DECIMALS = pa.table({"d": pa.array([D("1.25"), None, D("-3.50"), D("9999999999.99")], pa.decimal128(12, 2))})


def _marked(table: pa.Table, physical: str) -> pa.Table:
    return table.cast(pa.schema([table.schema.field(0).with_metadata({"PARQUET:physical_type": physical})]))


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize(
    "write",
    [
        lambda path: pq.write_table(DECIMALS, path),
        lambda path: pq.write_table(DECIMALS, path, store_decimal_as_integer=True),
        lambda path: pqext.write_table(_marked(DECIMALS, "BYTE_ARRAY"), path),
    ],
    ids=["fixed", "integer", "bytes"],
)
def test_decimals_use_the_physical_type_of_the_file(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    append(path, DECIMALS)
    append(path, pa.table({"d": [D("7.5")]}))
    expected = [*DECIMALS["d"].to_pylist() * 2, D("7.50")]
    assert pq.read_table(path)["d"].to_pylist() == expected
    assert [row["d"] for row in by_duckdb(path)] == expected
    reject(path, pa.table({"d": [D("7.125")]}), r"'d' has type decimal128\(4, 3\) instead of decimal128\(12, 2\)")


TIMES = {
    "int96": {"use_deprecated_int96_timestamps": True},
    "ms": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    "us": {"coerce_timestamps": "us"},
    "ns": {},
}


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("there", TIMES)
def test_timestamps_use_the_unit_and_type_of_the_file(there: str, unit: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    whole = NOON.replace(microsecond=0)
    kept = whole if there == "ms" else NOON
    pq.write_table(pa.table({"t": pa.array([NOON], pa.timestamp("ns"))}), path, **TIMES[there])
    append(path, pa.table({"t": pa.array([kept, None], pa.timestamp(unit))}))
    expected = [kept, kept, None]
    assert pq.read_table(path)["t"].cast(pa.timestamp("us")).to_pylist() == expected
    assert duckdb.sql(f"select t::timestamp from '{path}'").fetchall() == [(one,) for one in expected]


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize("units", [("ms", "us"), ("us", "ms")])
def test_map_keys_and_values_use_the_types_of_the_file(units: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    kind = pa.map_(*(pa.timestamp(unit) for unit in units))
    noon = NOON.replace(microsecond=0)
    pq.write_table(pa.table({"m": pa.array([[(noon, noon)]], kind)}), path)
    schema = pq.read_schema(path)
    append(path, pa.table({"m": pa.array([[(noon, None)], None], pa.map_(pa.timestamp("ns"), pa.timestamp("ns")))}))
    assert pq.read_schema(path).field("m").type == schema.field("m").type == kind
    assert pq.read_table(path)["m"].to_pylist() == [[(noon, noon)], [(noon, None)], None]


@pytest.mark.spec("recovery.append.layout")
def test_zones_follow_the_file_but_local_times_do_not_become_instants(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    zoned = NOON.replace(tzinfo=dt.UTC)
    pq.write_table(pa.table({"t": pa.array([zoned], pa.timestamp("us", "Europe/Berlin"))}), path)
    append(path, pa.table({"t": pa.array([zoned], pa.timestamp("us", "UTC"))}))
    found = pq.read_table(path)["t"]
    assert found.type.tz == "Europe/Berlin"
    assert found.to_pylist() == [zoned, zoned]
    local = pa.table({"t": pa.array([NOON], pa.timestamp("us"))})
    reject(path, local, r"'t' has type timestamp\[us\] instead of timestamp\[us, tz=UTC\]")


@pytest.mark.spec("recovery.append.layout")
def test_digits_beyond_the_unit_of_the_file_abort(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": pa.array([NOON], pa.timestamp("us"))}), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="would lose data"):
        pqext.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), path, append=True)
    assert path.read_bytes() == before


@pytest.mark.spec("recovery.append.layout")
def test_duckdb_types_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql(
        "copy (select unnest([uuid(), null]) u, '{}'::json j, time '10:00' t, 1::utinyint x, 2::bigint y,"
        f" date '2026-05-01' d, map{{'k': 1.5::decimal(10, 1)}} m, [{{'a': 'b'}}] l) to '{path}'"
    )
    rows = by_duckdb(path)
    table = duckdb.sql(f"select u::varchar u, j, t, x, y, d, m, l from '{path}'").to_arrow_table()
    raw = pa.array([bytes.fromhex(rows[0]["u"].replace("-", "")), None], pa.binary(16))
    table = table.set_column(0, "u", raw)
    reject(path, table, r"column 'j' has type STRING instead of JSON: cast it to pyarrow\.json_\(\)")
    documents = pa.ExtensionArray.from_storage(pa.json_(), table["j"].combine_chunks())
    append(path, table.set_column(table.schema.get_field_index("j"), "j", documents))
    assert by_duckdb(path) == rows * 2
    assert pq.read_table(path).num_rows == 4


@pytest.mark.spec("recovery.append.layout")
def test_required_columns_accept_data_without_nulls(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("t", pa.timestamp("us"))])
    fields = [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("s", inner, nullable=False),
        pa.field("l", pa.list_(pa.field("element", inner, nullable=False))),
    ]
    values = {"a": [1], "s": [{"x": 1, "t": NOON}], "l": [[{"x": 2, "t": None}]]}
    first = pa.table(values, pa.schema(fields))
    pq.write_table(first, path, use_deprecated_int96_timestamps=True)
    append(path, pa.table(values))
    assert pq.read_table(path)["l"].to_pylist() == first["l"].to_pylist() * 2
    assert by_duckdb(path) == first.to_pylist() * 2
    before = path.read_bytes()
    with pytest.raises(pqext.ParquetError, match=r"'a' is not nullable but contains a null \[.*\]; declare the field"):
        pqext.write_table(pa.table({**values, "a": pa.array([None], pa.int64())}), path, append=True)
    assert path.read_bytes() == before


@pytest.mark.spec("recovery.append.layout")
def test_columns_are_matched_by_name_and_nulls_fit_any_type(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1], "b": ["x"], "c": [2.5]}), path)
    append(path, pa.table({"c": [3.5], "b": pa.nulls(1), "a": [2]}))
    with pqext.ParquetWriter(path, pa.table({"b": ["z"], "a": [3], "c": [4.5]}).schema, append=True) as writer:
        writer.write_table(pa.table({"c": [4.5], "a": [3], "b": ["z"]}))
    expected = [{"a": 1, "b": "x", "c": 2.5}, {"a": 2, "b": None, "c": 3.5}, {"a": 3, "b": "z", "c": 4.5}]
    assert pq.read_table(path).to_pylist() == expected
    assert by_duckdb(path) == expected
    told = "column 'b' is missing; column 'd' is not in the file; column 'c' has type string instead of double$"
    reject(path, pa.table({"c": ["x"], "a": [1], "d": [1]}), told)


@pytest.mark.spec("recovery.append.layout")
def test_duplicate_column_names_are_matched_by_position(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    names = ["a", "a"]
    pqext.write_table(pa.table([[1], [D("1.5")]], names), path)
    append(path, pa.table([[2], [D("2.5")]], names))
    assert [column.to_pylist() for column in pq.ParquetFile(path).read().columns] == [[1, 2], [D("1.5"), D("2.5")]]
    for other in ([[1], [1]], [[D("1.5")], [1]], [["x"], [D("1.5")]]):
        reject(path, pa.table(other, names), "column 'a' has type")


@pytest.mark.spec("recovery.append.layout")
def test_two_level_lists_are_accepted(tmp_path: Path) -> None:
    """As old writers made them: the repeated field is the element."""
    path = tmp_path / "a.parquet"
    path.write_bytes(_two_levels())
    append(path, pa.table({"l": [[1, 2], [], None]}))
    assert pq.read_table(path)["l"].to_pylist() == [[7], [1, 2], [], None]
    assert [row["l"] for row in by_duckdb(path)] == [[7], [1, 2], [], None]


def _two_levels() -> bytes:
    from pqext.core.footer.thrift_footer import serialise_footer
    from pqext.core.format.metadata import ConvertedType, FieldRepetitionType, FileMetaData, SchemaElement, Type
    from pqext.core.format.thrift import decode

    out = pa.BufferOutputStream()
    schema = pa.schema([pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False)))])
    pq.write_table(pa.table({"l": [[7]]}, schema), out, store_schema=False)
    data = out.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = decode(FileMetaData, data[-8 - length : -8])
    footer.schema = [
        SchemaElement(name="schema", num_children=1),
        SchemaElement(
            name="l", num_children=1, repetition_type=FieldRepetitionType.OPTIONAL, converted_type=ConvertedType.LIST
        ),
        SchemaElement(name="array", type=Type.INT64, repetition_type=FieldRepetitionType.REPEATED),
    ]
    footer.row_groups[0].columns[0].meta_data.path_in_schema = ["l", "array"]  # type: ignore[union-attr]
    return data[: -8 - length] + serialise_footer(footer)


VARIANTS = [{"a": 1, "b": "x"}, {"a": 300}, {"b": [1.5]}, None]


def variants(documents: list[Any] = VARIANTS) -> pa.Table:
    return pa.table({"v": variant.parse_json(pa.array([json.dumps(one) for one in documents]))})


def documents_of(path: Path) -> list[Any]:
    rows = duckdb.sql(f"select v::json::varchar from '{path}'").fetchall()
    return [None if text is None else json.loads(text) for (text,) in rows]


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize("by", ["pqext", "pqext unshredded", "duckdb"])
def test_variants_are_shredded_like_the_file(by: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    if by == "duckdb":
        duckdb.sql(f"copy (select '{{\"a\": 1, \"b\": \"x\"}}'::json::variant v) to '{path}'")
        first: list[Any] = [{"a": 1, "b": "x"}]
    else:
        pqext.write_table(variants(), path, shredding={} if "un" in by else {"v": "a TINYINT, b STRING"})
        first = VARIANTS
    append(path, variants())
    append(path, variants(), shredding={"v": "infer"})
    append(path, pqext.read_table(path))
    assert documents_of(path) == (first + VARIANTS * 2) * 2
    with pqext.open(path) as file:
        groups = file.metadata.row_groups
        assert len({tuple(tuple(c.meta_data.path_in_schema) for c in group.columns) for group in groups}) == 1
    if by == "pqext":
        told = r"'shredding': column 'v' is shredded as STRUCT<a: TINYINT, b:"
        reject(path, variants(), told, shredding={"v": "a INT"})
        typed = pq.ParquetFile(path).read_row_group(1)["v"].combine_chunks().field("typed_value")
        assert typed.field("a").field("typed_value").to_pylist()[:3] == [1, None, None]


@pytest.mark.spec("recovery.append.layout")
def test_nested_variants_are_shredded_like_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    element = pa.field("element", variants()["v"].type)
    lists = pa.ListArray.from_arrays([0, 2, 4], variants()["v"].combine_chunks(), pa.list_(element))
    pqext.write_table(pa.table({"l": lists}), path, shredding={"l.list.element": "a INT"})
    append(path, pa.table({"l": lists}))
    found = pqext.read_table(path)["l"].combine_chunks()
    assert found.offsets.to_pylist() == [0, 2, 4, 6, 8]
    assert variant.to_python(found.values) == VARIANTS * 2


POINTS = [shapely.Point(1, 2), shapely.Point(3, 4)]
WKB = pa.table({"g": pa.array(shapely.to_wkb(POINTS))})


def points_of(path: Path) -> list[Any]:
    return [shapely.from_wkb(one) for one in pq.read_table(path)["g"].to_pylist()]


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize(
    "choice", ["EPSG:3857", "OGC:CRS84", {"crs": "EPSG:4326", "edges": "karney"}, {"edges": "spherical"}], ids=str
)
def test_geometries_use_type_crs_and_edges_of_the_file(choice: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(WKB, path, geometry={"g": choice})
    append(path, WKB)
    append(path, WKB, geometry={"g": choice})
    append(path, WKB, geometry={"g": {"page_boxes": False}})
    append(path, pqext.read_table(path).slice(0, 2))
    assert points_of(path) == POINTS * 5
    assert len({str(group.column(0).geo_statistics.to_dict()) for group in _groups(path)}) == 1
    assert pqext.read_table(path, filter=pqext.col("g").intersects((0, 0, 1.5, 3))).num_rows == 5
    reject(path, WKB, "option 'geometry' states crs EPSG:2154 for column 'g', but", geometry={"g": "EPSG:2154"})
    marked = pa.table({"g": WKB["g"]}, pa.schema([geo.geometry_field("g", 2154)]))
    reject(path, marked, "the table states crs EPSG:2154 for column 'g', but the file has")


def _groups(path: Path) -> list[Any]:
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(i) for i in range(metadata.num_row_groups)]


@pytest.mark.spec("recovery.append.layout")
def test_edges_that_contradict_the_file_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(WKB, path, geometry={"g": {"edges": "spherical"}})
    told = "option 'geometry' states edges planar for column 'g', but the file has spherical"
    reject(path, WKB, told, geometry={"g": {"edges": "planar"}})


@pytest.mark.spec("recovery.append.layout")
def test_geometries_declared_by_geoparquet_alone_use_its_crs(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    first = geopandas.GeoDataFrame({"k": [1, 2]}, geometry=POINTS, crs=3857)
    first.to_parquet(path)
    append(path, pa.table({"k": [3, 4], "geometry": WKB["g"]}))
    found = geopandas.read_parquet(path)
    assert found.crs == first.crs
    assert found.geometry.tolist() == POINTS * 2
    assert found["k"].tolist() == [1, 2, 3, 4]
    assert not [one for group in _groups(path) for one in (group.column(1).geo_statistics,) if one is not None]
    marked = pa.schema([pa.field("k", pa.int64()), geo.geometry_field("geometry", 4326)])
    reject(path, pa.table({"k": [3, 4], "geometry": WKB["g"]}, marked), "states crs EPSG:4326 for column 'geometry'")


@pytest.mark.spec("recovery.append.layout")
def test_categories_beyond_the_index_type_of_the_file_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    few = pandas.DataFrame({"c": pandas.Categorical(["x", "y"])})
    few.to_parquet(path)
    many = pandas.DataFrame({"c": pandas.Categorical([f"value {i}" for i in range(300)])})
    append(path, pa.Table.from_pandas(many))
    expected = [*few["c"], *many["c"]]
    assert list(pandas.read_parquet(path)["c"]) == expected
    assert pq.read_table(path)["c"].to_pylist() == expected
    assert pqext.read_table(path)["c"].to_pylist() == expected


@pytest.mark.spec("recovery.append.fits")
def test_values_out_of_range_of_the_file_column_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(pa.table({"n": pa.nulls(3)}), path)
    reject(path, pa.table({"n": pa.array([1], pa.int32())}), "'n' has type int32 instead of null")
    append(path, pa.table({"n": pa.nulls(2)}))
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("ns"))}), path, use_deprecated_int96_timestamps=True)
    reject(path, pa.table({"t": pa.array([b"x" * 12], pa.binary(12))}), "'t', .* is stored as FIXED_LEN_BYTE_ARRAY")
    before = path.read_bytes()
    far = pa.array([dt.datetime(3000, 1, 1)], pa.timestamp("us"))  # nanoseconds do not reach so far
    with pytest.raises(ValueError, match=r"(?i)out of bounds|range"):
        pqext.write_table(pa.table({"t": far}), path, append=True)
    assert path.read_bytes() == before


@pytest.mark.spec("recovery.append.fits")
def test_text_without_json_annotation_is_not_stored_as_json(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    documents = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}']))})
    pqext.write_table(documents, path)
    reject(path, pa.table({"j": ["no document"]}), "'j' has type STRING instead of JSON")
    append(path, documents)
    assert by_duckdb(path) == [{"j": '{"a": 1}'}] * 2
