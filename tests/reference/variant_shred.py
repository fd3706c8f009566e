"""Variants read, written, shredded and reconstructed one value at a time, as the specification says it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pqext.variant.shredding.schema import Array, Object, Primitive, ShreddingSchema, Untyped

FIXED = {
    0: ("null", 0), 1: ("true", 0), 2: ("false", 0), 3: ("int8", 1), 4: ("int16", 2), 5: ("int32", 4),
    6: ("int64", 8), 7: ("double", 8), 8: ("decimal4", 5), 9: ("decimal8", 9), 10: ("decimal16", 17),
    11: ("date", 4), 12: ("timestamp", 8), 13: ("timestamp_ntz", 8), 14: ("float", 4), 17: ("time", 8),
    18: ("timestamp_nanos", 8), 19: ("timestamp_ntz_nanos", 8), 20: ("uuid", 16),
}  # fmt: skip
IDS = {name: number for number, (name, _) in FIXED.items()} | {"binary": 15, "string": 16}
EXACT = {"int8", "int16", "int32", "int64", "decimal4", "decimal8", "decimal16"}


@dataclass(frozen=True)
class Value:
    """A decoded value: objects hold (id, name, value) triples, arrays values; ``raw`` is the encoded form."""

    type: str
    data: Any
    raw: bytes


def _uint(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def decode_metadata(data: bytes) -> list[str]:
    size = (data[0] >> 6) + 1
    count = _uint(data, 1, size)
    offsets = [_uint(data, 1 + size * (i + 1), size) for i in range(count + 1)]
    strings = data[1 + size * (count + 2) :]
    return [strings[a:b].decode() for a, b in pairwise(offsets)]


def encode_metadata(names: list[str], size: int = 0) -> bytes:
    strings = [name.encode() for name in names]
    offsets = [sum(map(len, strings[:i])) for i in range(len(strings) + 1)]
    size = max(size, _width(max(offsets[-1], len(names))))
    is_sorted = all(a < b for a, b in pairwise(strings))
    out = bytes([1 | is_sorted << 4 | (size - 1) << 6]) + len(names).to_bytes(size, "little")
    return out + b"".join(offset.to_bytes(size, "little") for offset in offsets) + b"".join(strings)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def decode(data: bytes, names: list[str]) -> Value:
    """The value that starts ``data``; ``raw`` is as long as the value."""
    basic, header = data[0] & 3, data[0] >> 2
    if basic == 1:
        return Value("string", data[1 : 1 + header].decode(), data[: 1 + header])
    if basic == 0 and header in (15, 16):
        stop = 5 + _uint(data, 1, 4)
        body = data[5:stop]
        return Value("string" if header == 16 else "binary", body.decode() if header == 16 else body, data[:stop])
    if basic == 0:
        name, size = FIXED[header]
        return Value(name, _scalar(name, data[1 : 1 + size]), data[: 1 + size])
    large = header >> (4 if basic == 2 else 2) & 1
    count = _uint(data, 1, 4 if large else 1)
    at = 5 if large else 2
    offset_size = (header & 3) + 1
    id_size = (header >> 2 & 3) + 1 if basic == 2 else 0
    ids = [_uint(data, at + i * id_size, id_size) for i in range(count)]
    at += count * id_size
    offsets = [_uint(data, at + i * offset_size, offset_size) for i in range(count + 1)]
    at += (count + 1) * offset_size
    children = [decode(data[at + offset : at + offsets[-1]], names) for offset in offsets[:-1]]
    raw = data[: at + offsets[-1]]
    if basic == 3:
        return Value("array", children, raw)
    return Value("object", [(i, names[i], child) for i, child in zip(ids, children, strict=True)], raw)


def _scalar(name: str, body: bytes) -> Any:
    if name in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[name]
    if name in ("double", "float"):
        return struct.unpack("<d" if name == "double" else "<f", body)[0]
    if name.startswith("decimal"):
        return (int.from_bytes(body[1:], "little", signed=True), body[0])
    if name == "uuid":
        return body
    return int.from_bytes(body, "little", signed=True)


def primitive(name: str, data: Any = None) -> bytes:
    """Encode a primitive; strings take their short form when they can, decimals are (unscaled, scale)."""
    if name == "string":
        text = data.encode()
        if len(text) < 64:
            return bytes([len(text) << 2 | 1]) + text
        return bytes([16 << 2]) + len(text).to_bytes(4, "little") + text
    if name == "binary":
        return bytes([15 << 2]) + len(data).to_bytes(4, "little") + data
    size = FIXED[IDS[name]][1]
    head = bytes([IDS[name] << 2])
    if name in ("double", "float"):
        return head + struct.pack("<d" if name == "double" else "<f", data)
    if name.startswith("decimal"):
        return head + bytes([data[1]]) + data[0].to_bytes(size - 1, "little", signed=True)
    if name == "uuid":
        return head + data
    return head + (data.to_bytes(size, "little", signed=True) if size else b"")


def object_of(fields: list[tuple[int, bytes]], *, wide: bool = False, backwards: bool = False) -> bytes:
    """Encode an object from (id, value) in the order of names; ``backwards`` stores the values last first."""
    ids = [i for i, _ in fields]
    offsets, body = _body([value for _, value in fields], backwards)
    offset_size, id_size = (4, 4) if wide else (_width(offsets[-1]), _width(max(ids, default=0)))
    large = wide or len(fields) > 255
    out = bytes([2 | (offset_size - 1) << 2 | (id_size - 1) << 4 | large << 6])
    out += len(fields).to_bytes(4 if large else 1, "little")
    out += b"".join(i.to_bytes(id_size, "little") for i in ids)
    return out + b"".join(offset.to_bytes(offset_size, "little") for offset in offsets) + body


def array_of(elements: list[bytes], *, wide: bool = False, backwards: bool = False) -> bytes:
    offsets, body = _body(elements, backwards)
    offset_size = 4 if wide else _width(offsets[-1])
    large = wide or len(elements) > 255
    out = bytes([3 | (offset_size - 1) << 2 | large << 4]) + len(elements).to_bytes(4 if large else 1, "little")
    return out + b"".join(offset.to_bytes(offset_size, "little") for offset in offsets) + body


def _body(values: list[bytes], backwards: bool) -> tuple[list[int], bytes]:
    offsets = [0] * len(values)
    body = b""
    order = range(len(values))
    for i in reversed(order) if backwards else order:
        offsets[i] = len(body)
        body += values[i]
    return [*offsets, len(body)], body


def equivalent(value: Value) -> Any:
    """A form that is equal for values equal by equivalence class."""
    if value.type == "object":
        return ("object", {name: equivalent(child) for _, name, child in value.data})
    if value.type == "array":
        return ("array", [equivalent(child) for child in value.data])
    if value.type in EXACT:
        with localcontext(prec=100):
            return ("exact", exact(value).normalize())
    if value.type in ("timestamp", "timestamp_ntz"):
        return (f"{value.type}", value.data * 1000)
    if value.type.endswith("_nanos"):
        return (value.type.removesuffix("_nanos"), value.data)
    return (value.type, repr(value.data))


def exact(value: Value) -> Decimal:
    if value.type.startswith("decimal"):
        unscaled, scale = value.data
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    return Decimal(value.data)


# --- Shredding -----------------------------------------------------------------------------------


def shred(value: Value | None, schema: ShreddingSchema, *, same: bool = False) -> dict[str, Any]:
    """The columns of one value, as ``pyarrow.array`` takes them; None is a missing value."""
    if isinstance(schema, Untyped):
        return {"value": value.raw if value else None}
    if value is None:
        return {"value": None, "typed_value": None}
    if isinstance(schema, Object) and value.type == "object":
        fields = {name: child for _, name, child in value.data}
        typed = {name: shred(fields.get(name), child, same=same) for name, child in schema.fields}
        rest = [(i, child.raw) for i, name, child in value.data if name not in typed]
        return {"value": object_of(rest) if rest else None, "typed_value": typed}
    if isinstance(schema, Array) and value.type == "array":
        return {"value": None, "typed_value": [shred(child, schema.element, same=same) for child in value.data]}
    if isinstance(schema, Primitive):
        typed = fit(value, schema.type, same=same)
        if typed is not None:
            return {"value": None, "typed_value": typed}
    return {"value": value.raw, "typed_value": None}


_INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_SAME = {
    "double": pa.float64(), "float": pa.float32(), "date": pa.date32(), "time": pa.time64("us"), "uuid": pa.binary(16),
    "string": pa.string(), "binary": pa.binary(), "true": pa.bool_(), "false": pa.bool_(),
}  # fmt: skip
_STAMPS = {
    "timestamp": ("us", "UTC"), "timestamp_nanos": ("ns", "UTC"), "timestamp_ntz": ("us", None),
    "timestamp_ntz_nanos": ("ns", None),
}  # fmt: skip


def fit(value: Value, leaf: pa.DataType, *, same: bool = False) -> Any:
    """The leaf's value when it can hold this one exactly, else None. Dates and times are integers."""
    if value.type in EXACT:
        return _fit_exact(value, leaf, same)
    if value.type in _STAMPS:
        if not pa.types.is_timestamp(leaf) or leaf.tz != _STAMPS[value.type][1]:
            return None
        if same and leaf.unit != _STAMPS[value.type][0]:
            return None
        nanos = value.data * (1000 if _STAMPS[value.type][0] == "us" else 1)
        if leaf.unit == "ns":
            return nanos if -(2**63) <= nanos < 2**63 else None
        return nanos // 1000 if nanos % 1000 == 0 else None
    return value.data if _SAME.get(value.type) == leaf else None


def _fit_exact(value: Value, leaf: pa.DataType, same: bool) -> Any:
    number = exact(value)
    with localcontext(prec=100):
        if pa.types.is_decimal(leaf):
            if same:
                expected = "decimal4" if leaf.precision <= 9 else "decimal8" if leaf.precision <= 18 else "decimal16"
                if value.type != expected or value.data[1] != leaf.scale:
                    return None
            unscaled = number.scaleb(leaf.scale)
            fits = unscaled == unscaled.to_integral_value() and abs(unscaled) < 10**leaf.precision
            return number.quantize(Decimal(1).scaleb(-leaf.scale)) if fits else None
        if leaf not in _INTEGERS:
            return None
        if same and value.type != f"int{_INTEGERS[leaf]}":
            return None
        limit = 2 ** (_INTEGERS[leaf] - 1)
        return int(number) if number == number.to_integral_value() and -limit <= number < limit else None


# --- Reconstruction ------------------------------------------------------------------------------


def reconstruct(columns: dict[str, Any] | None, schema: ShreddingSchema, names: list[str]) -> bytes | None:
    """The encoded value of one value's columns; None when it is missing. ``names`` must know all fields."""
    if columns is None:
        return None
    value, typed = columns.get("value"), columns.get("typed_value")
    if typed is None:
        return value
    if isinstance(schema, Object):
        fields = {}
        if value is not None:
            residual = decode(value, names)
            assert residual.type == "object"
            fields = {name: child.raw for _, name, child in residual.data}
        for name, child in schema.fields:
            fields.pop(name, None)
            built = reconstruct(typed[name], child, names)
            if built is not None:
                fields[name] = built
        ranked = sorted(fields, key=str.encode)
        return object_of([(names.index(name), fields[name]) for name in ranked])
    if isinstance(schema, Array):
        return array_of([reconstruct(element, schema.element, names) or b"\0" for element in typed])
    assert isinstance(schema, Primitive)
    return leaf_bytes(typed, schema.type)


def leaf_bytes(typed: Any, leaf: pa.DataType) -> bytes:
    """A typed value as the primitive of its own variant type."""
    if leaf in _INTEGERS:
        return primitive(f"int{_INTEGERS[leaf]}", typed)
    if pa.types.is_decimal(leaf):
        width = 4 if leaf.precision <= 9 else 8 if leaf.precision <= 18 else 16
        with localcontext(prec=100):
            return primitive(f"decimal{width}", (int(typed.scaleb(leaf.scale)), leaf.scale))
    if leaf == pa.bool_():
        return primitive("true" if typed else "false")
    if pa.types.is_timestamp(leaf):
        return primitive(next(name for name, kind in _STAMPS.items() if kind == (leaf.unit, leaf.tz)), typed)
    return primitive(next(name for name, type in _SAME.items() if type == leaf), typed)
