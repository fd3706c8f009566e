"""Which columns of a shredded variant hold what stands at a path: all that a condition on it needs to read."""

from __future__ import annotations

from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.variant.access.path import as_path
from pqext.variant.annotation import HANDLER


def columns_of_path(node: SchemaNode, path: str) -> list[SchemaNode]:
    """The parts of the VARIANT group ``node`` from which :func:`pqext.variant.get` evaluates ``path``.

    Always ``metadata``; and ``value`` and ``typed_value`` of the group that the path leads to through typed objects,
    or only its ``value`` when the path goes on to where that group has no columns. What is read of these columns
    alone is a shredded array again. The whole group when that is not to be had.

    Raises ``VariantError`` when the group is not laid out as Variant Shredding demands.
    """
    HANDLER.arrow_field(node, shape.of(node).storage_field(ReadOptions(shredded=True)), ReadOptions(shredded=True))
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
    """The leaf with the typed values at ``path`` of the VARIANT group ``node``, and the ``value`` beside it.

    None where the path does not end at a leaf, or goes through an array. Only the groups on the path are looked at.
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
