"""Input of the demo: the bundled earthquakes, or a user's JSON lines."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

from pqext.core.io.sink import Sink
from pqext.examples import earthquakes
from pqext.report.model import Box
from pqext.variant.access.path import format_path, parse
from pqext.variant.shredding.schema import shredding_schema

ROW_GROUPS = 27
"""Number of row groups of a small file; a third of them is nine."""
MAX_ROW_GROUP_ROWS = 1 << 17

GEOMETRY = "geom"
"""The name of the GEOMETRY column."""
EXAMPLE_FILE = "earthquakes.ndjson"
EARTHQUAKE_SCHEMA = "properties STRUCT<mag: DECIMAL(9,2), place: STRING, time: BIGINT, magType: STRING>"
FIJI = Box(165.0, -170.0, -30.0, -10.0)
"""The sea around Fiji, from Vanuatu to Tonga, across the antimeridian; in degrees."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The queried number: its path, and the minimum of matching values."""

    path: str
    value: float


@dataclass(frozen=True, slots=True)
class DisplayColumn:
    """A displayed column of results: its heading, and a path and type within the VARIANT column."""

    name: str
    path: str
    type: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file of JSON lines, and the columns to create from it.

    ``coordinates`` are two or three paths within the VARIANT column ``column``. If ``schema`` is None, only the
    inferred schema is used. If ``box`` or ``threshold`` is None, it is derived from the data.
    """

    title: str
    about: str
    path: Path
    column: str
    coordinates: tuple[str, ...]
    schema: str | None = None
    box: Box | None = None
    box_title: str = "In the box"
    threshold: Threshold | None = None
    threshold_title: str = ""
    shown: tuple[DisplayColumn, ...] = ()
    axes: tuple[str, str] = ("x", "y")


def example(folder: Path, schema: str | None = None) -> Source:
    """Write the bundled earthquakes to ``folder`` as JSON lines; ``schema`` overrides the default shredding schema.

    Raises ``ValueError`` for an invalid schema, before the folder is created.
    """
    check_schema(schema)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / EXAMPLE_FILE
    collection = json.loads(earthquakes().read_text("utf-8"))
    with Sink(path) as lines:
        for feature in collection["features"]:
            lines.write((json.dumps(feature, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    return Source(
        title="A week of earthquakes",
        about="Every earthquake recorded by the United States Geological Survey from 31 January to 7 February 2018.",
        path=path,
        column="event",
        coordinates=tuple(f"$.geometry.coordinates[{i}]" for i in range(3)),
        schema=EARTHQUAKE_SCHEMA if schema is None else schema,
        box=FIJI,
        box_title="Around Fiji",
        threshold=Threshold("$.properties.mag", 5.0),
        threshold_title="Magnitude 5 or more",
        shown=(
            DisplayColumn("magnitude", "$.properties.mag", "double"),
            DisplayColumn("place", "$.properties.place", "string"),
            DisplayColumn("depth (km)", "$.geometry.coordinates[2]", "double"),
        ),
        axes=("longitude", "latitude"),
    )


def describe_file(path: Path, column: str, coordinates: str, schema: str | None) -> Source:
    """Describe a user's file: ``coordinates`` are two or three paths, ``lon,lat`` or ``$.place.x,$.place.y``.

    Raises ``ValueError`` for an invalid path, column or schema, and ``OSError`` if the file does not exist.
    """
    if not path.is_file():
        code = errno.EISDIR if path.is_dir() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(path))
    check_column(column)
    check_schema(schema)
    paths = tuple(_path(part.strip()) for part in coordinates.split(","))
    if len(paths) not in (2, 3):
        raise ValueError("the geometry requires two or three paths, as in lon,lat or $.at.x,$.at.y,$.at.z")
    return Source(
        title=path.name,
        about=f"Each line of {path.name} as a VARIANT {column}, its point from {', '.join(paths)}.",
        path=path,
        column=column,
        coordinates=paths,
        schema=schema,
        axes=(paths[0].removeprefix("$."), paths[1].removeprefix("$.")),
    )


def check_column(name: str) -> None:
    """Raise ``ValueError`` if the VARIANT column cannot have this name."""
    if not name.strip():
        raise ValueError("the VARIANT column must have a name")
    if name.lower() == GEOMETRY or name.startswith("_pqext"):
        used = f"the geometry is called {GEOMETRY}" if name.lower() == GEOMETRY else "names with _pqext are reserved"
        raise ValueError(f"{used}: choose another name for the VARIANT column than {name!r}")


def check_schema(schema: str | None) -> None:
    """Raise ``ValueError`` if the schema cannot be parsed or is "infer", which is always written. None is accepted."""
    if schema is None:
        return
    if schema.strip().lower() == "infer":
        raise ValueError("a file with the inferred schema is always written: omit the schema")
    shredding_schema(schema)


def _path(text: str) -> str:
    return format_path(parse(text if text.startswith("$") else f"$.{text}"))


def row_group_rows(path: Path) -> int:
    """Return the number of rows per row group, for about :data:`ROW_GROUPS` row groups or more in a large file."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    lines += last != b"\n"
    return max(1, min(MAX_ROW_GROUP_ROWS, -(-lines // ROW_GROUPS)))
