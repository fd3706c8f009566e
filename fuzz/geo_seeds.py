"""Seeds for the geometry target."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pqext import geo
from pqext.geo import page_boxes
from pqext.geo.types import GeospatialType

TEXTS = [
    "POINT (1 2)",
    "POINT ZM (1 2 3 -4.5e-7)",
    "LINESTRING M (0 0 1, 170.25 60 2)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT (EMPTY, (1 2), 3 4)",
    "MULTILINESTRING Z ((0 0 0, 1 1 1), EMPTY)",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), EMPTY)",
    "GEOMETRYCOLLECTION Z (POINT Z (1 2 NaN), GEOMETRYCOLLECTION Z (LINESTRING Z EMPTY, POINT Z (1 2 -Infinity)))",
]
EWKB_HEX = "01020000A0E610000002000000" + "000000000000F03F" * 6
BIG_ENDIAN_HEX = "0000000007000000020000000001" + "3FF0000000000000" * 2 + "0101000000" + "000000000000F03F" * 2


def geometries() -> Iterator[tuple[str, bytes]]:
    """Yield each text in each format, after the byte that selects the format."""
    array = geo.from_wkt(pa.array(TEXTS))
    for number, (text, value) in enumerate(zip(TEXTS, array.to_pylist(), strict=True)):
        yield f"wkb {number}", b"\0" + value
        yield f"wkt {number}", b"\1" + text.encode()
    yield "ewkb", b"\0" + bytes.fromhex(EWKB_HEX)
    yield "big", b"\0" + bytes.fromhex(BIG_ENDIAN_HEX)
    finite = geo.to_geojson(geo.from_wkt(pa.array([*TEXTS[:6], "GEOMETRYCOLLECTION (POINT (1 2), POINT EMPTY)"])))
    for number, text in enumerate(finite.to_pylist()):
        yield f"geojson {number}", b"\2" + text.encode()
        feature = {"properties": {"a": number, "s": "\u00e9\n"}, "id": number, "geometry": json.loads(text)}
        collection = json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature", **feature}]})
        yield f"features {number}", b"\3" + collection[1:].encode()
    yield "feature", b"\2" + json.dumps({"type": "Feature", "geometry": None}).encode()
    for number, type in enumerate((GeospatialType("EPSG:3857"), GeospatialType(None, "karney"), GeospatialType("{}"))):
        yield f"marks {number}", b"\4" + type.extension_metadata().encode()
    yield "crs", b"\4projjson:p"
    flags = {"nulls": [False] * 3, "empty": [False] * 3, "unknown": [False] * 3}
    boxes = page_boxes.PageBoxes(
        *(np.array(values, float) for values in ([1, 2, 3], [2, 3, 4], [0, 0, 0], [1, 2, 3])),
        **{name: np.array(values) for name, values in flags.items()},
    )
    payload = page_boxes.encode(boxes)
    assert payload is not None
    yield "page boxes", b"\4\3" + payload
