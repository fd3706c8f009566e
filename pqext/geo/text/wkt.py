"""Geometries from and to well-known text, as the simple features standard (OGC 06-103r4) has it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pqext.geo.kernels.wkt import to_wkb
from pqext.geo.text.arrays import assemble, bit_mask, text_chunks, write
from pqext.geo.wkb import GeometryArray, as_columns


def from_wkt(array: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> GeometryArray:
    """ISO WKB in a ``binary`` array from an Arrow array or a list of well-known text; null gives null.

    Letters may be of either case. The tags ``Z``, ``M`` and ``ZM`` may be left out: three ordinates are then x, y, z,
    four x, y, z, m. ``NaN`` and ``Infinity`` are numbers. The result is ``large_binary`` for 2 GiB and more. Raises
    GeometryError with row and byte on any other text, TypeError for arrays that hold none.

    >>> import pyarrow as pa
    >>> from_wkt(pa.array(["POINT (1 2)", None])).is_valid().to_pylist()
    [True, False]
    """
    if isinstance(array, (list, tuple)):
        array = text_chunks(array)[0]
    chunks = text_chunks(array)
    made = (
        (len(chunk), bit_mask(chunk), *to_wkb(column)) for chunk, column in zip(chunks, as_columns(chunks), strict=True)
    )
    return assemble(array, made, (pa.binary(), pa.large_binary()))


def to_wkt(array: GeometryArray, precision: int | None = None) -> GeometryArray:
    """The geometries as well-known text in a ``string`` array; null gives null.

    Numbers have the fewest digits that read back as the same double; with ``precision``, 0 to 18, they are rounded to
    as many decimals. EWKB is read and its SRID left out. The result is ``large_string`` for 2 GiB and more. Raises
    GeometryError with row and byte on bad WKB, and on a multi geometry whose parts differ in dimensions, for which
    the text has no form.

    >>> from pqext.geo import from_points
    >>> to_wkt(from_points([1.23456], [2]), precision=2).to_pylist()
    ['POINT (1.23 2)']
    """
    return write(array, json=False, precision=precision)
