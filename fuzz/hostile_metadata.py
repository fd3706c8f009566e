"""Structural changes of Parquet metadata: fields of any structure set to drawn values."""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from typing import Any

from hostile_calls import DOUBLES, integer, word

from pqext.core.format.metadata import FileMetaData, KeyValue, LogicalType, RowGroup, SchemaElement
from pqext.core.format.thrift import Field, Struct

BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
MOST_ITEMS = 1000
"""Length of lists of repeated items."""


def structures(root: Struct) -> list[Struct]:
    """Return a structure and all that it contains; lazy lists become lists."""
    result, remaining = [], [root]
    while remaining:
        struct = remaining.pop()
        result.append(struct)
        for field in struct.fields:
            value = getattr(struct, field.name)
            if isinstance(value, Struct):
                remaining.append(value)
            elif field.is_list and value is not None:
                items = list(value)
                setattr(struct, field.name, items)
                remaining += [item for item in items if isinstance(item, Struct)]
    return result


def change_struct(root: Struct, chance: random.Random, count: int) -> None:
    """Change ``count`` fields of a structure and of those within it."""
    nodes = structures(root)
    by_type: dict[type, list[Struct]] = {}
    for node in nodes:
        by_type.setdefault(type(node), []).append(node)
    types = sorted(by_type, key=lambda type: type.__name__)
    for _ in range(count):
        struct = chance.choice(by_type[chance.choice(types)])
        if struct.fields:
            field = chance.choice(struct.fields)
            setattr(struct, field.name, _value(struct, field, chance, by_type))


def _value(struct: Struct, field: Field, chance: random.Random, donors: dict[type, list[Struct]]) -> Any:
    now = getattr(struct, field.name)
    others = [getattr(other, field.name) for other in donors[type(struct)]]
    if chance.random() < 0.15:
        return chance.choice(others)
    if not field.required and (chance.random() < 0.1 or (struct.is_union and now is None)):
        return None
    if field.is_list:
        return _items(now, field, chance, donors)
    return _single(now, field.type, chance, donors)


def _items(
    now: Sequence[Any] | None, field: Field, chance: random.Random, donors: dict[type, list[Struct]]
) -> list[Any]:
    items = list(now or ())
    choice = chance.randrange(7)
    if choice == 0:
        return items[: chance.randrange(len(items) + 1)]
    if choice == 1:
        return items + items[:1] * chance.choice((1, 1, 3, MOST_ITEMS))
    if choice == 2:
        chance.shuffle(items)
        return items
    if choice == 3:
        return []
    if choice == 4:
        return (items * (MOST_ITEMS // max(len(items), 1)))[: chance.choice((2 * len(items), MOST_ITEMS))]
    item = _single(items[0] if items else None, field.type, chance, donors)
    if item is None:
        return items
    at = chance.randrange(len(items) + 1)
    return [*items[:at], item, *items[at + (choice == 5) :]]


def _single(now: Any, type: Any, chance: random.Random, donors: dict[type, list[Struct]]) -> Any:
    if isinstance(type, str):
        return _scalar(now, type, chance)
    if issubclass(type, enum.IntEnum):
        return chance.choice([*type, *type, len(type), -1, 99, integer(chance, 32)])
    if chance.random() < 0.5 and donors.get(type):
        return chance.choice(donors[type])
    return build(type, chance)


def _scalar(now: Any, type: str, chance: random.Random) -> Any:
    if type in BITS:
        bits = BITS[type]
        if now is None or chance.random() < 0.4:
            return integer(chance, bits)
        number = int(now) + chance.choice((-1, 1, -2, 4, int(now), 100, -100))
        return max(min(number, (1 << (bits - 1)) - 1), -(1 << (bits - 1)))
    if type == "bool":
        return not now
    if type == "double":
        return chance.choice(DOUBLES)
    if type == "string":
        text = (now or "") + word(chance) if chance.random() < 0.3 else word(chance)
        return text.encode("utf-8", "replace").decode()
    data = now or b""
    return chance.choice(
        (b"", b"\0", b"\xff" * 16, data[:-1], data + b"\0", bytes(len(data)), chance.randbytes(len(data)))
    )


def build(type: type[Struct], chance: random.Random, depth: int = 0) -> Struct | None:
    """Build a structure of drawn fields."""
    values: dict[str, Any] = {}
    fields = [chance.choice(type.fields)] if type.is_union and type.fields else type.fields
    for field in fields:
        if not field.required and not type.is_union and chance.random() < 0.5:
            continue
        if field.is_list:
            values[field.name] = []
        elif isinstance(field.type, str) or issubclass(field.type, enum.IntEnum):
            values[field.name] = _single(None, field.type, chance, {})
        elif depth < 4:
            values[field.name] = build(field.type, chance, depth + 1)
    try:
        return type(**values)
    except TypeError:
        return None


def change_schema(metadata: FileMetaData, chance: random.Random) -> None:
    """Change an element of the schema: its type, annotation, repetition, name or children."""
    elements: list[SchemaElement] = list(metadata.schema)
    metadata.schema = elements
    element = chance.choice(elements)
    choice = chance.randrange(8)
    if choice == 0:
        element.logicalType = build(LogicalType, chance)  # type: ignore[assignment]
    elif choice == 1:
        element.converted_type = chance.choice([None, *range(-1, 24)])
        element.precision, element.scale = integer(chance, 32), chance.choice((None, 0, 2, -1, 1 << 30))
    elif choice == 2:
        element.type = chance.choice([None, *range(9)])
        element.type_length = chance.choice((None, 0, 1, 5, 12, 16, -1, (1 << 31) - 1))
    elif choice == 3:
        element.repetition_type = chance.choice((None, 0, 1, 2, 3))
    elif choice == 4:
        element.num_children = chance.choice((None, 0, 1, 2, len(elements), -1, (1 << 31) - 1))
    elif choice == 5:
        element.name = chance.choice(elements).name
    elif choice == 6:
        elements.insert(chance.randrange(len(elements) + 1), chance.choice(elements))
    else:
        group = SchemaElement(name="n", repetition_type=chance.choice((0, 1, 2)), num_children=1)
        at = chance.randrange(1, len(elements) + 1)
        elements[at:at] = [group] * chance.choice((1, 2, 50, 120, 2000))


def repeat_row_groups(metadata: FileMetaData, chance: random.Random) -> None:
    """List the row groups of a file many times, so that they share column chunks."""
    groups: list[RowGroup] = list(metadata.row_groups)
    if not groups:
        return
    count = chance.choice((2, 20, 20, 200, 200, 2000))
    metadata.row_groups = (groups * (count // len(groups) + 1))[:count]
    metadata.num_rows = (
        sum(group.num_rows for group in metadata.row_groups) if chance.random() < 0.7 else integer(chance)
    )
    metadata.num_rows = max(min(metadata.num_rows, (1 << 63) - 1), -(1 << 63))


def change_key_values(metadata: FileMetaData, chance: random.Random) -> None:
    """Change the free-form metadata, which holds the schemas of Arrow, Spark, pandas and GeoParquet."""
    pairs = list(metadata.key_value_metadata or ())
    if pairs and chance.random() < 0.6:
        pair = chance.choice(pairs)
        text = pair.value or ""
        at = chance.randrange(len(text) + 1)
        new = word(chance).encode("utf-8", "replace").decode()
        pair.value = text[:at] + chance.choice((new, "", "9", "]", '"', "null")) + text[at + chance.choice((0, 1, 4)) :]
    else:
        keys = ("ARROW:schema", "geo", "pandas", "org.apache.spark.sql.parquet.row.metadata",
                "org.apache.spark.version",
                "org.apache.spark.legacyDateTime", "iceberg.schema", "parquet.avro.schema",
                "writer.time.zone")  # fmt: skip
        values = (None, "", "{}", "[]", "null", "1", '{"columns": 1}', '{"version": "1.1.0", "columns": {"p": null}}',
                  '{"primary_column": "p", "columns": {"p": {"encoding": "WKB", "bbox": ["a"], "covering": 1}}}',
                  "[" * 100_000, '{"type": "struct", "fields": [{"name": 1}]}', "/////w==")  # fmt: skip
        pairs.append(KeyValue(key=chance.choice(keys), value=chance.choice(values)))
    metadata.key_value_metadata = pairs
