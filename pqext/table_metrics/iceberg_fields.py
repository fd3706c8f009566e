"""The columns of an Iceberg table in a Parquet file: ids, names and types.

Ids come from the file where it has any. They come from the table's schema, by names, or else are given as a new table
with the file's columns would give them: all fields of a struct before those within them.

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
    """A column with values of its own: a primitive or a variant.

    ``name`` is Iceberg's (``points.element.x``), ``stored`` the type of the file's values, ``type`` that of the table;
    either is ``None`` where Iceberg has none for them.
    """

    id: int
    name: str
    node: SchemaNode
    stored: str | None
    type: str | None

    @property
    def is_repeated(self) -> bool:
        """Does it lie within a list or a map?"""
        return self.node.max_repetition_level > 0


@dataclass(slots=True)
class _Field:
    """A field of the file in Iceberg's terms, with its id once that is known."""

    name: str
    shape: Shape
    id: int | None
    below: list[_Field] = field(default_factory=list)


def fields_of(file: ParquetFile, schema: Any = None) -> list[TableField]:
    """The primitive and variant columns of ``file`` that belong to a table with ``schema``, or to any.

    ``schema`` is a pyiceberg ``Schema`` or the JSON form of one. Raises ``TypeError`` and ``ValueError`` when it is
    neither, ``CorruptFileError`` where two columns of the file have one id.
    """
    table = None if schema is None else _table(schema)
    top = [_field(shape.of(node), node.name) for node in file.schema.root.children]
    if not any(one.id is not None for one in _walk(top)):
        if table is None:
            _number(top, count(1))
        else:
            _name(top, table["fields"])
    types = None if table is None else dict(_types(table, 0))
    found: dict[int, TableField] = {}
    for name, one in _named(top, ""):
        if one.id is None or one.below or (types is not None and one.id not in types):
            continue
        stored = _stored(one.shape)
        made = TableField(one.id, name, one.shape.node, stored, stored if types is None else types[one.id])
        if one.id in found:
            message = f"columns {found[one.id].name!r} and {name!r} both have field id {one.id}"
            raise CorruptFileError(message, path=file.path, column=one.shape.node.dotted)
        found[one.id] = made
    return sorted(found.values(), key=lambda one: one.id)


def _field(of: Shape, name: str) -> _Field:
    return _Field(name, of, of.node.field_id, [_field(below, called) for called, below in _below(of)])


def _below(of: Shape) -> list[tuple[str, Shape]]:
    if isinstance(of, ListShape):
        entries = of.element
        if of.is_map and isinstance(entries, GroupShape) and len(entries.children) == 2:
            return [("key", entries.children[0]), ("value", entries.children[1])]
        return [("element", entries)]
    if isinstance(of, GroupShape) and of.node.logical_name != "VARIANT":
        return [(child.node.name, child) for child in of.children]
    return []


def _stored(of: Shape) -> str | None:
    if not isinstance(of, LeafShape):
        return "variant" if of.node.logical_name == "VARIANT" else None
    logical = of.node.leaf_type.member
    return logical.lower() if logical in ("GEOMETRY", "GEOGRAPHY") else iceberg_type(of.node.leaf_type)


def _walk(fields: Sequence[_Field]) -> Iterator[_Field]:
    for one in fields:
        yield one
        yield from _walk(one.below)


def _named(fields: Sequence[_Field], above: str) -> Iterator[tuple[str, _Field]]:
    for one in fields:
        name = f"{above}.{one.name}" if above else one.name
        yield name, one
        yield from _named(one.below, name)


def _number(fields: Sequence[_Field], ids: Iterator[int]) -> None:
    for one in fields:
        one.id = next(ids)
    for one in fields:
        _number(one.below, ids)


def _name(fields: Sequence[_Field], told: Sequence[Mapping[str, Any]]) -> None:
    by_name = {one["name"]: one for one in told}
    for one in fields:
        known = by_name.get(one.name)
        if known is not None:
            one.id = known["id"]
            _name(one.below, _members(known["type"]))


def _members(type: Any) -> list[Mapping[str, Any]]:
    """The fields below a type of a schema, with their ids, names and types."""
    if not isinstance(type, Mapping):
        return []
    if type["type"] == "struct":
        return list(type["fields"])
    if type["type"] == "list":
        return [{"id": type["element-id"], "name": "element", "type": type["element"]}]
    if type["type"] == "map":
        key = {"id": type["key-id"], "name": "key", "type": type["key"]}
        return [key, {"id": type["value-id"], "name": "value", "type": type["value"]}]
    raise ValueError(f"{type['type']!r} is no nested type of Iceberg")


def _types(type: Any, depth: int) -> Iterator[tuple[int, str | None]]:
    """The types of all primitive fields by id."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema nests deeper than {MAX_DEPTH} levels")
    for one in _members(type):
        held = one["type"]
        if not isinstance(one["name"], str) or not isinstance(one["id"], int):
            raise TypeError("a field has a name that is text and an id that is a number")
        yield one["id"], held.split("(")[0] if _is_geospatial(held) else held if isinstance(held, str) else None
        yield from _types(held, depth + 1)


def _is_geospatial(type: Any) -> bool:
    return isinstance(type, str) and type.startswith(("geometry", "geography"))


def _table(schema: Any) -> Mapping[str, Any]:
    """The JSON form of a schema as Python objects."""
    if hasattr(schema, "model_dump_json"):
        schema = schema.model_dump_json()
    if isinstance(schema, str | bytes):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the schema is no JSON: {error}") from None
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema is a pyiceberg Schema or its JSON form, not {type(schema).__name__}")
    try:
        if schema["type"] != "struct":
            raise ValueError("a table's schema is of type struct")
        list(_types(schema, 0))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not the JSON form of an Iceberg schema: {error!r}") from None
    return schema
