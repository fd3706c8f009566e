"""Paths within VARIANT columns that look like a mistake: near to one that a file has shredded, which they are not."""

from __future__ import annotations

from collections.abc import Iterable

from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import visible
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.expressions import VariantField
from pqext.dataset.pruning.binding import find
from pqext.variant.access.path import as_path


def doubts(fields: Iterable[VariantField], schema: Schema) -> list[str]:
    """For each field whose path leaves the shredded ones by a name that is near to one of them, a line that says so."""
    found = (_doubt(field, find(schema, field.column)) for field in fields)
    return list(dict.fromkeys(line for line in found if line))


def _doubt(field: VariantField, node: SchemaNode) -> str:
    for step in as_path(field.path):
        typed = node.child("typed_value")
        if not isinstance(step, str) or typed is None or typed.is_leaf or typed.logical_name:
            return ""
        member = typed.child(step)
        if member is None:
            near = did_you_mean(step, [child.name for child in typed.children])
            return near and visible(f"{field.column} has no shredded {step!r} where {field.path} asks for it{near}")
        node = member
    return ""
