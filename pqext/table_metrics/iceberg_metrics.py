"""Compute the metrics of a data file for Iceberg manifests.

Spec: Apache Iceberg, "Data File Fields", "Bounds for Variant, Geometry, and Geography", Appendix D.

Ids of columns come from the file if it has any, otherwise from the table's schema, by name. If there is no schema, they
are assigned as in a new table with the file's columns: all fields of a struct before the fields within them (Apache
Iceberg, "Schemas" and "Column Projection").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from pqext.core.base.errors import CorruptFileError, ErrorPathContext
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.options.encryption import FileDecryption
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import is_float
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.table_metrics.columns import ColumnSummary, stored_bytes
from pqext.table_metrics.file_columns import FileColumns, open_file
from pqext.table_metrics.geo_bounds import encode_corner
from pqext.table_metrics.single_values import Mode, can_promote, iceberg_type, parse_mode, serialize, widen_uuid_bounds
from pqext.table_metrics.variant_bounds import encode

MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class TableField:
    """Primitive or variant column.

    ``name`` is its name in Iceberg (``points.element.x``), ``stored`` its type in the file and ``type`` its type in the
    table. Either type is None if Iceberg does not support it.
    """

    id: int
    name: str
    node: SchemaNode
    stored: str | None
    type: str | None

    @property
    def is_repeated(self) -> bool:
        """Whether the column is within a list or a map."""
        return self.node.max_repetition_level > 0


@dataclass(slots=True)
class _Field:
    """Field of the file as Iceberg models it. ``id`` is None until an id is assigned."""

    name: str
    shape: Shape
    id: int | None
    children: list[_Field] = field(default_factory=list)


def table_fields(file: ParquetFile, schema: Any = None) -> list[TableField]:
    """Return the primitive and variant columns of ``file``, or only columns in ``schema``, in ascending order of id.

    ``schema`` is a pyiceberg ``Schema`` or its JSON. Raises ``TypeError`` and ``ValueError`` for other values, and
    ``CorruptFileError`` if two columns of the file have the same id.
    """
    table = None if schema is None else _parse_schema(schema)
    top = [_create_field(shape.from_node(node), node.name) for node in file.schema.root.children]
    if not any(each.id is not None for each in _walk_fields(top)):
        if table is None:
            _assign_numbers(top, count(1))
        else:
            _assign_ids(top, table["fields"])
    types = None if table is None else dict(_iter_types(table, 0))
    by_id: dict[int, TableField] = {}
    for name, each in _iter_names(top, ""):
        if each.id is None or each.children or (types is not None and each.id not in types):
            continue
        stored = _stored_type(each.shape)
        column = TableField(each.id, name, each.shape.node, stored, stored if types is None else types[each.id])
        if each.id in by_id:
            message = f"columns {by_id[each.id].name!r} and {name!r} both have field id {each.id}"
            raise CorruptFileError(message, path=file.path, column=each.shape.node.dotted_path)
        by_id[each.id] = column
    return sorted(by_id.values(), key=lambda column: column.id)


def _create_field(column: Shape, name: str) -> _Field:
    return _Field(
        name, column, column.node.field_id, [_create_field(child, label) for label, child in _children(column)]
    )


def _children(column: Shape) -> list[tuple[str, Shape]]:
    if isinstance(column, ListShape):
        entries = column.element
        if column.is_map and isinstance(entries, GroupShape) and len(entries.children) == 2:
            return [("key", entries.children[0]), ("value", entries.children[1])]
        return [("element", entries)]
    if isinstance(column, GroupShape) and column.node.logical_name != "VARIANT":
        return [(child.node.name, child) for child in column.children]
    return []


def _stored_type(column: Shape) -> str | None:
    if not isinstance(column, LeafShape):
        return "variant" if column.node.logical_name == "VARIANT" else None
    logical = column.node.leaf_type.member
    return logical.lower() if logical in ("GEOMETRY", "GEOGRAPHY") else iceberg_type(column.node.leaf_type)


def _walk_fields(fields: Sequence[_Field]) -> Iterator[_Field]:
    for each in fields:
        yield each
        yield from _walk_fields(each.children)


def _iter_names(fields: Sequence[_Field], prefix: str) -> Iterator[tuple[str, _Field]]:
    for each in fields:
        name = f"{prefix}.{each.name}" if prefix else each.name
        yield name, each
        yield from _iter_names(each.children, name)


def _assign_numbers(fields: Sequence[_Field], ids: Iterator[int]) -> None:
    for each in fields:
        each.id = next(ids)
    for each in fields:
        _assign_numbers(each.children, ids)


def _assign_ids(fields: Sequence[_Field], members: Sequence[Mapping[str, Any]]) -> None:
    by_name = {member["name"]: member for member in members}
    for each in fields:
        member = by_name.get(each.name)
        if member is not None:
            each.id = member["id"]
            _assign_ids(each.children, _nested_fields(member["type"]))


def _nested_fields(type: Any) -> list[Mapping[str, Any]]:
    """Return the fields of a nested Iceberg type as mappings with id, name and type."""
    if not isinstance(type, Mapping):
        return []
    if type["type"] == "struct":
        return list(type["fields"])
    if type["type"] == "list":
        return [{"id": type["element-id"], "name": "element", "type": type["element"]}]
    if type["type"] == "map":
        key = {"id": type["key-id"], "name": "key", "type": type["key"]}
        return [key, {"id": type["value-id"], "name": "value", "type": type["value"]}]
    raise ValueError(f"{type['type']!r} is not a nested Iceberg type")


def _iter_types(type: Any, depth: int) -> Iterator[tuple[int, str | None]]:
    """Yield the id and the type of each field at any depth. The type of a nested field is None."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    for member in _nested_fields(type):
        member_type = member["type"]
        if not isinstance(member["name"], str) or not isinstance(member["id"], int):
            raise TypeError(
                f"a field must have a string name and an integer id, not {member['name']!r} and {member['id']!r}"
            )
        name = member_type if isinstance(member_type, str) else None
        yield member["id"], name.split("(")[0] if name is not None and _is_geospatial(name) else name
        yield from _iter_types(member_type, depth + 1)


def _is_geospatial(type: Any) -> bool:
    return isinstance(type, str) and type.startswith(("geometry", "geography"))


def _parse_schema(schema: Any) -> Mapping[str, Any]:
    """Parse and check a pyiceberg ``Schema`` or its JSON. Raises ``TypeError`` or ``ValueError`` if it is invalid."""
    if hasattr(schema, "model_dump_json"):
        schema = schema.model_dump_json()
    if isinstance(schema, str | bytes):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the schema is not JSON: {error}") from None
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema must be a pyiceberg Schema or its JSON, not {type(schema).__name__}")
    try:
        if schema["type"] != "struct":
            raise ValueError(f"the schema of a table must have type struct, not {schema['type']!r}")
        list(_iter_types(schema, 0))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the JSON is not an Iceberg schema: {error!r}") from None
    return schema


MODE = "truncate(16)"
"""Default metrics mode of columns, as in Iceberg."""


@dataclass(frozen=True, slots=True)
class IcebergMetrics:
    """Metrics of one data file. Maps have field ids as keys and omit unknown metrics.

    Args:
        record_count: Number of rows.
        file_size_in_bytes: Size of the file in bytes.
        column_sizes: Stored bytes of all pages of a column; for a variant, of all columns that store it.
        value_counts: Number of values of a column, including nulls and NaN. Within lists and maps, the number of
            Parquet entries, where an empty or null list has one.
        null_value_counts: Number of nulls. A variant null is not null.
        nan_value_counts: Number of NaN in ``float`` and ``double`` columns.
        lower_bounds: Serialised lower bounds of the values except nulls and NaN.
        upper_bounds: Serialised upper bounds of the values except nulls and NaN.
        split_offsets: Offsets of the row groups in bytes, ascending.
        names: Column names in Iceberg's notation, such as ``points.element.x``.
        types: Column types used to serialise bounds; None for types that Iceberg does not support.
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
        """Return the metrics as JSON-compatible dictionaries and lists, with hexadecimal bounds and string ids."""
        result: dict[str, Any] = {"record_count": self.record_count, "file_size_in_bytes": self.file_size_in_bytes}
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
            result[name] = {str(id): number for id, number in getattr(self, name).items()}
        for name in ("lower_bounds", "upper_bounds"):
            result[name] = {str(id): bound.hex() for id, bound in getattr(self, name).items()}
        result["split_offsets"] = list(self.split_offsets)
        result["columns"] = {str(id): {"name": name, "type": self.types[id]} for id, name in self.names.items()}
        return result

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_data_file(self, file_path: str, partition: Any = None, *, spec_id: int = 0) -> Any:
        """Build a pyiceberg ``DataFile``, ready for a manifest.

        Args:
            file_path: Location of the file.
            partition: pyiceberg ``Record`` of the partition values; None for an unpartitioned table.
            spec_id: Id of the table's partition spec.

        Raises:
            ImportError: If pyiceberg is not installed; ``pip install 'pqext[iceberg]'`` installs it.
        """
        try:
            from pyiceberg.manifest import DataFile, DataFileContent
            from pyiceberg.manifest import FileFormat as Format
            from pyiceberg.typedef import Record
        except ImportError:
            raise ImportError("to_data_file needs pyiceberg: pip install 'pqext[iceberg]'") from None
        data_file = DataFile.from_args(
            content=DataFileContent.DATA, file_path=file_path, file_format=Format.PARQUET,
            partition=Record() if partition is None else partition, record_count=self.record_count,
            file_size_in_bytes=self.file_size_in_bytes, column_sizes=dict(self.column_sizes),
            value_counts=dict(self.value_counts), null_value_counts=dict(self.null_value_counts),
            nan_value_counts=dict(self.nan_value_counts), lower_bounds=dict(self.lower_bounds),
            upper_bounds=dict(self.upper_bounds), split_offsets=list(self.split_offsets) or None,
        )
        data_file.spec_id = spec_id
        return data_file


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

    By default, the metrics come from the footer and contain only facts that it proves. A floating-point column has
    bounds only if the footer counts its NaN values, and a variant has bounds only for paths that are fully shredded.
    With ``exact``, all values are read, one run of rows at a time. Counts and bounds are then exact, and a variant has
    bounds for every path with values of one type, however they are stored.

    Field ids are read from the file. If the file has none, columns are matched with ``schema`` by name. Without
    ``schema``, they are numbered as pyiceberg numbers the columns of a new table. Columns within lists and maps have no
    bounds.

    Everyone who can read the table's metadata can read the metrics: use the mode ``none`` for encrypted columns with
    sensitive bounds. A column whose key is missing has no bounds.

    Args:
        file: Path, URL, bytes or binary file, as for :func:`pqext.open`.
        exact: Whether to read all values.
        schema: The table's schema, a pyiceberg ``Schema`` or its JSON. Only its columns have metrics, and their bounds
            are serialised with its types. Without it, all columns have metrics, with the types of the file.
        mode: Iceberg's metrics mode: ``none``, ``counts``, ``truncate(N)`` (bounds of strings have at most ``N`` code
            points, bounds of binary ``N`` bytes) or ``full``.
        modes: Modes of single columns by name.
        limits: Limits of the reader.
        decryption: Keys of an encrypted file.
        filesystem: File system of the file, as for :func:`pqext.open`.
        storage_options: Options of the object store, as for :func:`pqext.open`.

    Returns:
        The metrics, which convert to a pyiceberg ``DataFile``.

    Raises:
        ValueError: If a mode or column name is unknown.
        CorruptFileError: If pages are corrupt.
        VariantError: If a VARIANT column is corrupt.
        GeometryError: If a geometry is invalid.
        UnsupportedError: If the file is a ``_metadata`` file of other files.

    Example:
        >>> import io, pyarrow as pa, pqext
        >>> sink = io.BytesIO()
        >>> pqext.write_table(pa.table({"n": [3, 5, None]}), sink)
        >>> metrics = iceberg(sink.getvalue())
        >>> metrics.null_value_counts, metrics.lower_bounds
        ({1: 1}, {1: b'\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00'})
    """
    column_modes = {name: parse_mode(text) for name, text in (modes or {}).items()}
    default = parse_mode(mode)
    with open_file(file, limits, decryption, filesystem, storage_options) as opened, ErrorPathContext(opened.path):
        fields = table_fields(opened, schema)
        unknown = column_modes.keys() - {column.name for column in fields}
        if unknown:
            name, known = min(unknown), [column.name for column in fields]
            hint = did_you_mean(name, known) or f"; the columns are {join_names(known)}"
            raise ValueError(f"unknown column {name!r}{hint}")
        maps = _MetricMaps(FileColumns(opened, exact))
        for column in fields:
            maps.add(column, column_modes.get(column.name, default))
        return IcebergMetrics(
            opened.num_rows, opened.source.size, maps.sizes, maps.values, maps.nulls, maps.nans, maps.lower, maps.upper,
            split_offsets(opened), {column.id: column.name for column in fields},
            {column.id: column.type for column in fields},
        )  # fmt: skip


@dataclass(slots=True)
class _MetricMaps:
    """Builder of the maps of metrics, which adds one column at a time."""

    columns: FileColumns
    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    nans: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)

    def add(self, column: TableField, mode: Mode) -> None:
        """Add the metrics that ``mode`` enables for a column."""
        if mode.kind == "none":
            return
        sizes = [stored_bytes(self.columns.file, leaf) for leaf in column.node.leaves()]
        _put(self.sizes, column.id, None if None in sizes else sum(size for size in sizes if size is not None))
        counted = column.node if column.node.is_leaf else column.node.child("metadata")
        if counted is None or not counted.is_leaf:
            return
        summary = self.columns.summary(counted)
        _put(self.values, column.id, summary.num_values)
        _put(self.nulls, column.id, summary.null_count)
        if column.type in ("float", "double") and is_float(counted.leaf_type):
            _put(self.nans, column.id, summary.nan_count)
        if mode.kind == "bounds" and not column.is_repeated:
            low, high = self._bounds(column, summary, mode)
            _put(self.lower, column.id, low)
            _put(self.upper, column.id, high)

    def _bounds(self, column: TableField, summary: ColumnSummary, mode: Mode) -> _Sides:
        if column.stored is None or column.type is None or not can_promote(column.stored, column.type):
            return None, None
        if column.stored == "variant":
            paths = self.columns.paths(column.node)
            return encode(paths, upper=False, length=mode.length), encode(paths, upper=True, length=mode.length)
        if column.stored in ("geometry", "geography"):
            box = self.columns.box(column.node)
            return (None, None) if box is None else (encode_corner(box, upper=False), encode_corner(box, upper=True))
        if summary.nan_count is None:
            return None, None
        low, high = summary.minimum, summary.maximum
        if column.type == "uuid" and isinstance(low, bytes) and isinstance(high, bytes):
            return widen_uuid_bounds(low, high) or (None, None)
        return (
            None if low is None else serialize(column.type, low, mode, upper=False),
            None if high is None else serialize(column.type, high, mode, upper=True),
        )


_Sides = tuple[bytes | None, bytes | None]
_T = TypeVar("_T", int, bytes)


def _put(target: dict[int, _T], id: int, value: _T | None) -> None:
    if value is not None:
        target[id] = value


def split_offsets(file: ParquetFile) -> tuple[int, ...]:
    """Return the offsets of the non-empty row groups in ascending order; empty if any offset is missing or invalid."""
    offsets: set[int] = set()
    groups = [group for group in file.row_groups if group.num_rows and file.schema.leaves]
    for group in groups:
        chunk = group.chunk(0)
        at = group.metadata.file_offset if chunk.is_hidden else chunk.byte_range[0]
        if at is None or not 4 <= at < file.source.size:
            return ()
        offsets.add(at)
    return tuple(sorted(offsets)) if len(offsets) == len(groups) else ()
