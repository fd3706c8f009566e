"""`verify` finds what is wrong with VARIANT columns, wherever they lie, and says where."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from variant_cases import FOLDER, KNOWN, all_cases, must_fail

import pqext
from pqext import variant
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from pqext.verification import Report, verify
from reference import variant_shred as reference
from reference.variant_files import annotated

METADATA = reference.encode_metadata(["a", "b"])
FIELD = pa.field("metadata", pa.binary(), nullable=False)


def integer(number: int) -> bytes:
    return reference.primitive("int32", number)


def text(string: str) -> bytes:
    return reference.primitive("string", string)


def fields(**values: bytes) -> bytes:
    return reference.object_of([("ab".index(name), value) for name, value in sorted(values.items())])


def column(rows: list[Any], schema: Any) -> pa.StructArray:
    type = storage_struct(shredding_schema(schema))
    return pa.array([row and {"metadata": METADATA, **row} for row in rows], type)


def rules(report: Report) -> dict[str, int]:
    return {count.rule: count.count for count in report.counts}


GOOD = {"value": None, "typed_value": {"a": {"typed_value": 1}, "b": {"typed_value": [{"typed_value": "x"}]}}}
SCHEMA = "a INT, b ARRAY<STRING>"
ROWS: list[tuple[str, dict[str, Any], str, int | None]] = [
    ("shredding.value.missing", {"value": None, "typed_value": None}, "v.value", None),
    (
        "shredding.value.exclusive",
        {"value": None, "typed_value": {"a": {"value": text("x"), "typed_value": 1}, "b": {}}},
        "v.typed_value.a.value", 0,
    ),
    (
        "shredding.object.disjoint", {"value": fields(b=text("x")), "typed_value": {"a": {}, "b": {}}},
        "v.typed_value.b", 2,
    ),
    ("shredding.object.residual-kind", {"value": text("x"), "typed_value": {"a": {}, "b": {}}}, "v.value", 0),
    ("shredding.object.typed", {"value": fields(a=text("x")), "typed_value": None}, "v.value", 0),
    (
        "shredding.array.present", {"value": None, "typed_value": {"a": {}, "b": {"typed_value": [{}]}}},
        "v.typed_value.b.typed_value.list.element.typed_value", None,
    ),
    (
        "shredding.array.typed",
        {"value": None, "typed_value": {"a": {}, "b": {"value": reference.array_of([])}}},
        "v.typed_value.b.value", 0,
    ),
    (
        "variant.value.layout", {"value": None, "typed_value": {"a": {"value": b"\x0c"}, "b": {}}},
        "v.typed_value.a.value", 0,
    ),
    ("variant.utf8", {"value": b"\x09a\xff", "typed_value": None}, "v.value", 2),
    (
        "variant.metadata.version", {"metadata": b"\x02\x00\x00", "value": b"\0", "typed_value": None},
        "v.metadata", 0,
    ),
    (
        "shredding.metadata.names", {**GOOD, "metadata": reference.encode_metadata(["a"])},
        "v.typed_value.b", None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "row", "path", "offset"), ROWS, ids=[rule for rule, *_ in ROWS])
@pytest.mark.spec(
    "shredding.value.missing", "shredding.value.exclusive", "shredding.object.disjoint", "shredding.array.typed",
    "shredding.object.residual-kind", "shredding.object.typed", "shredding.array.present", "shredding.metadata.names",
)  # fmt: skip
def test_invalid_row_is_reported_with_row_group_row_column_byte_and_rule(
    rule: str, row: dict[str, Any], path: str, offset: int | None
) -> None:
    table = pa.table({"i": range(6), "v": column([GOOD, None, GOOD, GOOD, row, GOOD], SCHEMA)})
    report = verify(annotated(table, row_group_size=3))
    assert rules(report) == {rule: 1}
    assert not report.ok
    (fault,) = report.faults
    assert (fault.rule, fault.row_group, fault.row, fault.column, fault.offset) == (rule, 1, 4, path, offset)
    assert report.counts[0].advice
    assert report.variant_columns == ("v",)


def test_valid_files_of_every_writer_have_no_faults(tmp_path: Path) -> None:
    values = variant.parse_json(pa.array(['{"a": 1, "b": ["x", 2]}', None, "3", '{"c": {}}'] * 50))
    for shredding in ({}, {"v": "a INT, b ARRAY<STRING>"}, {"v": "infer"}):
        path = tmp_path / "ours.parquet"
        table = pa.table([values], schema=pa.schema([variant.variant_field("v")]))
        pqext.write_table(table, path, shredding=shredding, row_group_rows=70, page_rows=20, bloom_filters=True)
        report = verify(path)
        assert report.ok, str(report)
        assert (report.num_rows, report.num_row_groups, report.unchecked) == (200, 3, ())
    theirs = pa.table({"v": column([GOOD, None, GOOD], SCHEMA), "f": [1.5, float("nan"), None]})
    assert verify(annotated(theirs)).ok


def test_duckdb_files_have_no_faults(tmp_path: Path) -> None:
    nested = """'{"a": ' || i || ', "b": [1, "x"], "c": {"d": null}}'"""
    for number, document in enumerate((nested, "case when i % 3 = 0 then '5' end", "'42'")):
        path = tmp_path / f"{number}.parquet"
        duckdb.sql(f"copy (select i, ({document})::json::variant v from range(1000) t(i)) to '{path}'")
        report = verify(path)
        assert report.ok, str(report)
        assert (report.variant_columns, report.unchecked) == (("v",), ())


@pytest.mark.spec("variant.group.annotation")
def test_nested_variants_are_checked() -> None:
    bad = {"metadata": METADATA, "value": text("x"), "typed_value": 1}
    good = {"metadata": METADATA, "value": None, "typed_value": 1}
    kind = storage_struct(shredding_schema("INT"))
    inner = pa.struct([("v", kind)])
    table = pa.table(
        {
            "s": pa.array([{"v": good}, None, {"v": bad}, {"v": None}], inner),
            "l": pa.array([[{"v": good}, {"v": bad}], [], None, [{"v": bad}]], pa.list_(inner)),
            "m": pa.array([[], None, [("k", {"v": good}), ("j", {"v": bad})], []], pa.map_(pa.string(), inner)),
        }
    )
    report = verify(annotated(table, row_group_size=3))
    assert rules(report) == {"shredding.value.exclusive": 4}
    assert [(fault.column, fault.row, fault.row_group) for fault in report.faults] == [
        ("s.v.value", 2, 0), ("l.list.element.v.value", 0, 0), ("l.list.element.v.value", 3, 1),
        ("m.key_value.value.v.value", 2, 0),
    ]  # fmt: skip
    assert report.variant_columns == ("s.v", "l.list.element.v", "m.key_value.value.v")


def test_all_faults_are_counted_and_the_first_are_listed() -> None:
    bad = {"value": fields(a=text("x"), b=text("y")), "typed_value": {"a": {}, "b": {}}}
    source = annotated(pa.table({"v": column([bad] * 100, SCHEMA)}), row_group_size=40)
    report = verify(source, limit=7)
    assert rules(report) == {"shredding.object.disjoint": 200}
    assert (report.total, len(report.faults)) == (200, 7)
    assert [fault.row for fault in report.faults] == [0, 0, 1, 1, 2, 2, 3]
    assert verify(source, limit=0).faults == ()
    assert verify(source, limit=0).total == 200


PLAIN = pa.struct([FIELD, pa.field("value", pa.binary(), nullable=False)])


def group(*members: pa.Field) -> pa.StructType:
    return pa.struct([FIELD, *members])


def member(typed: pa.DataType, nullable: bool = False, name: str = "a") -> pa.Field:
    return pa.field(name, pa.struct([("value", pa.binary()), ("typed_value", typed)]), nullable=nullable)


VALUE = pa.field("value", pa.binary())
GROUPS: list[tuple[str, str, pa.StructType]] = [
    ("variant.group.metadata", "v.metadata", pa.struct([("metadata", pa.binary()), PLAIN.field(1)])),
    (
        "variant.group.binary", "v.metadata",
        pa.struct([pa.field("metadata", pa.string(), nullable=False), PLAIN.field(1)]),
    ),
    ("variant.group.value", "v.value", group(VALUE)),
    ("shredding.layout.group", "v", group(PLAIN.field(1), pa.field("extra", pa.int32()))),
    ("shredding.layout.value", "v.value", group(pa.field("value", pa.string()), pa.field("typed_value", pa.int32()))),
    ("shredding.layout.optional", "v.value", group(PLAIN.field(1), pa.field("typed_value", pa.int32()))),
    (
        "shredding.layout.optional", "v.typed_value",
        group(VALUE, pa.field("typed_value", pa.int32(), nullable=False)),
    ),
    ("shredding.types", "v.typed_value", group(VALUE, pa.field("typed_value", pa.uint32()))),
    ("shredding.types", "v.typed_value", group(VALUE, pa.field("typed_value", pa.time32("ms")))),
    ("shredding.types", "v.typed_value", group(VALUE, pa.field("typed_value", pa.timestamp("ms")))),
    ("shredding.types", "v.typed_value", group(VALUE, pa.field("typed_value", pa.binary(4)))),
    (
        "shredding.types", "v.typed_value",
        group(VALUE, pa.field("typed_value", pa.map_(pa.string(), pa.struct([("value", pa.binary())])))),
    ),
    (
        "shredding.object.required", "v.typed_value.a",
        group(VALUE, pa.field("typed_value", pa.struct([member(pa.int32(), nullable=True)]))),
    ),
    (
        "shredding.array.list", "v.typed_value.list.element",
        group(VALUE, pa.field("typed_value", pa.list_(member(pa.int32(), nullable=True, name="element")))),
    ),
    (
        "shredding.layout.member", "v.typed_value.a",
        group(VALUE, pa.field("typed_value", pa.struct([pa.field("a", pa.int32(), nullable=False)]))),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "kind"), GROUPS, ids=[f"{rule} {path}" for rule, path, _ in GROUPS])
@pytest.mark.spec(
    "variant.group.metadata", "variant.group.binary", "variant.group.value", "shredding.layout.group",
    "shredding.layout.value", "shredding.layout.optional", "shredding.types", "shredding.object.required",
    "shredding.array.list", "shredding.layout.member",
)  # fmt: skip
def test_invalid_group_layouts_are_reported_by_path(rule: str, path: str, kind: pa.StructType) -> None:
    report = verify(annotated(pa.table({"v": pa.array([], kind)})))
    assert [(fault.rule, fault.column, fault.row) for fault in report.faults] == [(rule, path, None)]
    assert report.counts[0].advice.startswith("the schema is wrong")


@pytest.mark.parametrize("type", [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2),
    pa.decimal128(18, 2), pa.decimal128(38, 38), pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "UTC"), pa.timestamp("us"), pa.timestamp("ns"), pa.binary(), pa.string(), pa.uuid(),
], ids=str)  # fmt: skip
@pytest.mark.spec("shredding.types")
def test_each_shredded_type_of_the_specification_is_allowed(type: pa.DataType) -> None:
    kind = group(VALUE, pa.field("typed_value", type))
    storage = pa.struct([field.with_type(getattr(field.type, "storage_type", field.type)) for field in kind])
    table = pa.table([pa.array([None], storage).cast(kind)], ["v"])
    report = verify(annotated(table, store_decimal_as_integer=True))
    assert report.ok, str(report)


@pytest.mark.spec("variant.version")
def test_annotation_of_another_version_is_a_fault() -> None:
    table = pa.table({"v": pa.array([{"metadata": METADATA, "value": b"\0"}], PLAIN)})
    assert rules(verify(annotated(table, version=2))) == {"variant.version": 1}
    assert verify(annotated(table, version=None)).ok


def test_memory_is_bounded_by_one_batch() -> None:
    rows = 400_000
    struct = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(METADATA), rows), pa.repeat(pa.scalar(integer(1)), rows)], fields=list(PLAIN)
    )
    source = annotated(pa.table({"v": struct}), compression="zstd")
    before = pa.total_allocated_bytes()
    assert verify(source).ok
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert sys.getsizeof(source) < rows * 4


BROKEN = {
    "case-043-INVALID": "shredding.object.disjoint", "case-084-INVALID": "shredding.object.required",
    "case-087": "shredding.object.residual-kind", "case-125-INVALID": "shredding.object.disjoint",
    "case-128": "shredding.object.residual-kind", "case-137": "shredding.types",
}  # fmt: skip


@pytest.mark.skipif(not all_cases(), reason="PARQUET_TEST_DATA does not name the parquet-testing folder")
def test_exactly_the_invalid_public_cases_are_detected() -> None:
    for case in all_cases():
        name = case["parquet_file"].removesuffix(".parquet")
        report = verify(FOLDER / case["parquet_file"])
        if name in BROKEN:
            assert {*rules(report)} == {BROKEN[name]}, name
        elif must_fail(case):
            assert not report.ok, name
        elif case["case_number"] in KNOWN:
            assert report.ok, name


def test_unselected_columns_are_not_read() -> None:
    bad = {"value": text("x"), "typed_value": {"a": {}, "b": {}}}
    table = pa.table({"v": column([bad], SCHEMA), "i": [1]})
    assert verify(annotated(table), columns=["i"]).ok
    assert verify(annotated(table), checks=["chunks"]).ok
    assert not verify(annotated(table), checks=["variants"]).ok
    with pytest.raises(ValueError, match="unknown top-level column 'x'"):
        verify(annotated(table), columns=["x"])
    with pytest.raises(ValueError, match="checks are"):
        verify(annotated(table), checks=["everything"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="limit"):
        verify(annotated(table), limit=-1)
    assert pq.read_table(pa.BufferReader(annotated(table))).num_rows == 1
