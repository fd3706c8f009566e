"""CRS strings: what they name, when they are the same, and which are longitudes and latitudes."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyproj
import pytest

import pqext
from pqext.core.base.errors import AnnotationWarning, GeometryError
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import FileMetaData, GeometryType, LogicalType, SchemaElement, Type
from pqext.geo import crs, from_points, geometry_field, to_geopandas

ALBERS = pyproj.CRS("EPSG:5070").to_json_dict()
LONLAT = pyproj.CRS("OGC:CRS84").to_json_dict()


@pytest.mark.spec("geo.crs.default", "geometry.crs")
@pytest.mark.parametrize("unset", [None, "", "  ", "OGC:CRS84", "ogc:crs84", LONLAT, json.dumps(LONLAT)])
def test_unset_crs_is_longitude_and_latitude_on_wgs84(unset: Any) -> None:
    assert crs.normalize(unset) is None
    assert crs.is_geographic(crs.normalize(unset)) is True
    assert crs.parse(crs.normalize(unset)).equals(pyproj.CRS("OGC:CRS84"))


@pytest.mark.spec("geo.crs.custom")
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (3857, "EPSG:3857"),
        ("EPSG:3857", "EPSG:3857"),
        (pyproj.CRS("EPSG:3857"), "EPSG:3857"),
        (ALBERS, "EPSG:5070"),
        (json.dumps(ALBERS), "EPSG:5070"),
        ("srid:5070", "srid:5070"),
        ("projjson:albers", "projjson:albers"),
        ("whatever it was", "whatever it was"),
    ],
)
def test_crs_is_named_by_its_identifier_if_it_has_one(given: Any, stored: str) -> None:
    assert crs.normalize(given) == stored


@pytest.mark.spec("geo.crs.custom")
def test_projjson_with_a_false_identifier_stays_inline() -> None:
    moved = json.loads(json.dumps(ALBERS))
    moved["conversion"]["parameters"][1]["value"] = -90
    for own in (moved, {key: value for key, value in ALBERS.items() if key != "id"}):
        text = crs.normalize(own)
        assert text is not None
        assert json.loads(text) == own
        assert crs.is_geographic(text) is False
    assert not crs.equal(crs.normalize(moved), "EPSG:5070")


@pytest.mark.spec("geo.crs.srid")
def test_srid_is_an_epsg_code_and_zero_is_unknown() -> None:
    assert crs.equal("srid:5070", "EPSG:5070")
    assert crs.equal("SRID:4326", None)
    assert crs.is_geographic("srid:4326") is True
    assert crs.is_geographic("srid:5070") is False
    for unknown in ("srid:0", "srid:999999", "srid:99999999999999", "srid:-1", "srid:"):
        assert crs.is_geographic(unknown) is None
        with pytest.raises(GeometryError):
            crs.parse(unknown)


@pytest.mark.spec("geo.crs.projjson")
def test_projjson_is_read_from_the_property_that_the_crs_names() -> None:
    properties = {"albers": json.dumps(ALBERS), "broken": "{", "list": "[]"}
    assert crs.parse("projjson:albers", properties).to_epsg() == 5070
    assert crs.is_geographic("projjson:albers", properties) is False
    assert crs.is_geographic("projjson:albers") is None
    with pytest.raises(GeometryError, match="the key-value metadata has no 'missing'"):
        crs.parse("projjson:missing", properties)
    for name in ("broken", "list"):
        with pytest.raises(GeometryError):
            crs.parse(f"projjson:{name}", properties)


@pytest.mark.spec("geo.axis_order")
def test_axis_order_is_ignored() -> None:
    assert crs.equal("EPSG:4326", None)
    assert crs.equal("EPSG:4326", "OGC:CRS84")
    assert not crs.equal("EPSG:4326", "EPSG:3857")
    assert not crs.equal("EPSG:4326", "EPSG:4269")


@pytest.mark.parametrize(
    ("text", "geographic"),
    [
        ("EPSG:4326", True),
        ("EPSG:4269", True),
        ("EPSG:4979", True),
        ("OGC:CRS27", True),
        ("EPSG:3857", False),
        ("EPSG:4978", False),
        ("EPSG:4326+5773", True),  # and heights above a geoid
        ("EPSG:2393+EPSG:5717", False),
        (pyproj.CRS("EPSG:4269").to_wkt(), True),
        (pyproj.CRS("EPSG:32633").to_wkt(), False),
    ],
)
def test_known_crs_is_classified_as_geographic_or_not(text: str, geographic: bool) -> None:
    assert crs.is_geographic(text) is geographic


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "EPSG:0",
        "EPSG:99999999",
        "EPSG:4326+",
        "EPSG:4326+0",
        "NOBODY:1",
        "{}",
        "{",
        '{"type": "GeographicCRS"}',
        "+init=/etc/passwd:1",
        "+proj=longlat",
        "/etc/passwd",
        "GEOGCRS[",
        "[" * 5000,
        '{"base_crs":' * 900 + "{}" + "}" * 900,
        '{"base_crs":' * 100_000,
        "GEOGCRS[" * 10_000,
        "x" * (2 << 20),
    ],
)
def test_invalid_crs_is_an_error_or_unknown(text: str) -> None:
    assert crs.is_geographic(text) is None
    assert not crs.equal(text, None)
    assert crs.equal(text, text)
    with pytest.raises(GeometryError):
        crs.parse(text)


@pytest.mark.parametrize("wrong", [1.5, b"EPSG:4326", ["EPSG", 4326], True])
def test_object_that_is_not_a_crs_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a CRS must be a string"):
        crs.normalize(wrong)


def test_common_crs_are_known_without_loading_pyproj() -> None:
    code = (
        "import sys; from pqext.geo import crs;"
        "assert crs.is_geographic(None) and crs.is_geographic('EPSG:4326') and crs.equal(None, 'OGC:CRS84');"
        "assert 'pyproj' not in sys.modules and 'shapely' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_crs_with_invalid_utf8_is_rejected_on_write_and_unmarked_on_read() -> None:
    with pytest.raises(GeometryError, match="not valid UTF-8"):
        crs.normalize("\udcff")
    element = SchemaElement(
        name="g", type=Type.BYTE_ARRAY, repetition_type=1, logicalType=LogicalType(GEOMETRY=GeometryType(crs="\udcff"))
    )
    elements = [SchemaElement(name="schema", num_children=1), element]
    data = b"PAR1" + serialise_footer(FileMetaData(version=2, schema=elements, num_rows=0, row_groups=[]))
    with pqext.open(data) as file:
        assert file.arrow_schema.field("g").metadata is None


@pytest.mark.spec("geo.crs.write")
@pytest.mark.parametrize(("name", "reason"), [
    ("ESPG:4326", "did you mean 'EPSG'"), ("EPSG:99999999", "has no code '99999999'"), ("EPSG4326", "colon"),
    ("CRS84", "colon"), ("nonsense", "pass a code such as"), ("nobody:knows", "pass a code such as"),
    ('GEOGCS["x"]', "cannot be read"), ('{"type": "GeographicCRS"}', "cannot be read"),
    ("srid:wgs", "has no code 'wgs'"), ("projjson:missing", "key_value_metadata has no PROJJSON under 'missing'"),
    ("+init=/etc/passwd:1", "pass a code"), ("@/etc/passwd", "pass a code"),
])  # fmt: skip
def test_unknown_crs_is_rejected_on_write(name: str, reason: str) -> None:
    table = pa.table([from_points([1.0], [2.0])], ["g"])
    with pytest.raises(GeometryError, match="is unknown") as raised:
        pqext.write_table(table, io.BytesIO(), geometry={"g": name})
    assert reason in str(raised.value)
    assert "[column g]" in str(raised.value)
    if not name.startswith("projjson"):
        with pytest.raises(GeometryError, match="is unknown"):
            geometry_field("g", name)


@pytest.mark.spec("geo.crs.write", "geo.crs.notations")
@pytest.mark.parametrize("name", [
    "urn:ogc:def:crs:EPSG::3857", "urn:ogc:def:crs:EPSG:9.9.1:3857", "urn:x-ogc:def:crs:EPSG:4269",
    "http://www.opengis.net/def/crs/EPSG/0/3857", "https://www.opengis.net/def/crs/OGC/1.3/CRS84",
    "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:OGC::CRS27", "4326", "3857", "WGS 84", "epsg:3857",
    "EPSG:3857", "+proj=utm +zone=33 +datum=WGS84", "urn:ogc:def:crs,crs:EPSG::2393,crs:EPSG::5717",
    pyproj.CRS("EPSG:32633").to_wkt(), pyproj.CRS("EPSG:5070").to_wkt("WKT1_GDAL"),
])  # fmt: skip
def test_pyproj_notations_are_written_as_codes_or_projjson(name: str) -> None:
    expected = pyproj.CRS(name)
    table = pa.table([from_points([1.0], [2.0])], ["g"])
    pqext.write_table(table, sink := io.BytesIO(), geometry={"g": name})
    stored = pqext.open(sink).schema.find("g").logical_type.GEOMETRY.crs  # type: ignore[union-attr]
    if stored is None:
        assert expected == pyproj.CRS("OGC:CRS84")
    else:
        assert stored.startswith("{") or re.fullmatch(r"[A-Z]+:\w+", stored)
        assert pyproj.CRS(stored) == expected
    assert crs.parse(crs.normalize(stored)).equals(expected, ignore_axis_order=True)


def with_crs(text: str) -> bytes:
    """A file whose type states the CRS as another writer may have written it."""
    sink = io.BytesIO()
    pqext.write_table(pa.table([from_points([1.0], [2.0])], ["g"]), sink, geometry={"g": "EPSG:3857"}, geoparquet=False)

    def change(metadata: FileMetaData) -> None:
        metadata.schema[1].logicalType = LogicalType(GEOMETRY=GeometryType(crs=text))

    pqext.rewrite_footer(sink, change, changed := io.BytesIO())
    return changed.getvalue()


@pytest.mark.spec("geo.crs.notations")
@pytest.mark.parametrize("name", [
    "urn:ogc:def:crs:EPSG::3857", "http://www.opengis.net/def/crs/EPSG/0/3857", "4326", "urn:ogc:def:crs:OGC:1.3:CRS84",
    "epsg:3857",
])  # fmt: skip
def test_notations_of_other_writers_are_read(name: str) -> None:
    frame = to_geopandas(pqext.read_table(with_crs(name)))
    assert frame.crs == pyproj.CRS(name)


@pytest.mark.spec("geo.crs.custom")
@pytest.mark.parametrize("name", ["nonsense", "nobody:knows", "projjson:missing", '{"type": "GeographicCRS"}'])
def test_unknown_crs_of_a_file_warns_on_read(name: str) -> None:
    with pytest.warns(AnnotationWarning, match="column g: the CRS .* is unknown"):
        table = pqext.read_table(with_crs(name))
    with pytest.warns(AnnotationWarning, match="column 'g': the CRS .* is unknown, so the frame has no CRS"):
        assert to_geopandas(table).crs is None


def test_unknown_authority_code_warns_in_geopandas() -> None:
    table = pqext.read_table(with_crs("EPSG:99999999"))
    with pytest.warns(AnnotationWarning, match="column 'g': the CRS 'EPSG:99999999' is unknown"):
        assert to_geopandas(table).crs is None


@pytest.mark.parametrize(("name", "hint"), [
    ("nobody:knows", ""), ("projjson:missing", ""), ("nonsense", ""), ("ESPG:4326", ": did you mean 'EPSG'?"),
    ("EPSG:99999999", ": EPSG has no code '99999999'"), ("+proj=utm", ": Parquet does not support PROJ strings"),
    ('GEOGCS["x"]', ": it is a definition that cannot be read"), ("EPSG4326", ": it lacks the colon of authority:code"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::pqext.AnnotationWarning")
def test_unknown_crs_of_a_file_is_written_again_with_a_warning(name: str, hint: str) -> None:
    table = pqext.read_table(with_crs(name))
    message = f"column 'g': CRS '{name}' is unknown, so readers may not recognise it{hint}"
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        pqext.write_table(table, io.BytesIO())


@pytest.mark.spec("geo.crs.srid")
def test_srid_unknown_to_epsg_is_written_with_a_warning() -> None:
    table = pa.table([from_points([1.0], [2.0])], ["g"])
    with pytest.warns(UserWarning, match=r"'srid:7' is unknown, so readers may not recognise it$"):
        pqext.write_table(table, io.BytesIO(), geometry={"g": "srid:7"})
    pqext.write_table(table, io.BytesIO(), geometry={"g": "srid:0"})


@pytest.mark.parametrize("name", [
    {"type": "GeographicCRS", "epoch": math.nan}, {"name": math.inf}, {"name": {1, 2}}, {"name": "\ud800"},
    '{"type": "GeographicCRS", "epoch": NaN}',
])  # fmt: skip
def test_value_not_representable_in_json_is_not_a_crs(name: Any) -> None:
    with pytest.raises(GeometryError):
        geometry_field("g", name)


@pytest.mark.spec("geo.crs.custom")
def test_unknown_crs_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group each would ask PROJ, which takes milliseconds."""
    texts = []

    def count(text: str) -> pyproj.CRS:
        texts.append(text)
        raise pyproj.exceptions.CRSError("no such code")

    monkeypatch.setattr(pyproj.CRS, "from_string", count)
    for _ in range(3):
        assert crs.is_geographic("EPSG:987654") is None
        with pytest.raises(GeometryError, match="the CRS cannot be parsed: no such code"):
            crs.parse("EPSG:987654")
    assert texts == ["EPSG:987654"]
