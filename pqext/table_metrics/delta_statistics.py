"""The statistics of a data file that the log of a Delta table holds.

Spec: Delta Transaction Log Protocol, "Per-file Statistics" and "Statistics for Variant Columns".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pqext.core.base.errors import ErrorPathContext, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import column_list_hint, unknown_column_message
from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.options.encryption import FileDecryption
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import GroupShape, ListShape, Shape
from pqext.core.schema.types.logical import LeafType
from pqext.table_metrics import z85
from pqext.table_metrics.columns import ColumnSummary
from pqext.table_metrics.file_columns import Known, open_file
from pqext.table_metrics.truncation import lower_text, upper_text_with_tie_breaker
from pqext.table_metrics.variant_bounds import encode

TEXT = 32
"""Code points to which text is cut."""

_MILLISECOND = 1_000_000
_LONG = range(-(1 << 63), 1 << 63)
_TEXTS = frozenset({"STRING", "ENUM", "JSON"})
Nested = dict[str, Any]


def json_value(leaf: LeafType, value: Value, *, upper: bool) -> Any:
    """A bound of a column as JSON has it, decimals as ``Decimal``; ``None`` where Delta has none for it.

    ``value`` is in the form in which values compare. Text is cut to 32 code points, times to milliseconds, both
    outward. There are no bounds of binary, of types that Delta lacks (times of the day, UUIDs), infinite ones, and
    times outside the years 1 to 9999.
    """
    member = leaf.member
    if leaf.logical is not None and not member:
        return None
    if isinstance(value, bytes):
        if member not in _TEXTS:
            return None
        return upper_text_with_tie_breaker(value, TEXT) if upper else lower_text(value, TEXT)
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) and member != "FLOAT16" else None
    if isinstance(value, Decimal):
        return value if len(value.as_tuple().digits) <= 38 else None
    if member == "DATE":
        return _date(value)
    if member == "TIMESTAMP" or leaf.physical == Type.INT96:
        assert leaf.logical is None or leaf.logical.TIMESTAMP is not None
        utc = leaf.logical is None or (leaf.logical.TIMESTAMP is not None and leaf.logical.TIMESTAMP.isAdjustedToUTC)
        return _timestamp(value, utc, upper)
    return value if member in ("", "INTEGER") and value in _LONG else None


def _date(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    except OverflowError:
        return None


def _timestamp(nanoseconds: int, utc: bool, upper: bool) -> str | None:
    milliseconds = -(-nanoseconds // _MILLISECOND) if upper else nanoseconds // _MILLISECOND
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if utc else "")


def dumps(value: Any) -> str:
    """JSON text of dictionaries, text, numbers and decimals, which keep all their digits.

    >>> dumps({"price": Decimal("12345678901234567.10")})
    '{"price":12345678901234567.10}'
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{dumps(one)}" for name, one in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class DeltaStatistics:
    """The statistics of one data file. Columns nest as structs do and are left out where nothing is known.

    num_records: Rows.
    min_values: Lower bounds; decimals as ``Decimal``, dates and timestamps as text, variants as Z85.
    max_values: Upper bounds likewise.
    null_count: Nulls of each column that is no struct, list or map; null where a struct around it is null.
    tight_bounds: Is every bound the least or the greatest value, but for text and timestamps that are cut? Otherwise
        some are wider.
    size: Bytes of the whole file.
    """

    num_records: int
    min_values: Mapping[str, Any]
    max_values: Mapping[str, Any]
    null_count: Mapping[str, Any]
    tight_bounds: bool
    size: int

    def to_dict(self) -> dict[str, Any]:
        """The statistics under their names in the protocol; decimals are ``Decimal``."""
        return {
            "numRecords": self.num_records, "minValues": self.min_values, "maxValues": self.max_values,
            "nullCount": self.null_count, "tightBounds": self.tight_bounds,
        }  # fmt: skip

    def to_json(self) -> str:
        """The text that ``stats`` of an ``add`` action holds; decimals keep all their digits."""
        return dumps(self.to_dict())

    def add_action(
        self, path: str, modification_time: int, *, partition_values: Mapping[str, str | None] | None = None,
        data_change: bool = True,
    ) -> dict[str, Any]:
        """The ``add`` action of the log for a file at ``path``, changed ``modification_time`` ms after 1970 began.

        ``json.dumps({"add": action})`` is a line of the log. ``path`` is a URI relative to the table.
        """
        return {
            "path": path, "partitionValues": dict(partition_values or {}), "size": self.size,
            "modificationTime": modification_time, "dataChange": data_change, "stats": self.to_json(),
        }  # fmt: skip


def delta(
    file: Any,
    exact: bool = False,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DeltaStatistics:
    """Compute the statistics of a Parquet file for the log of a Delta table.

    ``file``, ``filesystem`` and ``storage_options`` are as for :func:`pqext.open`.

    By default the statistics come from the footer and hold only what it proves. With ``exact`` all values are read, one
    run of rows at a time: bounds are then tight, and columns without statistics in the footer have bounds too.

    A floating-point column has bounds only if it is known that no value is NaN, since readers disagree on its order. A
    variant has bounds of its paths. Binary columns and geometries have null counts only, and columns within lists and
    maps have no statistics.

    ``columns`` are names of top-level columns, all by default. In a table with column mapping these are the physical
    names, which the file has too.

    Everyone who can read the table's log can read the statistics: leave encrypted columns out of ``columns`` if their
    bounds tell too much. A column whose key is missing has no bounds.

    Raises ``KeyError`` for an unknown column; ``CorruptFileError`` or ``VariantError`` with file and column for damaged
    data; ``UnsupportedError`` if two columns have one name, and for a ``_metadata`` file of other files; and what
    :func:`pqext.open` raises.

    >>> import io, pyarrow as pa, pqext
    >>> sink = io.BytesIO()
    >>> pqext.write_table(pa.table({"n": [3, 5, None]}), sink)
    >>> delta(sink.getvalue()).to_json()
    '{"numRecords":3,"minValues":{"n":3},"maxValues":{"n":5},"nullCount":{"n":1},"tightBounds":true}'
    """
    if isinstance(columns, str):
        raise TypeError(column_list_hint(columns))
    with open_file(file, limits, decryption, filesystem, storage_options) as opened, ErrorPathContext(opened.path):
        root = opened.schema.root
        for name in columns or ():
            if root.child(name) is None:
                raise KeyError(unknown_column_message(name, root.child_names))
        made = _Statistics(Known(opened, exact))
        for node in root.children:
            if columns is None or node.name in columns:
                made.add(shape.of(node))
        return DeltaStatistics(
            opened.num_rows, made.minimum, made.maximum, made.nulls, made.tight, opened.source.size
        )


@dataclass(slots=True)
class _Statistics:
    """The nested statistics, filled a top-level column at a time."""

    known: Known
    minimum: Nested = field(default_factory=dict)
    maximum: Nested = field(default_factory=dict)
    nulls: Nested = field(default_factory=dict)
    tight: bool = True

    def add(self, top: Shape) -> None:
        """The statistics of what a top-level column holds."""
        for one in _columns(top):
            names = one.node.path
            counted = one.node if one.node.is_leaf else one.node.child("metadata")
            if counted is None or not counted.is_leaf:
                continue
            summary = self.known.summary(counted)
            self._put(self.nulls, names, summary.null_count)
            if not one.node.is_leaf:
                paths = self.known.paths(one.node)
                for into, upper in ((self.minimum, False), (self.maximum, True)):
                    bound = encode(paths, upper=upper)
                    self._put(into, names, None if bound is None else z85.encode(bound))
                self.tight = self.tight and (self.known.exact or not paths)
            elif summary.nan_count == 0 and one.node.logical_name not in ("GEOMETRY", "GEOGRAPHY"):
                self._bounds(one.node, summary)

    def _bounds(self, leaf: SchemaNode, summary: ColumnSummary) -> None:
        for into, bound, upper in ((self.minimum, summary.minimum, False), (self.maximum, summary.maximum, True)):
            shown = None if bound is None else json_value(leaf.leaf_type, bound, upper=upper)
            if shown is not None:
                self._put(into, leaf.path, shown)
                self.tight = self.tight and summary.tight

    def _put(self, into: Nested, path: tuple[str, ...], value: Any) -> None:
        if value is None:
            return
        for name in path[:-1]:
            into = into.setdefault(name, {})
        if not isinstance(into, dict) or path[-1] in into:
            raise UnsupportedError(
                f"two columns are called {'.'.join(path)!r}, which statistics of Delta cannot tell apart",
                feature="repeated column names", path=self.known.file.path, column=".".join(path),
            )
        into[path[-1]] = value


def _columns(of: Shape) -> Iterator[Shape]:
    """The primitive and variant columns at or below a column, none within lists and maps."""
    if isinstance(of, ListShape) or of.node.max_repetition_level:
        return
    if isinstance(of, GroupShape) and of.node.logical_name != "VARIANT":
        for child in of.children:
            yield from _columns(child)
    else:
        yield of
