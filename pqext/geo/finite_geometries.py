"""Adapt geometries to formats that cannot store empty parts or NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo.functions.measures import geometry_type, is_empty
from pqext.geo.kernels.ordinates import take_coordinates
from pqext.geo.wkb import as_columns, build, from_shapely, summaries, without_empty_parts


def finite_geometries(array: pa.Array, *, omit_z: bool) -> pa.Array:
    """Return ISO WKB without empty holes and empty parts of collections. Empty points become null.

    Args:
        array: Geometries as ISO WKB, ``binary`` or ``large_binary``.
        omit_z: Remove Z from geometries whose Z are all NaN, and reject geometries with some. By default Z is
            unchanged.

    Raises:
        GeometryError: With the row, if a coordinate is NaN or infinite.
    """
    is_empty_point = pa.compute.and_(pa.compute.equal(geometry_type(array), "ST_Point"), is_empty(array))
    if pa.compute.any(is_empty_point).as_py():
        array = pa.compute.if_else(is_empty_point, pa.scalar(None, array.type), array)
    (summary,) = summaries(array)
    rows = np.arange(len(array))
    if summary.hollow:
        shapes = without_empty_parts(build(array.to_numpy(zero_copy_only=False), rows))
        array = from_shapely(shapes).cast(array.type)
    (column,) = as_columns([array])
    flat, ends = take_coordinates(column)
    coordinates = np.frombuffer(flat, np.float64).reshape(-1, 3)
    stops = np.frombuffer(ends, np.int64)
    counts = stops[1:] - stops[:-1]
    owners = np.repeat(rows, counts)
    is_finite = np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1])
    _check(owners, ~is_finite, "a coordinate is NaN or infinite")
    if not omit_z or not any(code // 1000 in (1, 3) for code in summary.types):
        return array
    z = coordinates[:, 2]
    unknown_counts = np.bincount(owners[np.isnan(z)], minlength=len(array))
    is_partial = (unknown_counts > 0) & (unknown_counts < counts)
    _check(owners, np.isinf(z) | is_partial[owners], "Z is NaN or infinite in some positions")
    return _remove_z(array, (unknown_counts == counts) & (counts > 0))


def _check(owners: NDArray[np.int64], is_bad: NDArray[np.bool_], problem: str) -> None:
    bad_rows = owners[is_bad]
    if len(bad_rows):
        message = f"{problem}, which the format cannot store; remove the row or write a GeoPackage"
        raise GeometryError(message, rule="geo.gdal", row=int(bad_rows[0]))


def _remove_z(array: pa.Array, is_flat: NDArray[np.bool_]) -> pa.Array:
    import shapely

    rows = np.flatnonzero(is_flat)
    if not len(rows):
        return array
    values = array.to_numpy(zero_copy_only=False)
    flat = shapely.force_2d(build(values[rows], rows))
    result = values.copy()
    result[rows] = shapely.to_wkb(flat, flavor="iso", byte_order=1)
    return pa.array(result, array.type)
