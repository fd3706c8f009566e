"""Resolve the columns of an Iceberg table in a Parquet file: ids, names and types.

Ids come from the file if it has any; else from the table's schema, by name; else they are assigned as in a new table
with the file's columns: all fields of a struct before the fields within them.

Spec: Apache Iceberg, "Schemas" and "Column Projection".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.table_metrics.single_values import iceberg_type

MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class TableField:
    """A primitive or variant column.

    ``name`` is Iceberg's (``points.element.x``), ``stored`` the type in the file, ``type`` the type in the table;
    either is ``None`` for types that Iceberg lacks.
    """

    id: int
    name: str
    node: SchemaNode
    stored: str | None
    type: str | None

    @property
    def is_repeated(self) -> bool:
        """Whether it is within a list or a map."""
        return self.node.max_repetition_level > 0


@dataclass(slots=True)
class _Field:
    """A field of the file in Iceberg's terms, with its id once assigned."""

    name: str
    shape: Shape
    id: int | None
    below: list[_Field] = field(default_factory=list)


def table_fields(file: ParquetFile, schema: Any = None) -> list[TableField]:
    """Return the primitive and variant columns of ``file`` that belong to a table with ``schema``; all without one.

    ``schema`` is a pyiceberg ``Schema`` or its JSON. Raises ``TypeError`` and ``ValueError`` for other values, and
    ``CorruptFileError`` if two columns of the file have the same id.
    """
    table = None if schema is None else _table(schema)
    top = [_field(shape.of(node), node.name) for node in file.schema.root.children]
    if not any(each.id is not None for each in _walk(top)):
        if table is None:
            _assign_numbers(top, count(1))
        else:
            _assign_ids(top, table["fields"])
    types = None if table is None else dict(_types(table, 0))
    by_id: dict[int, TableField] = {}
    for name, each in _with_names(top, ""):
        if each.id is None or each.below or (types is not None and each.id not in types):
            continue
        stored = _stored_type(each.shape)
        column = TableField(each.id, name, each.shape.node, stored, stored if types is None else types[each.id])
        if each.id in by_id:
            message = f"columns {by_id[each.id].name!r} and {name!r} both have field id {each.id}"
            raise CorruptFileError(message, path=file.path, column=each.shape.node.dotted)
        by_id[each.id] = column
    return sorted(by_id.values(), key=lambda column: column.id)


def _field(column: Shape, name: str) -> _Field:
    return _Field(name, column, column.node.field_id, [_field(child, label) for label, child in _children(column)])


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


def _walk(fields: Sequence[_Field]) -> Iterator[_Field]:
    for each in fields:
        yield each
        yield from _walk(each.below)


def _with_names(fields: Sequence[_Field], above: str) -> Iterator[tuple[str, _Field]]:
    for each in fields:
        name = f"{above}.{each.name}" if above else each.name
        yield name, each
        yield from _with_names(each.below, name)


def _assign_numbers(fields: Sequence[_Field], ids: Iterator[int]) -> None:
    for each in fields:
        each.id = next(ids)
    for each in fields:
        _assign_numbers(each.below, ids)


def _assign_ids(fields: Sequence[_Field], members: Sequence[Mapping[str, Any]]) -> None:
    by_name = {member["name"]: member for member in members}
    for each in fields:
        member = by_name.get(each.name)
        if member is not None:
            each.id = member["id"]
            _assign_ids(each.below, _members(member["type"]))


def _members(type: Any) -> list[Mapping[str, Any]]:
    """Return the fields of a nested type, with their ids, names and types."""
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


def _types(type: Any, depth: int) -> Iterator[tuple[int, str | None]]:
    """Yield the types of all primitive fields by id."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema nests deeper than {MAX_DEPTH} levels")
    for member in _members(type):
        member_type = member["type"]
        if not isinstance(member["name"], str) or not isinstance(member["id"], int):
            raise TypeError("the name of a field must be a string, and its id an integer")
        name = member_type if isinstance(member_type, str) else None
        yield member["id"], name.split("(")[0] if name is not None and _is_geospatial(name) else name
        yield from _types(member_type, depth + 1)


def _is_geospatial(type: Any) -> bool:
    return isinstance(type, str) and type.startswith(("geometry", "geography"))


def _table(schema: Any) -> Mapping[str, Any]:
    """Parse a schema to Python objects."""
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
            raise ValueError("the schema of a table must have type struct")
        list(_types(schema, 0))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the JSON of an Iceberg schema: {error!r}") from None
    return schema
