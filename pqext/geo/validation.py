"""Validate WKB arrays, reporting the fault of each row like ``pqext.variant`` does for variants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.core.base.text import escape_text
from pqext.geo.wkb import GeometryArray, binary_chunks, summaries

OnFault = Literal["return", "raise"]

_FAULTS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False), ("offset", pa.int64()), ("rule", pa.string()),
        pa.field("message", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class GeometryFault:
    """First fault of the geometry in ``row`` of an array.

    ``offset`` is the byte offset in the value, or None if the fault has no position. ``rule`` is the id of the violated
    rule, or None if the format has no rule for it.
    """

    row: int
    offset: int | None
    rule: str | None
    message: str

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        byte = f", byte {self.offset}" if self.offset is not None else ""
        return escape_text(f"row {self.row}{byte}: {self.message}{rule}")

    def error(self) -> GeometryError:
        """Return the fault as an exception."""
        return GeometryError(self.message, rule=self.rule, row=self.row, offset=self.offset)


def validate(array: GeometryArray, *, on_fault: OnFault = "return") -> GeometryFault | None:
    """Return the first fault of an array, or None if all values are well-formed WKB or EWKB.

    In addition, rings must be empty or have at least four points and end where they begin, and the parts of a geometry
    must have its dimensions, unless they are empty. Nulls are valid. With ``on_fault="raise"``, the fault is raised as
    ``GeometryError``, with the row and byte.

    Raises ``TypeError`` if the array is not binary, and ``ValueError`` if ``on_fault`` is invalid.

    >>> from pqext.geo import from_wkt
    >>> validate(from_wkt(pa.array(["POINT (1 2)"]))) is None
    True
    >>> str(validate(pa.array([None, bytes.fromhex("010100000000")])))
    'row 1, byte 5: the geometry is truncated (geo.wkb.bounded)'
    """
    if on_fault not in get_args(OnFault):
        raise ValueError(f"on_fault must be 'return' or 'raise', not {on_fault!r}")
    result = next(_faults(array), None)
    if result is not None and on_fault == "raise":
        raise result.error()
    return result


def find_faults(array: GeometryArray, *, limit: int | None = None) -> pa.Table:
    """Return a table of the first fault of every invalid row: ``row``, ``offset``, ``rule`` and ``message``.

    ``offset`` is the byte offset in the row's value and ``rule`` is the id of the violated rule; both can be null. The
    table has at most ``limit`` rows. For the checks, see :func:`validate`. Raises ``ValueError`` if ``limit`` is
    negative, and ``TypeError`` if the array is not binary.

    >>> find_faults(pa.array([bytes.fromhex("02"), None, b""])).column_names
    ['row', 'offset', 'rule', 'message']
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    results: list[dict[str, object]] = []
    for fault in _faults(array):
        if len(results) == limit:
            break
        results.append({"row": fault.row, "offset": fault.offset, "rule": fault.rule, "message": fault.message})
    return pa.Table.from_pylist(results, _FAULTS)


def _faults(array: GeometryArray) -> Iterator[GeometryFault]:
    """Yield the first fault of each invalid row, in row order."""
    start = 0
    for chunk in binary_chunks(array):
        at, most = 0, len(chunk)
        while at < len(chunk):
            # A window starts small after a fault and doubles, so no row is prepared more than a few times.
            window = chunk.slice(at, most)
            try:
                summaries(window, strict=True)
            except GeometryError as error:
                if error.row is None:
                    raise
                at += error.row
                yield GeometryFault(start + at, error.offset, error.rule, error.reason)
                at, most = at + 1, 1
            else:
                at, most = at + len(window), 2 * most
        start += len(chunk)
