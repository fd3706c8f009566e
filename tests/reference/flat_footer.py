"""A FlatBuffers footer read and built slowly: tables by FlatBuffers' own library, the rest by its description alone.

Structures are those of :mod:`reference.compact`: lists of fields ``(id, wire type, value)``.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import Any

import flatbuffers
from flatbuffers import number_types as numbers
from flatbuffers.table import Table

from reference.compact import BINARY, BYTE, DOUBLE, I16, I32, I64, LIST, STRUCT, TRUE, Fields, Reader

FRAME = bytes.fromhex("6d9c1b525a4c4b0e8f0b2f4f6a3a9d10")
BESIDE = bytes.fromhex("a1c6f0de6f0f4c1e9a430f6a6f6f7b52")
# Thrift's field of LogicalType for each member of the union.
LOGICAL = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18]


class View:
    """A table at ``at``."""

    def __init__(self, data: bytes, at: int) -> None:
        self.table = Table(bytearray(data), at)
        self.data = data

    def at(self, slot: int) -> int:
        offset = self.table.Offset(4 + 2 * slot)
        return self.table.Pos + offset if offset else 0

    def number(self, slot: int, kind: str, default: Any = None) -> Any:
        at = self.at(slot)
        return self.table.Get(getattr(numbers, f"{kind}Flags"), at) if at else default

    def child(self, slot: int) -> View | None:
        at = self.at(slot)
        return View(self.data, self.table.Indirect(at)) if at else None

    def bytes(self, slot: int) -> bytes | None:
        at = self.at(slot)
        if not at:
            return None
        start = at + int.from_bytes(self.data[at : at + 4], "little")
        return self.data[start + 4 : start + 4 + int.from_bytes(self.data[start : start + 4], "little")]

    def children(self, slot: int) -> list[View] | None:
        at = self.at(slot)
        if not at:
            return None
        start = self.table.Vector(at - self.table.Pos)
        count = self.table.VectorLen(at - self.table.Pos)
        return [View(self.data, self.table.Indirect(start + 4 * i)) for i in range(count)]


def payload_of(footer: bytes) -> tuple[bytes, bytes]:
    """The tables in the extension of a Thrift footer, and the fields they were made from."""
    assert footer[-1] == 0
    assert footer[-17:-1] == FRAME
    crc, size, size_crc = struct.unpack("<III", footer[-29:-17])
    assert zlib.crc32(footer[-25:-21]) == size_crc
    held = footer[-29 - size : -29]
    assert zlib.crc32(held) == crc
    codec, raw_size, thrift_bytes, thrift_crc = struct.unpack("<BIII", held[:13])
    assert zlib.crc32(footer[:thrift_bytes]) == thrift_crc
    body = held[13:]
    if codec == 7:
        import pyarrow as pa

        body = pa.decompress(body, raw_size, "lz4_raw", asbytes=True)
    else:
        assert codec == 0
    assert len(body) == raw_size
    return body, footer[:thrift_bytes] + b"\0"


def payload_alone(file: bytes) -> bytes:
    """The tables of a file that has no other footer."""
    assert file[-4:] == b"PAR3"
    assert file[:4] == b"PAR1"
    crc, size, size_crc = struct.unpack("<III", file[-16:-4])
    assert zlib.crc32(file[-12:-8]) == size_crc
    assert zlib.crc32(file[-16 - size : -16]) == crc
    return file[-16 - size : -16]


def read(payload: bytes) -> dict[int, Any]:
    """What a payload says, as :func:`plain` has it."""
    root = View(payload, int.from_bytes(payload[:4], "little"))
    stored = root.bytes(99)
    pieces = None if stored is None else _pieces(stored)
    elements, groups = root.children(1) or [], root.children(3) or []
    leaves = _leaves(elements)
    own = pieces is not None
    file = _file(root, [element for _, element in leaves])
    if pieces is not None:
        file = over(file, pieces[0])
    listed = []
    for i, element in enumerate(elements):
        fields = _element(element)
        listed.append(over(fields, pieces[1][i]) if pieces is not None else fields)
    rows = []
    for r, group in enumerate(groups):
        fields = _group(group)
        fields = over(fields, pieces[2][r]) if pieces is not None else fields
        chunks = []
        for c, chunk in enumerate(group.children(0) or []):
            made = _chunk(chunk, group.number(2, "Int64", 0), *leaves[c], own=own)
            chunks.append(over(made, pieces[3][r * len(leaves) + c]) if pieces is not None else made)
        rows.append(_with(fields, 1, ("list", STRUCT, chunks)))
    return plain(_with(_with(file, 2, ("list", STRUCT, listed)), 4, ("list", STRUCT, rows)))


def plain(value: Any) -> Any:
    """A value as it is compared: structures as mappings by id, lists as they are."""
    if isinstance(value, list):
        return {id: (min(wire, 2) if wire <= 2 else wire, plain(inner)) for id, wire, inner in _sorted(value)}
    if isinstance(value, tuple) and value and value[0] == "list":
        element = 0 if not value[2] else min(value[1], 2) if value[1] <= 2 else value[1]
        return ("list", element, [plain(one) for one in value[2]])
    return struct.pack("<d", value) if isinstance(value, float) else value


def _sorted(fields: Fields) -> Fields:
    return sorted(((id, 1 if wire == 2 else wire, value) for id, wire, value in fields), key=lambda one: one[0])


def over(base: Fields, piece: Fields) -> Fields:
    """A structure with a difference put over it."""
    held = {id: (wire, value) for id, wire, value in piece}
    gone = held.pop(0, (LIST, ("list", I16, [])))[1][2]
    made: Fields = []
    for id, wire, value in base:
        if id in held:
            other, theirs = held.pop(id)
            made.append((id, other, over(value, theirs) if wire == other == STRUCT else theirs))
        elif id not in gone:
            made.append((id, wire, value))
    return made + [(id, wire, value) for id, (wire, value) in held.items()]


def _with(fields: Fields, place: int, value: Any) -> Fields:
    return [(id, wire, value if id == place else held) for id, wire, held in fields]


def _pieces(extension: bytes) -> tuple[Fields, list[Fields], list[Fields], list[Fields]]:
    assert extension[-16:] == BESIDE
    crc, size, size_crc = struct.unpack("<III", extension[-28:-16])
    data = extension[:-28]
    assert len(data) == size
    assert zlib.crc32(data) == crc
    assert zlib.crc32(extension[-24:-20]) == size_crc
    version, file_size = struct.unpack("<II", data[:8])
    assert version == 1
    at = 8 + file_size
    sections = []
    for _ in range(3):
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
        starts = struct.unpack_from(f"<{count + 1}I", data, at) if count else (0,)
        at += 4 * (count + 1) if count else 0
        sections.append([_piece(data[at + a : at + b]) for a, b in itertools.pairwise(starts)])
        at += starts[-1]
    assert at == len(data)

    class Nothing(list[Fields]):
        def __getitem__(self, at: Any) -> Any:
            return super().__getitem__(at) if len(self) else []

    elements, groups, chunks = (Nothing(one) for one in sections)
    return _piece(data[8 : 8 + file_size]), elements, groups, chunks


def _piece(data: bytes) -> Fields:
    if not data:
        return []
    reader = Reader(data)
    fields = reader.struct()
    assert reader.at == len(data)
    return fields


def _leaves(elements: list[View]) -> list[tuple[list[bytes], View]]:
    found: list[tuple[list[bytes], View]] = []

    def walk(at: int, path: list[bytes]) -> int:
        element = elements[at]
        children = element.number(4, "Int32", 0)
        name = [] if at == 0 else [*path, element.bytes(3) or b""]
        if at and not children:
            found.append((name, element))
            return at + 1
        at += 1
        for _ in range(children):
            at = walk(at, name)
        return at

    walk(0, [])
    return found


def _texts(pairs: list[View]) -> Any:
    return ("list", STRUCT, [
        [(1, BINARY, pair.bytes(0) or b""), *([] if pair.bytes(1) is None else [(2, BINARY, pair.bytes(1))])]
        for pair in pairs
    ])


def _optional(view: View, id: int, wire: int, slot: int, kind: str) -> Fields:
    value = view.number(slot, kind)
    return [] if value is None else [(id, wire, value)]


def _file(root: View, leaves: list[View]) -> Fields:
    fields: Fields = [(1, I32, root.number(0, "Int32", 0)), (2, LIST, None), (3, I64, root.number(2, "Int64", 0))]
    fields.append((4, LIST, None))
    pairs, creator = root.children(4), root.bytes(5)
    if pairs is not None:
        fields.append((5, LIST, _texts(pairs)))
    if creator is not None:
        fields.append((6, BINARY, creator))
    orders = [leaf.number(8, "Uint8", 0) == 1 for leaf in leaves]
    if any(orders):
        fields.append((7, LIST, ("list", STRUCT, [[(1, STRUCT, [])] if one else [] for one in orders])))
    return fields


def _element(element: View) -> Fields:
    fields = _optional(element, 1, I32, 0, "Int8") + _optional(element, 2, I32, 1, "Int32")
    fields += _optional(element, 3, I32, 2, "Int8")
    fields.append((4, BINARY, element.bytes(3) or b""))
    fields += _optional(element, 5, I32, 4, "Int32") + _optional(element, 9, I32, 5, "Int32")
    kind, about = element.number(6, "Uint8", 0), element.child(7)
    if kind and about is not None:
        fields.append((10, STRUCT, [(LOGICAL[kind], STRUCT, _logical(kind, about))]))
    return fields


def _logical(kind: int, about: View) -> Fields:
    if kind == 5:
        return [(1, I32, about.number(0, "Int32", 0)), (2, I32, about.number(1, "Int32", 0))]
    if kind in (7, 8):
        unit = about.number(1, "Int8", 0) + 1
        return [(1, TRUE, bool(about.number(0, "Uint8", 0))), (2, STRUCT, [(unit, STRUCT, [])])]
    if kind == 9:
        return [(1, BYTE, about.number(0, "Uint8", 8)), (2, TRUE, bool(about.number(1, "Uint8", 0)))]
    if kind == 15:
        return _optional(about, 1, BYTE, 0, "Uint8")
    if kind in (16, 17):
        crs = about.bytes(0)
        text: Fields = [] if crs is None else [(1, BINARY, crs)]
        return text + (_optional(about, 2, I32, 1, "Int8") if kind == 17 else [])
    return []


def _group(group: View) -> Fields:
    fields: Fields = [(1, LIST, None), (2, I64, group.number(1, "Int64", 0)), (3, I64, group.number(2, "Int64", 0))]
    keys = group.children(3)
    if keys is not None:
        fields.append((4, LIST, ("list", STRUCT, [
            [
                (1, I32, key.number(0, "Int32", 0)), (2, TRUE, bool(key.number(1, "Uint8", 0))),
                (3, TRUE, bool(key.number(2, "Uint8", 0))),
            ]
            for key in keys
        ])))
    fields += _optional(group, 5, I64, 4, "Int64") + _optional(group, 6, I64, 5, "Int64")
    return fields + _optional(group, 7, I16, 6, "Int16")


def _chunk(chunk: View, rows: int, path: list[bytes], leaf: View, *, own: bool) -> Fields:
    about = chunk.child(0)
    assert about is not None
    fields: Fields = _optional(leaf, 1, I32, 0, "Int8")
    fields.append((2, LIST, ("list", I32, [])))
    fields += [(3, LIST, ("list", BINARY, path)), (4, I32, about.number(0, "Int8", 0))]
    fields += [(5, I64, about.number(1, "Int64", rows)), (6, I64, about.number(2, "Int64", 0))]
    fields.append((7, I64, about.number(3, "Int64", 0)))
    pairs = about.children(4)
    if pairs is not None:
        fields.append((8, LIST, _texts(pairs)))
    fields.append((9, I64, about.number(5, "Int64", 0)))
    fields += _optional(about, 10, I64, 6, "Int64") + _optional(about, 11, I64, 7, "Int64")
    statistics, bloom, geo = about.child(8), about.child(10), about.child(11)
    if statistics is not None:
        type = leaf.number(0, "Int8", -1)
        by_bytes = leaf.number(6, "Uint8", 0) in (0, 1, 4, 11, 12, 13)  # none, String, Enum, Json, Bson, UUID
        fields.append((12, STRUCT, _statistics(statistics, type, own=own, by_bytes=by_bytes)))
    if bloom is not None:
        fields += [(14, I64, bloom.number(0, "Int64", 0)), *_optional(bloom, 15, I32, 1, "Int32")]
    if geo is not None:
        fields.append((17, STRUCT, _geo(geo)))
    return [(2, I64, 0), (3, STRUCT, fields)]


def _statistics(about: View, type: int, *, own: bool, by_bytes: bool) -> Fields:
    fields = _optional(about, 3, I64, 0, "Int64") + _optional(about, 4, I64, 1, "Int64")
    flags: Fields = []
    for id, first, flag in ((5, 6, 7), (6, 2, 8)):
        value = _bound(about, type, first, own=own, by_bytes=by_bytes)
        if value is not None:
            fields.append((id, BINARY, value))
            if own or about.number(first + 3, "Int8") < 0:
                flags.append((flag, TRUE, about.number(first + 3, "Int8") >= 0))
    return fields + flags


def _bound(about: View, type: int, first: int, *, own: bool, by_bytes: bool) -> bytes | None:
    length = about.number(first + 3, "Int8")
    if length is None:
        return None
    size = abs(length)
    lo4 = about.number(first, "Uint32", 0).to_bytes(4, "little")
    lo8, hi8 = about.number(first + 1, "Uint64", 0), about.number(first + 2, "Uint64", 0)
    fixed = {1: lo4, 4: lo4, 2: lo8.to_bytes(8, "little"), 5: lo8.to_bytes(8, "little")}
    fixed[3] = lo4 + lo8.to_bytes(8, "little")
    if type in fixed:
        return fixed[type] if size == len(fixed[type]) else None
    if type not in (6, 7) or size > 16 or not (own or (by_bytes and size in (0, 16))):
        return None
    suffix = (hi8 << 64 | lo8) & ((1 << 8 * size) - 1)
    return (about.bytes(10) or b"") + suffix.to_bytes(size, "big")


def _geo(geo: View) -> Fields:
    fields: Fields = []
    box = geo.child(0)
    if box is not None:
        sides = [(i + 1, box.number(i, "Float64", 0.0 if i < 4 else None)) for i in range(8)]
        fields.append((1, STRUCT, [(id, DOUBLE, side) for id, side in sides if side is not None]))
    types = geo.bytes(1)
    if types is not None:
        at = geo.at(1)
        start = at + int.from_bytes(geo.data[at : at + 4], "little")
        count = int.from_bytes(geo.data[start : start + 4], "little")
        listed = list(struct.unpack_from(f"<{count}i", geo.data, start + 4))
        fields.append((2, LIST, ("list", I32, listed)))
    return fields


Slots = dict[int, tuple[str, Any]]
"""What a table is built of: by slot a kind and a value; that of a table is again ``Slots``, of a vector a list."""


def build(root: Slots) -> bytes:
    """A payload, by the builder of FlatBuffers' library."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_table(builder, root))
    return bytes(builder.Output())


def _table(builder: Any, slots: Slots) -> int:
    offsets: dict[int, int] = {}
    for slot, (kind, value) in slots.items():
        if kind == "table":
            offsets[slot] = _table(builder, value)
        elif kind == "string":
            offsets[slot] = builder.CreateString(value)
        elif kind == "bytes":
            offsets[slot] = builder.CreateByteVector(value)
        elif kind == "tables":
            made = [_table(builder, one) for one in value]
            builder.StartVector(4, len(made), 4)
            for one in reversed(made):
                builder.PrependUOffsetTRelative(one)
            offsets[slot] = builder.EndVector()
    builder.StartObject(max(slots, default=-1) + 1)
    builder.ForceDefaults(True)
    for slot, (kind, value) in slots.items():
        if slot in offsets:
            builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
        else:
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
    return int(builder.EndObject())
