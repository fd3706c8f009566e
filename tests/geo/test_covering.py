"""Covering columns: plain structs of boxes beside geometries, for engines that prune on plain columns."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import geo
from pqext.encryption import FileDecryption, FileEncryption

KEY, OTHER = b"k" * 16, b"o" * 16
SHAPES = [
    shapely.Point(1, 2), None, shapely.LineString([(0.1, 3), (5, -4)]), shapely.Polygon(), shapely.box(7, 8, 9, 10.1)
]
BOXES = [
    {"xmin": 1.0, "ymin": 2.0, "xmax": 1.0, "ymax": 2.0},
    None,
    {"xmin": 0.1, "ymin": -4.0, "xmax": 5.0, "ymax": 3.0},
    {"xmin": None, "ymin": None, "xmax": None, "ymax": None},
    {"xmin": 7.0, "ymin": 8.0, "xmax": 9.0, "ymax": 10.1},
]


def table(shapes: list[Any] = SHAPES, field: pa.Field | None = None) -> pa.Table:
    fields = [pa.field("id", pa.int64()), field or geo.geometry_field("g"), pa.field("last", pa.string())]
    columns = [pa.array(range(len(shapes))), geo.from_shapely(shapes), pa.array(["x"] * len(shapes))]
    return pa.table(columns, schema=pa.schema(fields))


def written(data: pa.Table, covering: Any = True, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(data, sink, **{"geometry": {"g": {"covering": covering}}, **options})
    return sink.getvalue()


@pytest.mark.spec("geo.covering.column", "geo.covering.null")
def test_covering_column_follows_its_geometry_and_is_readable_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "covered.parquet"
    path.write_bytes(written(table()))
    assert pqext.open(path).arrow_schema.names == ["id", "g", "g_bbox", "last"]
    assert pqext.read_table(path)["g_bbox"].to_pylist() == BOXES
    assert pq.read_table(path)["g_bbox"].to_pylist() == BOXES
    sql = f"select id from '{path}' where g_bbox.xmin <= 9 and g_bbox.xmax >= 4 and g_bbox.ymax >= 0 order by id"
    assert duckdb.sql(sql).fetchall() == [(2,), (4,)]
    statistics = pq.ParquetFile(path).metadata.row_group(0).column(2).statistics
    assert (statistics.min, statistics.max) == (0.1, 7.0)


@pytest.mark.spec("geo.covering.column")
def test_covering_has_the_requested_name_and_type() -> None:
    assert pqext.open(written(table(), "box")).arrow_schema.names == ["id", "g", "box", "last"]
    found = pqext.read_table(written(table(), {"type": "float"}))["g_bbox"]
    assert found.type == pa.struct([pa.field(name, pa.float32()) for name in ("xmin", "ymin", "xmax", "ymax")])
    assert found.to_pylist()[1:4:2] == [None, BOXES[3]]
    assert found[0].as_py() == BOXES[0]


@pytest.mark.spec("geo.covering.float")
def test_float_bounds_are_rounded_outward() -> None:
    x = np.random.default_rng(1).uniform(-1e6, 1e6, 200)
    x[:3] = [1e300, -1e300, 0.1]
    data = pa.table([geo.from_points(x, -x)], schema=pa.schema([geo.geometry_field("g", "EPSG:3857")]))
    found = pqext.read_table(written(data, {"name": "b", "type": "float"}))["b"].to_pylist()
    for value, box in zip(x.tolist(), found, strict=True):
        assert box["xmin"] <= value <= box["xmax"]
        assert box["ymin"] <= -value <= box["ymax"]
        if abs(value) < 1e300:
            assert np.nextafter(np.float32(box["xmin"]), np.float32(np.inf)) >= box["xmax"]


@pytest.mark.spec("geo.covering.column")
def test_row_groups_batches_and_chunks_are_covered_equally() -> None:
    whole = pa.concat_tables([table(), table(), table()])
    sink = io.BytesIO()
    with pqext.ParquetWriter(
        sink, whole.schema, row_group_rows=4, geometry={"g": {"covering": True}}, statistics={"g_bbox.xmin": False}
    ) as writer:
        for batch in whole.to_batches():
            writer.write_batch(batch)
    assert pqext.read_table(sink.getvalue())["g_bbox"].to_pylist() == BOXES * 3
    empty = pqext.open(written(table([])))
    assert empty.arrow_schema.names == ["id", "g", "g_bbox", "last"]
    required = pa.field("g", pa.binary(), nullable=False, metadata=geo.geometry_field("g").metadata)
    field = pqext.open(written(table(SHAPES[2:], required))).arrow_schema.field("g_bbox")
    assert not field.nullable


@pytest.mark.spec("geo.covering.column")
def test_sorted_rows_preserve_their_boxes() -> None:
    data = table([shapely.Point(x, y) for x in range(6) for y in range(6)])
    found = pqext.read_table(written(data, geometry={"g": {"covering": True, "order": "hilbert"}}, page_rows=4))
    for shape, box in zip(geo.to_shapely(found["g"]), found["g_bbox"].to_pylist(), strict=True):
        assert (shape.x, shape.y) == (box["xmin"], box["ymax"])
    assert found["id"].to_pylist() != data["id"].to_pylist()


def test_covering_coexists_with_an_inferred_variant() -> None:
    data = table().append_column("v", pqext.variant.parse_json(pa.array(['{"a": 1}'] * 5)))
    found = pqext.read_table(written(data, shredding={"v": "infer"}))
    assert found["g_bbox"].to_pylist() == BOXES


@pytest.mark.spec("geo.covering.name")
@pytest.mark.parametrize("covering", ["id", "g", "last"])
def test_existing_name_is_rejected(covering: str) -> None:
    with pytest.raises(ValueError, match=f"column '{covering}', computed from 'g', already exists"):
        written(table(), covering)


@pytest.mark.parametrize(
    ("covering", "error", "said"),
    [
        (7, TypeError, "covering must be a bool, a name, or a mapping with name and type"),
        ({"nam": "b"}, TypeError, "covering must be a bool"),
        ("", TypeError, "the name of a covering column must be a non-empty str"),
        ({"type": "half"}, ValueError, "must be double or float, not 'half'"),
    ],
)
def test_invalid_options_are_rejected(covering: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        written(table(), covering or "")


def test_nested_geometry_has_no_covering() -> None:
    inner = pa.StructArray.from_arrays([geo.from_points([1.0], [2.0]).storage], fields=[geo.geometry_field("g")])
    with pytest.raises(ValueError, match=r"column 's.g': covering requires a top-level column"):
        pqext.write_table(pa.table({"s": inner}), io.BytesIO(), geometry={"s.g": {"covering": True}})


def test_data_source_accepts_covering_options_in_json() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")
    from pqext.spark.options.save import write_options

    options = write_options({"geometry": '{"g": {"covering": "box"}}', "geoParquet": "true"})
    sink = io.BytesIO()
    pqext.write_table(table(), sink, **options)
    assert pqext.open(sink.getvalue()).arrow_schema.names == ["id", "g", "box", "last"]


@pytest.mark.spec("geo.covering.geometry")
def test_invalid_wkb_is_an_error_with_its_row() -> None:
    bad = pa.table([pa.array([b"\1\1"])], schema=pa.schema([geo.geometry_field("g")]))
    with pytest.raises(pqext.GeometryError, match="row 0"):
        written(bad)


@pytest.mark.spec("geo.covering.encrypted")
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_covering_is_encrypted_with_the_key_of_its_geometry(plaintext_footer: bool) -> None:
    encryption = FileEncryption(KEY, column_keys={"g": OTHER}, plaintext_footer=plaintext_footer)
    data = written(table(), encryption=encryption)
    both = FileDecryption(footer_key=KEY, column_keys={"g": OTHER, "g_bbox": OTHER})
    with pqext.open(data, decryption=both) as file:
        assert file.read(["g_bbox"])["g_bbox"].to_pylist() == BOXES
    for keys in (FileDecryption(footer_key=KEY), FileDecryption(footer_key=KEY, column_keys={"g": OTHER})):
        with pqext.open(data, decryption=keys) as file, pytest.raises(pqext.EncryptionError):
            file.read(["g_bbox"])
    own = FileEncryption(KEY, column_keys={"g": OTHER, "g_bbox": None})
    with pqext.open(written(table(), encryption=own), decryption=FileDecryption(footer_key=KEY)) as file:
        assert file.read(["g_bbox"])["g_bbox"].to_pylist() == BOXES


@pytest.mark.spec("geo.covering.geometry")
def test_infinite_and_missing_coordinates_are_stored_as_such() -> None:
    shapes = [shapely.Point(math.nan, 1), shapely.Point(math.inf, 0)]
    found = pqext.read_table(
        written(table(shapes), geometry={"g": {"covering": True, "check_range": False}})
    )["g_bbox"].to_pylist()
    assert found[0]["xmin"] is None
    assert found[1]["xmax"] == math.inf


@pytest.mark.spec("geo.covering.geometry")
@pytest.mark.parametrize("kind", ["double", "float"])
def test_engines_that_compare_bounds_lose_no_row_at_the_antimeridian(tmp_path: Path, kind: str) -> None:
    line = shapely.LineString([(170, 5), (-170, 5)])
    points = [shapely.MultiPoint([(179, 5), (-179, 5)]), shapely.Point(180, 5), shapely.Point(-180, 5)]
    square = shapely.Polygon([(175, 0), (-175, 0), (-175, 9), (175, 9)])
    cap = shapely.Polygon([(x, 70) for x in range(-180, 180, 30)])
    shapes = [shapely.Point(0, 5), line, *points, square, cap, None, shapely.Polygon()]
    path = tmp_path / "covered.parquet"
    data = table(shapes, geo.geometry_field("g", edges="spherical"))
    path.write_bytes(written(data, {"name": "b", "type": kind}, geoparquet=True))
    for west, east in ((175.0, 180.0), (-180.0, -175.0)):
        expected = geo.intersects(data["g"], (west, -10, east, 85), "spherical").to_pylist()
        assert expected == [False, True, True, True, True, True, True, None, False]
        kept = [number for number, one in enumerate(expected) if one]
        with pytest.warns(UserWarning, match="spherical edges"):
            frame = geopandas.read_parquet(path, bbox=(west, -10, east, 85))
        assert frame["id"].tolist() == kept
        inside = f"b.xmin <= {east} and b.xmax >= {west} and b.ymin <= 85 and b.ymax >= -10"
        assert duckdb.sql(f"select id from '{path}' where {inside} order by id").fetchall() == [(n,) for n in kept]
