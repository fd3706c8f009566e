"""Lists of structures that are laid out alike are cut where a reader that walks through each of them cuts them."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import ColumnChunk, FileMetaData, KeyValue, RowGroup, SchemaElement
from pqext.core.format.thrift import LazyStructs, decode, encode
from pqext.core.kernels.thrift.reader import scan_fields


def chunk(layout: int, chance: random.Random) -> bytes:
    """A serialised ColumnChunk, of which ``layout`` chooses the fields and about how large its numbers are."""
    many = layout % 5 == 4
    pairs = [KeyValue(key="k" * (layout % 3), value=None if layout % 2 else "value")] * (20 if many else layout % 4)
    made = ColumnChunk(file_offset=chance.randrange(1 << (7 * (layout % 9))), file_path="x" * (layout % 7) or None)
    if layout % 3:
        made.offset_index_length = chance.randrange(1 << (6 + 7 * (layout % 4)))
    unknown = encode(FileMetaData(version=layout, schema=[], num_rows=2**62, row_groups=[], key_value_metadata=pairs))
    made.unknown = ((100 + layout % 2, 12, unknown), *(((90, 11, b"\x01\x85\x01k\x02"),) if layout % 11 == 10 else ()))
    return encode(made)


def footer_of(chunks: list[bytes]) -> tuple[bytes, int, int]:
    """A footer of one row group with these chunks, and where they begin and end in it."""
    column = ColumnChunk(file_offset=7_777_777)
    group = RowGroup(columns=[column] * len(chunks), total_byte_size=1, num_rows=1)
    root = SchemaElement(name="root", num_children=0)
    raw = encode(FileMetaData(version=1, schema=[root], num_rows=1, row_groups=[group]))
    one, all_of_them = encode(column), b"".join(chunks)
    before = raw.index(one)
    after = raw[before + len(one) * len(chunks) :]
    return raw[:before] + all_of_them + after, before, before + len(all_of_them)


def cut(raw: bytes, start: int, count: int) -> list[bytes]:
    """The structures from ``start`` on, each walked through by itself."""
    found = []
    for _ in range(count):
        _, stop = scan_fields(raw, start)
        found.append(raw[start:stop])
        start = stop
    return found


def columns_of(raw: bytes) -> list[bytes]:
    columns = decode(FileMetaData, raw)[0].row_groups[0].columns
    assert isinstance(columns, LazyStructs)
    assert columns.undecoded_index is not None
    return [columns.undecoded_index.raw(at, at + 1) for at in range(len(columns))]


@st.composite
def lists(draw: st.DrawFn) -> list[bytes]:
    """Chunks of few layouts, which come again and again, and now and then one of its own."""
    layouts = draw(st.lists(st.integers(0, 60), min_size=1, max_size=20))
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    return [chunk(chance.choice(layouts), chance) for _ in range(draw(st.integers(1, 120)))]


@given(lists())
def test_each_structure_ends_with_its_own_fields(chunks: list[bytes]) -> None:
    raw, start, _ = footer_of(chunks)
    assert columns_of(raw) == chunks == cut(raw, start, len(chunks))


@given(lists(), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3))
def test_corrupt_structures_end_the_same_way(chunks: list[bytes], damage: list[tuple[float, int]]) -> None:
    raw, start, stop = footer_of(chunks)
    damaged = bytearray(raw)
    for place, byte in damage:
        damaged[start + int(place * (stop - start))] = byte
    expected = None
    with suppress(CorruptFileError, LimitError):
        expected = cut(bytes(damaged), start, len(chunks))
    if expected is not None and len(b"".join(expected)) == stop - start:
        assert columns_of(bytes(damaged)) == expected
        return
    with suppress(CorruptFileError, LimitError):
        assert columns_of(bytes(damaged)) == expected


def test_many_layouts_disable_the_layout_cache() -> None:
    chance = random.Random(3)
    chunks = [chunk(layout, chance) for layout in range(300)] + [chunk(9, chance) for _ in range(100)]
    assert columns_of(footer_of(chunks)[0]) == chunks


def test_elements_of_skipped_structures_are_counted() -> None:
    chance = random.Random(1)
    raw, _, _ = footer_of([chunk(4, chance) for _ in range(100)])
    decode(FileMetaData, raw, limits=Limits(metadata_elements=10_000))
    with pytest.raises(LimitError, match="metadata_elements"):
        decode(FileMetaData, raw, limits=Limits(metadata_elements=3_000))
