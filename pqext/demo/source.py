"""Input of the demo: the bundled earthquakes, or a user's JSON lines, which are checked before Spark starts."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.base.text import shorten
from pqext.core.io.sink import Sink
from pqext.examples import earthquakes
from pqext.report.model import Box
from pqext.variant.access.path import format_path, parse
from pqext.variant.json.parser import parse_json_lines
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
MAX_BYTES = 64 << 20
"""Maximum number of bytes of the input to check; Spark's tasks check the rest."""
BLOCK_BYTES = 8 << 20
_MAX_LINE_BYTES = 128 << 20
_EXAMPLES = 200
_MAX_PATHS = 1000
_COMPRESSED = (".gz", ".bz2", ".zst", ".zstd", ".lz4", ".xz", ".snappy", ".zip")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Condition on a number: its path in the VARIANT column, and the minimum that matches."""

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


def write_example(folder: Path, schema: str | None = None) -> Source:
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
    paths = tuple(_normalize_path(part.strip()) for part in coordinates.split(","))
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
        raise ValueError(f"{used}: choose a name for the VARIANT column other than {name!r}")


def check_schema(schema: str | None) -> None:
    """Raise ``ValueError`` if the schema cannot be parsed or is "infer". None is accepted.

    The demo writes a file with the inferred schema in any case.
    """
    if schema is None:
        return
    if schema.strip().lower() == "infer":
        raise ValueError("a file with the inferred schema is always written; omit the schema, or pass another schema")
    shredding_schema(schema)


def _normalize_path(text: str) -> str:
    return format_path(parse(text if text.startswith("$") else f"$.{text}"))


def row_group_rows(path: Path) -> int:
    """Return the number of rows per row group that divides a file into about :data:`ROW_GROUPS` row groups.

    A large file is divided into more row groups.
    """
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    lines += last != b"\n"
    return max(1, min(MAX_ROW_GROUP_ROWS, -(-lines // ROW_GROUPS)))


def check(source: Source, on_error: Literal["raise", "null"] = "raise") -> None:
    """Check that the first :data:`MAX_BYTES` of the input are JSON lines with numbers at the coordinates.

    Raises ``VariantError`` with file, line and reason for a line that is not JSON, unless ``on_error`` is ``"null"``.
    Raises ``ValueError`` if the complete input has no rows, or no rows with coordinates.
    """
    if source.path.name.lower().endswith(_COMPRESSED):
        raise UnsupportedError(f"{source.path} is compressed; decompress it first", feature="compressed JSON lines")
    result = np.zeros(len(source.coordinates), np.int64)
    rows = located = seen = 0
    line = 1
    examples: list[Any] = []
    for block in _blocks(source.path):
        values, faults = parse_json_lines(block, on_error="null", duplicate_keys="error", base_line=line)
        if faults and on_error == "raise":
            fault = faults[0]
            raise VariantError(f"{source.path}, line {fault.line}, byte {fault.offset}: {fault.reason}")
        known = [_find_numbers(values, path) for path in source.coordinates]
        result += [np.count_nonzero(item) for item in known]
        located += int(np.count_nonzero(known[0] & known[1]))
        examples += map(json.loads, variant.to_json(values.drop_null().slice(0, _EXAMPLES - len(examples))).to_pylist())
        rows += len(values)
        line += block.count(b"\n")
        seen += len(block)
    if seen < source.path.stat().st_size - len(_BYTE_ORDER_MARK):
        return
    if not rows:
        raise ValueError(f"{source.path} contains no JSON lines")
    for path, count in zip(source.coordinates, result, strict=True):
        if not count:
            raise ValueError(f"no line of {source.path} has a number at {_shorten(path)}{_advice(path, examples)}")
    if not located:
        both = " and ".join(map(_shorten, source.coordinates[:2]))
        raise ValueError(f"no line of {source.path} has numbers at both {both}")


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield blocks of complete lines from the beginning of the file."""
    with path.open("rb") as file:
        if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            file.seek(0)
        while file.tell() < MAX_BYTES and (block := file.read(BLOCK_BYTES)):
            rest = b"" if block.endswith(b"\n") else file.readline(_MAX_LINE_BYTES)
            if len(rest) == _MAX_LINE_BYTES:
                return  # the job reports the long line
            yield block + rest


def _find_numbers(values: pa.Array, path: str) -> np.ndarray:
    """Return a mask of the values with a finite number at ``path``."""
    numbers = variant.get(values, path, "double").to_numpy(zero_copy_only=False)
    return np.asarray(np.isfinite(numbers.astype(float)))


def _advice(path: str, examples: list[Any]) -> str:
    """Describe the value at a path, or suggest a similar path. List the paths of numbers."""
    if examples and not any(isinstance(example, dict | list) for example in examples):
        return "; a line should be an object, such as {...}: " + shorten(json.dumps(examples[0]), 60)
    values = [value for element in examples if (value := _value_at(element, parse(path))) is not None]
    if values:
        return f"; the value there is {shorten(json.dumps(values[0], ensure_ascii=False), 60)}"
    paths: dict[str, None] = {}
    for entry in examples:
        paths.update(dict.fromkeys(_number_paths(entry)))
    names = [_shorten(path_) for path_ in paths]
    meant = did_you_mean(_shorten(path), names)
    if not meant:
        last = parse(path)[-1:]
        meant = next((f"; did you mean {_shorten(path_)!r}?" for path_ in paths if parse(path_)[-1:] == last), "")
    if not names:
        fields = dict.fromkeys(name for item in examples if isinstance(item, dict) for name in item)
        return f"; its fields are {join_names(fields)}, none of them a number" if fields else ""
    lines = " The input has a single line: JSON lines have an object on each." if len(examples) == 1 else ""
    return f"{meant or ';'} {'T' if meant else 't'}here are numbers at {join_names(names)}{'.' if lines else ''}{lines}"


def _value_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _number_paths(document: Any) -> list[str]:
    """Return the paths of the numbers in a document. Only the first three elements of each array are included."""
    results: list[str] = []
    below: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while below and len(results) < _MAX_PATHS:
        steps, value = below.pop()
        if isinstance(value, dict):
            below += [((*steps, name), child) for name, child in reversed(value.items())]
        elif isinstance(value, list):
            below += [((*steps, i), child) for i, child in reversed([*enumerate(value[:3])])]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            results.append(format_path(steps))
    return results


def _shorten(path: str) -> str:
    return path.removeprefix("$.")
