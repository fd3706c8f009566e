"""Column of geometries, stored as WKB and converted to shapely geometries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import build, summaries, without_empty_parts


@dataclass(frozen=True)
class GeometryColumn:
    """Array of WKB with its edges and CRS."""

    wkb: pa.Array
    type: GeospatialType

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Mask of the null rows."""
        mask: NDArray[np.bool_] = self.wkb.is_null().to_numpy(zero_copy_only=False)
        return mask

    def shapes(self) -> NDArray[np.object_]:
        """Return shapely geometries, with None for null and without the empty parts that crash GEOS.

        Raises:
            GeometryError: With the row and the byte, if WKB is invalid.
        """
        has_empty_parts = any(part.hollow for part in summaries(self.wkb))
        shapes = build(self.wkb.to_numpy(zero_copy_only=False), np.arange(len(self.wkb)))
        return without_empty_parts(shapes) if has_empty_parts else shapes


def call_shapely(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a vectorised shapely function. Raises GeometryError with the message of GEOS if it fails."""
    import shapely

    try:
        with np.errstate(all="ignore"):
            return function(*arguments, **options)
    except shapely.errors.ShapelyError as error:
        raise GeometryError(f"{function.__name__} failed: {error}") from error
