"""Footers made to hurt: refused or read rightly, in little time and memory."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, LimitError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import (
    FileMetaData,
    KeyValue,
    PageEncodingStats,
    RowGroup,
    SchemaElement,
    SizeStatistics,
    SortingColumn,
    Statistics,
)
from pqext.core.format.thrift import encode
from reference import compact
from reference.pace import SLOWER

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
ZEROS = bytes(20 << 20)


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, row_group_rows=2, **options)
    return out.getvalue()


DATA = written()


def with_footer(serialised: bytes) -> bytes:
    return DATA[: pqext.open(DATA).footer.offset] + serialise_footer(serialised)


def edited(edit: Callable[[FileMetaData], Any]) -> bytes:
    with pqext.open(DATA) as file:
        metadata, offset = file.metadata, file.footer.offset
    metadata.schema, metadata.row_groups = list(metadata.schema), list(metadata.row_groups)
    for group in metadata.row_groups:
        group.columns = list(group.columns)
    edit(metadata)
    return DATA[:offset] + serialise_footer(metadata)


def everything(data: bytes) -> pa.Table:
    with pqext.open(data) as file:
        _ = file.extensions, file.num_rows
        for group in file.row_groups:
            for chunk in group.chunks():
                chunk.bounds()
        return file.read()


def bounded(data: bytes, *, seconds: float = 1.0, memory: int = 64 << 20) -> pa.Table | ParquetError:
    """What reading gives, which must not take long or much memory beyond the data."""
    pqext.inspect(DATA)  # imports are done
    tracemalloc.start()
    begin = time.thread_time()
    try:
        return everything(data)
    except ParquetError as error:
        return error
    finally:
        taken = time.thread_time() - begin
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < memory
        assert taken < seconds * SLOWER


def a_list(size: int, element: int) -> bytes:
    """The header of a list."""
    return bytes([0xF0 | element]) + compact.write_varint(size)


def hostile(id: int, header: bytes, body: bytes) -> bytes:
    """A valid footer whose field ``id`` comes once more, as a list."""
    valid = encode(pqext.open(DATA).metadata)[:-1]
    return valid + bytes([compact.LIST]) + compact.write_zigzag(id) + header + body + b"\x00"


@pytest.mark.spec("layout.unknown-fields")
@pytest.mark.parametrize("id", [2, 4, 5, 7, 8, 77])
@pytest.mark.parametrize("element", [compact.STRUCT, compact.BINARY, compact.BYTE, compact.LIST, compact.TRUE])
def test_megabytes_of_zeros_in_any_field_cost_little(id: int, element: int) -> None:
    data = with_footer(hostile(id, a_list(len(ZEROS), element), ZEROS))
    found = bounded(data)
    known = {2: compact.STRUCT, 4: compact.STRUCT, 5: compact.STRUCT, 7: compact.STRUCT}
    if known.get(id) == element:
        assert isinstance(found, ParquetError), id
    else:
        assert found == TABLE  # a field of another type is unknown, and passed over


def pairs_of(pair: bytes, count: int) -> bytes:
    return hostile(5, a_list(count, compact.STRUCT), pair * count)


@pytest.mark.parametrize(
    "footer",
    [
        pairs_of(b"\x18\x00\x00", (20 << 20) // 3),
        pairs_of(b"\x18\x01k\x18\x01v\x00", 6_000_000),
        encode(pqext.open(DATA).metadata)[:-1] + b"\x06\x7e\x00" * 5_000_001 + b"\x00",
    ],
    ids=["pairs without text", "pairs of one letter", "unknown fields"],
)
def test_metadata_that_expands_to_millions_of_objects_is_rejected(footer: bytes) -> None:
    data = with_footer(footer)
    begin = time.thread_time()
    with pytest.raises(LimitError, match="more objects than metadata_objects"):
        pqext.open(data)
    assert time.thread_time() - begin < 5 * SLOWER
    with pytest.raises(LimitError, match="metadata_objects"):
        pqext.open(DATA, limits=Limits(metadata_objects=1)).row_groups[0].chunk(0)


@pytest.mark.parametrize("id", [1, 2, 3, 4, 5, 6, 7, 99])
@pytest.mark.parametrize("size", [1 << 20, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1])
def test_size_beyond_the_footer_is_rejected_before_allocation(id: int, size: int) -> None:
    for wire in (compact.STRUCT, compact.BINARY, compact.I64, compact.TRUE):
        assert isinstance(bounded(with_footer(hostile(id, a_list(size, wire), b""))), CorruptFileError)
    valid = encode(pqext.open(DATA).metadata)[:-1]
    data = valid + bytes([compact.BINARY]) + compact.write_zigzag(id) + compact.write_varint(size) + b"\x00"
    assert isinstance(bounded(with_footer(data)), CorruptFileError)


@pytest.mark.parametrize("open_", [b"\x1c", b"\x19\x1c\x1c", b"\x19\x19"])
def test_unbounded_nesting_is_rejected(open_: bytes) -> None:
    found = bounded(with_footer(open_ * (1 << 20)))
    assert isinstance(found, (LimitError, CorruptFileError))


def test_last_of_two_equal_fields_is_used() -> None:
    valid = encode(pqext.open(DATA).metadata)[:-1]
    again = valid + bytes([compact.I64]) + compact.write_zigzag(3) + compact.write_zigzag(-77) + b"\x00"
    with pqext.open(with_footer(again)) as file:
        assert file.metadata.num_rows == -77
        assert file.num_rows == 3
        assert file.read() == TABLE


@pytest.mark.parametrize("id", [1, 3, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("wire", [compact.TRUE, compact.BYTE, compact.DOUBLE, compact.STRUCT, compact.UUID])
def test_field_of_another_wire_type_is_ignored(id: int, wire: int) -> None:
    if (id, wire) == (8, compact.STRUCT):
        return  # the encryption algorithm is a structure
    values = {compact.BYTE: 1, compact.DOUBLE: 1.0, compact.STRUCT: [], compact.UUID: bytes(16)}
    valid = encode(pqext.open(DATA).metadata)[:-1]
    body = b"" if wire == compact.TRUE else compact.write_value(wire, values[wire])
    assert everything(with_footer(valid + bytes([wire]) + compact.write_zigzag(id) + body + b"\x00")) == TABLE


def chunk(metadata: FileMetaData, row_group: int = 0, column: int = 0) -> Any:
    return metadata.row_groups[row_group].columns[column]


def swap(metadata: FileMetaData) -> None:
    for group in metadata.row_groups:
        group.columns = [group.columns[1], group.columns[0]]


def every_chunk(name: str, value: Any) -> Callable[[FileMetaData], Any]:
    return lambda m: [setattr(c.meta_data, name, value) for group in m.row_groups for c in group.columns]


def every_group(**values: Any) -> Callable[[FileMetaData], Any]:
    return lambda m: [setattr(group, name, value) for group in m.row_groups for name, value in values.items()]


def sorted_by(*columns: int, descending: bool = False, nulls_first: bool = False) -> Callable[[FileMetaData], Any]:
    keys = [SortingColumn(column_idx=at, descending=descending, nulls_first=nulls_first) for at in columns]
    return every_group(sorting_columns=keys)


def add_root(count: int) -> Callable[[FileMetaData], None]:
    return lambda metadata: setattr(metadata.schema[0], "num_children", count)


REFUSED: dict[str, tuple[Callable[[FileMetaData], Any], str]] = {
    "chunks in another order": (swap, "it belongs to 'b'"),
    "a chunk's path": (lambda m: setattr(chunk(m).meta_data, "path_in_schema", ["a", "x"]), "it belongs to 'a.x'"),
    "a chunk's type": (lambda m: setattr(chunk(m).meta_data, "type", 1), "with physical type INT32 ["),
    "no metadata in a chunk": (lambda m: setattr(chunk(m), "meta_data", None), "has no metadata"),
    "a row group without columns": (lambda m: m.row_groups[1].columns.clear(), "0 column chunks, but the schema has 2"),
    "a row group too many": (
        lambda m: m.row_groups.append(RowGroup(columns=[], total_byte_size=0, num_rows=5)), "0 column chunks",
    ),
    "too few children": (add_root(1), "1 elements outside any group"),
    "too many children": (add_root(3), "fewer children than its num_children"),
    "children without number": (add_root((1 << 31) - 1), "fewer children than its num_children"),
    "a negative number of children": (add_root(-1), "neither a type nor children"),
    "no elements": (lambda m: m.schema.clear(), "no root"),
    "the root alone": (lambda m: setattr(m, "schema", [SchemaElement(name="r", num_children=1)]), "fewer children"),
    "a chunk that ends behind the file": (
        lambda m: setattr(chunk(m).meta_data, "total_compressed_size", len(DATA)), "in a file of",
    ),
    "a chunk that begins before the file": (
        lambda m: (setattr(chunk(m).meta_data, "data_page_offset", -1),
                   setattr(chunk(m).meta_data, "dictionary_page_offset", None)), "",
    ),
    "a negative number of rows": (lambda m: setattr(m.row_groups[0], "num_rows", -1), "a negative row count: -1"),
    "a name that is not text": (lambda m: setattr(m.schema[1], "name", "\udcff"), "not UTF-8"),
}


@pytest.mark.parametrize("lie", REFUSED)
def test_inconsistent_footer_is_rejected_with_the_reason(lie: str) -> None:
    edit, message = REFUSED[lie]
    found = bounded(edited(edit))
    assert isinstance(found, ParquetError)
    assert message in str(found)


BELIEVED: dict[str, Callable[[FileMetaData], Any]] = {
    "rows of the file": lambda m: setattr(m, "num_rows", 0),
    "negative rows of the file": lambda m: setattr(m, "num_rows", -1),
    "sizes of row groups": lambda m: [setattr(g, "total_byte_size", -1) for g in m.row_groups],
    "ordinals": lambda m: [setattr(g, "ordinal", -1) for g in m.row_groups],
    "column orders": lambda m: setattr(m, "column_orders", []),
    "more column orders": lambda m: setattr(m, "column_orders", list(m.column_orders or ()) * 9),
    "children of a leaf": lambda m: setattr(m.schema[1], "num_children", 0),
    "children of the root when there are none": lambda m: setattr(m.schema[0], "type", 1),
    "file offsets": lambda m: setattr(chunk(m), "file_offset", -5),
    "offsets of row groups": every_group(file_offset=(1 << 63) - 1, ordinal=-(1 << 15), total_byte_size=(1 << 63) - 1),
    "sizes before compression": every_chunk("total_uncompressed_size", -(1 << 63)),
    "the place of an index page": every_chunk("index_page_offset", -(1 << 63)),
    "the place of a Bloom filter": every_chunk("bloom_filter_offset", -(1 << 63)),
    "sort keys without end": sorted_by(*[0] * 50_000),
    "sort keys of columns that are not there": sorted_by(2, 77, -1, -(1 << 31), (1 << 31) - 1),
    "sort keys that are not true": sorted_by(0, 0, 1, descending=True, nulls_first=True),
    "fewer column orders": lambda m: setattr(m, "column_orders", list(m.column_orders or ())[:1]),
    "column orders without end": lambda m: setattr(m, "column_orders", list(m.column_orders or ()) * 50_000),
    "a long name of the writer": lambda m: setattr(m, "created_by", "parquet-mr version 1." + "9" * (4 << 20)),
    "the writer's name as spaces": lambda m: setattr(m, "created_by", " " * (4 << 20)),
    "encodings without end": every_chunk("encodings", [0, 3, 8] * 50_000),
    "pages by encoding": every_chunk("encoding_stats", [PageEncodingStats(page_type=99, encoding=-5, count=-1)] * 999),
    "histograms": every_chunk(
        "size_statistics",
        SizeStatistics(unencoded_byte_array_data_bytes=-1, repetition_level_histogram=[-1] * 99_999),
    ),
    "long bounds that are none": every_chunk(
        "statistics", Statistics(min_value=b"z" * (4 << 20), max_value=b"a" * (4 << 20), null_count=-5)
    ),
    "field ids": lambda m: [setattr(element, "field_id", -(1 << 31)) for element in m.schema],
}


@pytest.mark.parametrize("lie", BELIEVED)
def test_incorrect_but_unused_metadata_is_ignored(lie: str) -> None:
    data = edited(BELIEVED[lie])
    assert bounded(data) == TABLE
    assert pqext.open(data, on_corrupt="skip").read() == TABLE
    assert pqext.inspect(data).num_columns == 2


def test_total_row_count_may_exceed_64_bits() -> None:
    data = edited(every_group(num_rows=(1 << 63) - 1))
    assert pqext.open(data).num_rows == (1 << 64) - 2
    assert isinstance(bounded(data), CorruptFileError)
    with pytest.warns(CorruptDataWarning):
        assert pqext.open(data, on_corrupt="skip").read().num_rows == 0


def test_megabyte_names_are_read() -> None:
    names = [f"{at}{'n' * (1 << 20)}" for at in range(3)]
    data = io.BytesIO()
    pqext.write_table(pa.table([[at] for at in range(3)], names=names), data)
    found = bounded(data.getvalue(), memory=128 << 20)
    assert isinstance(found, pa.Table)
    assert found.column_names == names


def test_megabytes_of_key_value_metadata_are_written_and_read() -> None:
    pairs = {"k": "v" * (10 << 20), "n" * (1 << 20): "", **{f"k{n}": "v" for n in range(10_000)}}
    found = bounded(written(key_value_metadata=pairs), memory=128 << 20)
    assert isinstance(found, pa.Table)
    assert found.schema.metadata == {k.encode(): v.encode() for k, v in pairs.items()}


def test_cost_of_thousands_of_row_groups_follows_those_read() -> None:
    """One hundred thousand row groups that are all the first one."""
    serialised, count = encode(pqext.open(DATA).metadata.row_groups[0]), 100_000
    data = with_footer(hostile(4, a_list(count, compact.STRUCT), serialised * count))
    begin = time.thread_time()
    with pqext.open(data) as file:
        assert len(file.metadata.row_groups) == count
        assert file.read(row_groups=[0, count - 1])["a"].to_pylist() == [1, 2, 1, 2]
    assert time.thread_time() - begin < 0.5 * SLOWER


def test_overlapping_chunks_are_readable() -> None:
    """Nothing forbids two chunks to share bytes; each is read by itself."""

    def share(metadata: FileMetaData) -> None:
        metadata.row_groups[1] = metadata.row_groups[0]
        metadata.num_rows = 4

    assert everything(edited(share)) == pa.concat_tables([TABLE.slice(0, 2)] * 2)


@pytest.mark.parametrize("depth", [98, 99, 300, 100_000])
def test_unbounded_schema_is_rejected_or_read(depth: int) -> None:
    nested = [SchemaElement(name="g", repetition_type=0, num_children=1) for _ in range(depth)]

    def deepen(metadata: FileMetaData) -> None:
        metadata.schema[1:2] = [*nested, metadata.schema[1]]

    found = bounded(edited(deepen), seconds=5)
    assert isinstance(found, LimitError if depth >= 99 else CorruptFileError)


def test_false_wide_schema_costs_little() -> None:
    """One million columns of four bytes each, and no row group."""
    element = encode(SchemaElement(name="", type=1, repetition_type=0))
    count = 1_000_000
    footer = (
        b"\x15\x04\x19\xfc" + compact.write_varint(count + 1) + encode(SchemaElement(name="r", num_children=count))
        + element * count + b"\x16\x00\x19\x0c\x00"
    )
    data = with_footer(footer)
    begin = time.thread_time()
    with pqext.open(data) as file:
        assert len(file.schema.leaves) == count
        assert file.schema.leaves[count - 1].leaf_start == count - 1
    assert time.thread_time() - begin < SLOWER


def test_list_elements_are_limited() -> None:
    with pytest.raises(LimitError, match="metadata_elements"):
        pqext.open(DATA, limits=Limits(metadata_elements=10))
    with pytest.raises(LimitError, match="metadata_depth"):
        pqext.open(DATA, limits=Limits(metadata_depth=2)).read()


@pytest.mark.parametrize("pairs", [{"k\ud800": "v"}, {"k": "\udfff"}, {"k": "a\udcffb"}])
def test_text_with_lone_surrogates_is_rejected_on_write(pairs: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not valid Unicode"):
        written(key_value_metadata=pairs)


@pytest.mark.parametrize("pairs", [{"k": 5}, {b"k": "v"}, {"k": None}])
def test_metadata_that_is_not_text_is_rejected_on_write(pairs: Any) -> None:
    with pytest.raises(TypeError, match="must map text to text"):
        written(key_value_metadata=pairs)


def test_surrogates_without_bytes_are_rejected_in_any_structure() -> None:
    for struct_ in (KeyValue(key="\ud800"), KeyValue(key="k", value="\ud800", unknown=((9, 1, b""),))):
        with pytest.raises(ValueError, match="is not Unicode text") as caught:
            encode(struct_)
        assert not isinstance(caught.value, UnicodeError)


def test_corrupt_lengths_of_a_footer_take_bounded_time() -> None:
    offset = pqext.open(DATA).footer.offset
    for length in (1, 7, offset, len(DATA), (1 << 31) - 1, (1 << 32) - 1):
        found = bounded(DATA[:-8] + struct.pack("<I", length) + b"PAR1")
        assert isinstance(found, ParquetError)


@pytest.mark.slow
def test_row_groups_are_created_on_access_and_released() -> None:
    out = io.BytesIO()
    pqext.write_table(TABLE.select(["a"]).slice(0, 1), out, page_index=False)
    count, data = 20_000, out.getvalue()
    with pqext.open(data) as file:
        footer, offset = file.metadata, file.footer.offset
    group = encode(footer.row_groups[0])
    footer.num_rows = count
    whole = encode(footer)
    at = whole.index(group) - 1  # behind the list's header, which holds a count below 15
    many = whole[:at] + bytes([0xFC, count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14]) + group * count
    data = data[:offset] + serialise_footer(many + whole[at + 1 + len(group) :])
    with pqext.open(data) as file:
        assert len(file.row_groups) == count
        file.num_rows  # noqa: B018
        tracemalloc.start()
        try:
            assert file.num_rows == count
            assert pqext.read_table(data, filter=pqext.col("a") > 1).num_rows == 0
            assert tracemalloc.get_traced_memory()[1] < 8 << 20  # some 2 KB each were kept of all
        finally:
            tracemalloc.stop()
        assert file.row_groups[-1].index == count - 1
        assert file.row_groups[5] is file.row_groups[5]
        assert [one.index for one in file.row_groups[3:5]] == [3, 4]
        with pytest.raises(IndexError):
            file.row_groups[count]
