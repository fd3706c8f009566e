"""Inference chooses typed columns for what is frequent and of one kind, and says why."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.choice import residual_counts, residual_shares
from pqext.variant.shredding.infer_types import sample_row_numbers
from pqext.variant.shredding.schema import Untyped, check_size, walk
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer, primitives, variants

prim = reference.primitive
NAMES = ["a", "b", "c"]


def column(values: list[bytes | None]) -> pa.StructArray:
    metadata = reference.encode_metadata(NAMES)
    return pa.array([value and {"metadata": metadata, "value": value} for value in values], variant_type())


def objects(*rows: dict[str, bytes]) -> pa.StructArray:
    return column([reference.object_of([(NAMES.index(n), v) for n, v in sorted(row.items())]) for row in rows])


def inferred(array: Any, **options: Any) -> str:
    return str(variant.infer_schema(array, **options))


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([prim("int8", 1), prim("int64", 2)], "BIGINT"),
        ([prim("int8", 1), prim("decimal4", (125, 2))], "DECIMAL(18,2)"),
        ([prim("decimal4", (100, 2))], "BIGINT"),
        ([prim("int64", 10**17), prim("decimal4", (125, 2))], "DECIMAL(38,2)"),
        ([prim("decimal16", (10**37, 0)), prim("decimal16", (1, 37))], "VARIANT"),
        ([prim("decimal16", (10**37, 0)), prim("decimal16", (1, 37)), prim("int8", 1), prim("int8", 1)], "BIGINT"),
        ([prim("decimal16", (10**30, 0))], "DECIMAL(38,0)"),
        ([prim("true"), prim("false")], "BOOLEAN"),
        ([prim("double", 1.0)], "DOUBLE"),
        ([prim("float", 1.0)], "FLOAT"),
        ([prim("date", 1)], "DATE"),
        ([prim("time", 1)], "TIME"),
        ([prim("timestamp", 1)], "TIMESTAMP"),
        ([prim("timestamp", 1), prim("timestamp_nanos", 1)], "TIMESTAMP_NS"),
        ([prim("timestamp_ntz", 1)], "TIMESTAMP_NTZ"),
        ([prim("timestamp_ntz_nanos", 1)], "TIMESTAMP_NTZ_NS"),
        ([prim("binary", b"")], "BINARY"),
        ([prim("uuid", b"0" * 16)], "UUID"),
        ([prim("string", "x"), b"\0", None], "STRING"),
        ([b"\0", None], "VARIANT"),
        ([None], "VARIANT"),
        ([], "VARIANT"),
        ([reference.array_of([prim("int8", 1), b"\0"]), reference.array_of([])], "ARRAY<BIGINT>"),
        ([reference.array_of([])], "VARIANT"),
        ([reference.array_of([prim("int8", 1), prim("string", "x")])], "VARIANT"),
    ],
)
def test_values_of_one_class_have_the_smallest_common_type(values: list[bytes | None], schema: str) -> None:
    assert inferred(column(values)) == schema


def test_mixed_values_use_the_type_of_the_majority_or_none() -> None:
    mixed = column([prim("int8", 1)] * 3 + [prim("string", "x")])
    assert inferred(mixed) == "BIGINT"
    assert inferred(mixed, mixed="uniform") == "VARIANT"
    assert inferred(column([prim("int8", 1), prim("string", "x")])) == "VARIANT"
    assert "exact number 75.0%, string 25.0%" in variant.infer_schema(mixed).explain()


def test_objects_and_arrays_at_one_path_are_counted_separately() -> None:
    array = column([reference.object_of([(0, prim("true"))])] * 2 + [reference.array_of([prim("int8", 1)])])
    assert inferred(array) == "STRUCT<a: BOOLEAN>"


def test_rare_fields_stay_residual() -> None:
    array = objects(*[{"a": prim("int8", 1)}] * 19, {"a": prim("int8", 1), "b": prim("int8", 2)})
    assert inferred(array) == "STRUCT<a: BIGINT>"
    assert inferred(array, min_frequency=0.05) == "STRUCT<a: BIGINT, b: BIGINT>"
    assert "object; in the residual: b (rare: in 5.0%)" in variant.infer_schema(array).explain()


def test_most_frequent_fields_are_chosen_if_there_are_too_many() -> None:
    array = objects({"a": prim("int8", 1), "b": prim("int8", 1)}, {"b": prim("int8", 1)}, {"c": prim("int8", 1)})
    assert inferred(array, max_fields=1) == "STRUCT<b: BIGINT>"


def test_depth_is_bounded() -> None:
    deep = prim("int8", 1)
    for _ in range(30):
        deep = reference.object_of([(0, deep)])
    assert inferred(column([deep]), max_depth=2) == "VARIANT"
    assert inferred(column([deep]), max_depth=40).count("STRUCT") == 30
    shallow = objects({"a": prim("int8", 1), "b": reference.object_of([(0, prim("int8", 1))])})
    assert "b (in 100% of the rows, object; the depth limit)" in variant.infer_schema(shallow, max_depth=1).explain()


def test_sample_is_spread_over_rows_and_chunks() -> None:
    first, last = objects(*[{"a": prim("int8", 1)}] * 500), objects(*[{"b": prim("int8", 1)}] * 500)
    assert inferred(pa.concat_arrays([first, last]), sample_rows=10) == "STRUCT<a: BIGINT, b: BIGINT>"
    assert inferred(pa.chunked_array([first, last]), sample_rows=10) == "STRUCT<a: BIGINT, b: BIGINT>"


def test_shredded_columns_are_inferred_again() -> None:
    array = objects({"a": prim("int8", 1), "b": prim("string", "x")})
    assert inferred(variant.shred(array, "a INT")) == inferred(array) == "STRUCT<a: BIGINT, b: STRING>"


@pytest.mark.parametrize(
    ("values", "options", "schema"),
    [
        ([prim("int8", 1), prim("string", "x")], {}, "VARIANT"),
        ([prim("int8", 1)] * 3 + [prim("decimal16", (10**30, 0))], {}, "DECIMAL(38,0)"),
        ([prim("decimal16", (10**37, 0)), prim("decimal16", (1, 37)), prim("int8", 1), prim("int8", 1)], {}, "VARIANT"),
        ([prim("double", 1.5), prim("decimal4", (25, 1))], {}, "VARIANT"),
        ([prim("double", 1.5), prim("decimal4", (25, 1))], {"coerce": "json"}, "DOUBLE"),
        ([prim("double", 1.5), prim("int8", 2)], {"coerce": "json"}, "VARIANT"),
        ([prim("double", 1.5), prim("float", 1.5)], {}, "VARIANT"),
        ([prim("date", 1), prim("timestamp", 1)], {}, "VARIANT"),
        ([prim("timestamp", 1), prim("timestamp_ntz", 1)], {}, "VARIANT"),
        ([prim("timestamp", 1), prim("timestamp_nanos", 1)], {}, "TIMESTAMP_NS"),
        ([prim("timestamp", 2**62), prim("timestamp_nanos", 1)], {}, "VARIANT"),
    ],
)
def test_mixed_values_are_widened_to_a_common_type_or_none(
    values: list[bytes], options: dict[str, Any], schema: str
) -> None:
    assert inferred(column(values), mixed="widen", **options) == schema


def test_arrays_count_as_levels_of_the_depth_limit() -> None:
    texts = ["[[[1]]]"] * 4
    schema = variant.infer_schema(variant.parse_json(texts))
    assert str(schema) == "ARRAY<ARRAY<ARRAY<BIGINT>>>"
    assert schema.explain().count("of the rows") == 1
    assert schema.explain().count("of the elements") == 3
    for limit in (1, 2):
        assert "the depth limit" in variant.infer_schema(variant.parse_json(texts), max_depth=limit).explain()
    assert str(variant.infer_schema(variant.parse_json(texts), max_depth=3)) == str(schema)


@pytest.mark.parametrize(
    ("other", "options", "reason"),
    [
        (prim("int8", 2), {"coerce": "json"}, "integers are not written like doubles"),
        (prim("int8", 2), {}, "no type holds all"),
        (prim("string", "x"), {"coerce": "json"}, "no type holds all"),
        (prim("float", 1.5), {"coerce": "json"}, "no type holds all"),
    ],
)
def test_reason_that_no_type_is_wide_enough_is_explained(other: bytes, options: dict[str, Any], reason: str) -> None:
    schema = variant.infer_schema(column([prim("double", 1.5), other]), mixed="widen", **options)
    assert f"mixed, and {reason}: " in schema.explain()


@fewer
@given(st.lists(primitives(), min_size=1, max_size=6))
def test_widened_type_leaves_only_nulls_in_the_residual(values: list[bytes]) -> None:
    schema = variant.infer_schema(column(values), mixed="widen")
    if not isinstance(schema, Untyped):
        for value in values:
            assert reference.shred(reference.decode(value, []), schema)["value"] in (None, b"\0")


@fewer
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_narrowest_integer_type_is_the_smallest_that_fits_the_sample(numbers: list[int]) -> None:
    array = column([prim("int64", number) for number in numbers])
    bits = next(bits for bits in (8, 16, 32, 64) if all(-(2 ** (bits - 1)) <= n < 2 ** (bits - 1) for n in numbers))
    assert inferred(array, integers="narrowest") == {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[bits]
    assert inferred(array) == "BIGINT"


def test_decimal_digits_are_inferred() -> None:
    array = column([prim("decimal4", (12345, 2)), prim("int8", 1)])
    assert inferred(array) == "DECIMAL(18,2)"
    assert inferred(array, decimals="narrowest") == "DECIMAL(9,2)"
    assert inferred(array, decimals=0) == "DECIMAL(5,2)"
    assert inferred(array, decimals=4) == "DECIMAL(9,2)"
    assert inferred(array, decimals=38) == "DECIMAL(38,2)"


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([prim("int8", 1), prim("int8", 2), prim("int64", 3)], "TINYINT"),
        ([prim("decimal4", (250, 2)), prim("decimal4", (1, 2)), prim("int8", 3)], "DECIMAL(9,2)"),
        ([prim("decimal8", (250, 2))], "DECIMAL(18,2)"),
        ([prim("decimal16", (250, 38))], "DECIMAL(38,38)"),
        ([prim("decimal4", (250, 20))], "VARIANT"),
        ([prim("timestamp", 1), prim("timestamp", 1), prim("timestamp_nanos", 1)], "TIMESTAMP"),
    ],
)
def test_exact_coercion_infers_the_most_frequent_leaf_type(values: list[bytes], schema: str) -> None:
    assert inferred(column(values), coerce="exact") == schema


HUGE, TINY = prim("decimal16", (10**37, 0)), prim("decimal16", (1, 37))
MICROS, NANOS, FAR = prim("timestamp", 1), prim("timestamp_nanos", 1), prim("timestamp", 2**62)
ONE, TEXT, THIRD = prim("int8", 1), prim("string", "x"), prim("decimal4", (333, 3))


@pytest.mark.parametrize(
    ("values", "options", "below", "half", "above"),
    [
        ((MICROS, NANOS), {"coerce": "exact"}, "TIMESTAMP", "TIMESTAMP", "TIMESTAMP_NS"),
        ((FAR, NANOS), {}, "TIMESTAMP", "TIMESTAMP", "TIMESTAMP_NS"),
        ((ONE, prim("decimal16", (10**30, 0))), {}, "BIGINT", "BIGINT", "DECIMAL(38,0)"),
        ((ONE, TEXT), {}, "BIGINT", "VARIANT", "STRING"),
        ((HUGE, TINY), {}, "BIGINT", "VARIANT", "VARIANT"),
        ((prim("double", 1.5), THIRD), {}, "DOUBLE", "VARIANT", "DECIMAL(18,3)"),
        ((TEXT, THIRD), {"coerce": "json"}, "STRING", "VARIANT", "DECIMAL(18,3)"),
        ((reference.array_of([ONE]), TEXT), {}, "ARRAY<BIGINT>", "VARIANT", "STRING"),
    ],
)
def test_type_of_the_majority_is_inferred(
    values: tuple[bytes, bytes], options: dict[str, Any], below: str, half: str, above: str
) -> None:
    """The share of the second value is one below a half, a half, and one above."""
    first, second = values
    for counts, schema in {(4, 3): below, (4, 4): half, (3, 4): above}.items():
        for rows in ([first] * counts[0] + [second] * counts[1], [second] * counts[1] + [first] * counts[0]):
            assert inferred(column(rows), **options) == schema


def share_in_residual(shredded: pa.StructArray) -> float:
    """The share of the rows whose field x is not in its typed column."""
    group = shredded.field("typed_value").field("x")
    return float(1 - (len(group) - group.field("typed_value").null_count) / len(group))


_RANDOM = random.Random(1)
NUMBERS: dict[str, tuple[list[Any], str]] = {
    "tenths with rounding errors": ([i * 0.1 for i in range(100_000)], "DOUBLE"),
    "full precision": ([_RANDOM.gauss(0, 1) for _ in range(20_000)], "DOUBLE"),
    "varying digits": ([round(_RANDOM.random(), _RANDOM.randint(1, 9)) for _ in range(20_000)], "DOUBLE"),
    "tiny": ([_RANDOM.random() * 1e-9 for _ in range(20_000)], "DOUBLE"),
    "integers": (list(range(20_000)), "BIGINT"),
    "money": ([round(_RANDOM.random() * 100, 2) for _ in range(20_000)], "DECIMAL(18,2)"),
    "coordinates": ([round(_RANDOM.uniform(-180, 180), 6) for _ in range(20_000)], "DECIMAL(18,6)"),
}
"""DuckDB has no exact numbers in JSON: it infers DOUBLE for the last two."""


@pytest.mark.parametrize("kind", NUMBERS)
def test_json_numbers_are_doubles_unless_short_and_exact(kind: str, tmp_path: Path) -> None:
    numbers, expected = NUMBERS[kind]
    texts = [orjson.dumps({"x": number}) for number in numbers]
    (tmp_path / "numbers.json").write_bytes(b"\n".join(texts))
    by_duckdb = duckdb.sql(f"SELECT * FROM read_json('{tmp_path}/numbers.json')").types
    assert [str(type) for type in by_duckdb] == [expected if expected == "BIGINT" else "DOUBLE"]
    shredded = variant.parse_json(texts, shredding="infer")
    assert str(variant.shredding_schema(shredded.type)) == f"STRUCT<x: {expected}>"
    assert share_in_residual(shredded) == 0
    typed = shredded.field("typed_value").field("x").field("typed_value")
    assert list(map(float, typed.to_pylist())) == numbers


def test_integers_among_doubles_stay_residual_and_are_counted_in_the_reason() -> None:
    texts = [f'{{"x": {i if i % 10 == 0 else i / 7}}}' for i in range(10_000)]
    schema = variant.infer_schema(variant.parse_json(texts), coerce="json")
    assert str(schema) == "STRUCT<x: DOUBLE>"
    assert "; in the residual: 10.0% of the values" in schema.explain()
    assert share_in_residual(variant.parse_json(texts, shredding="infer")) == pytest.approx(0.1)
    texts = [f'{{"x": {i if i % 10 == 0 else round(i / 7, i % 5 + 1)}}}' for i in range(10_000)]
    assert share_in_residual(variant.parse_json(texts, shredding="infer")) == 0  # DECIMAL, for which 15 digits suffice
    texts = [f'{{"x": {i if i % 2 == 0 else i / 7}}}' for i in range(10_000)]
    assert "DOUBLE" not in str(variant.infer_schema(variant.parse_json(texts), coerce="json"))


def test_long_numbers_stay_decimals_and_the_reason_names_the_option() -> None:
    explained = variant.infer_schema(variant.parse_json([f'{{"x": {i / 7}}}' for i in range(1, 100)])).explain()
    assert "x: DECIMAL(38,17)" in explained
    assert "coerce='json' makes it DOUBLE" in explained


@pytest.mark.parametrize(
    "numbers",
    [[f"{i}.25" for i in range(99)], [f"{i}.{i * 7919 % 10**18:018}1" for i in range(1, 99)]],
    ids=["short", "without exact doubles"],
)
def test_reason_of_other_decimals_does_not_name_the_option(numbers: list[str]) -> None:
    values = variant.parse_json([f'{{"x": {number}}}' for number in numbers])
    assert "x: DECIMAL" in str(variant.infer_schema(values, coerce="json"))
    assert "DOUBLE" not in variant.infer_schema(values).explain()


def test_residual_shares_of_a_file_match_pyarrow(tmp_path: Path) -> None:
    texts = ['{"a": [1, "x", 2, null], "o": {"b.c": 1}}', '{"a": 5, "o": {"b.c": "y"}}', "null", "7", '{"o": {}}']
    table = pa.table({"v": pa.array(variant.parse_json(texts * 20))})
    schema = {"schema": "a ARRAY<BIGINT>, o STRUCT<`b.c`: BIGINT>"}
    pqext.write_table(table, tmp_path / "x.parquet", shredding={"v": schema}, row_group_rows=30)
    with pqext.open(tmp_path / "x.parquet") as file:
        counts = residual_counts(file.metadata.row_groups, ["v"])
    typed = pq.read_table(tmp_path / "x.parquet")["v"].combine_chunks().field("typed_value")
    elements, member = typed.field("a").field("typed_value").values, typed.field("o").field("typed_value").field("b.c")
    leaves = {"v: $.a[*]": elements, "v: $.o['b.c']": member}
    expected = {
        path: (len(leaf) - leaf.field("value").null_count, sum(len(leaf) - leaf.field(i).null_count for i in (0, 1)))
        for path, leaf in leaves.items()
    }
    assert counts == expected == {"v: $.a[*]": (40, 80), "v: $.o['b.c']": (20, 40)}
    assert residual_shares([counts, {"v: $.a[*]": (0, 80)}]) == {"v: $.a[*]": 0.25, "v: $.o['b.c']": 0.5}


def test_decimals_without_an_exact_double_stay_exact() -> None:
    texts = [f'{{"x": {i}.{i * 7919 % 10**18:018}1}}' for i in range(1, 1000)]
    shredded = variant.parse_json(texts, shredding="infer")
    assert str(variant.shredding_schema(shredded.type)) == "STRUCT<x: DECIMAL(38,19)>"
    assert share_in_residual(shredded) == 0


@pytest.mark.parametrize("rows", [1, 7, 10_000, 100_000])
@pytest.mark.parametrize("period", [2, 10, 16, 100])
def test_samples_are_not_in_phase_with_the_data(rows: int, period: int) -> None:
    count = min(rows, 1000)
    sample = sample_row_numbers(rows, count).to_numpy()
    assert len(set(sample.tolist())) == count
    assert (sample[0] >= 0, sample[-1] < rows) == (True, True)
    assert (np.diff(sample) > 0).all()
    if rows == 100_000:
        shares = np.bincount(sample % period, minlength=period) / count
        assert (abs(shares * period - 1) < 0.25).all()


def test_reasons_name_the_residual_values() -> None:
    array = objects(*[{"a": prim("int8", 1), "b": prim("int8", 1)}] * 10, {"a": prim("int8", 1), "c": prim("int8", 1)})
    text = variant.infer_schema(array, max_fields=1).explain()
    assert "a: BIGINT  -- in 100% of the rows, integers" in text
    assert "in the residual: b (beyond max_fields: in 90.9%), c (rare: in 9.1%)" in text
    mixed_field = objects({"a": prim("int8", 1), "b": prim("true")}, {"a": prim("string", "x"), "b": prim("true")})
    assert "a (in 100% of the rows; mixed, no class has more than half: exact number 50.0%, string 50.0%)" in (
        variant.infer_schema(mixed_field).explain()
    )


@fewer
@given(st.lists(variants(), min_size=1, max_size=6))
def test_arbitrary_values_are_shredded_by_their_inferred_schema(rows: list[tuple[bytes, bytes]]) -> None:
    array = pa.array([{"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    schema = variant.infer_schema(array, min_frequency=0)
    check_size(schema)
    for _, _, node in walk(schema):
        assert node.note or isinstance(node, Untyped)
    variant.unshred(variant.shred(array, schema), strict=True).validate(full=True)


@fewer
@given(variants(), st.data())
def test_corrupt_values_raise_a_typed_error_or_pass(row: tuple[bytes, bytes], data: st.DataObject) -> None:
    damaged = bytearray(row[1])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        variant.infer_schema(pa.array([{"metadata": row[0], "value": bytes(damaged)}], variant_type()))


def test_invalid_values_are_rejected_with_their_row() -> None:
    with pytest.raises(VariantError) as caught:
        variant.infer_schema(column([b"\0", b"\x18"]))
    assert caught.value.row == 1


def test_names_that_are_not_utf8_stay_residual() -> None:
    value = b"\x02\x01\x00\x00\x02\x0c\x01"
    rows = [{"metadata": b"\x01\x01\x00\x01" + name, "value": value} for name in (b"\xc3", b"\xff", b"a", b"a")]
    schema = variant.infer_schema(pa.array(rows, variant_type()))
    assert str(schema) == "STRUCT<a: BIGINT>"
    assert "the name is not UTF-8" in schema.note


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("sample_rows", 0),
        ("max_fields", 0),
        ("min_frequency", 2),
        ("max_depth", -1),
        ("mixed", "x"),
        ("integers", "x"),
        ("decimals", 39),
        ("decimals", "x"),
        ("coerce", "same"),
    ],
)
def test_options_out_of_range_are_rejected(name: str, option: Any) -> None:
    with pytest.raises(ValueError, match=name):
        variant.infer_schema(column([b"\0"]), **{name: option})


REAL = Path(os.environ.get("PARQUET_TEST_DATA", "")).parent / "real"


@pytest.mark.skipif(not (REAL / "movies.json").exists(), reason="PARQUET_TEST_DATA is not set")
def test_movies_have_mixed_titles_and_uniform_ratings() -> None:
    records = orjson.loads((REAL / "movies.json").read_bytes())
    schema = variant.infer_schema(variant.parse_json(pa.array([orjson.dumps(record) for record in records])))
    assert "Title: STRING" in str(schema)
    assert "`IMDB Rating`: DECIMAL(18,1)" in str(schema)
    assert "mostly string" in schema.explain()


def test_view_columns_are_sampled() -> None:
    texts = pa.array([f'{{"a": {i}}}' for i in range(9)], pa.string_view())
    array = variant.parse_json(texts)
    views = pa.StructArray.from_arrays([array.field(i).cast(pa.binary_view()) for i in range(2)], ["metadata", "value"])
    assert variant.infer_schema(views, sample_rows=3) == variant.infer_schema(array, sample_rows=3)
    assert variant.parse_json(texts, shredding="infer").equals(variant.shred(array, "infer"))


def test_json_nulls_do_not_count_as_residual_values(tmp_path: Path) -> None:
    texts = ['{"a": 1}', '{"a": null}', '{"a": 2}', "{}"]
    table = pa.table({"v": pa.array(variant.parse_json(texts))})
    pqext.write_table(table, tmp_path / "x.parquet", shredding={"v": "a BIGINT"})
    with pqext.open(tmp_path / "x.parquet") as file:
        counts = residual_counts(file.metadata.row_groups, ["v"])
    rows = ", ".join(f"('{text}')" for text in texts)
    numbers = duckdb.sql(f"select count(j::json ->> 'a') from (values {rows}) t(j)").fetchall()
    assert counts == {"v: $.a": (0, numbers[0][0])} == {"v: $.a": (0, 2)}
    assert residual_shares([counts]) == {}
