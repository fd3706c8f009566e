"""The compact protocol, read and written by kernels and held against the thrift package."""

from __future__ import annotations

import copy
import pickle
import time
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import Limits
from pqext.core.format import metadata, thrift
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnOrder,
    Encoding,
    FileMetaData,
    GeometryType,
    KeyValue,
    LogicalType,
    PageEncodingStats,
    PageLocation,
    PageType,
    RowGroup,
    SchemaElement,
    SizeStatistics,
    SortingColumn,
    Statistics,
    TypeDefinedOrder,
    VariantType,
)
from pqext.core.format.thrift import Field, LazyStructs, Struct, Union, decode, encode, field
from pqext.core.kernels.thrift.reader import scan_fields
from reference import compact, thrift_package
from reference.pace import SLOWER

STRUCTS = [
    value
    for value in vars(metadata).values()
    if isinstance(value, type) and issubclass(value, Struct) and value not in (Struct, Union)
]
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "double": st.floats(allow_nan=False),
    "binary": st.binary(max_size=20),
    "string": st.text(max_size=20),
}
for _bits in (8, 16, 32, 64):
    SCALARS[f"i{_bits}"] = st.integers(-(1 << _bits - 1), (1 << _bits - 1) - 1)


@st.composite
def structs(draw: st.DrawFn, cls: type[Struct]) -> Struct:
    """Any structure of the class, every optional field set or not."""
    fields = [f for f in cls.fields if f.required or (not issubclass(cls, Union) and draw(st.booleans()))]
    if issubclass(cls, Union):
        fields = [draw(st.sampled_from(cls.fields))]
    return cls(**{f.name: draw(values(f)) for f in fields})


def values(field: Field) -> st.SearchStrategy[Any]:
    if isinstance(field.type, str):
        element = SCALARS[field.type]
    elif issubclass(field.type, IntEnum):
        element = st.sampled_from(field.type) | st.sampled_from([-1, 99, (1 << 31) - 1])
    else:
        element = structs(field.type)
    return st.lists(element, max_size=2 if isinstance(field.type, type) else 20) if field.is_list else element


ANY_STRUCT = st.sampled_from(STRUCTS).flatmap(structs)


@given(ANY_STRUCT)
def test_written_structure_reads_back_equal(struct: Struct) -> None:
    data = encode(struct)
    assert decode(type(struct), data) == (struct, len(data))


@given(ANY_STRUCT)
def test_thrift_package_reads_the_same_values(struct: Struct) -> None:
    assert thrift_package.same(struct, thrift_package.read(type(struct).__name__, encode(struct)))


@given(ANY_STRUCT)
def test_bytes_match_those_of_the_thrift_package(struct: Struct) -> None:
    assert encode(struct) == thrift_package.write(thrift_package.to_peer(struct))


@given(ANY_STRUCT)
def test_structure_round_trips_byte_for_byte(struct: Struct) -> None:
    data = encode(struct)
    assert encode(decode(type(struct), data)[0]) == data


@pytest.mark.parametrize("count", [0, 1, 14, 15, 16, 127, 128, (1 << 14) - 1, 1 << 14, (1 << 31) - 1])
def test_list_header_matches_that_of_the_thrift_package(count: int) -> None:
    protocol = TCompactProtocol(buffer := TMemoryBuffer())
    protocol.writeStructBegin("RowGroup")
    protocol.writeFieldBegin("columns", TType.LIST, 1)
    protocol.writeListBegin(TType.STRUCT, count)
    assert b"\x19" + thrift.struct_list_header(count) == buffer.getvalue()


def test_reading_starts_at_the_offset_and_ends_after_the_structure() -> None:
    pair = KeyValue(key="k", value="v")
    data = b"before" + encode(pair)
    for buffer in (data + b"after", bytearray(data + b"after"), memoryview(data + b"after")):
        assert decode(KeyValue, buffer, 6) == (pair, len(data))
    with pytest.raises(ValueError, match="outside a buffer"):
        decode(KeyValue, data, len(data) + 1)
    with pytest.raises(ValueError, match="outside a buffer"):
        decode(KeyValue, data, -1)


def test_invalid_utf8_round_trips() -> None:
    data = compact.write_struct([(1, compact.BINARY, b"\xff\x80k"), (2, compact.BINARY, "é".encode())])
    pair, _ = decode(KeyValue, data)
    assert pair.key == "\udcff\udc80k"
    assert pair.value == "é"
    assert encode(pair) == data
    footer = FileMetaData(version=1, schema=[], num_rows=0, row_groups=[], key_value_metadata=[pair])
    assert data in encode(footer)


def test_unknown_enumeration_values_are_plain_integers() -> None:
    element, _ = decode(SchemaElement, encode(SchemaElement(name="c", type=77, converted_type=0)))
    assert type(element.type) is int
    assert element.type == 77
    assert element.converted_type is metadata.ConvertedType.UTF8


def test_last_of_two_fields_with_the_same_id_is_used() -> None:
    data = compact.write_struct([(1, compact.BINARY, b"a"), (1, compact.BINARY, b"b")])
    assert decode(KeyValue, data)[0] == KeyValue(key="b")


@pytest.mark.parametrize("byte", [0, 2])
def test_false_in_a_list_is_written_as_2_and_also_read_as_0(byte: int) -> None:
    index, _ = decode(metadata.ColumnIndex, b"\x19\x21\x01" + bytes([byte]) + b"\x19\x08\x19\x08\x15\x00\x00")
    assert index.null_pages == [True, False]


class Old(Struct):
    """A structure as an early version declares it."""

    name: str = field(3, "string")
    count: int | None = field(5, "i32", default=None)


UNKNOWN_VALUES = st.recursive(
    st.one_of(
        st.tuples(st.just(compact.TRUE), st.booleans()),
        st.tuples(st.just(compact.BYTE), st.integers(0, 255)),
        st.tuples(st.sampled_from([compact.I16, compact.I32, compact.I64]), SCALARS["i16"]),
        st.tuples(st.just(compact.DOUBLE), SCALARS["double"]),
        st.tuples(st.just(compact.BINARY), SCALARS["binary"]),
        st.tuples(st.just(compact.UUID), st.binary(min_size=16, max_size=16)),
    ),
    lambda inner: st.one_of(
        st.lists(st.tuples(st.integers(1, 40), inner), max_size=4).map(
            lambda fields: (compact.STRUCT, [(id, wire, value) for id, (wire, value) in fields])
        ),
        st.tuples(inner, st.integers(0, 20)).map(lambda one: (compact.LIST, ("list", one[0][0], [one[0][1]] * one[1]))),
        st.tuples(inner, inner, st.integers(0, 3)).map(
            lambda one: (compact.MAP, ("map", one[0][0], one[1][0], [(one[0][1], one[1][1])] * one[2]))
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.integers(-32768, 32767).filter(lambda id: id not in (3, 5)), UNKNOWN_VALUES, max_size=5))
def test_fields_of_a_later_version_are_preserved_in_order(later: dict[int, Any]) -> None:
    fields = [(id, wire, value) for id, (wire, value) in later.items()]
    fields += [(3, compact.BINARY, b"name"), (5, compact.I32, 7)]
    fields.sort(key=lambda one: (one[0] in (32767, -16384), one[0]))
    data = compact.write_struct(fields)
    old, end = decode(Old, data)
    assert (old.name, old.count, end) == ("name", 7, len(data))
    assert {id for id, _, _ in old.unknown} == later.keys()
    assert encode(old) == data


def test_nested_structures_with_unknown_fields_are_written() -> None:
    metadata_struct = FileMetaData(
        version=1,
        schema=[SchemaElement(name="c", logicalType=LogicalType(unknown=((30, compact.STRUCT, b"\x00"),)))],
        num_rows=-1,
        row_groups=[],
    )
    again, _ = decode(FileMetaData, encode(metadata_struct))
    assert again == metadata_struct
    assert again.schema[0].logicalType is not None
    assert again.schema[0].logicalType.member is None


@pytest.mark.parametrize(
    "value",
    [
        (compact.LIST, ("list", compact.I32, [1, 2])),
        (compact.BINARY, b"text"),
        (compact.STRUCT, []),
        (compact.I64, 5),
        (compact.BYTE, 5),
        (compact.TRUE, True),
    ],
)
def test_optional_field_of_another_wire_type_is_unknown(value: tuple[int, Any]) -> None:
    data = compact.write_struct([(3, compact.BINARY, b"name"), (5, *value)])
    old, _ = decode(Old, data)
    assert old.count is None
    assert [(id, wire) for id, wire, _ in old.unknown] == [(5, value[0])]
    assert encode(old) == data


def test_set_field_overrides_an_unknown_field_of_its_id() -> None:
    unknown = ((5, compact.BINARY, b"\x00"), (6, compact.TRUE, b""), (6, compact.FALSE, b""))
    old = Old(name="n", count=4, unknown=unknown)
    assert decode(Old, encode(old))[0] == old
    assert compact.Reader(encode(old)).struct() == [
        (3, compact.BINARY, b"n"),
        (5, compact.BINARY, b""),
        (5, compact.I32, 4),
        (6, compact.TRUE, True),
        (6, compact.FALSE, False),
    ]


def test_list_of_another_element_type_is_unknown() -> None:
    data = compact.write_struct([(2, compact.LIST, ("list", compact.BINARY, [b"1"]))])
    statistics, _ = decode(SizeStatistics, data)
    assert statistics.repetition_level_histogram is None
    assert statistics.unknown == ((2, compact.LIST, b"\x18\x011"),)
    assert encode(statistics) == data


@pytest.mark.parametrize("element", range(16))
@pytest.mark.spec("layout.compact-protocol")
def test_empty_list_accepts_any_valid_element_type(element: int) -> None:
    for id in (2, 9):  # a field, and one that is passed over
        data = bytes([id << 4 | 9, element, 0])
        if element > compact.UUID:  # Thrift's own readers refuse these
            with pytest.raises(CorruptFileError, match="the compact protocol does not have this wire type"):
                decode(SizeStatistics, data)
        else:
            assert not decode(SizeStatistics, data)[0].repetition_level_histogram


def test_required_field_of_another_wire_type_is_missing() -> None:
    with pytest.raises(CorruptFileError, match=r"KeyValue\.key: a required field is missing"):
        decode(KeyValue, compact.write_struct([(1, compact.I32, 5)]))


@given(ANY_STRUCT, st.data())
def test_truncated_structure_is_corrupt(struct: Struct, data: st.DataObject) -> None:
    whole = encode(struct)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError) as caught:
        decode(type(struct), whole[:cut], base=1000, path="a/file")
    assert caught.value.path == "a/file"
    assert caught.value.offset is not None
    assert 1000 <= caught.value.offset <= 1000 + cut


# Wire values put together so that most are nearly right.
FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from([b"\x00", b"\x15\x02", b"\x18\x01x", b"\x19\x1c", b"\x1c", b"\x1b\x01\x58", b"\x11", b"\x3d"]),
        st.sampled_from([b"\x08\xff\xff\x01", b"\x08\xfe\xff\x03", b"\x19\xfc", b"\xf9", b"\x17" + b"\x00" * 8]),
        st.binary(min_size=1, max_size=3),
    ),
    max_size=12,
).map(b"".join)


@given(FRAGMENTS)
def test_kernel_skips_exactly_the_bytes_that_the_reference_reads(data: bytes) -> None:
    reader = compact.Reader(data, max_depth=6)
    limits = Limits(metadata_depth=6)
    try:
        fields = reader.struct()
    except compact.Malformed:
        with pytest.raises((CorruptFileError, LimitError)):
            scan_fields(data, limits=limits)
        return
    assume(all(-32768 <= id <= 32767 for id, _, _ in fields))
    expected = [(id, wire, *span) for (id, wire, _), span in zip(fields, reader.spans, strict=True)]
    assert scan_fields(data, limits=limits) == (expected, reader.at)


@given(st.sampled_from(STRUCTS), FRAGMENTS)
def test_arbitrary_bytes_return_a_structure_or_a_typed_error(cls: type[Struct], data: bytes) -> None:
    try:
        struct, end = decode(cls, data)
    except (CorruptFileError, LimitError):
        return
    assert end <= len(data)
    again = encode(struct)
    assert encode(decode(cls, again)[0]) == again


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the structure is truncated"),
        (b"\x15" + b"\x80" * 11, "longer than 64 bits"),
        (b"\x15" + b"\xff" * 9 + b"\x02\x00", "longer than 64 bits"),
        (b"\x00", r"PageLocation\.offset: a required field is missing"),
        (b"\x10", "the compact protocol does not have this wire type"),
        (b"\x1e", "the compact protocol does not have this wire type"),
        (b"\x05\x80\x80\x04\x00", "exceeds 16 bits"),
        (b"\x05\xfe\xff\x03\x00\x15\x00", "exceeds 16 bits"),
        (b"\x98\xff\xff\xff\xff\x0f", "the structure is truncated"),
        (b"\x99\xf5\xff\xff\xff\xff\x0f", "exceeds the number of remaining bytes"),
        (b"\x99\xf3\x05\x00\x00", "exceeds the number of remaining bytes"),
        (b"\x99\x10\x00\x00", "the compact protocol does not have this wire type"),
        (b"\x9b\xff\x7f\x55", "exceeds the number of remaining bytes"),
        (b"\x9b\x01\x05\x00\x00\x00", "the compact protocol does not have this wire type"),
        (b"\x9d" + b"\x00" * 15, "the structure is truncated"),
    ],
)
def test_corrupt_bytes_are_rejected_with_the_reason(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        decode(PageLocation, data)


def test_integer_out_of_range_of_its_field_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match=r"compressed_page_size: 2147483648 does not fit into 32 bits"):
        decode(PageLocation, compact.write_struct([(2, compact.I32, 1 << 31)]))


def test_padded_varints_are_read() -> None:
    assert decode(PageLocation, b"\x16\x80\x00\x15\x82\x80\x00\x16\x02\x00")[0] == PageLocation(
        offset=0, compressed_page_size=1, first_row_index=1
    )


@pytest.mark.parametrize("fields", [[], [(1, compact.STRUCT, []), (2, compact.STRUCT, [])]])
def test_union_without_exactly_one_member_is_corrupt(fields: compact.Fields) -> None:
    with pytest.raises(CorruptFileError, match="a union must have exactly one member"):
        decode(ColumnOrder, compact.write_struct(fields))


@pytest.mark.parametrize("nested", [b"\x1c", b"\x19\x1c", b"\x19\x19", b"\x1b\x01\xcc"])
def test_nesting_is_bounded(nested: bytes) -> None:
    for depth in (100, 1_000_000):
        with pytest.raises(LimitError, match="metadata_depth"):
            decode(PageLocation, b"\x9c" + nested * depth)
    with pytest.raises((LimitError, CorruptFileError)):
        decode(PageLocation, b"\x9c" + nested * 1_000_000, limits=Limits(metadata_depth=1 << 40))


def test_elements_are_bounded() -> None:
    data = encode(SizeStatistics(repetition_level_histogram=[0] * 1000))
    with pytest.raises(LimitError, match="metadata_elements"):
        decode(SizeStatistics, data, limits=Limits(metadata_elements=1000))
    assert decode(SizeStatistics, data, limits=Limits(metadata_elements=1001))
    with pytest.raises(LimitError, match="metadata_elements"):
        scan_fields(data, limits=Limits(metadata_elements=1000))


@pytest.mark.parametrize("id", [2, 4, 5, 7, 10])
def test_megabytes_of_empty_structures_are_rejected_quickly(id: int) -> None:
    count = 20_000_000
    head = compact.write_header(id, compact.LIST, 0) + b"\xfc" + compact.write_varint(count)
    start = time.process_time()
    with pytest.raises((CorruptFileError, LimitError)):
        decode(FileMetaData, head + bytes(count))
    assert time.process_time() - start < 0.2 * SLOWER


def sorting(count: int) -> RowGroup:
    chunks = [ColumnChunk(file_offset=i, file_path=f"f{i}") for i in range(count)]
    return RowGroup(columns=chunks, total_byte_size=1, num_rows=2, sorting_columns=[])


def test_lazy_list_is_a_sequence() -> None:
    group = sorting(20)
    lazy = decode(RowGroup, encode(group))[0].columns
    assert isinstance(lazy, LazyStructs)
    assert len(lazy) == 20
    assert lazy[3] == group.columns[3]
    assert lazy[3] is lazy[3]
    assert lazy[-1] is lazy[19]
    assert lazy[1:4] == list(group.columns[1:4])
    assert list(lazy) == group.columns
    assert lazy == group.columns
    assert group.columns == lazy
    assert lazy != group.columns[:-1]
    assert repr(lazy) == "<20 x ColumnChunk>"
    for position in (20, -21):
        with pytest.raises(IndexError):
            lazy[position]


def test_lazy_list_references_its_buffer() -> None:
    data = bytearray(encode(sorting(3)))
    lazy = decode(RowGroup, data)[0].columns
    with pytest.raises(BufferError):
        data.extend(b"more")
    del data
    assert lazy[2].file_path == "f2"


def test_modified_elements_of_a_lazy_list_are_written() -> None:
    group, _ = decode(RowGroup, encode(sorting(20)))
    group.columns[7].file_path = "changed"
    again, _ = decode(RowGroup, encode(group))
    assert [chunk.file_path for chunk in again.columns] == ["changed" if i == 7 else f"f{i}" for i in range(20)]


def test_unmodified_lazy_list_is_written_unchanged() -> None:
    padded = b"\x26\x80\x00\x00"  # a chunk with file_offset 0 in two bytes where one would do
    data = b"\x19\x2c" + padded * 2 + b"\x16\x00\x16\x00\x00"
    group, _ = decode(RowGroup, data)
    assert encode(group) == data
    assert group.columns[1].file_offset == 0
    assert encode(group) == b"\x19\x2c" + padded + b"\x26\x00\x00" + b"\x16\x00\x16\x00\x00"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_lazy_list_is_copied_as_a_list(duplicate: Any) -> None:
    group, _ = decode(RowGroup, encode(sorting(4)))
    again = duplicate(group)
    assert type(again.columns) is list
    assert again == group


def test_corruption_inside_a_lazy_list_is_reported_on_access() -> None:
    data = b"\x19\x2c" + b"\x26\x00\x00" + b"\x18\x01x\x00" + b"\x16\x00\x16\x00\x00"
    group, _ = decode(RowGroup, data, base=500, path="a/file")
    assert group.columns[0].file_offset == 0
    with pytest.raises(CorruptFileError, match=r"ColumnChunk\.file_offset: a required field is missing") as caught:
        group.columns[1]
    assert caught.value.path == "a/file"
    assert caught.value.offset == 500 + 9


def test_lazy_list_element_has_the_full_budget() -> None:
    data = encode(sorting(30))
    group, _ = decode(RowGroup, data, limits=Limits(metadata_elements=100))
    assert group.columns[29].file_path == "f29"
    with pytest.raises(LimitError):
        decode(RowGroup, data, limits=Limits(metadata_elements=90))


def test_values_have_the_declared_python_types() -> None:
    statistics = Statistics(null_count=3, min_value=b"a", is_min_value_exact=False)
    read, _ = decode(Statistics, encode(statistics))
    assert (type(read.null_count), type(read.min_value), type(read.is_min_value_exact)) == (int, bytes, bool)
    order, _ = decode(SortingColumn, encode(SortingColumn(column_idx=1, descending=True, nulls_first=False)))
    assert (order.descending, order.nulls_first) == (True, False)
    geometry, _ = decode(LogicalType, encode(LogicalType(GEOMETRY=GeometryType(crs="OGC:CRS84"))))
    assert GeometryType(crs="OGC:CRS84") == geometry.GEOMETRY
    assert decode(VariantType, encode(VariantType(specification_version=-128)))[0].specification_version == -128
    assert decode(ColumnOrder, encode(ColumnOrder(TYPE_ORDER=TypeDefinedOrder())))[0].member == "TYPE_ORDER"
    pages, _ = decode(PageEncodingStats, encode(PageEncodingStats(page_type=0, encoding=Encoding.RLE, count=1)))
    assert pages.page_type is PageType.DATA_PAGE


def test_numpy_numbers_are_written_as_numbers() -> None:
    np = pytest.importorskip("numpy")
    location: Any = PageLocation
    written = encode(location(offset=np.int64(5), compressed_page_size=np.int32(6), first_row_index=np.uint8(7)))
    assert written == encode(PageLocation(offset=5, compressed_page_size=6, first_row_index=7))


def test_unreadable_declarations_are_rejected() -> None:
    for id in (-5, 0, 32767):
        with pytest.raises(TypeError, match="field id must be from 1"):
            field(id, "i32")
    with pytest.raises(TypeError, match="values must be from 0"):
        thrift.StructMeta("Bad", (Struct,), {"a": field(1, IntEnum("Values", {"A": -1}))})
    with pytest.raises(TypeError, match="more than 64 fields"):
        thrift.StructMeta("Bad", (Struct,), {f"a{i}": field(i, "i32") for i in range(1, 66)})


@pytest.mark.parametrize(("length", "is_whole"), [(0, True), (80, True), (81, False), (1234, False)])
def test_repr_of_long_text_is_truncated(length: int, is_whole: bool) -> None:
    shown = repr(KeyValue(key="k", value="v" * length))
    assert (f"value={'v' * length!r}" in shown) is is_whole
    assert (f"value={'v' * 80!r}... ({length:,} characters)" in shown) is not is_whole
