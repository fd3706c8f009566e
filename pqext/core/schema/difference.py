"""Describe differences between the schemas of two files: columns, types and storage."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.base.errors import ParquetError
from pqext.core.base.text import escape_text
from pqext.core.format.metadata import LogicalType, Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.core.schema.nodes import Schema, SchemaNode, display_type
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape

_SHOWN = 5
"""Maximum number of columns that are listed by name."""


def difference(first: Schema, other: Schema, label: str, *, lenient: bool = False) -> str | None:
    """Describe how ``other`` differs from ``first``. Return None if the rows of both files can be combined.

    ``label`` names ``first`` in the text. Names of roots are ignored. With ``lenient``, equivalent annotations, names
    within lists and maps, and field ids that only ``first`` has are ignored too.
    """
    first_names, other_names = first.root.child_names, other.root.child_names
    missing = [name for name in first_names if name not in other_names]
    extra = [name for name in other_names if name not in first_names]
    lines = []
    if missing:
        lines.append(f"{_columns(missing)} missing")
    if extra:
        lines.append(f"{_columns(extra)} not in {label}")
    if not lines and list(first_names) != list(other_names):
        return f"the columns are {_join_names(other_names)} instead of {_join_names(first_names)}"
    # Several columns may have the same name.
    pairs = zip(first.root.children, map(other.root.child, first_names) if lines else other.root.children, strict=True)
    shapes = ((shape.from_node(item), shape.from_node(same)) for item, same in pairs if same is not None)
    differences = (_describe_difference(*pair, lenient) for pair in shapes)
    unlike = [result for result in differences if result is not None]
    lines += unlike[:_SHOWN]
    if len(unlike) > _SHOWN:
        lines.append(f"{len(unlike) - _SHOWN} more columns differ")
    return "; ".join(lines) or None


def _columns(names: Sequence[str]) -> str:
    return f"column {_join_names(names)} is" if len(names) == 1 else f"columns {_join_names(names)} are"


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(escape_text(name)) for name in names[:_SHOWN]) + more


def _describe_difference(first: Shape, other: Shape, lenient: bool) -> str | None:
    """Describe the difference between two columns, or between their first unequal nested fields; None if equal."""
    column = f"column {escape_text(first.node.dotted_path)!r}"
    if _type_key(first) != _type_key(other):
        result, requested = _type_text(other), _type_text(first)
        if result == requested:  # Arrow has the same type for both
            result, requested = (item.node.logical_name or result for item in (other, first))
        if result == requested:
            return f"{column} has type {result} in another encoding; write the file again with pqext.write_table"
        cast = ": cast it to pyarrow.json_()" if requested == "JSON" and result == "STRING" else ""
        return f"{column} has type {result} instead of {requested}{cast}"
    within = _describe_nested_difference(first, other, lenient)
    if within is not None:
        if first.node.logical_name == "VARIANT":
            unwritten = "whose layout pqext does not write; to append rows, first run pqext reshred"
            return f"{column} is a VARIANT {unwritten if lenient else 'that is shredded differently'}"
        return within
    if first.nullable != other.nullable:
        return f"{column} is {_repetition(other)} instead of {_repetition(first)}"
    ids = first.node.field_id, other.node.field_id
    if ids[0] != ids[1] and not (lenient and None in ids):
        return f"{column} has {_id(ids[1])} instead of {_id(ids[0])}"
    if isinstance(first, LeafShape) and _describe_storage(first.node) != _describe_storage(other.node):
        layouts = f"{_describe_storage(other.node)} instead of {_describe_storage(first.node)}"
        return f"{column}, {_type_text(first)}, is stored as {layouts}"
    if isinstance(first, ListShape) and isinstance(other, ListShape) and _levels(first) != _levels(other):
        return f"{column} is a list of another layout"
    if not lenient and first.node.logical_type != other.node.logical_type:
        return f"{column} has another annotation for the same type"
    return None


def _describe_nested_difference(first: Shape, other: Shape, lenient: bool) -> str | None:
    """Describe the difference between the nested fields of two structs, lists or maps; None if they are equal."""
    if isinstance(first, GroupShape) and isinstance(other, GroupShape):
        names = [[child.node.name for child in item.children] for item in (first, other)]
        if names[0] != names[1]:
            name = escape_text(first.node.dotted_path)
            return f"column {name!r} has the fields {_join_names(names[1])} instead of {_join_names(names[0])}"
        pairs = zip(first.children, other.children, strict=True)
        differences = (_describe_difference(*pair, lenient) for pair in pairs)
        return next((result for result in differences if result is not None), None)
    if isinstance(first, ListShape) and isinstance(other, ListShape):
        if first.is_map and isinstance(first.element, GroupShape) and isinstance(other.element, GroupShape):
            pairs = zip(first.element.children, other.element.children, strict=False)
            differences = (_describe_difference(*pair, lenient) for pair in pairs)
            return next((result for result in differences if result is not None), None)
        if not lenient and first.element.node.path != other.element.node.path:
            result, requested = escape_text(other.element.node.dotted_path), escape_text(first.element.node.dotted_path)
            return f"column {requested!r} is called {result!r}"
        return _describe_difference(first.element, other.element, lenient)
    return None


def _type_key(shape: Shape) -> object:
    """Return a key that is equal for columns of the same type, ignoring their nested fields."""
    if isinstance(shape, ListShape):
        return "map" if shape.is_map else "list"
    if isinstance(shape, GroupShape):
        annotated = shape.node.logical_type if shape.annotation is not None else None
        return "group", annotated, shape.node.logical_name == "FILE"
    return _value_key(shape.node)


def _value_key(node: SchemaNode) -> tuple[LogicalType | None, object]:
    """Return a pair of a leaf's logical type and None or, without a logical type, None and its physical Arrow type.

    Integers as wide as their physical type have no logical type.
    """
    result = node.logical_type
    integer = None if result is None else result.INTEGER
    if integer is not None and integer.isSigned and integer.bitWidth == _WIDTHS.get(node.physical_type):
        result = None
    return result, node.leaf_type.physical_arrow_type() if result is None else None


_WIDTHS: dict[Type | None, int] = {Type.INT32: 32, Type.INT64: 64}


def _type_text(shape: Shape) -> str:
    """Return the type of a column for messages."""
    try:
        arrow = str(shape.field(ReadOptions()).type)
    except ParquetError:
        arrow = "an unreadable type"
    return escape_text(display_type(shape.node, arrow))[:200]


def _levels(shape: ListShape) -> tuple[int, int, int]:
    return shape.value_level, shape.element_level, shape.element_repetition


def _repetition(shape: Shape) -> str:
    return "nullable" if shape.nullable else "NOT NULL"


def _id(number: int | None) -> str:
    return "no field id" if number is None else f"field id {number}"


def _describe_storage(node: SchemaNode) -> str:
    assert node.physical_type is not None
    return node.physical_type.name + (f"({node.type_length})" if node.type_length is not None else "")
