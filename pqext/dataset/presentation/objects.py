"""Columns as Python objects, of which VARIANT values and geometries have types of their own, for data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.presentation.columns import Formats, entries, is_geometry, is_variant, plain_layout


def objects(array: pa.Array, field: pa.Field, formats: Formats) -> list[Any]:
    """A list with the Python object of each value of a column, in the formats.

    Structs are dicts, lists are lists, and maps are lists of pairs.
    """
    if not formats.needs_objects(field):
        values: list[Any] = formats.array(array, field).to_pylist()
        return values
    if is_geometry(field):
        from pqext.geo.wkb import to_shapely

        return list(to_shapely(array))
    if is_variant(field):
        from pqext.variant.conversion.objects import to_python

        return to_python(array)
    array = plain_layout(array)
    kind = array.type
    if pa.types.is_struct(kind):
        names = [child.name for child in kind]
        columns = [objects(array.field(i), kind.field(i), formats) for i in range(kind.num_fields)]
        valid = array.is_valid().to_pylist()
        return [
            dict(zip(names, row, strict=True)) if is_present else None
            for is_present, row in zip(valid, zip(*columns, strict=True), strict=True)
        ]
    if pa.types.is_map(kind):
        lists = entries(array)
        pairs = lists.flatten()
        keys, items = (objects(pairs.field(i), pairs.type.field(i), formats) for i in range(2))
        return list(_grouped(lists, list(zip(keys, items, strict=True))))
    return list(_grouped(array, objects(array.flatten(), kind.value_field, formats)))


def _grouped(array: pa.Array, values: list[Any]) -> Iterator[list[Any] | None]:
    """The values of each list; None for nulls."""
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            yield None
            continue
        yield values[start : start + length]
        start += length
