"""Evaluate expressions exactly on Arrow data, column by column.

Numbers compare by their exact value: a literal that the column's type cannot represent lies between two of its values,
or outside their range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.buffers import numbers
from pqext.core.base.errors import ParquetError
from pqext.core.format.predicate import Operator, Value
from pqext.core.kernels.hash import membership
from pqext.core.schema.types.arrow_compute import decode_dictionary, decode_run_ends
from pqext.dataset.evaluation.comparison import (
    Position,
    check_comparable,
    compare_arrays,
    comparison_type,
    fit_literal,
    locate,
    locate_float,
    range_of,
)
from pqext.dataset.evaluation.operand_values import (
    cast_uuids,
    check_pattern_type,
    compute,
    compute_function,
    geometry_type,
)
from pqext.dataset.expressions import (
    NEGATED,
    Cast,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Operand,
    Relation,
    Spatial,
    SpatialValue,
    StoredOperand,
    VariantField,
)
from pqext.dataset.expressions.literals import ValueType, value_type_of_arrow
from pqext.dataset.expressions.mistakes import comparison_value, comparison_values, label_of
from pqext.dataset.expressions.patterns import matches
from pqext.dataset.expressions.spatial import predicate
from pqext.dataset.expressions.visitors import Visitor, fold
from pqext.variant.timezones import DEFAULT

if TYPE_CHECKING:
    from pqext.geo.types import GeospatialType

_COMPUTE = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


Prepared = dict[tuple[int, pa.DataType], tuple[IsIn, "_ValueSet"]]
"""The values of IN lists in the type of a column, by the identity of the condition and the type."""


def evaluate(
    expression: Expression, data: pa.RecordBatch | pa.Table, computed_values: Mapping[
        tuple[Any, ...], pa.Array
    ] | None = None,
    prepared_operands: Prepared | None = None,
) -> pa.BooleanArray:
    """Evaluate ``expression`` on each row of ``data``: true, false or null.

    A filter selects the rows where the result is true. ``computed_values`` maps the keys of operands to arrays that
    have already been computed. ``prepared_operands`` caches the hash tables of long IN lists across batches.

    Raises:
        ValueError: If ``data`` lacks a column.
        TypeError: If a literal cannot be compared with its column.
    """
    prepared_operands = {} if prepared_operands is None else prepared_operands
    if isinstance(data, pa.Table):
        masks = [evaluate(expression, batch, None, prepared_operands) for batch in data.to_batches()]
        return pa.concat_arrays(masks) if masks else evaluate(expression, _empty_batch(data.schema))
    return fold(expression, _Evaluator(data, computed_values, prepared_operands))


def value_of(operand: Operand, batch: pa.RecordBatch) -> pa.Array:
    """Return the value of ``operand``, such as a column or a computed value, in each row of ``batch``."""
    return _Evaluator(batch).value(operand)


def stored_values(column: Column, batch: pa.RecordBatch) -> pa.Array:
    """Return a column or struct field of ``batch`` in its stored type. A field is null if its parent is null."""
    return _Evaluator(batch)._column(column)[1]


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


class _Evaluator(Visitor[pa.Array]):
    def __init__(
        self, batch: pa.RecordBatch, computed_values: Mapping[tuple[Any, ...], pa.Array] | None = None,
        prepared_operands: Prepared | None = None,
    ) -> None:
        self.batch = batch
        self.known: dict[tuple[Any, ...], Any] = dict(computed_values or {})
        self.prepared: Prepared = {} if prepared_operands is None else prepared_operands

    def visit_and(self, operands: list[pa.Array]) -> pa.Array:
        result = operands[0]
        for operand in operands[1:]:
            result = pc.and_kleene(result, operand)
        return result

    def visit_or(self, operands: list[pa.Array]) -> pa.Array:
        result = operands[0]
        for operand in operands[1:]:
            result = pc.or_kleene(result, operand)
        return result

    def visit_not(self, operand: pa.Array) -> pa.Array:
        return pc.invert(operand)

    def visit_comparison(self, node: Comparison) -> pa.Array:
        array, value_type, indices = self._comparable(node.operand)
        result = compare(array, node.operator, comparison_value(node.value, value_type, node.operand))
        return result if indices is None else _expand_entries(result, indices)

    def visit_is_in(self, node: IsIn) -> pa.Array:
        array, value_type, indices = self._comparable(node.operand)
        held = self.prepared.get((id(node), array.type))
        if held is None or held[0] is not node:
            values = comparison_values(node.values, value_type, node.operand)
            table = _ValueSet.from_values(array.type, values)
            held = self.prepared[id(node), array.type] = node, table
        result = held[1].contains(array)
        if node.has_null:
            result = pc.if_else(result, result, pa.scalar(None, pa.bool_()))
        return result if indices is None else _expand_entries(result, indices)

    def visit_relation(self, node: Relation) -> pa.Array:
        sides = self.value(node.left), self.value(node.right)
        units = [self._value_type(*item) for item in zip((node.left, node.right), sides, strict=True)]
        if all(map(pa.types.is_duration, units)):
            check_comparable(
                comparison_type(units[0], str(node.left)), comparison_type(units[1], str(node.right)), str(node)
            )
        check_comparable(
            comparison_type(sides[0].type, str(node.left)), comparison_type(sides[1].type, str(node.right)), str(node)
        )
        return compare_arrays(to_comparable(sides[0]), node.operator, to_comparable(sides[1]))

    def visit_matches(self, node: Matches) -> pa.Array:
        array, indices = self._dictionary_entries(node.operand) or (self.value(node.operand), None)
        check_pattern_type(value_type_of_arrow(array.type), node)
        result = pa.nulls(len(array), pa.bool_()) if pa.types.is_null(array.type) else matches(
            array, node.how, node.pattern, node.escape
        )
        return result if indices is None else _expand_entries(result, indices)

    def visit_is_null(self, node: IsNull) -> pa.Array:
        return pc.invert(self._validity(node.operand))

    def visit_is_not_null(self, node: IsNotNull) -> pa.Array:
        return self._validity(node.operand)

    def visit_spatial(self, node: Spatial) -> pa.Array:
        array, type = self._geometries(node.operand)
        requested = predicate(node.operation, node.geometry, node.distance)
        try:
            return requested.relate(array, type)
        except ParquetError as error:
            error.locate(column=str(node.operand))
            raise

    def _geometries(self, operand: Operand) -> tuple[pa.Array, GeospatialType]:
        """Return the geometries that an operand stores or computes, with their CRS and edges."""
        is_computed = isinstance(operand, SpatialValue)
        array = self.value(operand) if is_computed else self._column(cast(StoredOperand, operand))[1]
        return array, geometry_type(operand, self._geometry_type)

    def _geometry_type(self, column: Column) -> GeospatialType:
        """Return the CRS and edges of a column of the batch."""
        from pqext.geo.summary import resolve_type
        from pqext.geo.types import type_of

        field, array = self._column(column)
        marked = type_of(field)
        edges, crs = (None, None) if marked is None else (marked.edges, marked.crs)
        return resolve_type(array, crs, edges)

    def _validity(self, operand: Operand) -> pa.Array:
        """Return, for each row, whether the operand is not null. The entries of a dictionary array can also be null."""
        result = self._dictionary_entries(operand)
        if result is None:
            return pc.is_valid(self.value(operand))
        entries, indices = result
        return pc.is_valid(entries.take(indices) if entries.null_count else indices)

    def _comparable(self, operand: Operand) -> tuple[pa.Array, ValueType, pa.Array | None]:
        """Return the array to compare, its category, and the entry index of each row if the array has entries."""
        known = (operand._key(), "comparable")
        if known not in self.known:
            array, indices = self._dictionary_entries(operand) or (self.value(operand), None)
            self.known[known] = self._value_type(operand, array), to_comparable(array), indices
        type, array, indices = self.known[known]
        value_type = value_type_of_arrow(type)
        if value_type is None:
            raise TypeError(f"column {label_of(operand)} of type {type} can only be compared with null")
        return array, value_type, indices

    def _value_type(self, operand: Operand, array: pa.Array) -> pa.DataType:
        """Return the type of an operand's values: ``array.type``, or the type of durations stored as integers."""
        shown = self._stored_type(operand) if pa.types.is_int64(array.type) else None
        return shown if shown is not None and pa.types.is_duration(shown) else array.type

    def _stored_type(self, operand: Operand) -> pa.DataType | None:
        """Return the Arrow type of a column, or None for computed values and columns that are not in the batch."""
        if not isinstance(operand, Column):
            return None
        names = self.batch.schema.names
        return self._column(operand)[1].type if operand.resolve_name(names).path[0] in names else None

    def _dictionary_entries(self, operand: Operand) -> tuple[pa.Array, pa.Array] | None:
        """Return the entries of a dictionary-encoded column, and the entry index of each row.

        None if the operand is not a dictionary-encoded column, or if its dictionary is empty or not shorter than the
        array.
        """
        array = self.known.get(operand._key())
        if array is None:
            if not isinstance(operand, Column):
                return None
            array = self._column(operand)[1]
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        if not pa.types.is_dictionary(array.type) or not 0 < len(array.dictionary) < len(array):
            return None
        return array.dictionary, array.indices

    def value(self, operand: Operand) -> pa.Array:
        key = operand._key()
        if key not in self.known:
            self.known[key] = self._read(operand)
        result = self.known[key]
        if isinstance(result, pa.DictionaryArray):
            result = self.known[key] = decode_dictionary(result)
        return result

    def _read(self, operand: Operand) -> pa.Array:
        if isinstance(operand, VariantField):
            from pqext.variant.access.cast import extract

            zone = operand.timezone or DEFAULT
            return extract(self.value(operand.column), operand.path, operand.type, strict=False, timezone=zone)
        if isinstance(operand, Cast):
            shown = self._stored_type(operand.operand)
            if isinstance(shown, pa.BaseExtensionType) and shown.extension_name == "arrow.uuid":
                return cast_uuids(self.value(operand.operand), operand)
        if isinstance(operand, SpatialValue):
            return compute_function(operand, self._geometries)
        if not isinstance(operand, Column):
            return compute(operand, self.value, self.batch.num_rows)
        array = self._column(operand)[1]
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type):
            return decode_dictionary(array)
        if pa.types.is_duration(array.type):  # as Parquet and its statistics store them
            return array.view(pa.int64())
        return decode_run_ends(array) if pa.types.is_run_end_encoded(array.type) else array

    def _column(self, column: StoredOperand) -> tuple[pa.Field, pa.Array]:
        if isinstance(column, Column):
            column = column.resolve_name(self.batch.schema.names)
        index = self.batch.schema.get_field_index(column.path[0])
        if index < 0:
            raise ValueError(f"column {column.path[0]!r} is missing or ambiguous")
        field, array = self.batch.schema.field(index), self.batch.column(index)
        for name in column.path[1:]:
            array = array.storage if isinstance(array, pa.ExtensionArray) else array
            index = array.type.get_field_index(name) if pa.types.is_struct(array.type) else -1
            if index < 0:
                raise ValueError(f"column {label_of(column)}: field {name!r} is missing or ambiguous in {array.type}")
            field, array = array.type.field(index), pc.struct_field(array, [index])
        return field, array


def _expand_entries(result: pa.BooleanArray, indices: pa.Array) -> pa.BooleanArray:
    """Expand a result for dictionary entries to rows; ``indices`` contains the entry index of each row."""
    if result.null_count or not pa.types.is_int32(indices.type) or (indices.null_count and indices.offset):
        return result.take(indices)
    flags, count = result.to_numpy(zero_copy_only=False).view(np.uint8), len(indices)
    chosen = np.flatnonzero(flags)
    if len(chosen) == 1:  # comparing all values together is faster than looking up each
        return pc.equal(indices, pa.scalar(chosen[0], indices.type))
    validity, values = indices.buffers()
    bits = np.zeros((count + 7) // 8, np.uint8)
    membership.look_up(flags, numbers(values, np.int32, indices.offset, count), bits)
    return pa.Array.from_buffers(pa.bool_(), count, [validity if indices.null_count else None, pa.py_buffer(bits)])


def to_comparable(array: pa.Array) -> pa.Array:
    """Cast an array to a type that :func:`compare` accepts.

    Floats are cast to double, text and fixed-size binary to binary, and 32- and 64-bit decimals to decimal128.
    Extension arrays are replaced by their storage.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    types, type = pa.types, array.type
    if types.is_float16(type) or types.is_float32(type):
        return array.cast(pa.float64())
    if types.is_string(type) or types.is_fixed_size_binary(type):
        return array.cast(pa.binary())
    if types.is_large_string(type) or types.is_string_view(type) or types.is_binary_view(type):
        return array.cast(pa.large_binary())
    if types.is_decimal32(type) or types.is_decimal64(type):
        return array.cast(pa.decimal128(type.precision, type.scale))
    return array


def compare(array: pa.Array, operator: Operator, value: Value) -> pa.Array:
    """Compute ``array operator value`` for a :func:`to_comparable` array and a value of the same category."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.bool_())
    if pa.types.is_floating(array.type):
        return _compare_float(array, operator, value)
    return _compare_literal(array, fit_literal(array.type, operator, value))


def _compare_literal(array: pa.Array, comparison: tuple[Operator, pa.Scalar] | bool) -> pa.Array:
    if isinstance(comparison, bool):
        return _fill_valid(array, comparison)
    operator, scalar = comparison
    return _COMPUTE[operator](_to_integers(array), scalar)


def _compare_float(array: pa.Array, operator: Operator, value: Value) -> pa.Array:
    if value != value:  # NaN is greater than all other values
        if operator in ("==", ">="):
            return pc.is_nan(array)
        if operator in ("!=", "<"):
            return pc.invert(pc.is_nan(array))
        return _fill_valid(array, operator == "<=")
    if operator in (">", ">="):  # in Arrow, all comparisons with NaN but != are false
        return pc.invert(_compare_float(array, NEGATED[operator], value))
    return _compare_literal(array, fit_literal(array.type, operator, value))


_MANY = 8
"""Minimum number of integers in a list that are looked up in a hash table."""


def is_in(array: pa.Array, values: tuple[Value, ...]) -> pa.Array:
    """Return whether each value of a :func:`to_comparable` array is in ``values``; null for null values."""
    return _ValueSet.from_values(array.type, values).contains(array)


@dataclass(frozen=True, slots=True)
class _ValueSet:
    """Set of the values of an IN list, without values that an array of the tested type cannot contain."""

    stored: pa.Array
    has_nan: bool
    table: IntegerSet | None = None
    """A hash table of the values if they are many integers."""

    @classmethod
    def from_values(cls, type: pa.DataType, values: tuple[Value, ...]) -> _ValueSet:
        """Create a set of the ``values`` that an array of ``type`` can contain."""
        result = cls._from_values(type, values)
        many = len(result.stored) >= _MANY and result.stored.type in (pa.int32(), pa.int64())
        return replace(result, table=IntegerSet(result.stored)) if many else result

    @classmethod
    def _from_values(cls, type: pa.DataType, values: tuple[Value, ...]) -> _ValueSet:
        if pa.types.is_null(type):
            return cls(pa.nulls(0), False)
        kept: list[Any] = [value for value in values if value == value]
        if pa.types.is_integer(type) and all(isinstance(value, int) for value in kept):
            low, high = range_of(type)
            return cls(pa.array([value for value in kept if low <= value <= high], type), len(kept) < len(values))
        floating = pa.types.is_floating(type)
        places = [locate_float(value) if floating else locate(value, type) for value in kept]
        results = [scalar for place, scalar in places if place is Position.EXACT]
        if floating and any(scalar.as_py() == 0 for scalar in results):
            results += [pa.scalar(0.0), pa.scalar(-0.0)]  # the two zeros are equal, but not in a hash table
        stored = type if floating else _to_integers(pa.nulls(0, type)).type
        return cls(pa.array(results, stored), len(kept) < len(values))

    def contains(self, array: pa.Array) -> pa.Array:
        """Return, for each value, whether the set contains the value; null for null values."""
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), pa.bool_())
        stored = array if pa.types.is_floating(array.type) else _to_integers(array)
        if self.table is not None and stored.type in (pa.int32(), pa.int64()) and len(stored):
            result = self.table.contains(stored)
        else:
            result = pc.is_in(stored, self.stored, skip_nulls=True)
        if self.has_nan:
            result = pc.or_(result, pc.fill_null(pc.is_nan(array), False))
        return pc.if_else(pc.is_valid(array), result, None) if array.null_count else result


def _to_integers(array: pa.Array) -> pa.Array:
    """View times and dates as their stored integers; return other arrays unchanged."""
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array


def _fill_valid(array: pa.Array, value: bool) -> pa.Array:
    return pc.if_else(pc.is_valid(array), pa.scalar(value), pa.scalar(None, pa.bool_()))


class IntegerSet:
    """Hash set of integers, which is built once for all batches."""

    def __init__(self, integers: pa.Array) -> None:
        values = integers.to_numpy().astype(np.int64)
        size = 1 << (4 * len(values)).bit_length()
        self._keys, self._used = np.zeros(size, np.int64), np.zeros(size, np.uint8)
        self._least, self._most = int(values.min()), int(values.max())
        membership.fill(values, self._keys, self._used)

    def contains(self, array: pa.Array) -> pa.BooleanArray:
        """Return, for each integer, whether the set contains the integer. The results for nulls are undefined."""
        kind = np.int32 if array.type.bit_width == 32 else np.int64
        values = numbers(array.buffers()[1], kind, array.offset, len(array))
        bits = np.zeros((len(values) + 7) // 8, np.uint8)
        membership.holds(self._keys, self._used, self._least, self._most, values, bits)
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
