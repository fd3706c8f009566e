"""Framed extensions are found from the end of the footer, and containers carry several in one."""

from __future__ import annotations

import io
import struct
import time
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import find_framed
from pqext.core.format.extension.framing import CONTAINER, ExtensionContainer, frame, frame_uuid, unframe
from pqext.core.format.thrift import read_uleb, uleb
from pqext.core.io.source import MemorySource
from reference.pace import SLOWER

MINE, OTHER = UUID(int=7), UUID(int=1 << 100)
TABLE = pa.table({"a": [1, 2, 3]})


def framed_by_the_text(payload: bytes, uuid: UUID) -> bytes:
    """The layout of the format's first example, line by line."""
    size = struct.pack("<I", len(payload))
    return payload + struct.pack("<I", zlib.crc32(payload)) + size + struct.pack("<I", zlib.crc32(size)) + uuid.bytes


def written(**extensions: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, extensions=extensions)
    return out.getvalue()


@pytest.mark.spec("extension.framed")
@given(st.binary(max_size=300), st.uuids())
def test_frame_has_the_layout_of_the_specification(payload: bytes, uuid: UUID) -> None:
    framed = frame(payload, uuid)
    assert framed == framed_by_the_text(payload, uuid)
    assert unframe(framed, uuid) == payload
    assert frame_uuid(framed) == uuid


@pytest.mark.spec("extension.disambiguation")
def test_extension_of_another_owner_is_not_used() -> None:
    assert unframe(frame(b"x", OTHER), MINE) is None
    assert unframe(b"short", MINE) is None
    assert frame_uuid(b"no frame at all, but forty bytes or so...") is None


@pytest.mark.spec("extension.framed")
def test_every_changed_byte_of_a_frame_is_detected() -> None:
    framed = frame(b"some payload", MINE)
    for at in range(len(framed)):
        damaged = bytearray(framed)
        damaged[at] ^= 0x10
        if at >= len(framed) - 16:
            assert unframe(bytes(damaged), MINE) is None
        else:
            with pytest.raises(CorruptFileError, match="checksum"):
                unframe(bytes(damaged), MINE)
        assert frame_uuid(bytes(damaged)) != MINE


@pytest.mark.spec("extension.reverse")
@pytest.mark.parametrize("size", [0, 1, 10_000])
def test_framed_extension_is_located_by_its_tail(size: int) -> None:
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    data = written(file=frame(payload, MINE))
    # Whatever comes before it need not even be Thrift.
    end = len(data) - 9 - 28 - len(payload)
    ruined = b"\xff" * end + data[end:]
    source = MemorySource(ruined)
    assert find_framed(source, MINE) == payload
    assert source.bytes_read == 37 + len(payload)
    assert find_framed(data, OTHER) is None
    assert pq.read_table(io.BytesIO(data)) == TABLE


@pytest.mark.spec("extension.reverse")
def test_file_without_a_framed_extension_costs_one_small_read(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "plain.parquet")
    assert find_framed(tmp_path / "plain.parquet", MINE) is None
    source = MemorySource((tmp_path / "plain.parquet").read_bytes())
    assert find_framed(source, MINE) is None
    assert source.bytes_read == 37


@pytest.mark.spec("extension.reverse")
def test_sizes_beyond_the_footer_are_rejected_before_reading() -> None:
    data = written(file=frame(b"payload", MINE))
    at = len(data) - 9 - 24
    footer_bytes = int.from_bytes(data[-8:-4], "little")
    for size in (8, footer_bytes - 28, footer_bytes - 1, 1000, 1 << 31, (1 << 32) - 1):
        stored = struct.pack("<I", size)
        lie = data[:at] + stored + struct.pack("<I", zlib.crc32(stored)) + data[at + 8 :]
        source = MemorySource(lie)
        with pytest.raises(CorruptFileError, match="checksum" if size == 8 else "bytes of payload, but has"):
            find_framed(source, MINE)
        assert source.bytes_read <= 37 + 8
    room = len(data) - 4 - 8 - 1 - 28  # of a footer said to be longer than its file, which has magics and a trailer
    stored = struct.pack("<I", room + 1)
    lie = data[:at] + stored + struct.pack("<I", zlib.crc32(stored)) + data[at + 8 : -8] + b"\0\0\0\x40PAR1"
    with pytest.raises(CorruptFileError, match=f"declares {room + 1} bytes of payload, but has {room}"):
        find_framed(lie, MINE)
    wrong = data[:at] + b"\x08" + data[at + 1 :]
    with pytest.raises(CorruptFileError, match=r"length of extension .* does not match its checksum"):
        find_framed(wrong, MINE)
    with pytest.raises(LimitError, match="footer_bytes=3"):
        find_framed(data, MINE, Limits(footer_bytes=3))


@pytest.mark.spec("extension.reverse")
@pytest.mark.parametrize("data", [b"", b"PA", b"PAR1" * 8 + b"PARE", b"x" * 100, b"x" * 60 + b"\0PAR1"])
def test_file_that_is_not_parquet_is_rejected_or_has_no_extension(data: bytes) -> None:
    if data[-5:] == b"\0PAR1":
        assert find_framed(data, MINE) is None
        return
    with pytest.raises(CorruptFileError, match="PAR1"):
        find_framed(data, MINE)


CONTAINERS = st.dictionaries(st.uuids(), st.binary(max_size=50), max_size=5).map(ExtensionContainer)


def parsed_slowly(extension: bytes) -> list[tuple[UUID, bytes]]:
    """The entries, from the documented layout."""
    assert extension[-16:] == CONTAINER.bytes
    payload = extension[:-28]
    assert payload[0] == 1
    at = 1

    def integer() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (payload[at] & 0x7F) << shift
            shift += 7
            at += 1
            if payload[at - 1] < 0x80:
                return value

    found = []
    for _ in range(integer()):
        uuid = UUID(bytes=payload[at : at + 16])
        at += 16
        size = integer()
        found.append((uuid, payload[at : at + size]))
        at += size
    assert at == len(payload)
    return found


@pytest.mark.spec("extension.container")
@given(CONTAINERS)
def test_container_preserves_entries_in_order(container: ExtensionContainer) -> None:
    stored = container.encode()
    assert parsed_slowly(stored) == list(container.items())
    again = ExtensionContainer.decode(stored)
    assert again == container
    assert list(again or ()) == list(container)
    assert ExtensionContainer.decode(stored[:-1] + b"\x00") is None


@pytest.mark.spec("extension.container")
@given(CONTAINERS, st.data())
def test_corruption_of_a_container_is_always_detected(container: ExtensionContainer, data: st.DataObject) -> None:
    stored = bytearray(container.encode())
    at = data.draw(st.integers(0, len(stored) - 17))
    stored[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ParquetError):
        ExtensionContainer.decode(bytes(stored))


@pytest.mark.spec("extension.container")
@given(st.binary(max_size=80))
def test_arbitrary_payload_is_a_container_or_a_typed_error(payload: bytes) -> None:
    try:
        container = ExtensionContainer.parse(b"\x01" + payload)
    except CorruptFileError:
        return
    assert container.encode() == frame(b"\x01" + payload, CONTAINER)


@pytest.mark.spec("extension.container")
@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "has no version"),
        (b"\x01", "is truncated"),
        (b"\x01\x01" + bytes(15), "ends within an entry"),
        (b"\x01\x01" + bytes(16) + b"\x05abc", "an entry of 5 bytes extends beyond"),
        (b"\x01\x02" + bytes(17) * 2, "twice"),
        (b"\x01\x00x", "1 bytes follow"),
        (b"\x01\x80\x00", "longer than necessary"),
        (b"\x01\xff\xff\xff\xff\x1f", "longer than necessary"),
        (b"\x01\xff\xff\xff\xff\x0f", "ends within an entry"),
    ],
)
def test_malformed_container_is_rejected_with_the_reason(payload: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        ExtensionContainer.parse(payload)


@pytest.mark.spec("extension.container")
def test_container_of_a_later_version_is_not_interpreted() -> None:
    with pytest.raises(UnsupportedError, match="version 2 of an extension container is unknown"):
        ExtensionContainer.parse(b"\x02\x00")


def test_replacing_an_entry_returns_a_new_container() -> None:
    container = ExtensionContainer({MINE: b"1"})
    more = container.with_payload(OTHER, b"2")
    assert dict(more) == {MINE: b"1", OTHER: b"2"}
    assert dict(more.with_payload(MINE, None)) == {OTHER: b"2"}
    assert dict(container) == {MINE: b"1"}
    with pytest.raises(TypeError, match=r"uuid\.UUID to bytes"):
        ExtensionContainer({"name": b"1"})  # type: ignore[dict-item]


@given(st.integers(0, (1 << 32) - 1))
def test_varints_have_seven_bits_per_byte(value: int) -> None:
    assert read_uleb(b"x" + uleb(value), 1) == (value, 1 + len(uleb(value)))


@pytest.mark.parametrize("step", [1, (1 << 61) - 1])
def test_many_entries_with_colliding_uuids_are_read_quickly(step: int) -> None:
    """Python's hash of an integer is its remainder by 2^61 - 1, which whoever makes a file knows too."""
    count = 20_000
    uuids = [UUID(int=number * step) for number in range(count)]
    payload = bytes([1]) + uleb(count) + b"".join(uuid.bytes + b"\x00" for uuid in uuids)
    begin = time.thread_time()
    container = ExtensionContainer.parse(payload)
    assert container.with_payload(uuids[5], b"new")[uuids[5]] == b"new"
    assert uuids[-1] in container
    assert len(container) == count
    assert time.thread_time() - begin < 0.5 * SLOWER
    assert container.encode()[: len(payload)] == payload
