"""Where a path of a variant lies in the columns of a shredded struct."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql.types import DataType, StructType

from pqext.variant.access.path import Path


@dataclass(frozen=True, slots=True)
class Leaf:
    """The group that holds whatever stands at a path, and what is left of the path below it.

    ``group`` names the struct fields from the variant down to the group of ``value`` and ``typed_value``.
    Nothing that stands at the path lies outside: a shredding schema's fields never stand in the residuals
    of the objects above them (Variant Shredding, "Objects"). ``type`` is the Spark type of ``typed_value``
    when the path ends at a primitive leaf.
    """

    group: tuple[str, ...]
    rest: Path
    has_value: bool
    has_typed: bool
    type: DataType | None

    def part(self, variant: Column, name: str) -> Column:
        """Member ``name`` of the group, within the struct column ``variant``."""
        column = variant
        for step in (*self.group, name):
            column = column[step]
        return column


def find_leaf(struct: StructType, path: Path) -> Leaf:
    """Follow ``path`` through the typed objects of a shredded struct as far as they go."""
    group: list[str] = []
    node = struct
    rest = list(path)
    while rest:
        typed = node["typed_value"].dataType if "typed_value" in node.names else None
        if not isinstance(typed, StructType) or rest[0] not in typed.names:
            break
        step = str(rest.pop(0))
        child = typed[step].dataType
        assert isinstance(child, StructType)
        group += ["typed_value", step]
        node = child
    typed = node["typed_value"].dataType if "typed_value" in node.names else None
    # Below an object that has no such field, what the path names can stand in the residual only.
    has_typed = typed is not None and not (rest and isinstance(typed, StructType))
    leaf = typed if not rest and typed is not None and typed.typeName() not in ("struct", "array") else None
    return Leaf(tuple(group), tuple(rest), "value" in node.names, has_typed, leaf)
