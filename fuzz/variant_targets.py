"""Fuzz targets for the variant code: encoded values, and rows of shredded columns.

In addition to raising no unexpected errors, the functions must agree: a valid value can be read, shredded and
reconstructed unchanged, and validation rejects the same values as the reference implementation.
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

RECURSION_LIMIT = 50_000
"""Python's recursion limit as the reference implementation requires it."""

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
    """Read a byte that selects a schema, the length of the metadata in two bytes, then metadata and value."""
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
            is_broken = False
        except reference.Broken:
            is_broken = True
        assert is_broken == (fault is not None), fault
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    _read(array)
    for coerce in COERCE:
        try:
            shredded = v.shred(array, schema, coerce=coerce)
            restored = v.unshred(shredded)
        except ParquetError:
            assert fault is not None
            continue
        _read(shredded)
        if fault is None:
            assert v.validate(shredded) is None
            if coerce != "json":
                strict = v.unshred(shredded, strict=True)
                assert _first_value(strict) == _first_value(restored) == _first_value(array)
    if fault is None:
        assert isinstance(v.to_json(array)[0].as_py(), str)


def _first_value(array: pa.Array) -> v.Variant:
    row = array[0].as_py()
    return v.Variant(row["value"], row["metadata"])


def _read(array: pa.Array) -> None:
    """Call every function that reads an array; only errors of the format are allowed."""
    for path in PATHS:
        for type in TYPES:
            with suppress(ParquetError):
                v.get(array, path, type)
    with suppress(ParquetError):
        v.to_json(array)
    if v.is_variant_type(array.type):
        for read in (v.Variant.to_python, v.Variant.to_json, hash, repr, lambda x: x.get("$.a.b[0]"), lambda x: x["a"]):
            with suppress(ParquetError, LookupError, TypeError, OverflowError):
                read(_first_value(array))


class _ByteReader:
    """Sequential reader of bytes that returns zeros after the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        data = self.data[self.at : self.at + count]
        self.at += count
        return data + b"\0" * (count - len(data))

    def take_byte(self) -> int:
        return self.take(1)[0]

    @property
    def has_more(self) -> bool:
        return self.at < len(self.data)


def shredded(data: bytes) -> None:
    """Read a byte that selects a schema, then rows of shredded columns in the format of ``_columns``."""
    if not data:
        return
    reader = _ByteReader(data[1:])
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    rows: list[Any] = []
    while reader.has_more and len(rows) < 4:
        metadata = reader.take(reader.take_byte())
        rows.append({"metadata": metadata, **_columns(reader, schema)})
    array = pa.array(rows, storage_struct(schema))
    v.validate(array, "fast")
    fault = v.validate(array)
    table = v.find_faults(array)
    assert (table.num_rows == 0) == (fault is None)
    for strict in (False, True):
        try:
            restored = v.unshred(array, strict=strict)
        except ParquetError:
            assert fault is not None, "reconstruction rejects a valid value"
            continue
        if fault is None:
            assert v.validate(restored) is None
    _read(array)


def _columns(reader: _ByteReader, schema: ShreddingSchema) -> dict[str, Any]:
    """Read ``value`` and ``typed_value`` after a byte with their presence and the length of ``value``."""
    flags = reader.take_byte()
    columns: dict[str, Any] = {"value": reader.take(flags >> 2) if flags & 1 else None}
    if isinstance(schema, Untyped):
        return columns
    columns["typed_value"] = _typed(reader, schema) if flags & 2 else None
    return columns


def _typed(reader: _ByteReader, schema: ShreddingSchema) -> Any:
    if isinstance(schema, Object):
        return {name: _columns(reader, child) for name, child in schema.fields}
    if isinstance(schema, Array):
        return [_columns(reader, schema.element) for _ in range(reader.take_byte() % 4)]
    assert isinstance(schema, Primitive)
    type, raw = schema.type, reader.take(4)
    number = int.from_bytes(raw, "little", signed=True)
    if pa.types.is_decimal(type):
        return Decimal((0, tuple(map(int, str(number % 10**type.precision))), -type.scale))
    if pa.types.is_string(type):
        return raw.decode("latin-1")
    if pa.types.is_binary(type):
        return raw
    if pa.types.is_fixed_size_binary(type):
        return raw * 4
    if pa.types.is_boolean(type):
        return bool(number & 1)
    if pa.types.is_floating(type):
        return number / 7
    if pa.types.is_time(type):
        return datetime.time(number % 24)
    return number
