"""Check the input before Spark starts: its lines must be JSON and contain the requested coordinates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.base.text import shorten
from pqext.demo.source import Source
from pqext.variant.access.path import format_path, parse
from pqext.variant.json.parse import parse_json_lines

MAX_BYTES = 64 << 20
"""Maximum number of bytes of the input to check; Spark's tasks check the rest."""
BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = 128 << 20
EXAMPLES = 200
_MAX_PATHS = 1000
_COMPRESSED = (".gz", ".bz2", ".zst", ".zstd", ".lz4", ".xz", ".snappy", ".zip")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def check(source: Source, on_error: Literal["raise", "null"] = "raise") -> None:
    """Check the beginning of the input, or all of it if it is small.

    Raises ``VariantError`` with file, line and reason for a line that is not JSON, unless ``on_error`` is ``"null"``.
    Raises ``ValueError`` if the complete input has no rows, or no rows with coordinates.
    """
    if source.path.name.lower().endswith(_COMPRESSED):
        raise UnsupportedError(f"decompress {source.path} first", feature="compressed JSON lines")
    result = np.zeros(len(source.coordinates), np.int64)
    rows = located = seen = 0
    line = 1
    examples: list[Any] = []
    for block in _blocks(source.path):
        values, faults = parse_json_lines(block, on_error="null", duplicate_keys="error", base_line=line)
        if faults and on_error == "raise":
            fault = faults[0]
            raise VariantError(f"{source.path}, line {fault.line}, byte {fault.offset}: {fault.reason}")
        known = [_is_number(values, path) for path in source.coordinates]
        result += [np.count_nonzero(item) for item in known]
        located += int(np.count_nonzero(known[0] & known[1]))
        examples += map(json.loads, variant.to_json(values.drop_null().slice(0, EXAMPLES - len(examples))).to_pylist())
        rows += len(values)
        line += block.count(b"\n")
        seen += len(block)
    if seen < source.path.stat().st_size - len(_BYTE_ORDER_MARK):
        return
    if not rows:
        raise ValueError(f"{source.path} has no lines of JSON")
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
            rest = b"" if block.endswith(b"\n") else file.readline(MAX_LINE_BYTES)
            if len(rest) == MAX_LINE_BYTES:
                return  # the job reports the long line
            yield block + rest


def _is_number(values: pa.Array, path: str) -> np.ndarray:
    numbers = variant.get(values, path, "double").to_numpy(zero_copy_only=False)
    return np.asarray(np.isfinite(numbers.astype(float)))


def _advice(path: str, examples: list[Any]) -> str:
    """Describe the value at the path or suggest a similar path, and list the paths of numbers."""
    if examples and not any(isinstance(example, dict | list) for example in examples):
        return "; a line should be an object, such as {...}: " + shorten(json.dumps(examples[0]), 60)
    values = [value for element in examples if (value := _value_at(element, parse(path))) is not None]
    if values:
        return f"; the value there is {shorten(json.dumps(values[0], ensure_ascii=False), 60)}"
    paths: dict[str, None] = {}
    for entry in examples:
        paths.update(dict.fromkeys(_numbers(entry)))
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


def _numbers(document: Any) -> list[str]:
    """Return the paths of the numbers in a document, with the first three elements of each array."""
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
