"""The shredding schema of a column in a file, to shred other columns alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.variant.shredding.schema import ShreddingSchema, schema_of_storage


def schema_of_file(source: Any, column: str | None = None) -> ShreddingSchema:
    """The schema by which the VARIANT ``column`` of a Parquet file is shredded; an untyped one when it is not.

    ``source`` is what :func:`pqext.open` takes, or an open file; ``column`` is a dotted path of the file, like ``"v"``,
    ``"s.v"`` or ``"l.list.element"``, by default that of the only VARIANT. Raises ``ValueError`` when there is no such
    column, or several and none is named, ``TypeError`` when it is no VARIANT, and ``VariantError`` when it is not laid
    out as Variant Shredding demands.
    """
    with nullcontext(source) if isinstance(source, ParquetFile) else ParquetFile(source) as file:
        variants = [node.dotted for node in _below(file.schema.root) if node.logical_name == "VARIANT"]
        if column is None:
            if len(variants) != 1:
                there = f"VARIANT columns {join_names(variants)}: name one of them" if variants else "no VARIANT column"
                raise ValueError(f"the file has {there}")
            column = variants[0]
        node = file.schema.find(column)
        if node is None:
            meant = did_you_mean(column, [child.dotted for child in file.schema.root.children])
            raise ValueError(f"there is no column {column!r} in the file{meant}")
        if node.logical_name != "VARIANT":
            raise TypeError(f"column {column!r} is no VARIANT")
        return schema_of_storage(shape.of(node).storage_field(replace(file.options, shredded=True)).type)


def _below(node: SchemaNode) -> Iterator[SchemaNode]:
    """All nodes below ``node``, but none within a VARIANT."""
    for child in node.children:
        yield child
        if child.logical_name != "VARIANT":
            yield from _below(child)
