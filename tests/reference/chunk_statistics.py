"""What the statistics of a leaf must say, found value by value from an Arrow table.

``leaves`` takes a table apart by the Dremel twin; ``Leaf.statistics`` counts and compares the entries of some rows:
those of a row group, or of a page. Bounds are PLAIN bytes in the order of the column's type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from reference import dremel, values


@dataclass(frozen=True)
class Expected:
    """``minimum`` and ``maximum`` are ``None`` where no value has an order; histograms count levels from 0 up.

    ``byte_array_bytes`` is ``None`` for leaves that are no byte arrays of varying length.
    """

    entries: int
    nulls: int
    nans: int
    minimum: bytes | None
    maximum: bytes | None
    definition_levels: list[int]
    repetition_levels: list[int]
    byte_array_bytes: int | None

    @property
    def nothing_but_nan(self) -> bool:
        """Are there values, but none with an order?"""
        return self.nans > 0 and self.nans == self.entries - self.nulls


@dataclass(frozen=True)
class Leaf:
    """A leaf column; ``rows`` holds for each row its entries: repetition level, definition level, value."""

    path: str
    type: pa.DataType
    max_definition: int
    max_repetition: int
    rows: list[list[dremel.Entry]]

    def statistics(self, rows: range) -> Expected:
        """What must be said of some rows."""
        entries = [entry for row in rows for entry in self.rows[row]]
        present = [value for _, level, value in entries if level == self.max_definition]
        numbers = [value for value in present if value != "nan"]
        least = min(numbers, key=self._rank, default=None)
        greatest = max(numbers, key=self._rank, default=None)
        return Expected(
            entries=len(entries), nulls=len(entries) - len(present), nans=len(present) - len(numbers),
            minimum=None if least is None else self._bound(least, negative_zero=True),
            maximum=None if greatest is None else self._bound(greatest, negative_zero=False),
            definition_levels=[sum(e[1] == level for e in entries) for level in range(self.max_definition + 1)],
            repetition_levels=[sum(e[0] == level for e in entries) for level in range(self.max_repetition + 1)],
            byte_array_bytes=sum(map(len, present)) if is_.is_string(self.type) or is_.is_binary(self.type) else None,
        )

    def _rank(self, value: Any) -> Any:
        if is_.is_floating(self.type):
            return struct.unpack(">d", bytes.fromhex(value))[0]
        return value[0] if is_.is_decimal(self.type) else value

    def rank(self, bound: bytes) -> Any:
        """Where a bound stands in the order of the column's type."""
        kind = self.type
        if is_.is_floating(kind):
            return struct.unpack("<f" if is_.is_float32(kind) else "<d", bound)[0]
        if is_.is_decimal(kind):
            return int.from_bytes(bound, "big" if kind.precision > 18 else "little", signed=True)
        if is_.is_string(kind) or is_.is_binary(kind) or is_.is_fixed_size_binary(kind):
            return bound
        return int.from_bytes(bound, "little", signed=not is_.is_unsigned_integer(kind) and not is_.is_boolean(kind))

    def _bound(self, value: Any, *, negative_zero: bool) -> bytes:
        if is_.is_floating(self.type):
            number = self._rank(value) or (-0.0 if negative_zero else 0.0)
            return struct.pack("<f" if is_.is_float32(self.type) else "<d", number)
        return plain_bytes(self.type, value)


def plain_bytes(kind: pa.DataType, value: Any) -> bytes:
    """A value of :mod:`reference.values` in PLAIN encoding, a byte array without its length; floats apart."""
    if isinstance(value, bytes):
        return value
    if is_.is_boolean(kind):
        return bytes([value])
    if is_.is_decimal(kind):
        if kind.precision <= 9:
            return value[0].to_bytes(4, "little", signed=True)  # type: ignore[no-any-return]
        if kind.precision <= 18:
            return value[0].to_bytes(8, "little", signed=True)  # type: ignore[no-any-return]
        width = 1
        while 2 ** (8 * width - 1) <= 10**kind.precision - 1:
            width += 1
        return value[0].to_bytes(width, "big", signed=True)  # type: ignore[no-any-return]
    if is_.is_timestamp(kind) or is_.is_time(kind):
        value //= values.NANOSECONDS[kind.unit]
    width = 8 if kind.bit_width == 64 else 4
    return (value % 2 ** (8 * width)).to_bytes(width, "little")  # type: ignore[no-any-return]


def leaves(table: pa.Table) -> list[Leaf]:
    """The leaves of a table of scalars, structs, lists and maps, in the order in which they are stored."""
    found = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = _kind(field)
        rows = [dremel.shred(kind, [_value(field.type, value)]) for value in values.plain(column)]
        leaf_types = _leaf_types(field, (), (0, 0))
        for path, (name, leaf, definition, repetition) in zip(dremel.leaf_paths(kind), leaf_types, strict=True):
            found.append(Leaf(name, leaf, definition, repetition, [row[path] for row in rows]))
    return found


def _parts(kind: pa.DataType) -> list[tuple[pa.Field, tuple[str, ...], bool]]:
    """The fields within a nested type, their names in the file from there, and whether they repeat."""
    if is_.is_struct(kind):
        return [(field, (field.name,), False) for field in kind]
    if is_.is_map(kind):
        return [(kind.key_field, ("key_value", "key"), True), (kind.item_field, ("key_value", "value"), True)]
    return [(kind.value_field, ("list", "element"), True)] if is_.is_list(kind) else []


def _kind(field: pa.Field) -> dremel.Type:
    parts = [_kind(part) for part, _, _ in _parts(field.type)]
    shape: Any = ("leaf",)
    if is_.is_struct(field.type):
        shape = ("struct", {part.name: kind for part, kind in zip(field.type, parts, strict=True)})
    elif is_.is_map(field.type):
        shape = ("list", (False, ("struct", {"key": parts[0], "value": parts[1]})))
    elif parts:
        shape = ("list", parts[0])
    return field.nullable, shape


def _value(kind: pa.DataType, value: Any) -> Any:
    """A value as the Dremel twin takes it."""
    if value is None:
        return None
    types = [part.type for part, _, _ in _parts(kind)]
    if is_.is_struct(kind):
        return {field.name: _value(field.type, child) for field, child in zip(kind, value, strict=True)}
    if is_.is_map(kind):
        return [{"key": _value(types[0], key), "value": _value(types[1], item)} for key, item in value]
    return [_value(types[0], element) for element in value] if types else value


def _leaf_types(
    field: pa.Field, above: tuple[str, ...], levels: tuple[int, int]
) -> list[tuple[str, pa.DataType, int, int]]:
    """Path, type and highest levels of the leaves of a field that stands below ``levels``."""
    path = above or (field.name,)
    definition, repetition = levels[0] + field.nullable, levels[1]
    parts = _parts(field.type)
    if not parts:
        return [(".".join(path), field.type, definition, repetition)]
    return [
        leaf
        for part, names, repeats in parts
        for leaf in _leaf_types(part, (*path, *names), (definition + repeats, repetition + repeats))
    ]
