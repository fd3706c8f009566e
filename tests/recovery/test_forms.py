"""Schemas that tell logical types only: the physical forms that other writers give them are found by the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from recovery.cut_files import by_pqext, by_pyarrow, extent, recovered, without_footer

from pqext import variant
from pqext.recovery import Recovery

COUNT = 300


def required(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))


def decimals(precision: int, first: int = 1) -> pa.Table:
    values = [Decimal((first + 7 * i) * (-1) ** i).scaleb(-2) for i in range(COUNT)]
    return pa.table({"id": range(COUNT), "d": pa.array(values, pa.decimal128(precision, 2)), "z": ["a text"] * COUNT})


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize("precision", [5, 8, 9, 12, 17, 18, 25, 38])
@pytest.mark.spec("recovery.forms")
def test_decimals_of_every_physical_type_are_recovered(precision: int, as_integer: bool, dictionary: bool) -> None:
    table = decimals(precision)
    data = by_pyarrow(
        table, row_group_size=100, use_dictionary=dictionary, store_decimal_as_integer=as_integer, version="2.6"
    )
    report, found = without_footer(data, schema=f"id BIGINT, d DECIMAL({precision},2), z STRING")
    assert found == table, report
    is_ours = as_integer or precision > 18
    assert bool(report.notes) is not is_ours
    if not is_ours:
        assert "column d was read as optional FIXED_LEN_BYTE_ARRAY(" in report.notes[0]


@pytest.mark.parametrize("rows", [10_000, 10_050])
@pytest.mark.slow
@pytest.mark.spec("recovery.forms")
def test_many_number_pages_before_decimals_hide_no_physical_type(rows: int) -> None:
    """The first pages fit many small row groups with the decimals as INT64, behind which nothing fits."""
    columns = {f"c{number}": pa.array(range(rows)) for number in range(5)}
    table = pa.table(columns | {"d": pa.array([Decimal(row).scaleb(-2) for row in range(rows)], pa.decimal128(9, 2))})
    data = by_pyarrow(table, use_dictionary=False, data_page_size=1000, write_batch_size=200)
    report, found = without_footer(data, schema=", ".join(f"{name} BIGINT" for name in columns) + ", d DECIMAL(9,2)")
    assert found == table, report


def report_notes(report: Recovery) -> tuple[str, ...]:
    """The notes but for the one that a schema of one type may be too long or too short."""
    return tuple(note for note in report.notes if not note.startswith("all columns of the schema have the same type"))


@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize("precision", [8, 9, 17, 18])
@pytest.mark.parametrize("first", [1, pytest.param(101, marks=pytest.mark.slow), 30_000])
@pytest.mark.spec("recovery.forms.twins")
def test_byte_orders_of_decimals_with_equal_width_are_distinguished(
    precision: int, as_integer: bool, first: int
) -> None:
    small = [Decimal(1 + i % 10).scaleb(-2) for i in range(COUNT)]  # in either order fewer digits than there may be
    for table in (decimals(precision, first), pa.table({"d": pa.array(small, pa.decimal128(precision, 2))})):
        data = by_pyarrow(table, row_group_size=100, store_decimal_as_integer=as_integer)
        report, found = without_footer(data, schema=table.schema)
        assert found == table, report
        assert bool(report_notes(report)) is not as_integer


@pytest.mark.parametrize(
    ("precision", "scale", "value"), [
        (9, 2, "1000000.00"), (9, 2, "9999999.99"), (9, 2, "0.01"), (9, 2, "-2.50"), (18, 4, "99999999999999.9999"),
        (18, 4, "1000000000.0000"), (18, 4, "1.0000"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.spec("recovery.forms.twins")
def test_constant_column_uses_the_byte_order_of_the_schema(
    precision: int, scale: int, value: str, as_integer: bool
) -> None:
    table = pa.table({"d": pa.array([Decimal(value)] * 50, pa.decimal128(precision, scale))})
    report, found = without_footer(
        by_pyarrow(table, store_decimal_as_integer=as_integer), schema=f"d DECIMAL({precision},{scale})"
    )
    if as_integer or Decimal(value).scaleb(scale) < 1 << 16:
        assert found == table, report
    if found != table:
        assert "in both byte orders" in str(report.notes)


@pytest.mark.parametrize("others", [["0.00"], [None], ["0.00", None]])
@pytest.mark.spec("recovery.forms.twins")
def test_sentinel_value_uses_the_byte_order_of_the_schema(others: list[str | None]) -> None:
    values = [None if one is None else Decimal(one) for one in ["9999999.99", *others]]
    table = pa.table({"k": ["a"] * 60, "d": pa.array((values * 60)[:60], pa.decimal128(9, 2))})
    report, found = without_footer(by_pqext(table), schema="k STRING, d DECIMAL(9,2)")
    assert found == table, report
    assert "in both byte orders" in str(report.notes)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.spec("recovery.forms")
def test_timestamps_may_be_int96(version: str) -> None:
    values = [datetime(2026, 5, 1 + i % 20, tzinfo=UTC) for i in range(COUNT)]
    table = pa.table({"at": pa.array(values, pa.timestamp("us", "UTC")), "n": range(COUNT)})
    data = by_pyarrow(table, use_deprecated_int96_timestamps=True, row_group_size=100, data_page_version=version)
    report, found = without_footer(data, schema="at TIMESTAMP, n BIGINT")
    assert found is not None, report
    assert [value.replace(tzinfo=UTC) for value in found["at"].to_pylist()] == values
    assert report.notes == ("column at was read as optional INT96 instead of optional INT64, because its pages match",)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("all_required", [False, True])
@pytest.mark.spec("recovery.forms")
def test_columns_may_be_required_or_optional(all_required: bool, dictionary: bool, version: str) -> None:
    table = pa.table({
        "id": range(COUNT), "price": [i / 7 for i in range(COUNT)], "name": [f"n{i % 9}" for i in range(COUNT)],
        "d": decimals(12)["d"],
    })  # fmt: skip
    told = [f"{name} {type}" for name, type in zip(table.column_names, _DDL, strict=True)]
    if all_required:
        table = required(table)
    else:
        told = [f"{one} NOT NULL" for one in told]
    data = by_pyarrow(table, row_group_size=100, use_dictionary=dictionary, data_page_version=version)
    report, found = without_footer(data, schema=", ".join(told))
    assert found is not None, report
    assert found.to_pydict() == table.to_pydict()
    assert all(("required" if all_required else "optional") in note.split(",")[0] for note in report.notes)
    assert len(report.notes) == 4


_DDL = ("BIGINT", "DOUBLE", "STRING", "DECIMAL(12,2)")


@pytest.mark.spec("recovery.forms")
def test_parts_of_nested_columns_have_their_own_physical_types() -> None:
    item = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("d", pa.decimal128(12, 2), nullable=False)])
    schema = pa.schema([
        pa.field("list", pa.list_(pa.field("element", item, nullable=False))), ("n", pa.int64()),
        pa.field("s", item, nullable=False),
    ])  # fmt: skip
    one = {"x": 5, "d": Decimal("2.50")}
    lists = [[one] * (i % 3) if i % 5 else None for i in range(COUNT)]
    table = pa.table({"list": lists, "n": range(COUNT), "s": [one] * COUNT}, schema)
    ddl = "list ARRAY<STRUCT<x: INT, d: DECIMAL(12,2)>>, n BIGINT, s STRUCT<x: INT, d: DECIMAL(12,2)>"
    for options in ({}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        report, found = without_footer(by_pyarrow(table, row_group_size=100, **options), schema=ddl)
        assert found is not None, report
        assert found.to_pydict() == table.to_pydict()


PART = pa.struct([("a", pa.int32()), ("b", pa.string())])
PARTS = [{"a": i if i % 3 else None, "b": f"b{i % 4}" if i % 5 else None} for i in range(COUNT)]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}], ids=str)
@pytest.mark.parametrize(
    ("type", "values", "ddl"),
    [
        (pa.list_(pa.field("element", pa.bool_(), nullable=False)), [[True] * (i % 3) or None for i in range(COUNT)],
         "ARRAY<BOOLEAN>"),
        (pa.list_(pa.field("element", pa.string(), nullable=False)), [["x"] * (i % 3) or None for i in range(COUNT)],
         "ARRAY<STRING>"),
        (PART, [one if i % 7 else None for i, one in enumerate(PARTS)], "STRUCT<a: INT, b: STRING> NOT NULL"),
        (PART, [one if i % 7 else None for i, one in enumerate(PARTS)], "STRUCT<a: INT NOT NULL, b: STRING NOT NULL>"),
        (pa.list_(pa.int64()), [[i, None, i] for i in range(COUNT)], "ARRAY<BIGINT>"),
    ],
    ids=["flags", "texts", "group", "leaves", "elements"],
)
@pytest.mark.spec("recovery.forms.levels")
def test_nulls_of_nested_columns_follow_from_value_counts(
    type: pa.DataType, values: list[Any], ddl: str, options: dict[str, Any]
) -> None:
    table = pa.table({"n": range(COUNT), "nested": pa.array(values, type)})
    report, found = without_footer(by_pyarrow(table, row_group_size=100, **options), schema=f"n INT, nested {ddl}")
    assert found is None  # n is no INT
    report, found = without_footer(by_pyarrow(table, row_group_size=100, **options), schema=f"n BIGINT, nested {ddl}")
    assert found is not None, report
    assert found.to_pydict() == table.to_pydict()


@pytest.mark.spec("recovery.forms.levels")
def test_group_is_null_if_all_its_leaves_are() -> None:
    one = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string(), nullable=False)])
    table = pa.table({"s": pa.array([{"a": i, "b": "b"} if i % 4 else None for i in range(COUNT)], one)})
    report, found = without_footer(
        by_pyarrow(table, row_group_size=100), schema="s STRUCT<a: INT NOT NULL, b: STRING NOT NULL> NOT NULL"
    )
    assert found == table
    assert report.notes == ("column s was read as optional group instead of required group, because its pages match",)


@pytest.mark.spec("recovery.forms")
def test_matching_physical_types_are_not_changed() -> None:
    table = decimals(12).append_column("at", pa.array([datetime(2026, 5, 1)] * COUNT, pa.timestamp("us")))
    report, found = without_footer(by_pqext(table, row_group_rows=100), schema=table.schema)
    assert found == table
    assert report.notes == ()


@pytest.mark.spec("recovery.forms")
def test_file_passed_as_schema_is_used_unchanged() -> None:
    table = decimals(12)
    report, found = without_footer(by_pyarrow(table, row_group_size=100), schema=by_pqext(table))
    assert found is None
    assert report.notes == ()


@pytest.mark.parametrize(
    ("schema", "column", "told"),
    [
        ("id BIGINT, name STRING, price FLOAT, at TIMESTAMP", "price", "not of type optional FLOAT, of 4 bytes each"),
        ("id INT, name STRING, price DOUBLE, at TIMESTAMP", "id", "not of type optional INT32, of 4 bytes each"),
        ("id BIGINT, price DOUBLE, name STRING, at TIMESTAMP", "price", "optional DOUBLE"),
        ("id BIGINT, name STRING, price DOUBLE, at DATE", "at", "optional INT32"),
    ],
)
@pytest.mark.spec("recovery.misfit")
def test_first_column_that_does_not_match_its_pages_is_named(schema: str, column: str, told: str) -> None:
    table = pa.table({
        "id": range(COUNT), "name": [f"name {i}" for i in range(COUNT)], "price": [i / 7 for i in range(COUNT)],
        "at": pa.array([datetime(2026, 5, 1)] * COUNT, pa.timestamp("us")),
    })  # fmt: skip
    for options in _kinds():
        report, found = without_footer(by_pyarrow(table, row_group_size=100, **options), schema=schema)
        assert found is None
        assert f"the schema may not match the file: column {column} was expected" in report.losses[0].reason
        assert told in report.losses[0].reason
        assert report.losses[0].reason.endswith("its type may differ, or the schema may lack a preceding column")


def _kinds() -> list[dict[str, Any]]:
    return [{"use_dictionary": False}, {"use_dictionary": False, "data_page_version": "2.0"}]


@pytest.mark.spec("recovery.misfit")
def test_file_truncated_within_a_row_group_does_not_blame_the_schema() -> None:
    table = pa.table({"id": range(COUNT), "name": [f"name {i}" for i in range(COUNT)], "price": [0.5] * COUNT})
    data = by_pyarrow(table, use_dictionary=False, data_page_size=800, write_batch_size=100, compression="none")
    for stop in (extent(data, 0, 1)[0] + 900, extent(data, 0, 2)[0] + 900):
        report, found = recovered(data[:stop], schema=table.schema)
        assert found is None
        assert report.losses
        assert not any("may not be that of the file" in loss.reason for loss in report.losses)


@pytest.mark.spec("recovery.misfit")
def test_sibling_with_unshredded_variants_is_reported() -> None:
    events = variant.parse_json(['{"a": 1, "b": "text"}'] * COUNT)
    table = pa.table({"id": range(COUNT), "event": events, "n": [f"n{i}" for i in range(COUNT)]})
    sibling = by_pqext(table, row_group_rows=100)
    for checksums in (True, False):
        shredded = {"event": "a BIGINT, b STRING"}
        data = by_pqext(table, row_group_rows=100, shredding=shredded, checksums=checksums)
        report, found = without_footer(data, schema=sibling)
        assert found is None
        if checksums:  # without, damage may be the reason as well
            assert len(report.losses) == 1
            assert "file: column event.value was expected at byte" in report.losses[0].reason
            assert report.losses[0].reason.endswith("pass a file with the same VARIANT shredding as schema")
        else:
            assert report.losses[0].column == "event"
            assert report.losses[0].reason.endswith("the schema may not match the file")


@pytest.mark.parametrize(
    ("kind", "told"), [("GEOMETRY", "geometry is truncated"), ("VARIANT", "ends before the end of its dictionary")]
)
@pytest.mark.spec("recovery.misfit")
def test_column_with_mismatched_values_is_named_if_all_pages_match(kind: str, told: str) -> None:
    parts = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")])
    values = pa.array([{"metadata": b"", "value": b""}] * COUNT, parts) if kind == "VARIANT" else [b"\xff"] * COUNT
    table = pa.table({"id": range(COUNT), "d": values, "n": range(COUNT)})
    data = by_pqext(table, row_group_rows=100, dictionary=False)
    report, found = without_footer(data, schema=f"id BIGINT, d {kind}, n BIGINT")
    assert found is None
    assert {loss.column for loss in report.losses} == {"d"}
    assert told in report.losses[0].reason
    assert report.losses[0].reason.endswith("the schema may not match the file")


@pytest.mark.parametrize("options", [{}, {"row_group_size": 25}, {"use_dictionary": ["d"], "compression": "zstd"}])
@pytest.mark.spec("recovery.misfit")
def test_column_with_mismatched_values_is_named_if_pages_match_another_type(options: dict[str, Any]) -> None:
    table = pa.table({"id": range(100), "d": [f"text {i}" for i in range(100)], "n": range(100)})
    for columns, schema in ((3, "id BIGINT, d DECIMAL(4,1), n BIGINT"), (2, "id BIGINT, d DECIMAL(4,1)")):
        report, found = without_footer(by_pyarrow(table.select(range(columns)), **options), schema=schema)
        assert found is None
        assert report.notes == ()
        assert "file: column d was expected at byte" in report.losses[0].reason
        assert "which has values of another type; its type may differ" in report.losses[0].reason


@pytest.mark.spec("recovery.misfit")
def test_dictionary_within_a_chunk_is_reported() -> None:
    table = pa.table({"a": range(100), "b": [i % 3 == 0 for i in range(100)], "c": [f"t{i % 12}" for i in range(100)]})
    data = by_pyarrow(table, use_dictionary=["c"], data_page_size=1, write_batch_size=50, compression="none")
    first, stop = extent(data, 0, 1)
    half = (stop - first) // 2  # two pages alike
    report, _ = recovered(data[: first + half] + data[stop : extent(data, 0, 2)[1]], schema=table.schema)
    assert "column b was expected" in report.losses[0].reason
    assert "which has a dictionary, although its chunk lacks 50 of 100 rows" in report.losses[0].reason


@pytest.mark.spec("recovery.forms.twins")
@pytest.mark.parametrize("dictionary", [True, False])
def test_byte_order_of_decimals_is_shared_by_all_row_groups(dictionary: bool) -> None:
    numbers = [Decimal("0.00")] * 3 + [Decimal("0.05"), Decimal("0.06"), Decimal("0.07")]  # zeros are alike
    table = pa.table({"id": range(6), "d": pa.array(numbers, pa.decimal128(9, 2))})
    data = by_pyarrow(table, row_group_size=3, use_dictionary=dictionary)
    report, found = without_footer(data, schema="id BIGINT, d DECIMAL(9,2)")
    assert found is not None
    assert found["d"].to_pylist() == numbers
    assert "column d was read as optional FIXED_LEN_BYTE_ARRAY(4)" in str(report)


@pytest.mark.spec("recovery.forms")
def test_ambiguous_levels_are_reported_as_a_guess() -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("l", pa.list_(pa.int64()), nullable=False)])
    table = pa.table({"id": [1, 2, 3], "l": [[1], [], [None]]}, schema=schema)
    report, _ = without_footer(by_pyarrow(table), schema="id BIGINT, l ARRAY<BIGINT>")
    assert "column l: several nullabilities of its levels fit" in str(report)
    plain = pa.table({"id": [1, 2, 3], "l": [[1], [], None]})
    report, found = without_footer(by_pyarrow(plain), schema="id BIGINT, l ARRAY<BIGINT>")
    assert found is not None
    assert found.to_pylist() == plain.to_pylist()
    assert not report.notes


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())])
@pytest.mark.spec("recovery.forms.levels")
def test_lists_of_one_struct_have_independent_lengths_and_nulls(kind: pa.DataType) -> None:
    def value(row: int) -> list[Any]:
        return [(f"k{at}", at) for at in range(row % 3)] if pa.types.is_map(kind) else list(range(row % 3))

    table = pa.table({
        "id": pa.array([row if row % 5 else None for row in range(COUNT)]),
        "s": pa.array([{"a": value(row), "b": value(row + 1) if row % 4 else None} for row in range(COUNT)],
                      pa.struct({"a": kind, "b": kind})),
    })  # fmt: skip
    told = "ARRAY<BIGINT>" if pa.types.is_list(kind) else "MAP<STRING, BIGINT>"
    _, found = without_footer(by_pyarrow(table), schema=f"id BIGINT NOT NULL, s STRUCT<a: {told}, b: {told}>")
    assert found is not None
    assert found.to_pydict() == table.to_pydict()


@pytest.mark.spec("recovery.misfit")
def test_possibly_incomplete_schema_is_reported() -> None:
    table = pa.table({name: [float(place * 1000 + row) for row in range(COUNT)] for place, name in enumerate("abcd")})
    report, found = without_footer(by_pyarrow(table, row_group_size=100), schema="a DOUBLE, b DOUBLE, c DOUBLE")
    assert found is not None
    assert [note for note in report.notes if "if columns are missing or extra, values are mixed up" in note]
