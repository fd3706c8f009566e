"""Convert geometries to and from well-known text, as defined by the simple features standard (OGC 06-103r4)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pqext.geo.kernels.wkt import to_wkb
from pqext.geo.text.arrays import assemble, bit_mask, text_chunks, write
from pqext.geo.wkb import GeometryArray, as_columns


def from_wkt(array: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> GeometryArray:
    """Convert well-known text in an Arrow array or a list to ISO WKB in a ``binary`` array; null remains null.

    Tags are not case-sensitive. ``Z``, ``M`` and ``ZM`` are optional: without them, three ordinates are x, y, z and
    four are x, y, z, m. ``NaN`` and ``Infinity`` are numbers. The result is ``large_binary`` for 2 GiB and more. Raises
    GeometryError with row and byte if the text is not WKT, and TypeError if ``array`` is not an array of strings.

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
    """Convert geometries to well-known text in a ``string`` array; null remains null.

    Numbers have the fewest digits that parse to the same double. If ``precision``, from 0 to 18, is passed, they are
    rounded to that number of decimals. EWKB is accepted, without its SRID. The result is ``large_string`` for 2 GiB and
    more. Raises GeometryError with row and byte if WKB is invalid, and if the parts of a multi geometry differ in
    dimensions, which WKT cannot represent.

    >>> from pqext.geo import from_points
    >>> to_wkt(from_points([1.23456], [2]), precision=2).to_pylist()
    ['POINT (1.23 2)']
    """
    return write(array, json=False, precision=precision)
