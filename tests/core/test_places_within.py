"""Where the column chunks of each row group begin is noted in the pass over the row groups: as each alone has it."""

from __future__ import annotations

import pytest
from core.test_thrift import structs
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.format.metadata import ColumnChunk, FileMetaData, RowGroup, SchemaElement
from pqext.core.format.thrift import LazyStructs, decode, encode
from reference import compact
from reference.effort import share


def items(id: int, wire: int, count: int, before: int = 0) -> bytes:
    """The header of a list of ``count`` elements as field ``id`` behind the field ``before``."""
    size = bytes([count << 4 | wire]) if count < 15 else bytes([0xF0 | wire]) + compact.write_varint(count)
    return compact.write_header(id, compact.LIST, before) + size


def footer(groups: list[bytes]) -> bytes:
    """A footer with these row groups, as they stand."""
    schema = [SchemaElement(name="root", num_children=0)]
    raw = encode(FileMetaData(version=2, schema=schema, num_rows=0, row_groups=[]))
    empty = items(4, compact.STRUCT, 0, 3)
    assert raw.count(empty) == 1
    return raw.replace(empty, items(4, compact.STRUCT, len(groups), 3) + b"".join(groups))


def check(groups: list[bytes]) -> None:
    metadata, _ = decode(FileMetaData, footer(groups))
    assert len(metadata.row_groups) == len(groups)
    for found, raw in zip(metadata.row_groups, groups, strict=True):
        alone, size = decode(RowGroup, raw)
        assert size == len(raw)
        assert isinstance(found.columns, LazyStructs)
        assert list(found.columns) == list(alone.columns)
        assert found == alone
        assert encode(found) == encode(alone)


@given(st.lists(structs(RowGroup), max_size=4))
@settings(max_examples=share(0.5))
def test_column_chunks_match_those_of_the_row_group(groups: list[RowGroup]) -> None:
    check([encode(group) for group in groups])


CHUNKS = [encode(ColumnChunk(file_offset=i, file_path=f"f{i}")) for i in range(20)]
SIZES = compact.write_header(2, compact.I64, 1) + b"\x02" + compact.write_header(3, compact.I64, 2) + b"\x02" + b"\0"


def columns(chunks: list[bytes], last: int = 0) -> bytes:
    return items(1, compact.STRUCT, len(chunks), last) + b"".join(chunks)


LONG = b"\x09\x02"
"""The header of field 1, a list, with the id behind it."""
FORMS = {
    "none": columns([]) + SIZES,
    "one": columns(CHUNKS[:1]) + SIZES,
    "many": columns(CHUNKS) + SIZES,
    "twice": columns(CHUNKS[:3]) + columns(CHUNKS[5:9], 20) + SIZES,
    "an id in the long form": LONG + columns(CHUNKS[:3])[1:] + SIZES,
    "an unknown list before": items(-3, compact.STRUCT, 2) + b"".join(CHUNKS[:2]) + columns(CHUNKS[:3], 20) + SIZES,
    "numbers, then chunks": items(1, compact.I32, 2) + b"\2\4" + columns(CHUNKS[:3], 20) + SIZES,
    "sorted": columns(CHUNKS[:2]) + encode(
        RowGroup(columns=[], total_byte_size=1, num_rows=1, sorting_columns=[], file_offset=7)
    )[2:],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_row_groups_of_any_layout_are_read_like_single_ones(form: bytes) -> None:
    check([FORMS["many"], form, FORMS["one"], form])


@pytest.mark.parametrize("count", [2, 3, 200, 1 << 20])
def test_more_chunks_than_available_bytes_are_rejected(count: int) -> None:
    raw = items(1, compact.STRUCT, count) + CHUNKS[0] + SIZES
    with pytest.raises((CorruptFileError, LimitError)):
        decode(FileMetaData, footer([raw]))


def test_corrupt_chunk_is_reported_with_row_group_and_offset() -> None:
    whole = footer([FORMS["one"], FORMS["many"]])
    at = whole.index(CHUNKS[7])
    broken = whole[:at] + b"\x1f" + whole[at + 1 :]
    with pytest.raises(CorruptFileError, match=r"row_groups\[1\]") as caught:
        decode(FileMetaData, broken, base=100)
    assert caught.value.offset == at + 1 + 100


def test_limits_apply_in_the_single_pass() -> None:
    whole = footer([FORMS["many"]] * 3)
    for limits in (Limits(metadata_elements=40), Limits(metadata_depth=2)):
        with pytest.raises(LimitError):
            decode(FileMetaData, whole, limits=limits)
    assert len(decode(FileMetaData, whole, limits=DEFAULT_LIMITS)[0].row_groups) == 3
