"""Functions of geometry columns: the type of computed geometries, and their values on Arrow data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import LimitError, ParquetError
from pqext.dataset.expressions import Column, Operand, SpatialValue, operand_column
from pqext.dataset.expressions.spatial_functions import spatial_function
from pqext.geo.types import GeospatialType


def geometry_type(operand: Operand, column_type: Callable[[Column], GeospatialType]) -> GeospatialType:
    """Return the CRS and edges of geometries: of a column, or computed from columns."""
    if not isinstance(operand, SpatialValue):
        return column_type(operand_column(operand))
    source = geometry_type(operand.operands[0], column_type)
    return spatial_function(operand.function).result_type(source, operand.arguments)


def compute_function(
    operand: SpatialValue, geometries: Callable[[Operand], tuple[pa.Array, GeospatialType]]
) -> pa.Array:
    """Compute a function of geometries. ``geometries`` returns the values and the type of an operand.

    Constants are parsed again for each batch, because threads share them.

    Raises:
        LimitError: If the result has more than 2 GiB.
    """
    from pqext.geo.functions.table import constant_column
    from pqext.geo.joins.geometry_column import GeometryColumn
    from pqext.geo.wkb import binary_chunks

    function = spatial_function(operand.function)
    columns = {id(item): geometries(item) for item in operand.operands}
    type = columns[id(operand.operands[0])][1]
    function.check_types([type])
    arguments: list[Any] = []
    for argument in operand.arguments:
        if isinstance(argument, Operand):
            array, own = columns[id(argument)]
            arguments.append(GeometryColumn(binary_chunks(array)[0], own))
        else:
            is_constant = isinstance(argument, bytes | tuple)
            arguments.append(constant_column(argument, type) if is_constant else argument)
    try:
        result = function(*arguments)
    except ParquetError as error:
        error.locate(column=str(operand.operands[0]))
        raise
    if pa.types.is_large_binary(result.type):
        raise LimitError(f"{operand.function} returns more than 2 GiB for one batch; reduce batch_rows")
    return result
