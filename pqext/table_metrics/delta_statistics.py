"""Compute the statistics of a data file for the log of a Delta table.

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
from pqext.table_metrics.columns import ColumnSummary
from pqext.table_metrics.file_columns import FileColumns, open_file
from pqext.table_metrics.single_values import truncate_lower_text, truncate_upper_text_for_delta
from pqext.table_metrics.variant_bounds import encode, encode_z85

TEXT = 32
"""Maximum number of code points in bounds of strings."""

_MILLISECOND = 1_000_000
_LONG = range(-(1 << 63), 1 << 63)
_TEXTS = frozenset({"STRING", "ENUM", "JSON"})
Nested = dict[str, Any]


def json_value(leaf: LeafType, value: Value, *, upper: bool) -> Any:
    """Convert a bound to a JSON value, or to ``Decimal`` for decimals. Return None if Delta does not support the bound.

    ``value`` is in the representation used for comparisons. Strings are truncated to 32 code points, times to
    milliseconds, both outward. There are no bounds for binary, for types that Delta does not support (times of day,
    UUIDs), for infinite values, and for times outside the years 1 to 9999.
    """
    member = leaf.member
    if leaf.logical is not None and not member:
        return None
    if isinstance(value, bytes):
        if member not in _TEXTS:
            return None
        return truncate_upper_text_for_delta(value, TEXT) if upper else truncate_lower_text(value, TEXT)
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) and member != "FLOAT16" else None
    if isinstance(value, Decimal):
        return value if len(value.as_tuple().digits) <= 38 else None
    if member == "DATE":
        return _format_date(value)
    if member == "TIMESTAMP" or leaf.physical == Type.INT96:
        assert leaf.logical is None or leaf.logical.TIMESTAMP is not None
        utc = leaf.logical is None or (leaf.logical.TIMESTAMP is not None and leaf.logical.TIMESTAMP.isAdjustedToUTC)
        return _format_timestamp(value, utc, upper)
    return value if member in ("", "INTEGER") and value in _LONG else None


def _format_date(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    except OverflowError:
        return None


def _format_timestamp(nanoseconds: int, utc: bool, upper: bool) -> str | None:
    milliseconds = -(-nanoseconds // _MILLISECOND) if upper else nanoseconds // _MILLISECOND
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if utc else "")


def dumps(value: Any) -> str:
    """Serialise dictionaries, strings, numbers and decimals to JSON. Decimals retain all their digits.

    Characters are not escaped, because deltalake decodes escaped surrogate pairs incorrectly.

    >>> dumps({"price": Decimal("12345678901234567.10")})
    '{"price":12345678901234567.10}'
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{dumps(name)}:{dumps(member)}" for name, member in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class DeltaStatistics:
    """Statistics of one data file. Struct fields are nested mappings. Columns without statistics are omitted.

    Args:
        num_records: Number of rows.
        min_values: Lower bounds; decimals as ``Decimal``, dates and timestamps as text, variants as Z85.
        max_values: Upper bounds, with the same types.
        null_count: Number of nulls of each column except structs, lists and maps. Rows with a null parent struct count.
        tight_bounds: Whether every bound is a value of its column, except for truncated strings and timestamps.
        size: Size of the file in bytes.
    """

    num_records: int
    min_values: Mapping[str, Any]
    max_values: Mapping[str, Any]
    null_count: Mapping[str, Any]
    tight_bounds: bool
    size: int

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as a dictionary with the names of the Delta protocol. Decimals are ``Decimal``."""
        return {
            "numRecords": self.num_records, "minValues": self.min_values, "maxValues": self.max_values,
            "nullCount": self.null_count, "tightBounds": self.tight_bounds,
        }  # fmt: skip

    def to_json(self) -> str:
        """Return JSON text for the field ``stats`` of an ``add`` action. Decimals retain all their digits."""
        return dumps(self.to_dict())

    def add_action(
        self, path: str, modification_time: int, *, partition_values: Mapping[str, str | None] | None = None,
        data_change: bool = True,
    ) -> dict[str, Any]:
        """Build the ``add`` action that adds the file to the Delta log.

        Args:
            path: URI of the file relative to the table.
            modification_time: Time of the last change, in milliseconds since 1970.
            partition_values: Values of the partition columns.
            data_change: Whether the action changes the rows of the table.

        Returns:
            The action; ``json.dumps({"add": action})`` is a line of the log.
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

    By default, the statistics come from the footer and contain only facts that it proves. With ``exact``, all values
    are read, one run of rows at a time. Bounds are then tight, and columns without statistics in the footer also have
    bounds.

    A floating-point column has bounds only if it is known to have no NaN, because readers disagree on the order of NaN.
    A variant has bounds for its paths. Binary columns and geometries have only null counts, and columns within lists
    and maps have no statistics.

    Everyone who can read the table's log can read the statistics: exclude encrypted columns with sensitive bounds from
    ``columns``. A column whose key is missing has no bounds.

    Args:
        file: Path, URL, bytes or binary file, as for :func:`pqext.open`.
        exact: Whether to read all values.
        columns: Names of top-level columns, by default all. With column mapping, these are the physical names.
        limits: Limits of the reader.
        decryption: Keys of an encrypted file.
        filesystem: File system of the file, as for :func:`pqext.open`.
        storage_options: Options of the object store, as for :func:`pqext.open`.

    Returns:
        The statistics, which convert to JSON or an ``add`` action.

    Raises:
        KeyError: If a column does not exist.
        CorruptFileError: If pages are corrupt.
        VariantError: If a VARIANT column is corrupt.
        UnsupportedError: If two columns share a name, or the file is a ``_metadata`` file of other files.

    Example:
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
        statistics = _Statistics(FileColumns(opened, exact))
        for node in root.children:
            if columns is None or node.name in columns:
                statistics.add(shape.from_node(node))
        return DeltaStatistics(
            opened.num_rows, statistics.minimum, statistics.maximum, statistics.nulls, statistics.tight,
            opened.source.size,
        )  # fmt: skip


@dataclass(slots=True)
class _Statistics:
    """Builder of nested statistics, which adds one top-level column at a time."""

    columns: FileColumns
    minimum: Nested = field(default_factory=dict)
    maximum: Nested = field(default_factory=dict)
    nulls: Nested = field(default_factory=dict)
    tight: bool = True

    def add(self, top: Shape) -> None:
        """Add the statistics of a top-level column."""
        for column in _iter_columns(top):
            node, names = column.node, column.node.path
            counted = node if node.is_leaf else node.child("metadata")
            if counted is None or not counted.is_leaf:
                continue
            summary = self.columns.summary(counted)
            self._put(self.nulls, names, summary.null_count)
            if not node.is_leaf:
                paths = self.columns.paths(node)
                for into, upper in ((self.minimum, False), (self.maximum, True)):
                    bound = encode(paths, upper=upper)
                    self._put(into, names, None if bound is None else encode_z85(bound))
                self.tight = self.tight and (self.columns.exact or not paths)
            elif summary.nan_count == 0 and node.logical_name not in ("GEOMETRY", "GEOGRAPHY"):
                self._add_bounds(node, summary)

    def _add_bounds(self, leaf: SchemaNode, summary: ColumnSummary) -> None:
        for into, bound, upper in ((self.minimum, summary.minimum, False), (self.maximum, summary.maximum, True)):
            converted = None if bound is None else json_value(leaf.leaf_type, bound, upper=upper)
            if converted is not None:
                self._put(into, leaf.path, converted)
                self.tight = self.tight and summary.tight

    def _put(self, target: Nested, path: tuple[str, ...], value: Any) -> None:
        if value is None:
            return
        for name in path[:-1]:
            target = target.setdefault(name, {})
        if not isinstance(target, dict) or path[-1] in target:
            raise UnsupportedError(
                f"two columns are named {'.'.join(path)!r}, which Delta statistics do not support; rename either "
                "column",
                feature="repeated column names", path=self.columns.file.path, column=".".join(path),
            )
        target[path[-1]] = value


def _iter_columns(column: Shape) -> Iterator[Shape]:
    """Yield the primitive and variant columns at or below a column, except within lists and maps."""
    if isinstance(column, ListShape) or column.node.max_repetition_level:
        return
    if isinstance(column, GroupShape) and column.node.logical_name != "VARIANT":
        for child in column.children:
            yield from _iter_columns(child)
    else:
        yield column
