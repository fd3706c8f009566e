"""Serialised objects of Java: where the bytes lie that an object wrote itself, in whole, cut and hostile streams."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import CorruptFileError, UnsupportedError
from pqext.core.base.errors import ParquetError
from pqext.skipping.format.java_object import ClassDescription, find_custom_data, write_object
from reference import skipping_store

INNER = [ClassDescription("a.Inner", 7, 3, (("bits", "La/Bits;"), ("count", "I")))]
OUTER = [ClassDescription("a.Outer", 1, 2, (("inner", "La/Inner;"),)), ClassDescription("a.Above", 2, 2, ())]
HEADER = b"\xac\xed\x00\x05"


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def described(name: str, flags: int, fields: Sequence[bytes] = (), above: bytes = b"p") -> bytes:
    return b"r" + utf(name) + bytes(8) + struct.pack(">BH", flags, len(fields)) + b"".join(fields) + b"x" + above


@pytest.mark.spec("store.cell.java")
@given(st.binary(max_size=3000))
def test_written_object_is_found(data: bytes) -> None:
    cell = write_object(OUTER, INNER, data)
    found = find_custom_data(cell)
    assert (found.name, found.join(cell), found.stop) == ("a.Inner", data, len(cell))
    assert [size for _, size in found.blocks[:-1]] == [1024] * (len(data) // 1024 - (len(data) % 1024 == 0 < len(data)))
    if data:
        assert skipping_store.bloom_payload(cell) == data


@pytest.mark.spec("store.cell.java")
def test_cells_of_every_writer_are_read(xskipper: Path) -> None:
    for path in (xskipper / "bloom_samples").glob("*_javaser.bin"):
        cell = path.read_bytes()
        found = find_custom_data(cell)
        assert found.join(cell) == Path(str(path).replace("javaser", "writeTo")).read_bytes()
        assert found.name.startswith("org.apache.spark.util.sketch.BloomFilterImpl")


@pytest.mark.spec("store.cell.java")
def test_objects_with_preceding_fields_and_references_are_read() -> None:
    """Values of a class above, primitives, nulls, texts and references before the object; blocks of any size."""
    own = described("Own", 3)
    fields = [b"Iint", b"Jlong", b"Znull", b"Ltext", b"Lagain", b"Lnothing", b"Lvalue"]
    fields = [one[:1] + utf(one[1:].decode()) for one in fields]
    fields[3:] = [fields[3] + b"t" + utf("LType;"), *(one + b"q\x00\x7e\x00\x01" for one in fields[4:])]
    values = bytes(4) + bytes(8) + b"\x01" + b"t" + utf("hello") + b"q\x00\x7e\x00\x01" + b"p"
    above = described("Above", 2, [b"S" + utf("short")])
    root = described("Root", 2, fields, above) + bytes(2) + values
    cell = HEADER + b"s" + root + b"s" + own + b"w\x02ab" + b"z\x00\x00\x00\x01c" + b"x"
    assert find_custom_data(cell).join(cell) == b"abc"


def test_stream_truncated_anywhere_is_rejected_with_the_offset() -> None:
    cell = write_object(OUTER, INNER, b"data" * 300)
    for size in range(len(cell)):
        with pytest.raises(CorruptFileError) as refused:
            find_custom_data(cell[:size])
        assert refused.value.offset is not None
        assert 0 <= refused.value.offset <= size


@given(st.data())
def test_corrupt_stream_is_read_or_rejected(data: st.DataObject) -> None:
    cell = bytearray(write_object(OUTER, INNER, b"x" * 40))
    for _ in range(data.draw(st.integers(1, 4))):
        cell[data.draw(st.integers(0, len(cell) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = find_custom_data(bytes(cell))
    except ParquetError:
        return
    assert all(0 < at <= at + size <= len(cell) for at, size in found.blocks)


LONG_FIELD = b"L" + utf("f") + b"t" + utf("LF;")
HOSTILE = {
    "no stream": (b"PAR1....", CorruptFileError, "not a serialised Java object"),
    "nothing of its own": (HEADER + b"s" + described("A", 2), UnsupportedError, "has no custom data"),
    "null": (HEADER + b"p", UnsupportedError, "has no custom data"),
    "forward reference": (HEADER + b"q\x00\x7e\x00\x05", CorruptFileError, "has no preceding target"),
    "class of itself": (
        HEADER + b"s" + described("A", 2, (), b"q\x00\x7e\x00\x00"),
        CorruptFileError,
        "is not a class",
    ),
    "deep classes": (HEADER + b"s" + described("A", 2, (), b"") * 40, UnsupportedError, "more than 16 superclasses"),
    "deep objects": (HEADER + (b"s" + described("A", 2, [LONG_FIELD])) * 40, UnsupportedError, "deeper than 16"),
    "field type": (HEADER + b"s" + described("A", 2, [b"?" + utf("f")]), CorruptFileError, "has the type 0x3f"),
    "field class": (
        HEADER + b"s" + described("A", 2, [b"L" + utf("f") + b"t" + utf("I")]),
        CorruptFileError,
        "not the name of a class",
    ),
    "externalizable": (HEADER + b"s" + described("A", 4), UnsupportedError, "use custom serialisation"),
    "proxy": (HEADER + b"s\x7d", UnsupportedError, "instead of a class description"),
    "huge block": (HEADER + b"s" + described("A", 3) + b"z\xff\xff\xff\xff", CorruptFileError, "cut off"),
    "small blocks": (HEADER + b"s" + described("A", 3) + b"w\x00" * 9999 + b"x", UnsupportedError, "small blocks"),
    "annotation": (HEADER + b"sr" + utf("A") + bytes(8) + b"\x02\x00\x00w\x00", UnsupportedError, "more than fields"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_stream_is_rejected(name: str) -> None:
    cell, kind, message = HOSTILE[name]
    with pytest.raises(kind, match=message):
        find_custom_data(cell)


def test_classes_that_grow_by_references_are_rejected() -> None:
    """Each object's class is below the one before it: without a bound, the work grows as the square of the cell."""
    count = 500
    fields = [b"L" + utf("f") + b"t" + utf("LF;") for _ in range(count)]
    objects, handle = b"", 0x7E0000 + 2 + count  # behind the class, its fields' types, and the object
    for at in range(count):
        above = b"p" if at == 0 else b"q" + struct.pack(">I", handle - 2)
        objects += b"s" + described("A", 2, (), above)
        handle += 2
    with pytest.raises(UnsupportedError, match="more than 16 superclasses"):
        find_custom_data(HEADER + b"s" + described("Root", 2, fields) + objects)
