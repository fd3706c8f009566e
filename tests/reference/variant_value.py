"""The Variant binary encoding, one value at a time, written from the specification's grammar.

A value is ``(type, data)``: ``("object", {name: value})``, ``("array", [value])``, ``("decimal8", (unscaled, scale))``,
dates and times as integers, ``("string", text)`` for both forms of strings.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Value = tuple[str, Any]

TYPES = [
    "null", "true", "false", "int8", "int16", "int32", "int64", "double", "decimal4", "decimal8", "decimal16",
    "date", "timestamp", "timestamp_ntz", "float", "binary", "string", "time_ntz", "timestamp_nanos",
    "timestamp_ntz_nanos", "uuid",
]  # fmt: skip
INTEGERS = {
    "int8": 1, "int16": 2, "int32": 4, "int64": 8, "date": 4, "timestamp": 8, "timestamp_ntz": 8, "time_ntz": 8,
    "timestamp_nanos": 8, "timestamp_ntz_nanos": 8,
}  # fmt: skip
DECIMALS = {"decimal4": (4, 9), "decimal8": (8, 18), "decimal16": (16, 38)}
DAY = 86_400_000_000


@dataclass
class Layout:
    """The freedom that the encoding leaves: what is wider than it must be, and the order of things."""

    sorted_dictionary: bool = True
    extra_names: tuple[str, ...] = ()
    metadata_size: int = 0
    id_size: int = 0
    offset_size: int = 0
    large: bool = False
    backwards: bool = False
    long_strings: bool = False
    reserved: bool = False
    dictionary: list[str] = field(default_factory=list)


def size_of(number: int, least: int) -> int:
    """Bytes for ``number``, at least ``least``."""
    size = 1
    while number >= 256**size:
        size += 1
    return max(size, least)


def names_of(value: Value) -> set[str]:
    """The field names within ``value``."""
    kind, data = value
    if kind == "object":
        return set(data).union(*(names_of(child) for child in data.values()))
    return set().union(*(names_of(child) for child in data)) if kind == "array" else set()


def encode_metadata(names: list[str], is_sorted: bool, least: int = 0, reserved: bool = False) -> bytes:
    """The dictionary of ``names`` in the order given."""
    strings = [name.encode() for name in names]
    size = size_of(max(sum(map(len, strings)), len(strings)), least)
    out = bytes([1 + 16 * is_sorted + 32 * reserved + 64 * (size - 1)]) + len(strings).to_bytes(size, "little")
    at = 0
    for string in [b"", *strings]:
        at += len(string)
        out += at.to_bytes(size, "little")
    return out + b"".join(strings)


def encode(value: Value, layout: Layout | None = None) -> tuple[bytes, bytes]:
    """The (metadata, value) of ``value``."""
    layout = layout or Layout()
    names = names_of(value) | set(layout.extra_names)
    layout.dictionary = sorted(names, key=lambda name: name.encode())
    if not layout.sorted_dictionary:
        layout.dictionary.reverse()
    metadata = encode_metadata(layout.dictionary, layout.sorted_dictionary, layout.metadata_size, layout.reserved)
    return metadata, encode_value(value, layout)


def encode_value(value: Value, layout: Layout) -> bytes:
    kind, data = value
    if kind == "object":
        names = sorted(data, key=lambda name: name.encode())
        values = {name: encode_value(data[name], layout) for name in names}
        ids = [layout.dictionary.index(name) for name in names]
        return _container(2, names, ids, values, layout)
    if kind == "array":
        values = {i: encode_value(child, layout) for i, child in enumerate(data)}
        return _container(3, list(values), None, values, layout)
    if kind == "string" and len(data.encode()) < 64 and not layout.long_strings:
        return bytes([1 + 4 * len(data.encode())]) + data.encode()
    header = bytes([4 * TYPES.index(kind)])
    if kind in ("null", "true", "false"):
        return header
    if kind in INTEGERS:
        return header + (data % 256 ** INTEGERS[kind]).to_bytes(INTEGERS[kind], "little")
    if kind in DECIMALS:
        size = DECIMALS[kind][0]
        return header + bytes([data[1]]) + (data[0] % 256**size).to_bytes(size, "little")
    if kind == "double":
        return header + struct.pack("<d", data)
    if kind == "float":
        return header + struct.pack("<f", data)
    if kind == "uuid":
        return header + data
    body = data.encode() if kind == "string" else data
    return header + len(body).to_bytes(4, "little") + body


def _container(basic: int, keys: list[Any], ids: list[int] | None, values: dict[Any, bytes], layout: Layout) -> bytes:
    physical = list(reversed(keys)) if layout.backwards and ids is not None else keys
    places, at = {}, 0
    for key in physical:
        places[key] = at
        at += len(values[key])
    offset_size = size_of(at, layout.offset_size)
    id_size = size_of(max(ids or [0]), layout.id_size)
    large = layout.large or len(keys) > 255
    header = offset_size - 1
    if ids is not None:
        header |= (id_size - 1) << 2 | large << 4 | layout.reserved << 5
    else:
        header |= large << 2 | layout.reserved << 3
    out = bytes([basic | header << 2]) + len(keys).to_bytes(4 if large else 1, "little")
    out += b"".join(i.to_bytes(id_size, "little") for i in ids or [])
    out += b"".join(places[key].to_bytes(offset_size, "little") for key in keys) + at.to_bytes(offset_size, "little")
    return out + b"".join(values[key] for key in physical)


class Broken(ValueError):
    """The bytes break the encoding."""


def need(condition: bool) -> None:
    if not condition:
        raise Broken


def decode(metadata: bytes, value: bytes) -> Value:
    """The value, when every rule is kept."""
    names = decode_metadata(metadata)
    decoded, size = decode_value(value, names)
    need(size == len(value))
    return decoded


def decode_metadata(data: bytes) -> list[str]:
    need(len(data) > 0 and data[0] % 16 == 1)
    size = data[0] // 64 + 1
    need(len(data) > size)
    count = int.from_bytes(data[1 : 1 + size], "little")
    start = 1 + size * (count + 2)
    need(len(data) >= start)
    offsets = [int.from_bytes(data[1 + size * (i + 1) :][:size], "little") for i in range(count + 1)]
    need(offsets[0] == 0 and offsets == sorted(offsets) and start + offsets[-1] == len(data))
    strings = [data[start + a : start + b] for a, b in itertools.pairwise(offsets)]
    if data[0] & 16:
        need(all(a < b for a, b in itertools.pairwise(strings)))
    try:
        return [string.decode() for string in strings]
    except UnicodeDecodeError:
        raise Broken from None


def decode_value(data: bytes, names: list[str]) -> tuple[Value, int]:
    """The value at the start of ``data`` and its size."""
    need(len(data) > 0)
    basic, header = data[0] % 4, data[0] // 4
    if basic == 1:
        return ("string", _text(data[1:], header)), 1 + header
    if basic == 0:
        need(header < len(TYPES))
        return _decode_primitive(TYPES[header], data)
    offset_size = header % 4 + 1
    id_size = header // 4 % 4 + 1 if basic == 2 else 0
    large = header // 16 % 2 if basic == 2 else header // 4 % 2
    at = 5 if large else 2
    need(len(data) >= at)
    count = int.from_bytes(data[1:at], "little")
    need(len(data) >= at + count * (id_size + offset_size) + offset_size)
    ids = [int.from_bytes(data[at + i * id_size :][:id_size], "little") for i in range(count)] if id_size else []
    at += count * id_size
    offsets = [int.from_bytes(data[at + i * offset_size :][:offset_size], "little") for i in range(count + 1)]
    at += (count + 1) * offset_size
    end = at + offsets[-1]
    need(end <= len(data))
    children, used = [], set()
    for offset in offsets[:-1]:
        need(at + offset < end)
        child, size = decode_value(data[at + offset : end], names)
        need(used.isdisjoint(range(offset, offset + size)))
        used.update(range(offset, offset + size))
        children.append(child)
    need(len(used) == offsets[-1])
    if basic == 3:
        need(offsets == sorted(offsets))
        return ("array", children), end
    need(all(i < len(names) for i in ids))
    keys = [names[i].encode() for i in ids]
    need(all(a < b for a, b in itertools.pairwise(keys)))
    return ("object", {names[i]: child for i, child in zip(ids, children, strict=True)}), end


def _text(data: bytes, size: int) -> str:
    need(len(data) >= size)
    try:
        return data[:size].decode()
    except UnicodeDecodeError:
        raise Broken from None


def _decode_primitive(kind: str, data: bytes) -> tuple[Value, int]:
    if kind in ("null", "true", "false"):
        return (kind, None), 1
    if kind in ("string", "binary"):
        need(len(data) >= 5)
        size = int.from_bytes(data[1:5], "little")
        need(len(data) >= 5 + size)
        return (kind, _text(data[5:], size) if kind == "string" else data[5 : 5 + size]), 5 + size
    width = {"double": 8, "float": 4, "uuid": 16}.get(kind) or INTEGERS.get(kind) or DECIMALS[kind][0] + 1
    body = data[1 : 1 + width]
    need(len(body) == width)
    if kind in INTEGERS:
        number = int.from_bytes(body, "little", signed=True)
        need(kind != "time_ntz" or 0 <= number < DAY)
        return (kind, number), 1 + width
    if kind in DECIMALS:
        unscaled = int.from_bytes(body[1:], "little", signed=True)
        need(body[0] <= 38 and abs(unscaled) < 10 ** DECIMALS[kind][1])
        return (kind, (unscaled, body[0])), 1 + width
    if kind == "uuid":
        return (kind, body), 1 + width
    return (kind, struct.unpack("<d" if kind == "double" else "<f", body)[0]), 1 + width


# --- What the tests draw from ------------------------------------------------------------------------------------

NAMES = ["", "a", "b", "c", "aa", "é", "😀", "name with spaces", 'a"\\\n', "long " * 10]


def _signed(size: int) -> st.SearchStrategy[int]:
    half = 256**size // 2
    return st.one_of(st.integers(-200, 200), st.integers(-half, half - 1)).filter(lambda n: -half <= n < half)


def _decimals(digits: int) -> st.SearchStrategy[tuple[int, int]]:
    unscaled = st.one_of(st.integers(-1000, 1000), st.integers(1 - 10**digits, 10**digits - 1))
    return st.tuples(unscaled, st.integers(0, 38))


PRIMITIVES: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from([("null", None), ("true", None), ("false", None)]),
    *(_signed(n).map(lambda d, k=k: (k, d)) for k, n in INTEGERS.items() if k != "time_ntz"),
    *(_decimals(digits).map(lambda d, k=k: (k, d)) for k, (_, digits) in DECIMALS.items()),
    st.integers(0, DAY - 1).map(lambda n: ("time_ntz", n)),
    st.floats().map(lambda d: ("double", d)),
    st.floats(width=32).map(lambda d: ("float", d)),
    st.text(max_size=10).map(lambda t: ("string", t)),
    st.text(min_size=60, max_size=70).map(lambda t: ("string", t)),
    st.binary(max_size=20).map(lambda b: ("binary", b)),
    st.binary(min_size=16, max_size=16).map(lambda b: ("uuid", b)),
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda v: ("array", v)),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=5).map(lambda v: ("object", v)),
    ),
    max_leaves=10,
)
_SIZES = st.integers(0, 4)
LAYOUTS: st.SearchStrategy[Layout] = st.builds(
    Layout,
    sorted_dictionary=st.booleans(),
    extra_names=st.sampled_from([(), ("unused",), ("0", "zz", "ü")]),
    metadata_size=_SIZES,
    id_size=_SIZES,
    offset_size=_SIZES,
    large=st.booleans(),
    backwards=st.booleans(),
    long_strings=st.booleans(),
    reserved=st.booleans(),
)
