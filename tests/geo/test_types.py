"""Geometry types as logical types of a file and as marks of Arrow fields, and what other libraries make of them."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.core.format import metadata
from pqext.geo import GeospatialType, types

LogicalType, GeometryType, GeographyType = metadata.LogicalType, metadata.GeometryType, metadata.GeographyType
Algorithm = metadata.EdgeInterpolationAlgorithm


def marks(field: pa.Field) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(field.metadata[b"ARROW:extension:metadata"])
    return found


@pytest.mark.spec("geo.edges.algorithm", "geography.algorithm", "geometry.edges", "geometry.crs", "geography.crs")
@pytest.mark.parametrize(
    ("type", "logical"),
    [
        (GeospatialType(), LogicalType(GEOMETRY=GeometryType(crs=None))),
        (GeospatialType("EPSG:3857"), LogicalType(GEOMETRY=GeometryType(crs="EPSG:3857"))),
        (GeospatialType(None, "spherical"), LogicalType(GEOGRAPHY=GeographyType(crs=None, algorithm=None))),
        *(
            (
                GeospatialType("EPSG:4269", edges),
                LogicalType(GEOGRAPHY=GeographyType(crs="EPSG:4269", algorithm=algorithm)),
            )
            for edges, algorithm in [
                ("vincenty", Algorithm.VINCENTY),
                ("thomas", Algorithm.THOMAS),
                ("andoyer", Algorithm.ANDOYER),
                ("karney", Algorithm.KARNEY),
            ]
        ),
    ],
)
def test_type_round_trips_through_file_and_arrow(type: GeospatialType, logical: LogicalType) -> None:
    assert type.logical_type() == logical
    assert GeospatialType.from_logical_type(logical) == type
    field = types.mark(pa.field("g", pa.binary(), metadata={"kept": "yes"}), type)
    assert types.type_of(field) == type
    assert field.metadata[b"kept"] == b"yes"
    assert types.unmark(field).metadata == {b"kept": b"yes"}


@pytest.mark.spec("geography.algorithm", "geo.crs.default")
def test_unset_fields_of_a_file_use_the_defaults() -> None:
    found = GeospatialType.from_logical_type(LogicalType(GEOGRAPHY=GeographyType()))
    assert found == GeospatialType(None, "spherical")
    explicit = LogicalType(GEOGRAPHY=GeographyType(crs="OGC:CRS84", algorithm=Algorithm.SPHERICAL))
    assert GeospatialType.from_logical_type(explicit) == found
    assert GeospatialType.from_logical_type(LogicalType(GEOMETRY=GeometryType(crs=""))) == GeospatialType()


@pytest.mark.spec("geo.edges.algorithm")
def test_unknown_algorithm_is_rejected() -> None:
    with pytest.raises(GeometryError, match="unknown edge interpolation algorithm 9"):
        GeospatialType.from_logical_type(LogicalType(GEOGRAPHY=GeographyType(algorithm=9)))
    with pytest.raises(GeometryError, match="edges must be one of planar, spherical"):
        geo.geometry_field("g", edges="curved")  # type: ignore[arg-type]


def test_marks_store_the_crs_like_geoarrow() -> None:
    assert marks(geo.geometry_field("g")) == {"crs": "OGC:CRS84", "crs_type": "authority_code"}
    assert marks(geo.geometry_field("g", 3857)) == {"crs": "EPSG:3857", "crs_type": "authority_code"}
    assert marks(geo.geometry_field("g", "srid:7")) == {"crs": "7", "crs_type": "srid"}
    assert marks(geo.geometry_field("g", "projjson:x")) == {"crs": "projjson:x"}
    assert marks(geo.geometry_field("g", edges="karney"))["edges"] == "karney"
    own = pyproj.CRS("EPSG:5070").to_json_dict()
    del own["id"]
    assert marks(geo.geometry_field("g", own)) == {"crs": own, "crs_type": "projjson"}
    assert types.type_of(geo.geometry_field("g", "srid:7")) == GeospatialType("srid:7")
    assert not geo.geometry_field("g", nullable=False).nullable


def test_marks_of_other_libraries_are_read() -> None:
    def typed(text: str) -> GeospatialType | None:
        metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": text}
        return types.type_of(pa.field("g", pa.binary(), metadata=metadata))

    assert typed("") == typed("{}") == typed('{"crs": null}') == typed('{"edges": "planar"}') == GeospatialType()
    assert typed('{"crs": "EPSG:3857", "edges": "spherical"}') == GeospatialType("EPSG:3857", "spherical")
    assert typed(json.dumps({"crs": pyproj.CRS("EPSG:3857").to_json_dict()})) == GeospatialType("EPSG:3857")
    assert typed('{"crs": 5070, "crs_type": "srid"}') == GeospatialType("srid:5070")
    ogc = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "ogc.wkb"})
    assert types.type_of(ogc) == GeospatialType()
    assert types.type_of(pa.field("g", pa.binary())) is None
    for broken in ("{", "[]", '{"edges": "curved"}', '{"edges": 3}', '{"crs": "{"}', '{"crs": "x", "crs_type":'):
        with pytest.raises(GeometryError):
            typed(broken)
    for broken in ('{"crs": []}', '{"crs": true}', '{"crs": 1.5}'):
        with pytest.raises(GeometryError):
            typed(broken)


def table(field: pa.Field) -> pa.Table:
    return pa.table([geo.from_points([170.0, -170.0], [1.0, 2.0])], schema=pa.schema([field]))


def test_pyarrow_writes_our_extension_arrays_as_geometry_with_a_box() -> None:
    plain = table(geo.geometry_field("g", "EPSG:3857"))
    extension = geo.as_extension(plain)
    assert types.type_of(extension.schema.field("g")) == GeospatialType("EPSG:3857")
    sink = io.BytesIO()
    pq.write_table(extension, sink)
    file = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    assert "EPSG:3857" in str(file.schema.column(0).logical_type)
    assert file.metadata.row_group(0).column(0).geo_statistics.xmin == -170
    assert file.read()["g"].to_pylist() == plain["g"].to_pylist()
    assert geo.as_extension(extension).schema == extension.schema
    unmarked = pa.table({"n": [1], "b": [b""]})
    assert geo.as_extension(unmarked).equals(unmarked)


def test_geopandas_accepts_a_marked_table_with_its_crs() -> None:
    geopandas = pytest.importorskip("geopandas")
    for crs, epsg in ((None, 4326), ("EPSG:3857", 3857)):
        frame = geopandas.GeoDataFrame.from_arrow(table(geo.geometry_field("g", crs)))
        assert frame.geometry.x.tolist() == [170.0, -170.0]
        assert pyproj.CRS(frame.crs).equals(pyproj.CRS(epsg), ignore_axis_order=True)


def test_duckdb_accepts_a_marked_table_as_geometry() -> None:
    duckdb = pytest.importorskip("duckdb")
    points = table(geo.geometry_field("g"))
    assert points is not None
    rows = duckdb.sql("select typeof(g) from points").fetchall()
    assert rows[0][0].startswith("GEOMETRY")
