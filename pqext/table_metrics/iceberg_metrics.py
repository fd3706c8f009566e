"""The metrics of a data file that Iceberg's manifests hold.

Spec: Apache Iceberg, "Data File Fields", "Bounds for Variant, Geometry, and Geography", Appendix D.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pqext.core.base.errors import ErrorPathContext
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import did_you_mean
from pqext.core.options.encryption import FileDecryption
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.orders import is_float
from pqext.table_metrics.columns import ColumnSummary, stored_bytes
from pqext.table_metrics.file_columns import Known, open_file
from pqext.table_metrics.geo_bounds import corner
from pqext.table_metrics.iceberg_fields import TableField, fields_of
from pqext.table_metrics.single_values import Mode, mode_of, serialize, suits, uuid_bounds
from pqext.table_metrics.variant_bounds import encode

MODE = "truncate(16)"
"""The metrics mode of columns for which none is chosen, Iceberg's own default."""


@dataclass(frozen=True, slots=True)
class IcebergMetrics:
    """The metrics of one data file. Maps are by field id and leave out what is not known.

    record_count: Rows.
    file_size_in_bytes: Bytes of the whole file.
    column_sizes: Bytes of all pages of a column as they are stored; of a variant, of all columns it is stored in.
    value_counts: Values of a column, nulls and NaN included; within lists and maps Parquet's entries, of which an
        empty or null list has one.
    null_value_counts: Nulls among them. A variant that holds a variant null is not null.
    nan_value_counts: NaN among them, of ``float`` and ``double`` columns.
    lower_bounds: Serialised values that no value of the column lies below, nulls and NaN aside.
    upper_bounds: Serialised values that no value of the column lies above, nulls and NaN aside.
    split_offsets: Where the row groups begin, in bytes, ascending.
    names: The columns by their names in Iceberg's form, such as ``points.element.x``.
    types: The types of the columns by which bounds are serialised; ``None`` where Iceberg has none.
    """

    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]
    names: Mapping[int, str]
    types: Mapping[int, str | None]

    def to_dict(self) -> dict[str, Any]:
        """The metrics as dictionaries, lists, text and numbers, fit for JSON: bounds in hex, field ids as text."""
        made: dict[str, Any] = {"record_count": self.record_count, "file_size_in_bytes": self.file_size_in_bytes}
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
            made[name] = {str(id): number for id, number in getattr(self, name).items()}
        for name in ("lower_bounds", "upper_bounds"):
            made[name] = {str(id): bound.hex() for id, bound in getattr(self, name).items()}
        made["split_offsets"] = list(self.split_offsets)
        made["columns"] = {str(id): {"name": name, "type": self.types[id]} for id, name in self.names.items()}
        return made

    def to_json(self, *, indent: int | None = None) -> str:
        """:meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_data_file(self, file_path: str, partition: Any = None, *, spec_id: int = 0) -> Any:
        """The pyiceberg ``DataFile`` of a file at ``file_path``, ready for a manifest.

        ``partition`` is the pyiceberg ``Record`` of its partition values by the table's partition spec ``spec_id``; of
        an unpartitioned table there are none. Raises
        ``ImportError`` without pyiceberg, which ``pip install 'pqext[iceberg]'`` installs.
        """
        try:
            from pyiceberg.manifest import DataFile, DataFileContent
            from pyiceberg.manifest import FileFormat as Format
            from pyiceberg.typedef import Record
        except ImportError:
            raise ImportError("to_data_file needs pyiceberg: pip install 'pqext[iceberg]'") from None
        made = DataFile.from_args(
            content=DataFileContent.DATA, file_path=file_path, file_format=Format.PARQUET,
            partition=Record() if partition is None else partition, record_count=self.record_count,
            file_size_in_bytes=self.file_size_in_bytes, column_sizes=dict(self.column_sizes),
            value_counts=dict(self.value_counts), null_value_counts=dict(self.null_value_counts),
            nan_value_counts=dict(self.nan_value_counts), lower_bounds=dict(self.lower_bounds),
            upper_bounds=dict(self.upper_bounds), split_offsets=list(self.split_offsets) or None,
        )
        made.spec_id = spec_id
        return made


def iceberg(
    file: Any,
    exact: bool = False,
    *,
    schema: Any = None,
    mode: str = MODE,
    modes: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> IcebergMetrics:
    """Compute the metrics of a Parquet file for the manifest of an Iceberg table, format version 1 to 3.

    ``file``, ``filesystem`` and ``storage_options`` are as for :func:`pqext.open`.

    By default the metrics come from the footer and hold only what it proves: a floating-point column has bounds only if
    the footer counts its NaN values, a variant only for paths that are fully shredded. With ``exact`` all values are
    read, one run of rows at a time. Counts and bounds are then those of the values, and a variant has bounds for every
    path whose values have one type, however they are stored.

    ``schema`` is the table's schema, a pyiceberg ``Schema`` or its JSON form. Only its columns have metrics, and their
    bounds are serialised by its types. Without it all columns have metrics, by the types of the file. Field ids are
    those of the file. If the file has none, columns are matched with ``schema`` by name; without ``schema`` they are
    numbered as pyiceberg numbers the columns of a new table.

    ``mode`` is Iceberg's metrics mode: ``none``, ``counts``, ``truncate(N)`` (bounds of text are cut to ``N`` code
    points, bounds of binary to ``N`` bytes) or ``full``. ``modes`` maps names of columns to other modes. Columns within
    lists and maps have no bounds.

    Everyone who can read the table's metadata can read the metrics: give encrypted columns the mode ``none`` if their
    bounds tell too much. A column whose key is missing has no bounds.

    Raises ``ValueError`` for an unknown mode or column name; ``CorruptFileError``, ``VariantError`` or
    ``GeometryError`` with file and column for damaged data; ``UnsupportedError`` for a ``_metadata`` file of other
    files; and what :func:`pqext.open` raises.

    >>> import io, pyarrow as pa, pqext
    >>> sink = io.BytesIO()
    >>> pqext.write_table(pa.table({"n": [3, 5, None]}), sink)
    >>> found = iceberg(sink.getvalue())
    >>> found.null_value_counts, found.lower_bounds
    ({1: 1}, {1: b'\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00'})
    """
    chosen = {name: mode_of(text) for name, text in (modes or {}).items()}
    default = mode_of(mode)
    with open_file(file, limits, decryption, filesystem, storage_options) as opened, ErrorPathContext(opened.path):
        fields = fields_of(opened, schema)
        unknown = chosen.keys() - {one.name for one in fields}
        if unknown:
            name = min(unknown)
            raise ValueError(f"there is no column {name!r}{did_you_mean(name, [one.name for one in fields])}")
        made = _Maps(Known(opened, exact))
        for one in fields:
            made.add(one, chosen.get(one.name, default))
        return IcebergMetrics(
            opened.num_rows, opened.source.size, made.sizes, made.values, made.nulls, made.nans, made.lower, made.upper,
            split_offsets(opened), {one.id: one.name for one in fields}, {one.id: one.type for one in fields},
        )


@dataclass(slots=True)
class _Maps:
    """The maps of metrics, filled a column at a time."""

    known: Known
    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    nans: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)

    def add(self, one: TableField, mode: Mode) -> None:
        """The metrics of a column as far as its mode wants them."""
        if mode.kind == "none":
            return
        sizes = [stored_bytes(self.known.file, leaf) for leaf in one.node.leaves()]
        _put(self.sizes, one.id, None if None in sizes else sum(size for size in sizes if size is not None))
        counted = one.node if one.node.is_leaf else one.node.child("metadata")
        if counted is None or not counted.is_leaf:
            return
        summary = self.known.summary(counted)
        _put(self.values, one.id, summary.num_values)
        _put(self.nulls, one.id, summary.null_count)
        if one.type in ("float", "double") and is_float(counted.leaf_type):
            _put(self.nans, one.id, summary.nan_count)
        if mode.kind == "bounds" and not one.is_repeated:
            low, high = self._bounds(one, summary, mode)
            _put(self.lower, one.id, low)
            _put(self.upper, one.id, high)

    def _bounds(self, one: TableField, summary: ColumnSummary, mode: Mode) -> _Sides:
        if one.stored is None or one.type is None or not suits(one.stored, one.type):
            return None, None
        if one.stored == "variant":
            paths = self.known.paths(one.node)
            return encode(paths, upper=False, length=mode.length), encode(paths, upper=True, length=mode.length)
        if one.stored in ("geometry", "geography"):
            box = self.known.box(one.node)
            return (None, None) if box is None else (corner(box, upper=False), corner(box, upper=True))
        if summary.nan_count is None:
            return None, None
        low, high = summary.minimum, summary.maximum
        if one.type == "uuid" and isinstance(low, bytes) and isinstance(high, bytes):
            return uuid_bounds(low, high) or (None, None)
        return (
            None if low is None else serialize(one.type, low, mode, upper=False),
            None if high is None else serialize(one.type, high, mode, upper=True),
        )


_Sides = tuple[bytes | None, bytes | None]
_T = TypeVar("_T", int, bytes)


def _put(into: dict[int, _T], id: int, value: _T | None) -> None:
    if value is not None:
        into[id] = value


def split_offsets(file: ParquetFile) -> tuple[int, ...]:
    """Where the row groups that have rows begin; nothing where the footer does not say it, or says what cannot be."""
    found: set[int] = set()
    groups = [group for group in file.row_groups if group.num_rows and file.schema.leaves]
    for group in groups:
        chunk = group.chunk(0)
        at = group.metadata.file_offset if chunk.is_hidden else chunk.byte_range[0]
        if at is None or not 4 <= at < file.source.size:
            return ()
        found.add(at)
    return tuple(sorted(found)) if len(found) == len(groups) else ()
