"""Statistics of data files in the log of a Delta table.

Spec: Delta Transaction Log Protocol, "Per-file Statistics". Timestamps are truncated to milliseconds. Writers in Rust
store decimals as doubles, so bounds of decimals are widened by the rounding error of a double. If the type of a column
was widened from float to double, its bounds may have the precision of a float and are widened by the rounding error of
a float.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import GeospatialStatistics
from pqext.core.format.predicate import Bounds, Predicate, Value
from pqext.core.io.sources.locations import list_files, open_source
from pqext.core.read.reader import ParquetFile
from pqext.dataset.files.sources import source_name
from pqext.table_metrics.variant_bounds import decode_z85
from pqext.tables.delta.log_entries import COVERED
from pqext.tables.renaming import TableField

_MILLISECOND = 1_000_000
_ROUNDING = Decimal("1e-15")
_BASIC = re.compile("[^\U00010000-\U0010ffff]*")
"""The characters up to U+FFFF at the start of a text."""
_LOG_FILE = re.compile(r"(\d{20})\.(json|checkpoint(?:\..+)?\.parquet)")


@dataclass(frozen=True, slots=True)
class DeltaLogStatistics:
    """Delta log statistics of one file, read from row ``row`` of ``columns``."""

    columns: _LogColumns
    row: int

    @staticmethod
    def by_file(
        actions: pa.Table, names: Sequence[str], fields: Mapping[int | str, TableField], texts: VariantTexts,
        has_widened_types: bool,
    ) -> dict[str, DeltaLogStatistics]:
        """Return the statistics of each file by name. ``actions`` contains one ``add`` action per name."""
        columns = _LogColumns(actions, fields, texts, has_widened_types)
        return {name: DeltaLogStatistics(columns, row) for row, name in enumerate(names)}

    @property
    def num_rows(self) -> int | None:
        """Number of rows, including deleted ones."""
        rows: int | None = self.columns.num_rows[self.row]
        return rows

    def bounds(self, path: tuple[str, ...]) -> Bounds:
        """Return the bounds of a column."""
        return self.columns.bounds(path)[self.row]

    def variant_bounds(self, path: tuple[str, ...]) -> tuple[bytes | None, bytes | None]:
        """Return the lower and upper bound of a VARIANT column as bytes; None for an unknown bound."""
        return self.columns.variant_bounds(path)[self.row]

    def covers(self, columns: Collection[str]) -> bool:
        """Return whether the covering boxes of all ``columns`` were computed from the geometries in the file."""
        names = self.columns.covered[self.row]
        return names is not None and {*columns} <= {*names}

    def box(self, path: tuple[str, ...]) -> GeospatialStatistics | None:
        """Return None, because Delta logs have no geospatial statistics."""
        return None

    def may_contain(self, path: tuple[str, ...], predicate: Predicate) -> bool:
        """Return True, because Delta tables are not partitioned into buckets."""
        return True


@dataclass(frozen=True)
class _LogColumns:
    """Columns of the ``add`` actions in a table version. Columns are converted when a filter uses them."""

    actions: pa.Table
    fields: Mapping[int | str, TableField]
    texts: VariantTexts
    has_widened_types: bool
    """Whether a double may have been a float when a file was written."""
    _bounds: dict[tuple[str, ...], list[Bounds]] = field(default_factory=dict)
    _variant_bounds: dict[tuple[str, ...], list[tuple[bytes | None, bytes | None]]] = field(default_factory=dict)

    @cached_property
    def num_rows(self) -> list[int | None]:
        """Number of rows of each file."""
        rows: list[int | None] = self.actions["num_records"].to_pylist()
        return rows

    @cached_property
    def _paths(self) -> list[str]:
        """Path of each file, as stored in the log."""
        paths: list[str] = self.actions["path"].to_pylist()
        return paths

    def bounds(self, path: tuple[str, ...]) -> list[Bounds]:
        """Return the bounds of a column in each file."""
        bounds = self._bounds.get(path)
        if bounds is None:
            bounds = self._bounds[path] = self._read_bounds(path)
        return bounds

    def _read_bounds(self, path: tuple[str, ...]) -> list[Bounds]:
        stored = self._stored_path(path)
        low, high, nulls = (self._column(name, stored) for name in ("min", "max", "null_count"))
        count = self.actions.num_rows
        lows, highs = (
            [None] * count if bounds is None
            else _widen_floats(bounds, upper=upper) if self.has_widened_types and pa.types.is_float64(bounds.type)
            else _comparable(bounds, upper=upper)
            for bounds, upper in ((low, False), (high, True))
        )
        null_counts = [None] * count if nulls is None else map(_possible_count, nulls.to_pylist(), self.num_rows)
        has_nan = None if low is None or pa.types.is_floating(low.type) else False
        return [
            Bounds(minimum, maximum, null_count, rows, has_nan)
            for minimum, maximum, null_count, rows in zip(lows, highs, null_counts, self.num_rows, strict=True)
        ]

    def _stored_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of a table column in the statistics; empty if the column does not exist."""
        result, fields = [], self.fields
        for name in path:
            match = next(((key, field) for key, field in fields.items() if field.name == name), None)
            if match is None:
                return ()
            result.append(str(match[0]))
            fields = match[1].children
        return tuple(result)

    def _column(self, name: str, path: tuple[str, ...]) -> pa.Array | None:
        """Return the statistic ``name`` of a column for all files; None if the log does not contain the statistic."""
        if name not in self.actions.column_names:
            return None
        column = self.actions[name].combine_chunks()
        for step in path:
            if not pa.types.is_struct(column.type) or column.type.get_field_index(step) < 0:
                return None
            column = column.flatten()[column.type.get_field_index(step)]
        return None if pa.types.is_struct(column.type) else column

    @cached_property
    def covered(self) -> list[list[str] | None]:
        """Geometry columns whose boxes pqext computed, for each file; None if the log does not state them."""
        [columns] = json_members(self._texts, {(COVERED,): pa.list_(pa.string())})
        return columns

    @cached_property
    def _texts(self) -> list[str | None]:
        """Statistics of each file as JSON; None if unknown."""
        return [*map(self.texts.by_path.get, self._paths)]

    def variant_bounds(self, path: tuple[str, ...]) -> list[tuple[bytes | None, bytes | None]]:
        """Return the lower and upper bounds of a VARIANT column in each file; None for invalid bounds."""
        bounds = self._variant_bounds.get(path)
        if bounds is None:
            stored = self._stored_path(path)
            members = [(name, *stored) for name in ("minValues", "maxValues")] if stored else []
            texts = json_members(self._texts, dict.fromkeys(members, pa.string()))
            low, high = map(decode_texts, texts or [[None] * len(self._paths)] * 2)
            bounds = self._variant_bounds[path] = list(zip(low, high, strict=True))
        return bounds


def _possible_count(nulls: int | None, rows: int | None) -> int | None:
    """Return a null count; None if it is unknown or impossible in a file of ``rows`` rows."""
    return None if nulls is None or rows is None or not 0 <= nulls <= rows else nulls


def json_members(texts: Sequence[str | None], members: Mapping[tuple[str, ...], pa.DataType]) -> list[list[Any]]:
    """Return the members at some paths of each JSON object in ``texts``, as one list for each path.

    ``members`` maps paths that begin with different names to strings or lists of strings. A member is None if it is
    missing or of another type, and if the text is None or invalid. Lists with other items than strings are None.
    """
    parsed = _parse_together(texts, members) if members else None
    if parsed is not None:
        return parsed
    objects = [_parse_text(text) for text in texts]
    return [[_member(value, path, type) for value in objects] for path, type in members.items()]


def _parse_together(
    texts: Sequence[str | None], members: Mapping[tuple[str, ...], pa.DataType]
) -> list[list[Any]] | None:
    """Return the result of :func:`json_members`; None if a text is invalid or a member is of another type."""
    from pyarrow import json as arrow_json

    lines = [text or "{}" for text in texts]
    if not lines or not all(line.startswith("{") for line in lines):
        return None
    fields = [reduce(_nest, reversed(path[:-1]), pa.field(path[-1], type)) for path, type in members.items()]
    block = max(1 << 20, 8 * max(map(len, lines)))  # two lines of characters of four bytes
    try:
        table = arrow_json.read_json(
            pa.BufferReader("\n".join(lines).encode()),
            arrow_json.ReadOptions(block_size=block),
            arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError):
        return None
    if table.num_rows != len(lines):  # a text is not one object
        return None
    values = [reduce(pc.struct_field, path[1:], table[path[0]]).to_pylist() for path in members]
    return [[None if isinstance(value, list) and None in value else value for value in column] for column in values]


def _nest(field: pa.Field, name: str) -> pa.Field:
    return pa.field(name, pa.struct([field]))


def _parse_text(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _member(value: Any, path: tuple[str, ...], type: pa.DataType) -> Any:
    """Return the member at ``path`` of a parsed JSON value; None if it does not exist or is not of ``type``."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if pa.types.is_list(type):
        return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None
    return value if isinstance(value, str) else None


def decode_texts(texts: Sequence[str | None]) -> list[bytes | None]:
    """Decode Z85 texts. The result contains None for None and for invalid texts."""
    known = [text for text in texts if text is not None]
    try:
        if any(len(text) % 5 for text in known):
            raise ValueError
        data, ends = decode_z85("".join(known)), accumulate(len(text) // 5 * 4 for text in known)
        parts = (data[start:end] for start, end in pairwise([0, *ends]))
        return [None if text is None else next(parts) for text in texts]
    except ValueError:
        return [None if text is None else _decode_text(text) for text in texts]


def _decode_text(text: str) -> bytes | None:
    try:
        return decode_z85(text)
    except ValueError:
        return None


def _comparable(values: pa.Array, *, upper: bool) -> list[Value | None]:
    """Convert bounds to comparison form, and widen them by the rounding error of the log."""
    types, type = pa.types, values.type
    if types.is_timestamp(type):
        margin = _MILLISECOND if upper else 0  # the log truncates to milliseconds
        stored = values.cast(pa.timestamp("us", type.tz)).cast(pa.int64()).to_pylist()
        return [None if value is None else value * 1_000 + margin for value in stored]
    if types.is_date(type):
        days: list[Value | None] = values.cast(pa.int32()).to_pylist()
        return days
    converted = values.to_pylist()
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return [None if value is None else _text_bound(value, upper=upper) for value in converted]
    if types.is_decimal(type):
        return [None if value is None else _widen(value, type.scale, upper=upper) for value in converted]
    if types.is_floating(type):
        return [None if value is None or value != value else value for value in converted]
    return converted if types.is_integer(type) or types.is_boolean(type) else [None] * len(converted)


def _widen_floats(values: pa.Array, *, upper: bool) -> list[Value | None]:
    """Widen bounds to the next 32-bit floats.

    The log contains the shortest decimal text of a float. Read as a double, it may differ from the float.
    """
    limit = np.float32(np.inf if upper else -np.inf)
    with np.errstate(over="ignore"):
        floats = values.fill_null(np.nan).to_numpy(zero_copy_only=False).astype(np.float32)
    outward = np.nextafter(floats, limit).astype(np.float64)
    return [None if value != value else value for value in outward.tolist()]


def _text_bound(value: str, *, upper: bool) -> bytes:
    """Encode a string bound as UTF-8, truncated before the first character beyond U+FFFF.

    deltalake decodes escaped characters beyond U+FFFF incorrectly, so their values are unknown.
    """
    start = _BASIC.match(value)
    assert start is not None
    if start.end() == len(value):
        return value.encode()
    return start[0].encode() + (b"\xff" if upper else b"")  # 0xff is greater than all bytes of UTF-8


def _widen(value: Decimal, scale: int, *, upper: bool) -> Decimal:
    """Widen a decimal bound by the rounding error of doubles if it has more than 15 digits."""
    if len(value.as_tuple().digits) <= 15:
        return value
    margin = abs(value) * _ROUNDING + Decimal(1).scaleb(-scale)
    return value + margin if upper else value - margin


@dataclass(frozen=True)
class VariantTexts:
    """File statistics from the JSON in the log. ``deltalake`` does not return the statistics of VARIANT columns.

    ``uri`` and ``version`` identify the version of the table.
    """

    uri: str
    version: int
    storage_options: Mapping[str, Any] | None

    @cached_property
    def by_path(self) -> dict[str, str]:
        """Statistics of each added file as JSON, by path in the log; empty if the log cannot be read.

        Files without statistics are missing.
        """
        try:
            return {path: text for path, text in self._texts() if isinstance(text, str)}
        except (OSError, ParquetError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the statistics of each ``add`` action, from the last checkpoint and later commits."""
        files = log_files(self.uri, self.storage_options)
        logs = [(int(match[1]), match[2], file) for file, match in files if int(match[1]) <= self.version]
        checkpoints = [number for number, type, _ in logs if type != "json"]
        first = max(checkpoints, default=-1)
        for number, type, file in sorted(logs, key=lambda log: (log[0], log[1] == "json")):
            if type != "json" and number == first:
                with ParquetFile(file) as checkpoint:
                    adds = checkpoint.read(["add.path", "add.stats"])["add"].combine_chunks()
                pairs = zip(*(column.to_pylist() for column in adds.flatten()), strict=True)
                yield from ((path, text) for path, text in pairs if path and text)
            elif type == "json" and number > first:
                with open_source(file) as source:
                    lines = bytes(source.read(0, source.size)).splitlines()
                for line in lines:
                    add = json.loads(line).get("add") if line.startswith(b'{"add"') or b'"add"' in line else None
                    if add and add.get("stats"):
                        yield add["path"], add["stats"]


def log_folder(table_uri: str) -> tuple[str, bool]:
    """Return the path or URL of a table's log, and whether the log is local."""
    uri = urlsplit(table_uri.rstrip("/") + "/_delta_log")
    path = unquote(uri.path)
    return (path, True) if uri.scheme == "file" else (f"{uri.scheme}://{uri.netloc}{path}", False)


def log_files(table_uri: str, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[Any, re.Match[str]]]:
    """Yield the commit and checkpoint files of a table, each with a regular expression match of version and type."""
    folder, is_local = log_folder(table_uri)
    if is_local:
        files: list[Any] = [os.path.join(folder, name) for name in os.listdir(folder)]
    else:
        files = list(list_files(folder, None, storage_options))
    for file in files:
        match = _LOG_FILE.fullmatch(source_name(file).rpartition("/")[2])
        if match is not None:
            yield file, match
