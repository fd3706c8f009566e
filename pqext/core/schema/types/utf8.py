"""Detect and replace text that is not valid UTF-8, which Spark and others write without validation."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pqext.core.schema.nodes import Schema, SchemaNode

_TEXT = frozenset({"STRING", "ENUM", "JSON"})


def is_text(node: SchemaNode) -> bool:
    """Return whether a leaf contains text."""
    return node.is_leaf and node.leaf_type.member in _TEXT


def find_invalid_text(array: pa.Array) -> int | None:
    """Return the position of the first value that is not valid UTF-8; None if all values are valid."""
    for position, value in enumerate(array.cast(pa.binary()).to_pylist()):
        try:
            if value is not None:
                value.decode()
        except UnicodeDecodeError:
            return position
    return None


def replace_invalid_bytes(array: pa.Array) -> pa.Array:
    """Decode binary values as UTF-8, and replace each invalid byte sequence with U+FFFD."""
    values = (None if value is None else value.decode("utf-8", "replace").encode() for value in array.to_pylist())
    return pa.array(list(values), array.type)


def text_as_binary(schema: Schema) -> Schema:
    """Return ``schema`` with text columns as binary, except in annotated groups, so that invalid UTF-8 can be read."""
    return Schema.from_root(_with_binary_text(schema.root))


def _with_binary_text(node: SchemaNode) -> SchemaNode:
    if is_text(node):
        return replace(node, logical_type=None)
    if node.is_leaf or node.logical_name in ("VARIANT", "FILE"):
        return node
    return replace(node, children=tuple(map(_with_binary_text, node.children)))
