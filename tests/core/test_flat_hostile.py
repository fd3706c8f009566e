"""FlatBuffers footers that are damaged, or made to do harm."""

from __future__ import annotations

import io
import random
import struct
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.test_flat_footer import TWO, decode_payload, footer_of, with_footer, written

import pqext
from pqext.core.base.buffers import view
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.footer.flatbuffers import reading
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import build_extension, build_file_end, encode_tables, parse
from pqext.core.format.compression import compress
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.core.kernels.flatbuffers.verify import verify
from pqext.core.options.layout import FooterFormat
from reference import flat_footer as slowly
from reference.effort import share, some


@pytest.mark.spec("extension.flatbuffers.checked")
@pytest.mark.parametrize("form", ["thrift+flatbuffers", "flatbuffers"])
def test_every_changed_or_truncated_byte_is_harmless_or_reported(form: FooterFormat) -> None:
    file = written(TWO, form)
    start = len(file) - 8 - len(footer_of(file)) if form != "flatbuffers" else file.index(slowly.payload_alone(file))
    draw = random.Random(7)
    refused = []
    positions = sorted({*some(range(start, len(file)), 3), *range(len(file) - 40, len(file))})
    for at in positions:
        damaged = bytearray(file)
        damaged[at] ^= 1 << draw.randrange(8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assert pqext.open(bytes(damaged)).read().equals(TWO)
            except ParquetError:
                refused.append(at)
    # One of two footers is always whole, but for the bytes at the end by which they are found.
    found = {at for at in positions if form == "flatbuffers" or at >= len(file) - 8}
    assert set(refused) == found if form == "flatbuffers" else set(refused) <= found
    for stop in positions:
        with pytest.raises(ParquetError):
            pqext.open(file[:stop])


def hostile(payload: bytes, draw: random.Random) -> Iterator[bytes]:
    """Payloads with some numbers changed, as someone would who mends the checksums."""
    for _ in range(share(300)):
        made = bytearray(payload)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(0, len(made) - 4) & ~3
            number = draw.choice([0, 1, 4, 0xFFFFFFFF, 0x7FFFFFFF, draw.randrange(1 << 32), at])
            struct.pack_into("<I", made, at, number)
        yield bytes(made)
        yield payload[: draw.randrange(len(payload))]


@pytest.mark.spec("extension.flatbuffers.checked")
def test_hostile_tables_are_read_or_rejected() -> None:
    file = written(TWO, "flatbuffers")
    payload, draw = slowly.payload_alone(file), random.Random(3)
    body = file[: file.index(payload)]
    seen = set()
    for made in [payload, *hostile(payload, draw)]:
        try:
            verify(made)
            decode_payload(made)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pqext.open(body + build_file_end(made)).read()
            seen.add("read")
        except (ParquetError, UnicodeError) as error:
            seen.add(type(error).__name__)
    assert {"read", "CorruptFileError"} <= seen


def vector_of_one_table(count: int) -> bytes:
    """A footer whose schema is ``count`` times the same element: four bytes each, that stand for many more."""
    payload = bytearray(slowly.build({1: ("tables", [{3: ("string", "x" * 1000)}]), 3: ("tables", [])}))
    root = slowly.View(bytes(payload), int.from_bytes(payload[:4], "little"))
    element = (root.children(1) or [])[0].table.Pos
    at = root.at(1)
    payload += bytes(-len(payload) % 4)
    vector = len(payload)
    struct.pack_into("<I", payload, at, vector - at)
    payload += struct.pack("<I", count)
    # Offsets point forward, so the shared element stands behind the vector again.
    copy = bytes(payload[: vector])
    base = vector + 4 + 4 * count
    for i in range(count):
        payload += struct.pack("<I", base + element - (vector + 4 + 4 * i))
    return bytes(payload) + copy


@pytest.mark.spec("extension.flatbuffers.checked")
def test_shared_tables_do_not_inflate_a_small_footer() -> None:
    with pytest.raises(CorruptFileError, match="many times its size"):
        verify(vector_of_one_table(100_000))
    verify(vector_of_one_table(3))


@pytest.mark.spec("extension.flatbuffers.checked")
def test_missing_required_fields_are_reported() -> None:
    element: slowly.Slots = {3: ("string", "x")}
    for root, message in (
        ({1: ("tables", [element]), 3: ("tables", [{0: ("tables", [{}])}])}, "lacks a required field"),
        ({1: ("tables", [{**element, 6: ("Uint8", 1)}]), 3: ("tables", [])}, "a type but no value"),
        ({1: ("tables", [{**element, 7: ("table", {})}]), 3: ("tables", [])}, "a value but no type"),
    ):
        with pytest.raises(CorruptFileError, match=message):
            verify(slowly.build(root))  # type: ignore[arg-type]
    verify(slowly.build({1: ("tables", [{**element, 6: ("Uint8", 99), 7: ("table", {})}]), 3: ("tables", [])}))
    for schema in ([{**element, 4: ("Int32", 5)}], [element, element], [{**element, 4: ("Int32", -1)}], []):
        with pytest.raises(CorruptFileError, match="is not a tree"):
            FlatLookup(slowly.build({1: ("tables", schema), 3: ("tables", [])}), DEFAULT_LIMITS, None)


@pytest.mark.spec("extension.flatbuffers.checked")
def test_limits_apply_before_allocation() -> None:
    file = written(TWO, "flatbuffers")
    with pytest.raises(LimitError, match="footer_bytes"):
        pqext.open(file, limits=Limits(footer_bytes=100))
    deep: slowly.Slots = {0: ("Int8", 1), 3: ("string", "leaf")}
    nested = [{3: ("string", "n"), 4: ("Int32", 1)}] * 200 + [deep]
    with pytest.raises(LimitError, match="schema_depth"):
        FlatLookup(slowly.build({1: ("tables", nested), 3: ("tables", [])}), DEFAULT_LIMITS, None)
    # What says that it unpacks to 4 GB.
    with pytest.raises(LimitError, match="4294967295 bytes, more than footer_bytes"):
        parse(view(struct.pack("<BIII", 7, 0xFFFFFFFF, 0, 0) + b"\0" * 20)).tables(DEFAULT_LIMITS)
    with pytest.raises(CorruptFileError):
        parse(view(struct.pack("<BIII", 7, 1 << 20, 0, 0) + b"\0" * 20)).tables(DEFAULT_LIMITS)
    with pytest.raises(UnsupportedError, match="codec 6"):
        parse(view(struct.pack("<BIII", 6, 20, 0, 0) + b"\0" * 20)).tables(DEFAULT_LIMITS)
    with pytest.raises(CorruptFileError, match="fewer than 13"):
        parse(view(b"\0" * 12))


@pytest.mark.spec("extension.flatbuffers.checked")
def test_tables_that_expand_too_far_are_rejected() -> None:
    packed = compress(7, bytes(1 << 20)).tobytes()
    with pytest.raises(CorruptFileError, match=f"{len(packed)} bytes .* cannot decompress to 1048576 bytes"):
        parse(view(struct.pack("<BIII", 7, 1 << 20, 0, 0) + packed)).tables(DEFAULT_LIMITS)
    assert parse(view(build_extension(bytes(1 << 20), b"")[:-28])).codec == 0


def test_footer_that_expands_to_too_much_thrift_is_rejected() -> None:
    name = "x" * 100_000
    schema = [{3: ("string", "root"), 4: ("Int32", 1)}, {0: ("Int8", 1), 3: ("string", name)}]
    group: slowly.Slots = {0: ("tables", [{0: ("table", {})}])}
    payload = slowly.build({1: ("tables", schema), 3: ("tables", [group] * 2_000)})
    lookup = FlatLookup(payload, Limits(footer_bytes=1 << 20), None)  # as each row group has the path of its column
    with pytest.raises(LimitError, match="more than footer_bytes"):
        lookup.load_metadata()


def test_encrypted_footers_of_other_writers_are_rejected() -> None:
    payload = slowly.build(
        {1: ("tables", [{3: ("string", "x")}]), 3: ("tables", []), 6: ("Uint8", 1), 7: ("table", {2: ("Uint8", 0)})}
    )
    with pytest.raises(UnsupportedError, match="encrypted FlatBuffers footers"):
        pqext.open(b"PAR1" + build_file_end(payload))


@pytest.mark.spec("extension.flatbuffers.instead")
@pytest.mark.parametrize("distance", [1, 15, 16, 40])
def test_changes_at_most_fifteen_bytes_apart_are_damage_and_others_are_an_edit(distance: int) -> None:
    table = pa.table({"i": [1]}).replace_schema_metadata({"note": "-" * 50})
    file = written(table, "thrift+flatbuffers", arrow_schema=False)
    footer = bytearray(footer_of(file))
    first = footer.index(b"-" * 50) + 3
    footer[first] = footer[first + distance] = ord("+")
    changed = with_footer(file, bytes(footer))
    with pytest.warns(DamagedIndexWarning) as warned, pqext.open(changed) as opened:
        notes = opened.arrow_schema.metadata
    if distance < 16:
        assert f"its bytes {first} to {first + distance} changed after it was written" in str(warned[0].message)
        assert notes == {b"note": b"-" * 50}
    else:
        assert "differ; the Thrift footer is used" in str(warned[0].message)
        assert notes == {b"note": pq.read_metadata(io.BytesIO(changed)).metadata[b"note"]}


def test_flat_footer_may_fill_its_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    serialised = footer_of(written(TWO, "thrift"))
    tables = encode_tables(serialised)
    monkeypatch.setattr(reading, "_MOST_BYTES", len(tables))
    assert encode_tables(serialised) == tables
    monkeypatch.setattr(reading, "_MOST_BYTES", len(tables) - 1)
    with pytest.raises(ValueError, match="would exceed 2 GiB"):
        encode_tables(serialised)
