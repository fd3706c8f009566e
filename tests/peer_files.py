"""Files for comparisons with other readers: 20 row groups of events and points, and copies with damage.

In a damaged copy every row group but the last is overwritten with 0xFF, footer untouched: a reader that answers
a question about the last row group has skipped the others, whatever it says of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

import pqext
from pqext import geo, variant

ROWS, GROUP = 2000, 100
CHOSEN = "STRUCT<mag: DECIMAL(9,2)>"
WHOLE = "STRUCT<mag: DECIMAL(9,2), place: STRING>"
LAST_MAG = (ROWS - GROUP) / 100
LAST_BOX = (169.0, 76.0, 173.0, 85.0)

Damage = Callable[[Path], Path]


def table() -> pa.Table:
    """Events whose magnitude grows with the row, at points whose latitude does."""
    text = pa.array([f'{{"mag": {row / 100}, "place": "station {row}"}}' for row in range(ROWS)])
    rows = np.arange(ROWS)
    points = shapely.to_wkb(shapely.points(170 + rows % 3, np.floor(rows / GROUP) * 8.5 - 81))
    schema = pa.schema([variant.variant_field("event"), geo.geometry_field("geom")])
    return pa.Table.from_arrays([variant.parse_json(text), pa.array(points, pa.binary())], schema=schema)


def write(path: Path, shredding: str) -> Path:
    """Write :func:`table` shredded so."""
    pqext.write_table(table(), path, shredding={"event": shredding}, row_group_rows=GROUP)
    return path


def damaged(path: Path) -> Path:
    """A copy of which only the last row group is readable."""
    with pqext.open(path) as file:
        start = min(chunk.byte_range[0] for chunk in file.row_groups[-1].chunks())
        assert len(file.row_groups) == ROWS // GROUP
    data = bytearray(path.read_bytes())
    data[4:start] = b"\xff" * (start - 4)
    copy = path.with_name("damaged-" + path.name)
    copy.write_bytes(data)
    return copy
