"""Geometries as Spark passes them to Python and takes them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import types as T

from pqext.geo.types import GeospatialType
from pqext.spark.base.types import crs_of_srid, exchange_type

if TYPE_CHECKING:
    from collections.abc import Callable

GEOMETRY = T.GeometryType("ANY")
"""What functions return that make geometries: each row has the SRID of its argument."""
_TYPE = exchange_type(GEOMETRY)


@dataclass(frozen=True)
class Geometries:
    """A column of geometries: WKB, what its edges and CRS are, and the SRID of each row."""

    wkb: pa.Array
    type: GeospatialType
    srid: pa.Array | None = None

    @classmethod
    def of(cls, array: pa.Array) -> Geometries:
        """What Spark passes for GEOMETRY, GEOGRAPHY or BINARY. Raises TypeError for anything else."""
        if pa.types.is_struct(array.type) and array.type.get_field_index("wkb") >= 0:
            marks = array.type.field("wkb").metadata or {}
            srid = int(marks.get(b"srid", b"-1"))
            crs = crs_of_srid(srid) if srid >= 0 else None
            type = GeospatialType(crs, "spherical" if b"geography" in marks else "planar")
            return cls(pc.struct_field(array, "wkb"), type, pc.struct_field(array, "srid"))
        if pa.types.is_null(array.type):
            array = array.cast(pa.binary())
        if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
            raise TypeError(f"expected GEOMETRY, GEOGRAPHY or BINARY of WKB, not {array.type}")
        return cls(array, GeospatialType())

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows are null."""
        found: NDArray[np.bool_] = self.wkb.is_null().to_numpy(zero_copy_only=False)
        return found

    def shapes(self) -> NDArray[np.object_]:
        """Shapely geometries, None for null, without the empty parts on which GEOS crashes.

        Raises GeometryError with the row and the byte on bad WKB.
        """
        from pqext.geo.wkb import build, summaries, without_empty_parts

        hollow = any(part.hollow for part in summaries(self.wkb))
        found = build(self.wkb.to_numpy(zero_copy_only=False), np.arange(len(self.wkb)))
        return without_empty_parts(found) if hollow else found

    def flat(self, function: str) -> Geometries:
        """These, which are figures in the plane. Raises TypeError for GEOGRAPHY."""
        if not self.type.planar:
            raise TypeError(
                f"{function} is for figures in the plane: give it CAST(... AS GEOMETRY(4326)) of the GEOGRAPHY"
            )
        return self


def geometries(wkb: pa.Array, srid: pa.Array | int | None) -> pa.Array:
    """WKB as a column of GEOMETRY(ANY); without ``srid`` the CRS is unknown, SRID 0."""
    if srid is None or isinstance(srid, int):
        srid = pa.repeat(pa.scalar(srid or 0, pa.int32()), len(wkb))
    elif srid.null_count:
        srid = srid.fill_null(0)
    mask = wkb.is_null() if wkb.null_count else None
    return pa.StructArray.from_arrays([srid, wkb.cast(pa.binary())], fields=list(_TYPE), mask=mask)


def from_shapes(shapes: Any, srid: pa.Array | int | None) -> pa.Array:
    """Shapely geometries as a column of GEOMETRY(ANY)."""
    from pqext.geo.wkb import from_shapely

    return geometries(from_shapely(shapes), srid)


def measured(values: Any, missing: NDArray[np.bool_]) -> pa.Array:
    """Doubles, null where ``missing`` or NaN, which is what shapely says of nothing."""
    numbers = np.asarray(values, np.float64)
    return pa.array(numbers, pa.float64(), mask=missing | np.isnan(numbers))


def of_shapes(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A vectorised function of shapely; its errors and NaN among coordinates as ours.

    Raises GeometryError with what GEOS says.
    """
    import shapely

    from pqext.core.base.errors import GeometryError

    try:
        with np.errstate(all="ignore"):
            return function(*arguments, **options)
    except shapely.errors.ShapelyError as error:
        raise GeometryError(f"{function.__name__} is not possible: {error}") from error


def both(function: str, one: pa.Array, other: pa.Array) -> tuple[Geometries, Geometries, bool]:
    """Two columns of geometries, and whether they are in the plane. TypeError unless both are of one kind."""
    left, right = Geometries.of(one), Geometries.of(other)
    if left.type.planar != right.type.planar:
        raise TypeError(f"{function} is between two GEOMETRY or two GEOGRAPHY columns, not between one of each")
    return left, right, left.type.planar
