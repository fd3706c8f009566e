"""Cells of grids: those of the libraries, and of published examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from pqext import geo
from pqext.core.base.errors import GeometryError

POINTS = np.random.default_rng(8).uniform((-180, -90), (180, 90), (500, 2))
ARRAY = geo.from_points(*POINTS.T)


def test_published_examples() -> None:
    # The example of "Bing Maps Tile System": tile (3, 5) at level 3.
    x, y = 3.5 / 8 * 360 - 180, np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * 5.5 / 8))))
    assert geo.cells(geo.from_points([x], [y]), "quadkey", 3).to_pylist() == ["213"]
    # Examples of the article on geohashes.
    places = geo.from_points([-5.6, 10.40744, -0.1262], [42.6, 57.64911, 51.5001])
    assert geo.cells(places, "geohash", 5).to_pylist() == ["ezs42", "u4pru", "gcpuv"]
    assert geo.cells(places, "geohash", 11)[1].as_py() == "u4pruydqqvj"


@pytest.mark.parametrize(("grid", "module", "resolutions"), [("h3", "h3", 15), ("s2", "s2cell", 30), ("a5", "a5", 29)])
def test_cells_are_those_of_the_library(grid: Any, module: str, resolutions: int) -> None:
    library = pytest.importorskip(module, reason=f"{module} is not installed (extra 'cells')")
    assign = {
        "h3": lambda x, y, level: library.latlng_to_cell(y, x, level),
        "s2": lambda x, y, level: library.lat_lon_to_token(y, x, level),
        "a5": lambda x, y, level: library.u64_to_hex(library.lonlat_to_cell((x, y), level)),
    }[grid]
    for level in (0, 7, resolutions):
        expected = [assign(x, y, level) for x, y in POINTS[:50].tolist()]
        assert geo.cells(ARRAY.slice(0, 50), grid, level).to_pylist() == expected


@pytest.mark.parametrize("zoom", [1, 5, 29])
def test_a_quadkey_is_the_path_to_the_tile(zoom: int) -> None:
    for key, (x, y) in zip(geo.cells(ARRAY, "quadkey", zoom).to_pylist(), POINTS.tolist(), strict=True):
        column = sum((int(digit) & 1) << (zoom - 1 - place) for place, digit in enumerate(key))
        row = sum((int(digit) >> 1) << (zoom - 1 - place) for place, digit in enumerate(key))
        assert len(key) == zoom
        assert column / 2**zoom * 360 - 180 <= x + 1e-9
        assert x <= (column + 1) / 2**zoom * 360 - 180 + 1e-9
        north, south = (np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * side / 2**zoom)))) for side in (row, row + 1))
        assert south - 1e-9 <= np.clip(y, -85.0511287798, 85.0511287798) <= north + 1e-9


@pytest.mark.parametrize("length", [1, 4, 12])
def test_a_geohash_halves_longitudes_and_latitudes(length: int) -> None:
    for text, (x, y) in zip(geo.cells(ARRAY, "geohash", length).to_pylist(), POINTS.tolist(), strict=True):
        sides = [[-180.0, 180.0], [-90.0, 90.0]]
        bits = "".join(format("0123456789bcdefghjkmnpqrstuvwxyz".index(letter), "05b") for letter in text)
        for place, bit in enumerate(bits):
            side = sides[place % 2]
            side[bit == "0"] = sum(side) / 2
        assert len(text) == length
        assert sides[0][0] <= x <= sides[0][1]
        assert sides[1][0] <= y <= sides[1][1]


def test_corners_of_the_world_have_cells() -> None:
    corners = geo.from_points([-180.0, 180.0, 180.0, 0.0], [-90.0, 90.0, -90.0, 0.0])
    assert geo.cells(corners, "quadkey", 2).to_pylist() == ["22", "11", "33", "30"]
    assert geo.cells(corners, "geohash", 2).to_pylist() == ["00", "zz", "pb", "s0"]


def test_nulls_and_empty_geometries_have_none_and_shapes_that_of_their_centre() -> None:
    shapes = geo.from_shapely([None, shapely.Point(), shapely.box(10, 10, 20, 20)])
    assert geo.cells(shapes, "geohash", 3).to_pylist() == [None, None, "s6d"]
    assert geo.cells(geo.from_points([15.0], [15.0]), "geohash", 3).to_pylist() == ["s6d"]
    assert geo.cells(pa.chunked_array([], pa.binary()), "quadkey", 3).to_pylist() == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("h4", 3), ValueError, "grid must be one of quadkey, .*, not 'h4'"),
        (("quadkey", 0), ValueError, "the resolution of quadkey must be an integer from 1 to 29, not 0"),
        (("h3", True), ValueError, "from 0 to 15"),
        (("s2", 2.5), ValueError, "not 2.5"),
    ],
)
def test_errors_name_the_argument(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        geo.cells(ARRAY, *arguments)


def test_other_coordinates_than_longitudes_are_rejected() -> None:
    with pytest.raises(GeometryError, match="EPSG:3857; transform with"):
        geo.cells(ARRAY, "quadkey", 3, crs="EPSG:3857")
    with pytest.raises(GeometryError, match="not a longitude and a latitude") as caught:
        geo.cells(geo.from_points([0.0, 181.0], [0.0, 0.0]), "quadkey", 3)
    assert caught.value.row == 1
