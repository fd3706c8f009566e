"""Is every value of a geometry array well-formed WKB?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pqext.core.errors import GeometryError
from pqext.geo.wkb import GeometryArray, summaries

OnFault = Literal["return", "raise"]


@dataclass(frozen=True, slots=True)
class GeometryFault:
    """One fault of an array, in ``row``.

    ``offset`` is the byte in the value, None where the fault is not at a byte; ``rule`` the id of the broken rule in
    the ledger, None where there is no rule of the format; ``message`` says what is wrong, and where.
    """

    row: int
    offset: int | None
    rule: str | None
    message: str

    def __str__(self) -> str:
        return self.message


def validate(array: GeometryArray, *, on_fault: OnFault = "return") -> GeometryFault | None:
    """Check that every value of an array is well-formed WKB or EWKB; None when nothing is wrong, else the first fault.

    Beyond the structure, rings must have no or at least four points and end where they begin, and the
    parts of a geometry must have its dimensions, unless they are empty. Null rows are valid. With
    ``on_fault="raise"`` the first fault is raised as ``GeometryError``, with its row and byte.

    Raises ``TypeError`` when the array cannot hold WKB, ``ValueError`` for another ``on_fault``. Spec: "Geospatial
    Definitions" (000 §5.1).

    >>> from pqext import geo
    >>> geo.validate(geo.from_points([1], [2]))
    >>> import pyarrow as pa
    >>> geo.validate(pa.array([None, b"POINT (1 2)"])).row
    1
    """
    if on_fault not in get_args(OnFault):
        raise ValueError(f"on_fault is 'return' or 'raise', not {on_fault!r}")
    try:
        summaries(array, strict=True)
    except GeometryError as error:
        if on_fault == "raise" or error.row is None:
            raise
        return GeometryFault(error.row, error.offset, error.rule, str(error))
    return None
