"""The schema and options by which a file is read: what its key-value metadata and the given options make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pqext.core.format.metadata import KeyValue, Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.file_calendar import with_calendars
from pqext.core.schema.key_value_types import adopt
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types import int96
from pqext.core.schema.types.utf8 import with_binary_text


def schema_to_read(schema: Schema, pairs: Sequence[KeyValue], options: ReadOptions, path: str | None) -> Schema:
    """``schema`` with the types and calendars of its columns in the file at ``path``, which has these ``pairs``."""
    if pairs and options.geoparquet:
        schema = adopt(schema, pairs, path)
    if pairs:
        schema = with_calendars(schema, pairs, options)
    step = int96.nanoseconds_of(options.int96_unit)
    if (options.int96_utc or step != 1) and any(leaf.physical_type == Type.INT96 for leaf in schema.leaves):
        schema = Schema.of(_with_int96(schema.root, options.int96_utc, step))
    return with_binary_text(schema) if options.invalid_utf8 == "binary" else schema


def _with_int96(node: SchemaNode, is_utc: bool, step: int) -> SchemaNode:
    if node.is_leaf:
        return replace(node, is_utc=is_utc, int96_step=step) if node.physical_type == Type.INT96 else node
    return replace(node, children=tuple(_with_int96(child, is_utc, step) for child in node.children))


def options_to_read(options: ReadOptions, pairs: Sequence[KeyValue]) -> ReadOptions:
    """``options`` with the unit of INT96 and the properties that the file's ``pairs`` decide."""
    if options.int96 == "auto":
        options = replace(options, int96=int96.unit_for(pair.key for pair in pairs))
    if not pairs:
        return options
    own = {pair.key: pair.value or "" for pair in pairs}
    return replace(options, properties={**options.properties, **own})
