"""Targets of the variant code: encoded values, and rows of shredded columns.

Beside what every target holds, the entries agree with each other: what full validation passes is read, shredded,
reconstructed and shown, and equal afterwards; what it refuses the reference implementation refuses, too.
"""

from __future__ import annotations

import datetime
import sys
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from pqext import variant as v
from pqext.core.base.errors import ParquetError
from pqext.variant.shredding.schema import (
    Array,
    Object,
    Primitive,
    ShreddingSchema,
    Untyped,
    shredding_schema,
    storage_struct,
)
from reference import variant_value as reference

STACK = 50_000
"""What Python's recursion limit must be for the reference implementation."""

SCHEMAS = [
    shredding_schema(ddl)
    for ddl in (
        "BIGINT",
        "STRING",
        "a INT, b STRING",
        "ARRAY<DOUBLE>",
        "ARRAY<ARRAY<BOOLEAN>>",
        "a STRUCT<b: ARRAY<STRUCT<c: DECIMAL(9,2), a: DATE>>>, c TIME",
        "a TIMESTAMP, b VARIANT, c UUID, `` BINARY",
        "a DECIMAL(38,10), b TIMESTAMP_NTZ_NS",
    )
]
COERCE: tuple[Literal["equivalent", "exact", "json"], ...] = ("equivalent", "exact", "json")
PATHS = ("$", "$.a", "$.a.b[0]", "$[1]", "$['']")
TYPES = (pa.int32(), pa.string(), pa.decimal128(9, 2), pa.timestamp("us", "UTC"), pa.bool_(), pa.float64())


def variant(data: bytes) -> None:
    """A value: a byte that chooses a schema, two for the length of the metadata, metadata and value."""
    if len(data) < 3:
        return
    length = int.from_bytes(data[1:3], "little")
    metadata, value = data[3 : 3 + length], data[3 + length :]
    array = pa.array([{"metadata": metadata, "value": value}], v.variant_type())
    v.validate(array, "fast")
    fault = v.validate(array, allow_unknown=False)
    assert (v.find_faults(array, allow_unknown=False).num_rows == 0) == (fault is None)
    if fault is None or fault.message != "the value is nested too deeply":
        try:
            reference.decode(metadata, value)
            broken = False
        except reference.Broken:
            broken = True
        assert broken == (fault is not None), fault
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    _read(array)
    for coerce in COERCE:
        try:
            shredded = v.shred(array, schema, coerce=coerce)
            back = v.unshred(shredded)
        except ParquetError:
            assert fault is not None
            continue
        _read(shredded)
        if fault is None:
            assert v.validate(shredded) is None
            if coerce != "json":
                assert _one(v.unshred(shredded, strict=True)) == _one(back) == _one(array)
    if fault is None:
        assert isinstance(v.to_json(array)[0].as_py(), str)


def _one(array: pa.Array) -> v.Variant:
    row = array[0].as_py()
    return v.Variant(row["value"], row["metadata"])


def _read(array: pa.Array) -> None:
    """Everything that reads an array; only errors of the format may come out."""
    for path in PATHS:
        for type in TYPES:
            with suppress(ParquetError):
                v.get(array, path, type)
    with suppress(ParquetError):
        v.to_json(array)
    if v.is_variant_type(array.type):
        for read in (v.Variant.to_python, v.Variant.to_json, hash, repr, lambda x: x.get("$.a.b[0]"), lambda x: x["a"]):
            with suppress(ParquetError, LookupError, TypeError, OverflowError):
                read(_one(array))


class _Bytes:
    """Bytes given out one after another; zeros behind the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken + b"\0" * (count - len(taken))

    def number(self) -> int:
        return self.take(1)[0]

    @property
    def left(self) -> bool:
        return self.at < len(self.data)


def shredded(data: bytes) -> None:
    """Rows of shredded columns: a byte for the schema, then metadata and columns as ``_columns`` reads them."""
    if not data:
        return
    given = _Bytes(data[1:])
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    rows: list[Any] = []
    while given.left and len(rows) < 4:
        metadata = given.take(given.number())
        rows.append({"metadata": metadata, **_columns(given, schema)})
    array = pa.array(rows, storage_struct(schema))
    v.validate(array, "fast")
    fault = v.validate(array)
    table = v.find_faults(array)
    assert (table.num_rows == 0) == (fault is None)
    for strict in (False, True):
        try:
            whole = v.unshred(array, strict=strict)
        except ParquetError:
            assert fault is not None, "reconstruction refuses what validation passes"
            continue
        if fault is None:
            assert v.validate(whole) is None
    _read(array)


def _columns(given: _Bytes, schema: ShreddingSchema) -> dict[str, Any]:
    """``value`` and ``typed_value``: a byte says which are there and, of a value, how long it is."""
    how = given.number()
    columns: dict[str, Any] = {"value": given.take(how >> 2) if how & 1 else None}
    if isinstance(schema, Untyped):
        return columns
    columns["typed_value"] = _typed(given, schema) if how & 2 else None
    return columns


def _typed(given: _Bytes, schema: ShreddingSchema) -> Any:
    if isinstance(schema, Object):
        return {name: _columns(given, child) for name, child in schema.fields}
    if isinstance(schema, Array):
        return [_columns(given, schema.element) for _ in range(given.number() % 4)]
    assert isinstance(schema, Primitive)
    kind, raw = schema.type, given.take(4)
    number = int.from_bytes(raw, "little", signed=True)
    if pa.types.is_decimal(kind):
        return Decimal((0, tuple(map(int, str(number % 10**kind.precision))), -kind.scale))
    if pa.types.is_string(kind):
        return raw.decode("latin-1")
    if pa.types.is_binary(kind):
        return raw
    if pa.types.is_fixed_size_binary(kind):
        return raw * 4
    if pa.types.is_boolean(kind):
        return bool(number & 1)
    if pa.types.is_floating(kind):
        return number / 7
    if pa.types.is_time(kind):
        return datetime.time(number % 24)
    return number
