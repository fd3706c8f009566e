"""Cells of global grids that contain geometries: quadkeys, geohashes, H3, S2 and A5.

H3, S2 and A5 cells are computed by optional libraries. A quadkey is the path to a tile of the Web Mercator projection.
A geohash interleaves the bits of longitude and latitude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo.coordinates import swap_hint
from pqext.geo.layout.order import row_boxes
from pqext.geo.summary import resolve_type
from pqext.geo.wkb import GeometryArray

Grid = Literal["quadkey", "geohash", "h3", "s2", "a5"]
_Doubles = NDArray[np.float64]
_MERCATOR_LIMIT = 85.0511287798066
"""Maximum latitude of the square Web Mercator map."""
_BASE_32 = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)


def cells(array: GeometryArray, grid: Grid, resolution: int, *, crs: Any = None) -> pa.Array:
    """Return the grid cell of each geometry: the cell that contains the point, or the centre of the geometry's box.

    Args:
        array: WKB in a geographic CRS; other CRSs are transformed with :func:`transform` first.
        grid: ``"quadkey"`` (resolutions 1 to 29), ``"geohash"`` (1 to 12), ``"h3"`` (0 to 15), ``"s2"`` (0 to 30) or
            ``"a5"`` (0 to 30). The last three need the library ``h3``, ``s2cell`` or ``pya5``.
        resolution: The zoom level of quadkeys, the length of geohashes, the resolution or level of other grids.
        crs: The CRS; by default the CRS of the array, or OGC:CRS84.

    Returns:
        An array of strings: quadkeys, geohashes, H3 indexes and A5 cells in hexadecimal, S2 tokens. Null for null and
        empty geometries. Latitudes beyond 85.05 degrees have the quadkey of the northernmost or southernmost tile.

    Raises:
        ValueError: If the grid is unknown or the resolution is out of range.
        ImportError: If the optional library of the grid is not installed.
        GeometryError: With the row, if WKB is invalid or coordinates are not longitudes and latitudes.

    Example:
        >>> from pqext import geo
        >>> points = geo.from_points([-122.4, 178.4], [37.8, -18.1])
        >>> geo.cells(points, "quadkey", 5).to_pylist(), geo.cells(points, "geohash", 4).to_pylist()
        (['02301', '31113'], ['9q8z', 'ruyc'])
    """
    assign = _GRIDS.get(grid)
    if assign is None:
        names = get_args(Grid)
        raise ValueError(f"grid must be one of {', '.join(names)}, not {grid!r}{did_you_mean(str(grid), names)}")
    low, high = assign.resolutions
    if isinstance(resolution, bool) or not isinstance(resolution, int | np.integer) or not low <= resolution <= high:
        raise ValueError(f"the resolution of {grid} must be an integer from {low} to {high}, not {resolution!r}")
    x, y = centres(array)
    type = resolve_type(array, crs, None)
    if crs_.is_geographic(type.crs) is not True:
        raise GeometryError(
            f"cells require a geographic CRS, not {crs_label(type.crs or crs_.UNKNOWN)}; transform with geo.transform",
            rule="geo.cells",
        )
    is_missing = np.isnan(x) | np.isnan(y)
    slack = crs_.SLACK
    outside = ~is_missing & ~((np.abs(x) <= 180 + slack) & (np.abs(y) <= 90 + slack))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        message = f"coordinates ({x[row]}, {y[row]}) are not a longitude and a latitude"
        raise GeometryError(message + swap_hint((x[row], x[row]), (y[row], y[row])), rule="geo.cells", row=row)
    known = np.flatnonzero(~is_missing)
    values = np.full(len(x), None, object)
    values[known] = assign.names(np.clip(x[known], -180, 180), np.clip(y[known], -90, 90), int(resolution))
    return pa.array(values, pa.string())


def centres(array: GeometryArray) -> tuple[_Doubles, _Doubles]:
    """Return X and Y of the centre of each row's planar box; NaN for rows without coordinates."""
    xmin, xmax, ymin, ymax = row_boxes(array)
    with np.errstate(invalid="ignore"):
        return xmin / 2 + xmax / 2, ymin / 2 + ymax / 2


def _encode_quadkeys(x: _Doubles, y: _Doubles, zoom: int) -> list[str]:
    sine = np.sin(np.radians(np.clip(y, -_MERCATOR_LIMIT, _MERCATOR_LIMIT)))
    last = (1 << zoom) - 1
    column = np.clip(np.floor((x / 360 + 0.5) * (1 << zoom)), 0, last).astype(np.int64)
    height = 0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)
    row = np.clip(np.floor(height * (1 << zoom)), 0, last).astype(np.int64)
    bits = np.arange(zoom - 1, -1, -1)
    digits = (column[:, None] >> bits & 1) + 2 * (row[:, None] >> bits & 1)
    return _to_strings((digits + ord("0")).astype(np.uint8))


def _encode_geohashes(x: _Doubles, y: _Doubles, length: int) -> list[str]:
    """Encode geohashes by interleaving the bits of longitude and latitude.

    Longitude is first; each character has 5 bits.
    """
    wide, narrow = -(-5 * length // 2), 5 * length // 2
    column, row = _quantize(x, 180.0, wide), _quantize(y, 90.0, narrow)
    bits = np.zeros((len(x), 5 * length), np.int64)
    bits[:, ::2] = column[:, None] >> np.arange(wide - 1, -1, -1) & 1
    bits[:, 1::2] = row[:, None] >> np.arange(narrow - 1, -1, -1) & 1
    return _to_strings(_BASE_32[bits.reshape(len(x), length, 5) @ np.array([16, 8, 4, 2, 1])])


def _quantize(values: _Doubles, limit: float, bits: int) -> NDArray[np.int64]:
    result: NDArray[np.int64] = np.clip(np.floor((values + limit) / (2 * limit) * 2.0**bits), 0, 2.0**bits - 1).astype(
        np.int64
    )
    return result


def _to_strings(characters: NDArray[np.uint8]) -> list[str]:
    width = characters.shape[1]
    return np.ascontiguousarray(characters).view(f"S{width}")[:, 0].astype(str).tolist() if len(characters) else []


def _encode_h3(x: _Doubles, y: _Doubles, resolution: int) -> list[str]:
    with _installation_advice("h3"):
        import h3
    return [h3.latlng_to_cell(lat, lon, resolution) for lon, lat in zip(x.tolist(), y.tolist(), strict=True)]


def _encode_s2(x: _Doubles, y: _Doubles, level: int) -> list[str]:
    with _installation_advice("s2cell"):
        import s2cell
    return [s2cell.lat_lon_to_token(lat, lon, level) for lon, lat in zip(x.tolist(), y.tolist(), strict=True)]


def _encode_a5(x: _Doubles, y: _Doubles, resolution: int) -> list[str]:
    with _installation_advice("pya5"):
        import a5
    positions = zip(x.tolist(), y.tolist(), strict=True)
    return [a5.u64_to_hex(a5.lonlat_to_cell(position, resolution)) for position in positions]


@contextmanager
def _installation_advice(package: str) -> Iterator[None]:
    """Context manager that adds installation advice to an ImportError."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{package} is needed: pip install 'pqext[cells]' ({error})") from error


@dataclass(frozen=True)
class _Assignment:
    """Grid: its least and greatest resolution, and the function that computes names of cells."""

    resolutions: tuple[int, int]
    names: Callable[[_Doubles, _Doubles, int], list[str]]


_GRIDS: dict[str, _Assignment] = {
    "quadkey": _Assignment((1, 29), _encode_quadkeys), "geohash": _Assignment((1, 12), _encode_geohashes),
    "h3": _Assignment((0, 15), _encode_h3), "s2": _Assignment((0, 30), _encode_s2),
    "a5": _Assignment((0, 30), _encode_a5),
}  # fmt: skip
