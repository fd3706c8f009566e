"""Detect likely mistakes in a query: paths similar to shredded paths, and boxes outside the range of longitudes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa

from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.expressions import Column, Expression, Spatial, VariantField, bases
from pqext.dataset.expressions.spatial import geometry_text
from pqext.dataset.expressions.visitors import leaves, operands
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.pruning.binding import find
from pqext.geo.types import type_of
from pqext.variant.access.path import as_path


def checkable_parts(condition: Expression | None, result: Iterable[object]) -> tuple[list[VariantField], list[Spatial]]:
    """Return the VARIANT fields and the spatial conditions of a query, which can be checked for mistakes."""
    requested = [] if condition is None else operands(condition)
    requested += [base for element in result if isinstance(element, ComputedColumn) for base in bases(element.field)]
    spatial = [] if condition is None else [leaf for leaf in leaves(condition) if isinstance(leaf, Spatial)]
    return [item for item in requested if isinstance(item, VariantField)], spatial


def mistake_warnings_of(fields: list[VariantField], conditions: list[Spatial], file: ParquetFile) -> list[str]:
    """Return warnings about ``fields`` and spatial ``conditions`` for a file."""
    with suppress(TypeError, ValueError):  # the error is raised again when the scan runs
        return misspelt_paths(fields, file.schema) + unlikely_boxes(conditions, file.arrow_schema)
    return []


def unlikely_boxes(conditions: Iterable[Spatial], schema: pa.Schema) -> list[str]:
    """Return warnings about boxes outside the longitudes of a geographic column or with ``xmin > xmax`` on a plane."""
    result = (_unlikely_box(condition, schema) for condition in conditions)
    return list(dict.fromkeys(line for line in result if line))


def _unlikely_box(condition: Spatial, schema: pa.Schema) -> str:
    field = _field(schema, condition.operand.path) if isinstance(condition.operand, Column) else None
    kind = None if field is None else type_of(field)
    if kind is None:
        return ""
    if isinstance(condition.geometry, bytes):
        import shapely

        xmin, ymin, xmax, ymax = shapely.from_wkb(condition.geometry).bounds
    else:
        xmin, ymin, xmax, ymax = condition.geometry
    shown = f"{condition.operand} is compared with {geometry_text(condition.geometry)}"
    if xmin > xmax and not kind.geographic:
        return escape_text(f"{shown}, which is empty: xmin is beyond xmax, and only boxes of geographic columns wrap")
    if kind.geographic and xmin <= xmax and (xmin < -180 or xmax > 180) and xmax - xmin < 360:
        west, east = ((x + 180) % 360 - 180 for x in (xmin, xmax))
        box = f"({west:.10g}, {ymin:.10g}, {east:.10g}, {ymax:.10g})"
        return escape_text(f"{shown}, which is beyond longitudes -180 to 180: the same area is box {box}")
    return ""


def _field(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field | None:
    """Return the field at a path of names; None if it does not exist or is within a list."""
    inner: pa.Schema | pa.DataType = schema
    result: pa.Field | None = None
    for name in path:
        if isinstance(inner, pa.DataType) and not pa.types.is_struct(inner):
            return None
        at = inner.get_field_index(name)
        if at < 0:
            return None
        result = inner.field(at)
        inner = result.type
    return result


def misspelt_paths(fields: Iterable[VariantField], schema: Schema) -> list[str]:
    """Return a warning for each field whose path is not shredded but similar to a shredded path."""
    result = (_misspelt_path(field, find(schema, field.column)) for field in fields)
    return list(dict.fromkeys(line for line in result if line))


def _misspelt_path(field: VariantField, node: SchemaNode) -> str:
    for step in as_path(field.path):
        typed = node.child("typed_value")
        if not isinstance(step, str) or typed is None or typed.is_leaf or typed.logical_name:
            return ""
        member = typed.child(step)
        if member is None:
            near = did_you_mean(step, [child.name for child in typed.children])
            return near and escape_text(f"{field.column} has no shredded {step!r}, which {field.path} needs{near}")
        node = member
    return ""
