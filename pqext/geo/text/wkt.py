"""Convert geometries to and from well-known text, as defined by the simple features standard (OGC 06-103r4).

GeoJSON uses the same arrays of text and the same kernel (:func:`text_chunks`, :func:`write`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.types.arrow_compute import to_variable_width
from pqext.geo.kernels.geometry_text import to_text
from pqext.geo.kernels.wkt import to_wkb
from pqext.geo.wkb import GeometryArray, as_columns, assemble, binary_chunks, bit_mask, storage_type


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


def write(array: GeometryArray, json: bool, precision: int | None) -> GeometryArray:
    """Write geometries as GeoJSON if ``json``, and otherwise as WKT, in string arrays.

    The other arguments and the errors are as in :func:`pqext.geo.to_wkt`.
    """
    if precision is not None and (isinstance(precision, bool) or not isinstance(precision, int)):
        raise TypeError(f"precision must be an integer, the number of decimals, not {precision!r}")
    if precision is not None and not 0 <= precision <= 18:
        raise ValueError(f"precision must be from 0 to 18 decimals, not {precision}")
    chunks: Sequence[pa.Array] = binary_chunks(array)
    decimals = -1 if precision is None else precision
    made = (
        (len(chunk), bit_mask(chunk), *to_text(column, json, decimals))
        for chunk, column in zip(chunks, as_columns(chunks), strict=True)
    )
    return assemble(array, made, (pa.string(), pa.large_string()))


def text_chunks(array: Any) -> list[pa.Array]:
    """Return the chunks of an array or list of strings, each ``string`` or ``large_string``.

    Raises TypeError for other input.
    """
    if isinstance(array, (list, tuple)):
        try:
            array = pa.array(array, pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TypeError(f"expected a list of strings: {error}") from None
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"expected an Arrow array of strings or a list of strings, not {type(array).__name__}")
    held = storage_type(array.type)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if not any(test(held) for test in tests):
        raise TypeError(f"expected an Arrow array of strings, not {array.type}")
    check_array(array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [to_variable_width(chunk, pa.string(), pa.large_string()) for chunk in chunks]
