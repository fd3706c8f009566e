"""Infer the types of computed operands before any rows are read, and compute their values on Arrow data.

Functions of geometry columns also determine the CRS and edges of the computed geometries.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import LimitError, ParquetError
from pqext.core.base.text import escape_text
from pqext.dataset.evaluation.arithmetic import (
    arithmetic,
    constant_scalar,
    constant_type,
    negate,
    number_type,
    result_type,
)
from pqext.dataset.expressions import (
    Arithmetic,
    Base,
    Cast,
    Column,
    Constant,
    ListLength,
    Matches,
    Operand,
    SpatialValue,
    VariantField,
    bases,
    mistakes,
    operand_column,
)
from pqext.dataset.expressions.literals import ValueType
from pqext.dataset.expressions.mistakes import label_of
from pqext.dataset.expressions.spatial_functions import spatial_function
from pqext.geo.types import GeospatialType
from pqext.variant.access.targets import target_type
from pqext.variant.timezones import DEFAULT

_EMPTY_METADATA = b"\x11\x00\x00"
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def type_of(operand: Operand, column_type: Callable[[Base], pa.DataType]) -> pa.DataType:
    """Infer the Arrow type of an operand from the types of its columns.

    Raises ``TypeError`` if values of these types cannot be combined.
    """
    match operand:
        case Column():
            return column_type(operand)
        case VariantField():
            column_type(operand)
            return target_type(operand.type)
        case Cast():
            _castable_type(operand, type_of(operand.operand, column_type))
            return target_type(operand.type)
        case ListLength():
            _check_list(operand, column_type(operand.operand))
            return pa.int64()
        case SpatialValue():
            for base in bases(operand):
                column_type(base)
            return spatial_function(operand.function).arrow_type
        case Arithmetic():
            types = _number_types(operand, lambda item: type_of(item, column_type))
            try:
                return types[0] if len(types) == 1 else result_type(operand.operator, *types)
            except TypeError as error:
                raise TypeError(f"{operand}: {error}") from None
    raise TypeError(f"the type of {operand} is unknown")


def compute(operand: Operand, value: Callable[[Operand], pa.Array], rows: int) -> pa.Array:
    """Compute an operand from its inputs. A row is null if an input is null or the operation is undefined."""
    match operand:
        case Arithmetic():
            known = {id(element): value(element) for element in operand.operands if not isinstance(element, Constant)}
            types = _number_types(operand, lambda entry: known[id(entry)].type)
            sides = [
                constant_scalar(item.value, type) if isinstance(item, Constant) else _to_number(known[id(item)], type)
                for item, type in zip(operand.operands, types, strict=True)
            ]
            return negate(sides[0]) if len(sides) == 1 else arithmetic(operand.operator, *sides)
        case Cast():
            return cast(value(operand.operand), operand)
        case ListLength():
            array = value(operand.operand)
            _check_list(operand, array.type)
            return lengths(array)
    raise TypeError(f"{type(operand).__name__} is not a computed value")


def lengths(array: pa.Array) -> pa.Array:
    """Return the number of elements of each list or map."""
    if pa.types.is_map(array.type):
        counts = pa.array(np.diff(array.offsets.to_numpy()), pa.int64())
        return pc.if_else(pc.is_valid(array), counts, pa.scalar(None, pa.int64())) if array.null_count else counts
    return pc.list_value_length(array).cast(pa.int64())


def check_pattern_type(value_type: ValueType | None, node: Matches) -> None:
    """Raise ``TypeError`` unless the values of the operand are text, or bytes if the pattern is bytes."""
    name = None if value_type is None else value_type.name
    is_bytes = isinstance(node.pattern, bytes)
    if name == "null" or (name in ("binary", "uuid") and is_bytes) or (name == "string" and not is_bytes):
        return
    held = "no text" if value_type is None else f"{value_type} values"
    hint = mistakes.position_text(node.operand)
    if value_type is not None and not is_bytes and isinstance(node.operand, Column):
        is_sql = mistakes.notation(node.operand) is mistakes.Notation.SQL
        text = f"{node.operand}::string" if is_sql else f"col({str(node.operand)!r}).cast('string')"
        hint = f"; {text} makes it text{hint}"
    raise TypeError(
        f"column {label_of(node.operand)} contains {held}, but {node.how} requires "
        f"{'bytes' if is_bytes else 'text'}{hint}"
    )


def cast(array: pa.Array, node: Cast) -> pa.Array:
    """Cast ``array`` to the type of ``node``, with the semantics of :func:`pqext.variant.get`."""
    from pqext.variant.access.cast import extract
    from pqext.variant.access.targets import widen_column

    target = target_type(node.type)
    if array.type == target:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    array = _narrow(array, _castable_type(node, array.type))
    if pa.types.is_decimal(array.type) and _is_text(target):
        return format_decimals(array).cast(target)
    if pa.types.is_time(array.type) and (pa.types.is_integer(target) or pa.types.is_decimal(target)):
        array = _seconds(array)
    whole = array if array.type == target else widen_column(array, target)
    zone = node.timezone or DEFAULT
    return whole if whole is not None else extract(to_shredded(array), (), node.type, strict=False, timezone=zone)


def cast_uuids(array: pa.Array, node: Cast) -> pa.Array:
    """Cast an array of UUIDs. The cast to string returns UUID notation; for other types, UUIDs are cast as binary."""
    from pqext.variant.access.cast import extract

    if not _is_text(target_type(node.type)):
        return cast(array, node)
    return extract(to_shredded(array), (), node.type, strict=False)


def format_decimals(decimals: pa.Array) -> pa.StringArray:
    """Format decimals with all digits of their scale and without an exponent, such as ``1.30``."""
    scale = decimals.type.scale
    digits = pc.utf8_ltrim(_rescale(decimals, 0).cast(pa.string()), "-")
    if scale:
        digits = pc.utf8_replace_slice(pc.utf8_lpad(digits, scale + 1, "0"), -scale, -scale, ".")
    is_negative = pc.less(decimals, pa.scalar(Decimal(0), decimals.type))
    return pc.if_else(is_negative, pc.binary_join_element_wise("-", digits, ""), digits)


def to_shredded(array: pa.Array) -> pa.StructArray:
    """Wrap values as the typed values of a shredded variant."""
    rows = len(array)
    buffers = [None, pa.py_buffer(np.arange(rows + 1) * len(_EMPTY_METADATA)), pa.py_buffer(_EMPTY_METADATA * rows)]
    metadata = pa.Array.from_buffers(pa.large_binary(), rows, buffers)
    return pa.StructArray.from_arrays([metadata, array], ["metadata", "typed_value"])


def _number_types(operand: Arithmetic, operand_type: Callable[[Any], pa.DataType]) -> list[pa.DataType]:
    """Return the type to which each operand is converted before the operation."""
    results: list[pa.DataType | None] = []
    for entry in operand.operands:
        if isinstance(entry, Constant):
            results.append(None)
            continue
        number = number_type(operand_type(entry))
        if number is None:
            raise TypeError(f"{operand}: {entry} is not numeric")
        results.append(number)
    beside = next(item for item in results if item is not None)
    return [
        constant_type(element.value, beside) if isinstance(element, Constant) else known
        for element, known in zip(operand.operands, results, strict=True)
    ]


def _to_number(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


def _check_list(operand: ListLength, type: pa.DataType) -> None:
    types = pa.types
    is_list = types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type) or types.is_map(type)
    if not (is_list or types.is_list_view(type) or types.is_large_list_view(type)):
        raise TypeError(f"{operand}: {operand.operand} contains {type}, not lists")


def _castable_type(operand: Cast, type: pa.DataType) -> pa.DataType:
    """Return the Arrow type to which values of ``type`` are converted before a cast.

    It is the nearest type that a shredded VARIANT can store; ``type`` itself if it is the target type or null. Raises
    ``TypeError`` for types that cannot be cast.
    """
    types = pa.types
    target = target_type(operand.type)
    if type == target or types.is_null(type):
        return type
    if types.is_uint64(type):
        return pa.decimal128(20, 0)
    if types.is_unsigned_integer(type):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[type.bit_width]
    if types.is_float16(type):
        return pa.float32()
    if types.is_timestamp(type):
        return pa.timestamp("ns" if type.unit == "ns" else "us", type.tz and "UTC")
    if types.is_time(type):
        return pa.time64("us")
    if types.is_date(type):
        return pa.date32()
    if types.is_decimal(type) and type.precision <= 38 and type.scale >= 0:
        return pa.decimal128(type.precision, type.scale)
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return pa.string() if types.is_string(type) else pa.large_string()
    if types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type):
        return pa.binary() if types.is_binary(type) else pa.large_binary()
    if types.is_fixed_size_binary(type):
        return pa.binary()
    if types.is_boolean(type) or types.is_signed_integer(type) or types.is_float32(type) or types.is_float64(type):
        return type
    if types.is_struct(type):
        to = escape_text(operand.type)
        raise TypeError(
            f"{operand}: {operand.operand} does not contain plain values; cast a value inside a VARIANT by its path: "
            f"{operand.operand}:$::{to} or .variant('$', '{to}')"
        )
    many = " of more than 38 digits" if types.is_decimal(type) and type.precision > 38 else ""
    raise TypeError(f"{operand}: {type}{many} cannot be cast to another type")


def _is_text(type: pa.DataType) -> bool:
    return type in (pa.string(), pa.large_string(), pa.string_view())


def _seconds(times: pa.Array) -> pa.Array:
    """Convert times of day in microseconds to exact seconds since midnight."""
    return _rescale(times.view(pa.int64()).cast(pa.decimal128(19, 0)), 6)


def _rescale(decimals: pa.Array, scale: int) -> pa.Array:
    """Reinterpret the unscaled integers of decimals with another scale."""
    type = pa.decimal128(decimals.type.precision, scale)
    return pa.Array.from_buffers(type, len(decimals), decimals.buffers(), decimals.null_count, decimals.offset)


def _narrow(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Cast ``array`` to ``type``, which :func:`_castable_type` returned.

    Timestamps outside the range of ``type`` become null.
    """
    if array.type == type:
        return array
    if pa.types.is_time(type):
        return array.cast(type, safe=False)
    if pa.types.is_timestamp(type) and array.type.unit in _MICROSECONDS:
        most = pa.scalar(((1 << 63) - 1) // _MICROSECONDS[array.type.unit])
        ticks = array.view(pa.int64())
        near = pc.and_(pc.less_equal(ticks, most), pc.greater_equal(ticks, pc.negate(most)))
        array = pc.if_else(near, array, pa.scalar(None, array.type))
    return array.cast(type)


def geometry_type(operand: Operand, column_type: Callable[[Column], GeospatialType]) -> GeospatialType:
    """Return the CRS and edges of an operand, which is a geometry column or a function of geometries."""
    if not isinstance(operand, SpatialValue):
        return column_type(operand_column(operand))
    source = geometry_type(operand.operands[0], column_type)
    return spatial_function(operand.function).result_type(source, operand.arguments)


def compute_function(
    operand: SpatialValue, geometries: Callable[[Operand], tuple[pa.Array, GeospatialType]]
) -> pa.Array:
    """Compute a function of geometries. ``geometries`` returns the values, CRS and edges of an operand.

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
