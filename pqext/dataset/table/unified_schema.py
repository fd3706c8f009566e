"""Unify the schemas of files into one Arrow schema, by column name.

A column that a file lacks is null there. Types are widened so that every value is preserved:

| types | unified type |
|---|---|
| null and another type | the other type |
| integers | the narrowest type for all their values; int64 for uint64 and a signed type |
| an integer and a float | float if the integer has at most 16 bits and the float 32, otherwise double |
| floats | the wider type |
| decimals; a decimal and an integer | a decimal with all their digits, at most 76; int32 has 10, int64 has 19 |
| times; durations; timestamps that are all instants or all without a zone | the finest unit, the first zone |
| string, large_string, string_view | large_string if one is large, otherwise string; binary alike |
| a string and binary; fixed-size binaries of different sizes | binary |
| a dictionary and plain values | plain values; two dictionaries remain a dictionary |
| structs | a struct of all their fields, in the order of the first one |
| lists; maps | a list or map of unified elements: large if one is large, variable-size if sizes differ |

A value that does not fit the type (beyond int64, or beyond 2^53 as a double) is an error when it is read. All other
combinations are conflicts: a decimal and a float have no common type without loss; bool, dates, extension types,
VARIANT and geometries can only be unified with the same type.

A file that is added to a folder needs types that hold all old and new values. These may be wider than the unified
types, which not every value fits (a 64-bit integer as a double).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from pqext.core.base.errors import GeometryError, SchemaMismatchError
from pqext.core.base.text import escape_text
from pqext.core.schema.types.marks import marks
from pqext.geo.geoparquet_types import strip_extents
from pqext.geo.types import describe_difference, type_of

_DECIMALS = {32: (9, pa.decimal32), 64: (18, pa.decimal64), 128: (38, pa.decimal128), 256: (76, pa.decimal256)}
"""Decimal types by bit width: the maximum precision, and the factory."""
_UNITS = ("s", "ms", "us")
"""Timestamp units between which all calendar dates convert; nanoseconds cover 584 years."""


class Conflict(Exception):
    """Raised if two types have no common type. ``path`` is the path of the conflicting field within the column."""

    def __init__(self, first: object, other: object, path: tuple[str, ...] = ()) -> None:
        super().__init__(first, other, path)
        self.first = first
        self.other = other
        self.path = path


class Unifier:
    """Incremental merge of the schemas of files.

    ``schema`` is the unified schema of the files added so far.
    The types of columns that are not in ``required_columns`` may conflict. By default, all columns are required.
    """

    def __init__(self, required_columns: Collection[str] | None = None) -> None:
        self._needed = required_columns
        self._fields: dict[str, pa.Field] = {}
        self._named: dict[str, str] = {}
        self._metadata: dict[bytes, bytes] | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns in the order of their first appearance. All columns are nullable."""
        schema = pa.schema([field.with_nullable(True) for field in self._fields.values()], self._metadata)
        return strip_extents(schema)

    def add(self, schema: pa.Schema, path: str) -> None:
        """Add the columns of the file at ``path``.

        Raises ``ValueError`` with the column, both types and both files if a type conflicts with that of an earlier
        file.
        """
        if len(set(schema.names)) < len(schema.names):
            raise SchemaMismatchError(f"schemas cannot be matched by name: {path} has duplicate column names")
        self._metadata = self._metadata or schema.metadata
        for field in schema:
            known = self._fields.get(field.name)
            if known is None:
                self._fields[field.name], self._named[field.name] = field, path
                continue
            if known.equals(field, check_metadata=True):
                continue
            try:
                unified = unify_fields(known, field)
            except Conflict as found:
                if self._needed is not None and field.name not in self._needed:
                    continue
                name = ".".join((field.name, *found.path))
                raise SchemaMismatchError(
                    f"schemas cannot be unified: column {name!r} is {found.first} in {self._named[field.name]} and "
                    f"{found.other} in {path}; omit the column with columns=, or set its type with "
                    "schema=pyarrow.schema(...)"
                ) from None
            if unified.type != known.type:
                self._named[field.name] = path
            self._fields[field.name] = unified


def unify_fields(first: pa.Field, other: pa.Field) -> pa.Field:
    """Unify two fields into one with the name of ``first``. Raises :exc:`Conflict` if they have no common type."""
    if pa.types.is_null(first.type):
        return other.with_name(first.name).with_nullable(True)
    if pa.types.is_null(other.type):
        return first.with_nullable(True)
    if marks(first) != marks(other):
        first_type, other_type = describe_marks(first, other)
        raise Conflict(f"{first.type} with {first_type}", f"{other.type} with {other_type}")
    if marks(first) and first.type != other.type and not (_is_binary(first.type) and _is_binary(other.type)):
        raise Conflict(first.type, other.type)
    return first.with_type(unify_types(first.type, other.type)).with_nullable(first.nullable or other.nullable)


def unify_types(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Unify two types by the table in this module. Raises :exc:`Conflict` if they have no common type."""
    types = pa.types
    if first == other:
        return first
    if types.is_null(first) or types.is_null(other):
        return other if types.is_null(first) else first
    if isinstance(first, pa.BaseExtensionType) or isinstance(other, pa.BaseExtensionType):
        raise Conflict(first, other)
    if types.is_dictionary(first) or types.is_dictionary(other):
        return _unify_dictionaries(first, other)
    if types.is_struct(first) and types.is_struct(other):
        return _unify_structs(first, other)
    if types.is_map(first) and types.is_map(other):
        item = _unify_child("value", first.item_field, other.item_field)
        return pa.map_(
            _unify_child("key", first.key_field, other.key_field), item, first.keys_sorted and other.keys_sorted
        )
    if _is_list(first) and _is_list(other):
        return _unify_lists(first, other)
    if _is_binary(first) and _is_binary(other):
        return _unify_binary(first, other)
    if types.is_timestamp(first) and types.is_timestamp(other):
        if (first.tz is None) != (other.tz is None):
            raise Conflict(first, other)
        return pa.timestamp(_finest_unit(first.unit, other.unit), first.tz)
    if _is_number(first) and _is_number(other):
        return _unify_numbers(first, other)
    for same in (types.is_time, types.is_duration, types.is_date):
        if same(first) and same(other):
            return _merge_types(first, other)
    raise Conflict(first, other)


def _unify_dictionaries(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    if not (types.is_dictionary(first) and types.is_dictionary(other)):
        first, other = (item.value_type if types.is_dictionary(item) else item for item in (first, other))
        return unify_types(first, other)
    values = unify_types(first.value_type, other.value_type)
    return pa.dictionary(_merge_types(first.index_type, other.index_type), values, first.ordered and other.ordered)


def _unify_structs(first: pa.StructType, other: pa.StructType) -> pa.DataType:
    names = [field.name for field in first]
    others = {field.name: field for field in other}
    if len(set(names)) < len(names) or len(others) < other.num_fields:
        raise Conflict(first, other)
    fields = [
        _unify_child(field.name, field, others[field.name]) if field.name in others else field.with_nullable(True)
        for field in first
    ]
    return pa.struct([*fields, *(field.with_nullable(True) for field in other if field.name not in names)])


def _unify_lists(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    value = _unify_child("element", first.value_field, other.value_field)
    both = (first, other)
    if all(map(types.is_fixed_size_list, both)) and first.list_size == other.list_size:
        return pa.list_(value, first.list_size)
    is_large = any(types.is_large_list(element) or types.is_large_list_view(element) for element in both)
    if all(types.is_list_view(item) or types.is_large_list_view(item) for item in both):
        return pa.large_list_view(value) if is_large else pa.list_view(value)
    return pa.large_list(value) if is_large else pa.list_(value)


def _unify_child(name: str, first: pa.Field, other: pa.Field) -> pa.Field:
    try:
        return unify_fields(first, other)
    except Conflict as found:
        raise Conflict(found.first, found.other, (name, *found.path)) from None


def _unify_binary(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    both = (first, other)
    is_large = any(pa.types.is_large_string(item) or pa.types.is_large_binary(item) for item in both)
    if all(map(_is_text, both)):
        return pa.large_string() if is_large else pa.string()
    return pa.large_binary() if is_large else pa.binary()


def _unify_numbers(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    both = (first, other)
    if any(map(types.is_floating, both)):
        if any(map(types.is_decimal, both)):
            raise Conflict(first, other)
        if all(map(types.is_floating, both)):
            return max(both, key=lambda type: type.bit_width)
        return pa.float32() if all(_is_within_float(item) for item in both) else pa.float64()
    if any(map(types.is_decimal, both)):
        return _unify_decimals(first, other)
    return _merge_types(first, other)


def _unify_decimals(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the narrowest decimal type for all values of both types. Raises :exc:`Conflict` if none is wide enough."""
    both = (first, other)
    scale = max(type.scale if pa.types.is_decimal(type) else 0 for type in both)
    digits = max(type.precision - type.scale if pa.types.is_decimal(type) else _digits(type) for type in both)
    width = max(type.bit_width for type in both if pa.types.is_decimal(type))
    for bits, (most, factory) in _DECIMALS.items():
        if bits >= width and digits + scale <= most:
            return factory(digits + scale, scale)
    raise Conflict(first, other)


def _digits(integer: pa.DataType) -> int:
    """Return the number of decimal digits of an integer type's largest value."""
    bits = integer.bit_width - pa.types.is_signed_integer(integer)
    return len(str((1 << bits) - 1))


def _is_within_float(type: pa.DataType) -> bool:
    return bool(type.bit_width <= (32 if pa.types.is_floating(type) else 16))


def _merge_types(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Unify two types with Arrow's type promotion. Raises :exc:`Conflict` if Arrow finds no common type."""
    both = [pa.schema([("x", type)]) for type in (first, other)]
    try:
        return pa.unify_schemas(both, promote_options="permissive").field("x").type
    except pa.ArrowException:
        raise Conflict(first, other) from None


def _finest_unit(*units: str) -> str:
    return max(units, key=("s", "ms", "us", "ns").index)


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _is_text(type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def _is_binary(type: pa.DataType) -> bool:
    types = pa.types
    is_bytes = types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type)
    return bool(is_bytes or types.is_fixed_size_binary(type) or _is_text(type))


def _is_list(type: pa.DataType) -> bool:
    types = pa.types
    is_view = types.is_list_view(type) or types.is_large_list_view(type)
    return bool(is_view or types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def describe_marks(first: pa.Field, other: pa.Field) -> tuple[str, str]:
    """Describe the extension types of two fields: CRS and edges of geometries, otherwise name and parameters."""
    try:
        types = type_of(first), type_of(other)
    except GeometryError:  # the metadata is invalid
        types = None, None
    if types[0] is not None and types[1] is not None:
        return describe_difference(types[0], types[1])
    return _describe_mark(first), _describe_mark(other)


def _describe_mark(field: pa.Field) -> str:
    texts = [escape_text(text) for text in marks(field).values() if text]
    return f"the extension type {' '.join(texts)}" if texts else "no extension type"


def merge_schemas(first: pa.Schema, other: pa.Schema, first_path: str, other_path: str) -> pa.Schema:
    """Merge two schemas. Columns and struct fields that are missing from either schema become nullable.

    Raises ``SchemaMismatchError`` with the column and the types if no type holds all values of a column, or if two
    names differ only in case.
    """
    fields = {field.name: field for field in first}
    for field in other:
        known = fields.get(field.name)
        if known is None:
            fields[field.name] = field
            continue
        try:
            unified = unify_fields(known, field)
        except Conflict:
            unified = None
        if unified is None or not (can_represent(unified.type, known.type) and can_represent(unified.type, field.type)):
            raise SchemaMismatchError(
                f"schemas cannot be merged: column {field.name!r} is {known.type} in {first_path} and {field.type} in "
                f"{other_path}, and no type can represent all values of both"
            )
        fields[field.name] = unified
    check_case([*fields.values()], "schemas cannot be merged")
    return pa.schema([field.with_nullable(True) for field in fields.values()], first.metadata)


def check_case(fields: Iterable[pa.Field], failure: str, advice: str = "", parent: str = "") -> None:
    """Raise ``SchemaMismatchError`` if two columns, or two fields of a struct, have names that differ only in case."""
    names: dict[str, str] = {}
    for field in fields:
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name:
            both = f"{parent + other!r} and {parent + field.name!r}"
            raise SchemaMismatchError(f"{failure}: columns {both} differ only in case{advice}")
        if pa.types.is_nested(field.type):
            children = [field.type.field(number) for number in range(field.type.num_fields)]
            check_case(children, failure, advice, f"{parent}{field.name}.")


def can_represent(type: pa.DataType, file_type: pa.DataType) -> bool:
    """Return whether ``type``, the unified type of a column, can represent every value of ``file_type``."""
    types = pa.types
    if type == file_type or types.is_null(file_type):
        return True
    if types.is_nested(file_type):
        return _can_represent_nested(type, file_type)
    if types.is_decimal(type) and type.precision > 38:
        return False  # most readers, including Spark, do not support such a type
    if types.is_integer(file_type):
        if types.is_decimal(type):
            return True  # a unified decimal has all digits of the integer
        if types.is_floating(type):
            return bool(file_type.bit_width <= {16: 8, 32: 16, 64: 32}[type.bit_width])
        is_wider = type.bit_width > file_type.bit_width
        return bool(is_wider and (types.is_signed_integer(type) or types.is_unsigned_integer(file_type)))
    if types.is_floating(file_type):
        return bool(types.is_floating(type) and type.bit_width > file_type.bit_width)
    if types.is_timestamp(file_type):
        return {type.unit, file_type.unit} <= {*_UNITS}
    same = (types.is_decimal, _is_text, _is_bytes, types.is_time)
    return any(test(file_type) and test(type) for test in same)


def _can_represent_nested(type: pa.DataType, file_type: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(file_type):
        return types.is_struct(type) and all(can_represent(type.field(item.name).type, item.type) for item in file_type)
    if types.is_map(file_type):
        return (
            types.is_map(type)
            and can_represent(type.key_type, file_type.key_type)
            and can_represent(type.item_type, file_type.item_type)
        )
    return types.is_nested(type) and can_represent(type.value_type, file_type.value_type)


def _is_bytes(type: pa.DataType) -> bool:
    types = pa.types
    is_variable = types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type)
    return bool(is_variable or types.is_fixed_size_binary(type))


def are_unifiable(schemas: Iterable[pa.Schema]) -> bool:
    """Return whether :class:`Unifier` can unify all ``schemas``."""
    unifier = Unifier()
    try:
        for schema in schemas:
            unifier.add(schema, "")
    except SchemaMismatchError:
        return False
    return True
