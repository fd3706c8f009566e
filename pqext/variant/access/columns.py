"""Find the columns of a shredded variant that contain the value at a path."""

from __future__ import annotations

from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.variant.access.path import as_path
from pqext.variant.annotation import HANDLER


def columns_of_path(node: SchemaNode, path: str) -> list[SchemaNode]:
    """Return the columns of the VARIANT group ``node`` that :func:`pqext.variant.get` needs to evaluate ``path``.

    These are ``metadata``, and the ``value`` and ``typed_value`` of the group that the path reaches through typed
    objects. If the path continues to a field without columns, ``typed_value`` is not needed. The columns form a valid
    shredded array. If that is not possible, the complete group is returned.

    Raises ``VariantError`` if the group violates the layout of Variant Shredding.
    """
    options = ReadOptions(shredded=True)
    HANDLER.arrow_field(node, shape.from_node(node).storage_field(options), options)
    metadata = node.child("metadata")
    assert metadata is not None
    group, rest = node, list(as_path(path))
    while rest:
        typed = group.child("typed_value")
        if typed is None or typed.is_leaf or not isinstance(rest[0], str) or typed.logical_name:
            break
        member = typed.child(rest[0])
        if member is None:
            break
        group = member
        rest = rest[1:]
    inner = group.child("typed_value")
    into_list = inner is not None and inner.logical_name == "LIST" and bool(rest) and isinstance(rest[0], int)
    value = group.child("value")
    if not rest or into_list:
        return [metadata, *(child for child in group.children if child is not metadata)]
    return [node] if value is None else [metadata, value]


def leaf_of_path(node: SchemaNode, path: str) -> tuple[SchemaNode, SchemaNode | None] | None:
    """Return the leaf for typed values at ``path`` of the VARIANT group ``node``, and its sibling ``value``, if any.

    Returns None if the path does not end at a leaf, or passes through an array. Only groups on the path are inspected.
    """
    group = node
    for step in as_path(path):
        typed = group.child("typed_value")
        if not isinstance(step, str) or typed is None or typed.is_leaf or typed.logical_name:
            return None
        member = typed.child(step)
        if member is None or member.is_leaf:
            return None
        group = member
    leaf = group.child("typed_value")
    if leaf is None or not leaf.is_leaf or leaf.max_repetition_level:
        return None
    return leaf, group.child("value")
