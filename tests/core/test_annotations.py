"""Annotations that are unknown, unsuitable, marked or refused, and field ids."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.columns import column, one, read, written
from core.raw_files import OPTIONAL, REQUIRED, Column, group, int32, int64, leaf, write

import pqext
from pqext.core.base.errors import AnnotationWarning, CorruptFileError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import (
    ConvertedType,
    DateType,
    DecimalType,
    FileMetaData,
    FileType,
    GeographyType,
    GeometryType,
    IntType,
    LogicalType,
    StringType,
    TimestampType,
    TimeType,
    TimeUnit,
    Type,
    UUIDType,
)
from pqext.core.format.thrift import decode
from pqext.core.schema.types.logical import TIME_UNITS

FIXED = Type.FIXED_LEN_BYTE_ARRAY


@pytest.mark.spec("logical.precedence")
def test_logical_type_takes_precedence_over_the_converted_type() -> None:
    annotation = LogicalType(INTEGER=IntType(bitWidth=16, isSigned=False))
    data = one(Type.INT32, int32(7), 1, logicalType=annotation, converted_type=ConvertedType.DATE)
    assert read(data)["c"].type == pa.uint16()


def test_null_annotation_of_old_writers_is_read_as_null() -> None:
    """parquet-cpp wrote converted type 24 for columns of nulls before Arrow 0.14; pyarrow reads it as null."""
    data = write([leaf("n", OPTIONAL, Type.INT32, converted_type=24)], [Column(b"", 2, definition=[0, 0])], 2)
    assert read(data)["n"].type == pa.null()
    assert read(data)["n"].to_pylist() == [None, None]
    assert pq.read_table(io.BytesIO(data)).schema.field("n").type == pa.null()


def unknown() -> LogicalType:
    """The union with a member that no version knows: field 99, an empty structure."""
    found, _ = decode(LogicalType, b"\x0c\xc6\x01\x00\x00", 0, Limits())
    assert found.member is None
    return found


@pytest.mark.spec("logical.unknown-annotation")
def test_unknown_logical_type_warns_and_reads_as_physical_type() -> None:
    data = write(
        [
            leaf("n", REQUIRED, Type.INT64, logicalType=unknown()),
            leaf("b", REQUIRED, FIXED, type_length=2, logicalType=unknown()),
            group("g", REQUIRED, 1, logicalType=unknown()),
            leaf("x", REQUIRED),
        ],
        [Column(int64(5), 1), Column(b"ab", 1), Column(int32(1), 1)],
        1,
    )
    with pytest.warns(AnnotationWarning) as caught:
        assert read(data).to_pylist() == [{"n": 5, "b": b"ab", "g": {"x": 1}}]
    assert [str(warning.message).split(":")[0] for warning in caught] == ["column n", "column b", "column g"]
    assert pqext.open(data).row_groups[0].chunk(0).bounds().minimum is None


@pytest.mark.spec("logical.unknown-annotation")
def test_bounds_of_unknown_logical_type_are_ignored() -> None:
    plain, out = io.BytesIO(), io.BytesIO()
    pqext.write_table(pa.table({"c": pa.array([1, 2], pa.int64())}), plain)

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[1].logicalType = unknown()

    pqext.rewrite_footer(plain, annotate, out)
    bounds = [pqext.open(file.getvalue()).row_groups[0].chunk(0).bounds() for file in (plain, out)]
    assert [(found.minimum, found.maximum) for found in bounds] == [(1, 2), (None, None)]


UNSUITABLE: list[tuple[str, Type, dict[str, Any], LogicalType, pa.DataType]] = [
    ("STRING", Type.INT32, {}, LogicalType(STRING=StringType()), pa.int32()),
    ("UUID", FIXED, {"type_length": 4}, LogicalType(UUID=UUIDType()), pa.binary(4)),
    ("INTEGER", Type.INT64, {}, LogicalType(INTEGER=IntType(bitWidth=8, isSigned=True)), pa.int64()),
    ("INTEGER", Type.INT32, {}, LogicalType(INTEGER=IntType(bitWidth=24, isSigned=True)), pa.int32()),
    ("DECIMAL", Type.INT96, {}, LogicalType(DECIMAL=DecimalType(scale=0, precision=5)), pa.binary(12)),
    ("TIME", Type.INT64, {}, LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=TIME_UNITS["ms"])), pa.int64()),
    (
        "TIMESTAMP", Type.INT32, {},
        LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=TIME_UNITS["us"])), pa.int32(),
    ),
    ("DATE", Type.INT64, {}, LogicalType(DATE=DateType()), pa.int64()),
    ("FILE", Type.INT64, {}, LogicalType(FILE=FileType()), pa.int64()),
    ("GEOMETRY", FIXED, {"type_length": 4}, LogicalType(GEOMETRY=GeometryType()), pa.binary(4)),
    ("GEOGRAPHY", FIXED, {"type_length": 4}, LogicalType(GEOGRAPHY=GeographyType()), pa.binary(4)),
]  # fmt: skip


@pytest.mark.spec("logical.unsuitable-annotation", "geometry.physical", "geography.physical")
@pytest.mark.parametrize(("name", "kind", "more", "annotation", "expected"), UNSUITABLE)
def test_annotation_that_does_not_fit_its_type_is_ignored_with_a_warning(
    name: str, kind: Type, more: dict[str, Any], annotation: LogicalType, expected: pa.DataType
) -> None:
    data = one(kind, bytes(16), 1, logicalType=annotation, **more)
    with pytest.warns(AnnotationWarning, match=rf"column c: {name} cannot annotate {kind.name}"):
        assert read(data)["c"].type == expected
    assert pqext.open(data).schema.leaves[0].leaf_type.order == "undefined"


def later_unit() -> TimeUnit:
    """A time unit that no version knows: member 9."""
    found, _ = decode(TimeUnit, b"\x9c\x00\x00", 0, Limits())
    assert found.member is None
    return found


@pytest.mark.spec("logical.timestamp.unknown-unit", "logical.decimal.precision")
@pytest.mark.parametrize(
    ("annotation", "error", "message"),
    [
        (LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=later_unit())), UnsupportedError, "time unit"),
        (LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=later_unit())), UnsupportedError, "time unit"),
        (LogicalType(DECIMAL=DecimalType(scale=0, precision=19)), CorruptFileError, r"DECIMAL\(19, 0\) does not fit"),
        (LogicalType(DECIMAL=DecimalType(scale=5, precision=4)), CorruptFileError, "the precision must be positive"),
        (LogicalType(DECIMAL=DecimalType(scale=-1, precision=4)), CorruptFileError, "the precision must be positive"),
        (LogicalType(DECIMAL=DecimalType(scale=0, precision=0)), CorruptFileError, "the precision must be positive"),
    ],
)
def test_unreadable_column_does_not_affect_other_columns(
    annotation: LogicalType, error: type[Exception], message: str
) -> None:
    elements = [
        group("s", REQUIRED, 2), leaf("odd", REQUIRED, Type.INT64, logicalType=annotation), leaf("x", REQUIRED),
        leaf("plain", REQUIRED),
    ]
    data = write(elements, [Column(int64(1), 1), Column(int32(2), 1), Column(int32(3), 1)], 1)
    with pqext.open(data) as file:
        with pytest.raises(error, match=rf"{message}.*column s\.odd"):
            file.read()
        with pytest.raises(error, match=message):
            next(file.iter_batches(columns=["s"]))
        assert file.read(["plain", "s.x"]).to_pylist() == [{"s": {"x": 2}, "plain": 3}]
        shown = file.arrow_schema.field("s").type.field("odd")
        assert shown.type == pa.int64()
        assert shown.metadata.keys() == {b"PARQUET:unreadable"}


FILE_TYPE = pa.struct(
    [
        ("uri", pa.string()), ("offset", pa.int64()), ("size", pa.int64()), ("content_type", pa.string()),
        ("checksum", pa.string()), ("inline", pa.binary()),
    ]
)


@pytest.mark.spec("logical.file")
def test_file_column_is_a_marked_struct_and_is_never_fetched() -> None:
    outside, inside = {"uri": "http://0.0.0.0:1/nothing", "offset": 5}, {"inline": b"abc", "content_type": "a/b"}
    rows = [outside, inside, None]
    table = column(rows, FILE_TYPE, logical_type="FILE")
    data = written(table)
    with pqext.open(data) as file:
        assert file.schema.root.children[0].logical_name == "FILE"
        found = file.read()
    assert found.schema.field("c").metadata == {b"PARQUET:logical_type": b"FILE"}
    assert found["c"].equals(table["c"])
    assert pqext.open(written(found)).schema.root.children[0].logical_name == "FILE"
    part = column([{"uri": "x"}], pa.struct([("uri", pa.large_string())]), logical_type="FILE")
    assert read(written(part))["c"].to_pylist() == [{"uri": "x"}]


@pytest.mark.parametrize("is_file", [False, True])
def test_structs_cannot_be_appended_to_a_file_column_or_the_reverse(is_file: bool, tmp_path: Path) -> None:
    rows, path = [{"uri": "x"}], tmp_path / "t.parquet"
    plain, marked = column(rows, FILE_TYPE), column(rows, FILE_TYPE, logical_type="FILE")
    pqext.write_table(marked if is_file else plain, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="column 'c' has type"):
        pqext.write_table(plain if is_file else marked, path, append=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "kind"), [("url", Type.BYTE_ARRAY), ("size", Type.INT32)])
@pytest.mark.spec("logical.file")
def test_invalid_file_group_is_read_as_a_writable_struct(name: str, kind: Type) -> None:
    plain, data = (
        write([group("c", OPTIONAL, 1, logicalType=mark), leaf(name, OPTIONAL, kind)], [Column(b"", 2, [0, 1])], 2)
        for mark in (None, LogicalType(FILE=FileType()))
    )
    with pytest.warns(AnnotationWarning, match="column c: FILE does not match the group; it is read as a struct"):
        found = read(data)
    assert found.equals(pq.read_table(io.BytesIO(plain)))  # pyarrow does not read FILE
    assert read(written(found)).equals(found)


@pytest.mark.parametrize(
    ("kind", "mark", "message"),
    [
        (pa.struct([("url", pa.string())]), "FILE", "no field 'url'"),
        (pa.struct([("uri", pa.int32())]), "FILE", "'uri' cannot be int32"),
        (pa.struct([pa.field("uri", pa.string(), False)]), "FILE", "must be nullable"),
        (pa.int32(), "ENUM", "ENUM, which cannot annotate int32"),
        (pa.string(), "BSON", "BSON, which cannot annotate string"),
        (pa.binary(4), "UUID", "UUID, which cannot annotate"),
        (pa.string(), "NOVEL", "must be one of ENUM, JSON, BSON, UUID, FILE, not 'NOVEL'"),
    ],
)
@pytest.mark.spec("logical.file")
def test_mark_that_does_not_fit_its_type_is_rejected_before_writing(
    kind: pa.DataType, mark: str, message: str
) -> None:
    out = io.BytesIO()
    with pytest.raises(ValueError, match=f"'c'.*{message}"):
        pqext.write_table(column([], kind, logical_type=mark), out)
    assert not out.getvalue()


@pytest.mark.spec("logical.field-id")
def test_field_ids_are_returned_as_field_metadata_like_pyarrow() -> None:
    def marked(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    schema = pa.schema(
        [
            marked("a", pa.int32(), 0),
            marked("s", pa.struct([marked("x", pa.int8(), 3)]), 2),
            marked("l", pa.list_(marked("element", pa.int8(), 5)), 4),
            marked("m", pa.map_(marked("key", pa.int8(), 7).with_nullable(False), marked("value", pa.int8(), 8)), 6),
        ]
    )
    data = written(schema.empty_table())
    found, theirs = pqext.open(data).arrow_schema, pq.read_schema(io.BytesIO(data))
    for ours, other in zip(found, theirs, strict=True):
        assert ours.metadata == other.metadata
    assert found.field("l").type.value_field.metadata == {b"PARQUET:field_id": b"5"}
    assert found.field("m").type.item_field.metadata == {b"PARQUET:field_id": b"8"}
    assert pqext.open(written(found.empty_table())).schema.find("m.key_value.value").field_id == 8  # type: ignore[union-attr]


def test_columns_of_an_annotated_group_are_read_without_a_warning() -> None:
    from pqext import variant

    values = pa.Table.from_arrays([variant.parse_json(pa.array(["1"]))], schema=pa.schema([variant.variant_field("v")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pqext.open(written(values)).read(["v.value"]).num_rows == 1
