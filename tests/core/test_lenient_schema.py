"""Schemas of other writers that are read in spite of a fault, and errors of schemas and footers that are typed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.metadata import (
    FieldRepetitionType,
    FileMetaData,
    GeographyType,
    GeometryType,
    LogicalType,
    NullType,
    SchemaElement,
)
from pqext.core.format.thrift import encode


def with_footer(table: pa.Table, change: Callable[[FileMetaData], None], **options: Any) -> bytes:
    """A file of pyarrow with a changed footer, which our own writer would refuse."""
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=False, **options)
    data = out.getvalue()
    with pqext.open(data) as file:
        metadata, end = file.metadata, file.footer.offset
        metadata.schema = list(metadata.schema)
        change(metadata)
        footer = encode(metadata)
    return data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


REQUIRED = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.string(), False)])


def without_repetition(metadata: FileMetaData) -> None:
    for element in metadata.schema[1:]:
        element.repetition_type = None


def test_root_columns_without_repetition_are_required() -> None:
    data = with_footer(pa.table({"a": [1, 2], "b": ["x", "y"]}, REQUIRED), without_repetition)
    assert pqext.read_table(data).to_pylist() == pq.read_table(io.BytesIO(data)).to_pylist()
    assert pqext.scan(data).count() == 2
    with pytest.raises(CorruptFileError, match="no repetition type"):
        pqext.read_table(data, strict=True)
    assert [fault.message for fault in pqext.verify(data).faults] == [
        f"the schema element {name!r} has no repetition type" for name in ("a", "b")
    ]


def empty_group(repetition: FieldRepetitionType, position: int, parent: int) -> Callable[[FileMetaData], None]:
    """Add a group without children to a group of the schema."""

    def add(metadata: FileMetaData) -> None:
        group = SchemaElement(name="g", repetition_type=repetition, num_children=0)
        metadata.schema = [*metadata.schema[:position], group, *metadata.schema[position:]]
        metadata.schema[parent].num_children = (metadata.schema[parent].num_children or 0) + 1

    return add


@pytest.mark.parametrize("repetition", list(FieldRepetitionType), ids=lambda kind: kind.name)
@pytest.mark.parametrize("position", [1, 2])
def test_columns_next_to_an_empty_group_match_pyarrow(repetition: FieldRepetitionType, position: int) -> None:
    data = with_footer(pa.table({"a": [1, 2]}), empty_group(repetition, position, 0))
    peer = pq.read_table(io.BytesIO(data))
    assert peer.column("g").to_pylist() == [None, None]
    assert pqext.read_table(data).equals(peer.select(["a"]))
    assert pqext.scan(data, filter=col("a") == 2).to_table().to_pylist() == [{"a": 2}]
    assert pqext.scan(data).count() == peer.num_rows
    with pytest.raises(CorruptFileError, match="neither a type nor children"):
        pqext.read_table(data, strict=True)
    assert [fault.message for fault in pqext.verify(data).faults] == [
        "the schema element 'g' has neither a type nor children"
    ]


def test_empty_group_within_a_struct_is_omitted() -> None:
    table = pa.table({"s": [{"a": 1}, None], "b": ["x", "y"]})
    data = with_footer(table, empty_group(FieldRepetitionType.OPTIONAL, 3, 1))
    assert pqext.read_table(data).equals(table)


def test_column_without_a_type_is_not_an_empty_group() -> None:
    data = with_footer(pa.table({"a": [1], "b": [2]}), lambda metadata: setattr(metadata.schema[1], "type", None))
    with pytest.raises(CorruptFileError, match="2 column chunks, but the schema has 1 columns"):
        pqext.read_table(data)


def test_unknown_repetition_type_is_an_error() -> None:
    def unknown(metadata: FileMetaData) -> None:
        metadata.schema[1].repetition_type = 7

    data = with_footer(pa.table({"a": [1, 2], "b": ["x", "y"]}, REQUIRED), unknown)
    with pytest.raises(CorruptFileError, match="no valid repetition type"):
        pqext.read_table(data)


@pytest.mark.spec("geometry.physical", "geography.physical")
@pytest.mark.parametrize("values", [[1, 2], [1.5, 2.5], [True, False]])
@pytest.mark.parametrize("member", ["geometry", "geography"])
def test_verify_reports_numeric_geometry_columns(member: str, values: list[object]) -> None:
    logical = LogicalType(GEOMETRY=GeometryType()) if member == "geometry" else LogicalType(GEOGRAPHY=GeographyType())

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[1].logicalType = logical

    data = with_footer(pa.table({"v": values}), annotate)
    assert [fault.rule for fault in pqext.verify(data).faults] == [f"{member}.physical"]


NULLS = {
    "BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(), "FIXED_LEN_BYTE_ARRAY": pa.binary(3), "INT96": pa.timestamp("ns"),
}  # fmt: skip


@pytest.mark.spec("logical.unknown")
@pytest.mark.parametrize("physical", NULLS)
@pytest.mark.parametrize("values", [True, False], ids=["values", "nulls"])
def test_null_column_of_each_physical_type_is_null_or_a_typed_error(physical: str, values: bool) -> None:
    kind = NULLS[physical]
    value = b"abc" if physical.endswith("BYTE_ARRAY") else False if physical == "BOOLEAN" else 0
    table = pa.table({"v": pa.array([value if values else None] * 2, kind), "i": [1, 2]})

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[1].logicalType = LogicalType(UNKNOWN=NullType())
        metadata.schema[1].converted_type = None

    options = {"use_deprecated_int96_timestamps": physical == "INT96", "write_page_index": True}
    data = with_footer(table, annotate, sorting_columns=[pq.SortingColumn(0)], **options)
    calls: list[Callable[[], object]] = [
        lambda: pqext.read_table(data)["v"].to_pylist(),
        lambda: [value for batch in pqext.open(data).iter_batches(1) for value in batch.column("v").to_pylist()],
        lambda: pqext.scan(data).head(2)["v"].to_pylist(),
        lambda: pqext.scan(data, filter=col("v").is_null(), trust_statistics=False).to_table()["v"].to_pylist(),
        lambda: pqext.scan(data).to_pandas()["v"].tolist(),
        lambda: pqext.scan(data).to_polars()["v"].to_list(),
    ]
    for call in calls:
        if values:
            with pytest.raises(CorruptFileError, match="UNKNOWN column, whose values must be null, contains a value"):
                call()
        else:
            assert call() == pq.read_table(io.BytesIO(data))["v"].to_pylist() == [None, None]
    assert pqext.scan(data).count() == 2
    assert pqext.verify(data).ok == (not values)


def test_files_with_more_rows_than_their_footer_are_not_concatenated() -> None:
    def huge(metadata: FileMetaData) -> None:
        metadata.num_rows = metadata.row_groups[0].num_rows = 2**63 - 1

    data = with_footer(pa.table({"v": [1]}), huge)
    with pytest.raises(CorruptFileError, match="rows in total"):
        pqext.concatenate([data, data], io.BytesIO())
