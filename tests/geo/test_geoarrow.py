"""GeoArrow's own layouts become WKB: what geopandas makes of shapely geometries, and layouts made by hand."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import geopandas
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo.geoarrow import ENCODINGS, from_geoarrow
from reference.effort import share

HOLED = Polygon([(0, 0), (9, 0), (9, 9)], [[(1, 0.5), (2, 0.5), (2, 1)], [(5, 1), (6, 1), (6, 2)]])
SHAPES: dict[str, list[Any]] = {
    "point": [Point(1, 2), None, Point(), Point(-3.5, 4)],
    "linestring": [LineString([(1, 2), (3, 4)]), None, LineString(), LineString([(0, 0), (1, 1), (2, 5)])],
    "polygon": [shapely.box(0, 0, 1, 1), HOLED, None, Polygon(), shapely.box(5, 5, 7, 7)],
    "multipoint": [MultiPoint([(1, 2), (3, 4)]), MultiPoint(), None, MultiPoint([(5, 6)])],
    "multilinestring": [MultiLineString(), MultiLineString([[(1, 2), (3, 4)], [(5, 6), (7, 8), (9, 1)]]), None],
    "multipolygon": [MultiPolygon([shapely.box(0, 0, 1, 1), HOLED]), None, MultiPolygon(), MultiPolygon([HOLED])],
}
ORDINATES = st.sampled_from([0.0, 1.5, -7.25, 100.0])


def by_geopandas(shapes: list[Any], interleaved: bool, crs: Any = 4326) -> pa.Table:
    frame = geopandas.GeoDataFrame(geometry=geopandas.GeoSeries(shapes, crs=crs))
    return pa.table(frame.to_arrow(index=False, geometry_encoding="geoarrow", interleaved=interleaved))


def written(table: pa.Table, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink


@cache
def layout(encoding: str) -> Any:
    class Layout(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self, storage: pa.DataType, metadata: str) -> None:
            self._metadata = metadata
            super().__init__(storage, encoding)

        def __arrow_ext_serialize__(self) -> bytes:
            return self._metadata.encode()

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Any:
            return cls(storage, serialized.decode())

    return Layout


def extension(array: pa.Array, encoding: str, metadata: str = "") -> pa.ExtensionArray:
    """An array of an extension type that nothing has registered."""

    return pa.ExtensionArray.from_storage(layout(encoding)(array.type, metadata), array)


def marked(array: pa.Array, encoding: str, metadata: str = "") -> pa.Table:
    marks = {"ARROW:extension:name": encoding, "ARROW:extension:metadata": metadata}
    return pa.table([array], schema=pa.schema([pa.field("g", array.type, metadata=marks)]))


@pytest.mark.spec("geo.geoarrow")
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("high", [False, True])
def test_every_layout_is_written_as_its_geometries(kind: str, interleaved: bool, high: bool) -> None:
    shapes = [shapely.force_3d(shape, 5.0) if high and shape else shape for shape in SHAPES[kind]]
    table = by_geopandas(shapes, interleaved)
    assert table.schema.field("geometry").metadata[b"ARROW:extension:name"].decode() == f"geoarrow.{kind}"
    sink = written(table, row_group_rows=2, geometry={"geometry": {"covering": True}}, geoparquet=True)
    file = pqext.open(sink)
    assert file.schema.leaves[0].logical_name == "GEOMETRY"
    found = file.read()["geometry"]
    texts = [text and text.replace(" Z EMPTY", " EMPTY") for text in shapely.to_wkt(geo.to_shapely(found)).tolist()]
    assert texts == [text and text.replace(" Z EMPTY", " EMPTY") for text in shapely.to_wkt(shapes).tolist()]
    assert not pqext.verify(sink).total
    everywhere = pqext.read_table(sink, filter=pqext.col("geometry").intersects((-180, -90, 180, 90)))
    assert everywhere.num_rows == sum(shape is not None and not shape.is_empty for shape in shapes)
    geopandas.read_parquet(io.BytesIO(sink.getvalue()))
    for start in range(len(shapes) + 1):  # slices, and parts of a chunked array
        chunk = table["geometry"].combine_chunks()
        chunk = chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk
        parts = pa.chunked_array([chunk[:start], chunk[start:]])
        assert from_geoarrow(parts, f"geoarrow.{kind}").to_pylist() == found.to_pylist()


@st.composite
def polygons(draw: st.DrawFn) -> Any:
    rings = draw(st.lists(st.lists(st.tuples(ORDINATES, ORDINATES), min_size=3, max_size=5), max_size=3))
    return Polygon(rings[0], rings[1:]) if rings else Polygon()


def _lines() -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(ORDINATES, ORDINATES), min_size=2, max_size=5).map(LineString)


def _several(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | kind, min_size=1, max_size=5)


_AREAS = st.lists(polygons().filter(lambda one: not one.is_empty), max_size=3).map(MultiPolygon)
_CHAINS = st.lists(_lines(), max_size=3).map(MultiLineString)


@settings(max_examples=share(0.5))
@given(
    st.one_of(_several(polygons()), _several(_AREAS), _several(_CHAINS), _several(_lines())).filter(any),
    st.booleans(),
    st.sampled_from([1, 3, 1 << 18]),
)
def test_layouts_in_chunks_of_any_size_match_shapely(shapes: list[Any], interleaved: bool, piece: int) -> None:
    table = by_geopandas(shapes, interleaved)
    name = table.schema.field("geometry").metadata[b"ARROW:extension:name"].decode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pqext.geo.geoarrow._PIECE", piece)
        found = from_geoarrow(table["geometry"], name).to_pylist()
    assert found == geo.from_shapely(shapes).to_pylist()


@pytest.mark.spec("geo.geoarrow")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("edges", [None, "spherical"])
def test_crs_and_edges_follow_the_type(own: bool, edges: str | None) -> None:
    points = pa.array([{"x": 170.0, "y": 1.0}, None, {"x": -170.0, "y": 3.0}])
    texts = ["POINT (170 1)", None, "POINT (-170 3)"]
    metadata = json.dumps({"crs": "EPSG:4258", **({"edges": edges} if edges else {})})
    for array, encoding in ((points, "geoarrow.point"), (pa.array(texts), "geoarrow.wkt")):
        table = pa.table({"g": extension(array, encoding, metadata)}) if own else marked(array, encoding, metadata)
        sink = written(table, geometry={"g": {"order": "hilbert", "covering": True}})
        field = pqext.open(sink).arrow_schema.field("g")
        assert geo.types.type_of(field) == geo.GeospatialType("EPSG:4258", edges or "planar")
        assert set(geo.to_wkt(pqext.read_table(sink)["g"]).to_pylist()) == set(texts)
        assert not pqext.verify(sink).total
        box = pqext.open(sink).row_groups[0].chunk("g").geospatial_statistics.bbox
        assert (box.xmin, box.xmax) == (170.0, -170.0)


def test_nested_fields_are_converted() -> None:
    points = extension(pa.array([{"x": 1.0, "y": 2.0}, None, {"x": 3.0, "y": 4.0}]), "geoarrow.point")
    listed = pa.ListArray.from_arrays([0, 2, 3], points)
    found = pqext.read_table(written(pa.table({"s": pa.StructArray.from_arrays([points[:2]], ["g"]), "l": listed})))
    wkb = geo.from_points([1.0, 3.0], [2.0, 4.0]).to_pylist()
    assert found["s"].to_pylist() == [{"g": wkb[0]}, {"g": None}]
    assert found["l"].to_pylist() == [[wkb[0], None], [wkb[1]]]


@pytest.mark.parametrize("names", ["xy", "xyz", "xym", "xyzm"])
def test_all_dimensions_are_preserved(names: str) -> None:
    rows = [[float(10 * row + index) for index in range(len(names))] for row in range(3)]
    separate = pa.array([dict(zip(names, row, strict=True)) for row in rows])
    together = pa.array(rows, pa.list_(pa.field(names, pa.float64()), len(names)))
    tag = {"xy": "", "xyz": "Z ", "xym": "M ", "xyzm": "ZM "}[names]
    expected = [f"POINT {tag}({' '.join(f'{value:g}' for value in row)})" for row in rows]
    for layout in (separate, together, together[1:].slice(0), extension(separate, "geoarrow.point")):
        assert geo.to_wkt(from_geoarrow(layout, "geoarrow.point")).to_pylist() == expected[3 - len(layout):]


def test_unions_and_collections_contain_several_types() -> None:
    point = {"x": 1.0, "y": 2.0}
    points, lines = pa.array([point, None, point]), pa.array([[point, {"x": 3.0, "y": 4.0}]])
    union = pa.UnionArray.from_dense(
        pa.array([1, 2, 1, 1], pa.int8()), pa.array([0, 0, 1, 2], pa.int32()), [points, lines], ["Point", "LineString"],
        [1, 2],
    )
    texts = ["POINT (1 2)", "LINESTRING (1 2, 3 4)", None, "POINT (1 2)"]
    assert geo.to_wkt(from_geoarrow(union, "geoarrow.geometry")).to_pylist() == texts
    assert geo.to_wkt(from_geoarrow(union[1:], "geoarrow.geometry")).to_pylist() == texts[1:]
    found = pqext.read_table(written(pa.table({"g": extension(union, "geoarrow.geometry")})))
    assert geo.to_wkt(found["g"]).to_pylist() == texts
    parts = union.take(pa.array([0, 1, 3]))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, None, 2, 3], pa.int32()), parts)
    collections = [
        "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (1 2, 3 4))", "GEOMETRYCOLLECTION EMPTY", None,
        "GEOMETRYCOLLECTION (POINT (1 2))",
    ]  # fmt: skip
    assert geo.to_wkt(from_geoarrow(lists, "geoarrow.geometrycollection")).to_pylist() == collections
    assert geo.to_wkt(from_geoarrow(lists[3:], "geoarrow.geometrycollection")).to_pylist() == collections[3:]


@pytest.mark.spec("geo.geoarrow")
@pytest.mark.parametrize("encoding", sorted(ENCODINGS - {"geoarrow.wkt"}))
@pytest.mark.parametrize(
    "array",
    [
        pa.array([1]), pa.array([{"x": 1.0}]), pa.array([{"y": 1.0, "x": 2.0}]), pa.array([{"x": "1", "y": "2"}]),
        pa.array([[1.0, 2.0]]), pa.array([[1.0]], pa.list_(pa.float64(), 1)), pa.array([[[[[[[1.0]]]]]]]),
        pa.array(["x"]),
    ],
    ids=lambda array: str(array.type),
)
def test_fields_of_unsuitable_types_are_rejected_by_name(encoding: str, array: pa.Array) -> None:
    with pytest.raises(GeometryError, match="does not have the GeoArrow layout geoarrow") as caught:
        written(marked(array, encoding))
    assert caught.value.column == "g"


def test_views_with_nulls_are_not_a_layout() -> None:
    with pytest.raises(GeometryError, match=r"type string_view does not have the GeoArrow layout geoarrow\.linestring"):
        from_geoarrow(pa.array(["a", None], pa.string_view()), "geoarrow.linestring")


def test_invalid_values_are_named_with_their_row() -> None:
    with pytest.raises(GeometryError, match="row 1"):
        written(marked(pa.array(["POINT (1 2)", "POINT 1 2"]), "geoarrow.wkt"))
    open_ring = pa.array([[[{"x": float(i), "y": float(i * i)} for i in range(4)]]])
    with pytest.raises(GeometryError, match="row 0"):
        written(marked(open_ring, "geoarrow.polygon"))
    with pytest.raises(GeometryError, match=r"geoarrow.wkt must be text"):
        written(marked(pa.array([1]), "geoarrow.wkt"))
    with pytest.raises(TypeError, match="from_geoarrow"):
        geo.bounds(open_ring)
    with pytest.raises(ValueError, match="not a GeoArrow layout"):
        from_geoarrow(open_ring)


def test_unmarked_fields_are_unchanged() -> None:
    table = pa.table({"p": pa.array([{"x": 1.0, "y": 2.0}]), "t": ["POINT (1 2)"]})
    assert pqext.read_table(written(table)).equals(table)


def test_geoarrow_wkb_is_accepted_like_other_layouts() -> None:
    frame = geopandas.GeoSeries([shapely.Point(1, 2), None, shapely.Point(3, 4, 5)])
    wkb = pa.array(frame.to_arrow(geometry_encoding="WKB"))
    for array, encoding in ((wkb, "geoarrow.wkb"), (geo.as_extension(pa.table(
        [wkb], pa.schema([geo.geometry_field("g")])
    ))["g"], None)):  # fmt: skip
        found = geo.from_geoarrow(array, encoding)
        assert geo.to_shapely(found).tolist() == frame.tolist()
    point = shapely.Point(1, 2, 3)
    extended = pa.array([shapely.to_wkb(point, flavor="extended", include_srid=True)])
    assert geo.from_geoarrow(extended, "geoarrow.wkb")[0].as_py() == shapely.to_wkb(point, flavor="iso")


def test_boxes_become_polygons_and_are_divided_at_the_antimeridian() -> None:
    type = pa.struct([(name, pa.float64()) for name in ("xmin", "ymin", "xmax", "ymax")])
    sides = [(0.0, 1.0, 2.0, 3.0), (170.0, 1.0, -170.0, 3.0), (5.0, 5.0, 5.0, 5.0)]
    rows = [None, *(dict(zip(("xmin", "ymin", "xmax", "ymax"), side, strict=True)) for side in sides)]
    array = pa.array(rows, type)
    shapes = geo.to_shapely(from_geoarrow(array, "geoarrow.box"))
    assert shapes[0] is None
    assert shapely.equals(shapes[1], shapely.box(0, 1, 2, 3))
    assert shapely.equals(shapes[2], shapely.MultiPolygon([shapely.box(170, 1, 180, 3), shapely.box(-180, 1, -170, 3)]))
    assert shapely.bounds(shapes[3]).tolist() == [5, 5, 5, 5]
    assert geo.to_shapely(from_geoarrow(array.slice(2), "geoarrow.box")).tolist() == shapes[2:].tolist()
    box = extension(array, "geoarrow.box")
    assert geo.to_wkt(geo.from_geoarrow(box)).to_pylist() == geo.to_wkt(geo.from_shapely(list(shapes))).to_pylist()
    with pytest.raises(GeometryError, match=r"does not have the GeoArrow layout geoarrow\.box"):
        from_geoarrow(pa.array([{"xmin": 0.0}]), "geoarrow.box")
    with pytest.raises(GeometryError, match="xmax contains a null"):
        from_geoarrow(pa.array([{"xmin": 0.0, "ymin": 0.0, "xmax": None, "ymax": 1.0}], type), "geoarrow.box")


def test_boxes_are_written_as_geometries() -> None:
    type = pa.struct([(name, pa.float64()) for name in ("xmin", "ymin", "xmax", "ymax")])
    array = pa.array([{"xmin": 0.0, "ymin": 1.0, "xmax": 2.0, "ymax": 3.0}, None], type)
    shapes = geo.to_shapely(pqext.read_table(written(marked(array, "geoarrow.box")))["g"])
    assert shapely.equals(shapes[0], shapely.box(0, 1, 2, 3))
    assert shapes[1] is None


def test_nulls_and_dictionaries_are_decoded() -> None:
    assert from_geoarrow(pa.nulls(2), "geoarrow.point").to_pylist() == [None, None]
    points = pa.array([{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}])
    array = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1]), points)
    expected = ["POINT (3 4)", None, "POINT (1 2)", "POINT (3 4)"]
    assert geo.to_wkt(from_geoarrow(array, "geoarrow.point")).to_pylist() == expected


def test_collections_of_mixed_dimensions_have_those_of_their_first_part() -> None:
    flat, high = pa.array([{"x": 1.0, "y": 2.0}]), pa.array([{"x": 1.0, "y": 2.0, "z": 3.0}])
    union = pa.UnionArray.from_dense(
        pa.array([1, 11, 11], pa.int8()), pa.array([0, 0, 0], pa.int32()), [flat, high], ["Point", "Point Z"], [1, 11]
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), union)
    shapes = [[shapely.Point(1, 2)], [], [shapely.Point(1, 2, 3)] * 2]
    expected = [shapely.to_wkb(shapely.GeometryCollection(parts), flavor="iso") for parts in shapes]
    for start in range(4):
        assert from_geoarrow(lists[start:], "geoarrow.geometrycollection").to_pylist() == expected[start:]
    with pytest.raises(GeometryError, match="does not have the GeoArrow layout geoarrow"):
        from_geoarrow(
            pa.UnionArray.from_dense(pa.array([8], pa.int8()), pa.array([0], pa.int32()), [flat], ["Point"], [8]),
            "geoarrow.geometry",
        )
