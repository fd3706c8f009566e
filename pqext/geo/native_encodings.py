"""GeoParquet 1.1's native encodings, ``point`` to ``multipolygon``: columns of coordinates that are read as WKB.

They are GeoArrow's layouts in a file: structs ``x, y[, z][, m]`` of doubles, or lists of as many doubles, below up to
three levels of lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import GeometryError
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.geo.box import BoundingBox
from pqext.geo.geoarrow import check_layout, from_geoarrow

if TYPE_CHECKING:
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode

ENCODINGS = frozenset({"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"})


def suits(node: SchemaNode, encoding: str) -> bool:
    """Whether the columns below ``node`` have the layout of ``encoding``."""
    if node.is_leaf:
        return False
    try:
        check_layout(_with_fixed_size(shape.of(node).field(ReadOptions()).type), _layout(encoding))
    except GeometryError:
        return False
    return True


def to_wkb(node: SchemaNode, array: pa.Array, encoding: str) -> pa.Array:
    """The geometries of a column as ISO WKB. Raises GeometryError, naming the column, on null coordinates."""
    try:
        return from_geoarrow(_of_fixed_size(array), _layout(encoding))
    except GeometryError as error:
        error.locate(column=node.dotted)
        raise


def box(row_group: RowGroupFacts, node: SchemaNode) -> BoundingBox | None:
    """The box around a row group's planar geometries, by the bounds of their coordinates; None if these are unknown.

    Coordinates in lists are a single column of all dimensions, whose bounds bound neither x nor y.
    """
    leaves = {leaf.name: leaf for leaf in node.leaves()}
    if not {"x", "y"} <= leaves.keys() or leaves["x"].physical_type != Type.DOUBLE:
        return None
    bounds = [row_group.bounds(leaves[name]) for name in ("x", "y")]
    ends = [(one.minimum, one.maximum) for one in bounds]
    (xmin, xmax), (ymin, ymax) = ends
    if not all(isinstance(end, float) for pair in ends for end in pair):
        return None
    found = BoundingBox(xmin, xmax, ymin, ymax)  # type: ignore[arg-type]
    return found if found.usable and not found.wraps else None


def _holds_coordinates(type: pa.DataType) -> bool:
    """Whether arrays of ``type`` are lists of numbers, one list a coordinate."""
    return pa.types.is_list(type) and bool(pa.types.is_floating(type.value_type))


def _with_fixed_size(type: pa.DataType) -> pa.DataType:
    """``type`` with coordinates as lists of fixed size, of two numbers, which Parquet does not distinguish."""
    if _holds_coordinates(type):
        return pa.list_(type.value_field, 2)
    return pa.list_(type.value_field.with_type(_with_fixed_size(type.value_type))) if pa.types.is_list(type) else type


def _of_fixed_size(array: pa.Array) -> pa.Array:
    """As :func:`_with_fixed_size`, of an array; the lists of a column have one size."""
    if _holds_coordinates(array.type):
        sizes = pc.unique(pc.list_value_length(array.drop_null())).to_pylist() or [2]
        if len(sizes) > 1 or not 2 <= sizes[0] <= 4:
            numbers = " and ".join(map(str, sorted(sizes)))
            raise GeometryError(f"coordinates have {numbers} numbers, not all 2, 3 or 4", rule="geo.geoarrow")
        fixed = pa.FixedSizeListArray.from_arrays(array.flatten(), type=pa.list_(array.type.value_field, sizes[0]))
        if not array.null_count:
            return fixed
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return fixed.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
    if not pa.types.is_list(array.type):
        return array
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, _of_fixed_size(array.values), mask=mask)


def _layout(encoding: str) -> str:
    return f"geoarrow.{encoding}"
