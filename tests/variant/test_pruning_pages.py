"""Rows are left out by the pages of a leaf and of the residual beside it, and by Bloom filters, if none matches."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from pqext.core.format.predicate import COMPARE, Bounds, Comparison, IsIn, IsNotNull, IsNull, Predicate
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.annotations import find_by_logical_type
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import rows_that_may_match
from pqext.variant.pruning import VariantPredicate, _narrow_bounds, may_match
from pqext.variant.types import variant_field, variant_type
from reference import evaluate as twin
from reference import variant_shred as reference
from reference.effort import share
from reference.variant_strategies import primitives

prim = reference.primitive
METADATA = reference.encode_metadata(["a", "b"])


def at_a(value: bytes) -> bytes:
    return reference.object_of([(0, value)])


def column(values: list[bytes | None]) -> pa.StructArray:
    return pa.array([value and {"metadata": METADATA, "value": value} for value in values], variant_type())


def written(values: list[bytes | None], schema: str, **options: Any) -> ParquetFile:
    sink = io.BytesIO()
    table = pa.table([column(values)], schema=pa.schema([variant_field("v")]))
    pqext.write_table(table, sink, shredding={"v": schema}, **options)
    return ParquetFile(sink.getvalue())


def rows_of(file: ParquetFile, type: str, predicate: Predicate, path: str = "$.a") -> list[int]:
    """The rows of the only row group that are not left out."""
    node = file.schema.find("v")
    annotation = find_by_logical_type("VARIANT")
    assert node is not None
    assert annotation is not None
    (group,) = file.row_groups
    found = annotation.load().matching_rows(node, group, VariantPredicate(path, type, predicate))
    ranges = [range(group.num_rows)] if found is None else found
    assert all(one.stop < other.start for one, other in itertools.pairwise(ranges))
    return [row for one in ranges for row in one]


INTEGERS = [at_a(prim("int32", n)) for n in range(12)]


@pytest.mark.spec("shredding.skipping.pages")
@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (Comparison("==", 4), [3, 4, 5]),
        (Comparison(">", 8), [9, 10, 11]),
        (Comparison("<", 0), []),
        (IsIn((0, 11)), [0, 1, 2, 9, 10, 11]),
        (IsNull(), []),
        (IsNotNull(), list(range(12))),
    ],
)
def test_pages_of_a_leaf_with_an_empty_residual_are_pruned(predicate: Predicate, rows: list[int]) -> None:
    file = written(INTEGERS, "a BIGINT", page_rows=3)
    assert rows_of(file, "bigint", predicate) == rows


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (2**53 + 1, 2.0**53), (2**53 + 1, 2**53), (2**53 + 1, 2.0**53 + 2), (2**53 - 1, 2.0**53 - 1),
        (-(2**53) - 1, -(2**53)), (7, 8.0),
    ],
)  # fmt: skip
def test_integer_bloom_filter_does_not_exclude_doubles_that_integers_round_to(
    value: int, literal: float
) -> None:
    sink = io.BytesIO()
    table = pa.table({"v": variant.parse_json([f'{{"a": {value}}}'])})
    leaf = "v.typed_value.a.typed_value"
    pqext.write_table(table, sink, shredding={"v": "a BIGINT"}, bloom_filters={leaf: True})
    found = pqext.scan(sink.getvalue(), filter=col("v").variant("$.a", "double") == literal).count()
    assert found == duckdb.sql(f"select ({value}::bigint)::double = {literal!r}::double").fetchall()[0][0]


def test_page_counts_take_precedence_over_chunk_counts() -> None:
    page = Bounds(None, None, 2, 4, False)
    chunk = Bounds(1.0, 9.0, 0, 40, None)
    assert _narrow_bounds(page, chunk) == Bounds(1.0, 9.0, 2, 4, False)
    assert _narrow_bounds(replace(page, null_count=None, has_nan=None), chunk) == Bounds(1.0, 9.0, 0, 4, None)
    assert _narrow_bounds(replace(page, has_nan=None), replace(chunk, has_nan=False)) == Bounds(1.0, 9.0, 2, 4, False)


@pytest.mark.spec("shredding.skipping.pages")
def test_residual_retains_only_the_rows_of_its_own_pages() -> None:
    values = [*INTEGERS]
    values[7] = at_a(prim("string", "4"))
    values[1] = at_a(b"\0")
    file = written(values, "a BIGINT", page_rows=3)
    assert rows_of(file, "bigint", Comparison("==", 4)) == [3, 4, 5, 6, 7, 8]
    assert rows_of(file, "bigint", Comparison("==", 99)) == [6, 7, 8]
    assert rows_of(file, "bigint", IsNull()) == [0, 1, 2, 6, 7, 8]
    assert rows_of(file, "variant", IsNotNull()) == list(range(12))


@pytest.mark.spec("shredding.skipping.pages")
def test_pages_of_typed_and_residual_columns_split_independently() -> None:
    long = at_a(prim("string", "x" * 60))
    values = [*INTEGERS[:4], long, long, long, *INTEGERS[:5]]
    file = written(values, "a BIGINT", page_rows=5, page_bytes=64)
    typed, residual = (
        [file.row_groups[0].chunk(file.schema.find(f"v.typed_value.a.{name}")).pages.rows(page) for page in range(3)]  # type: ignore[union-attr, arg-type]
        for name in ("typed_value", "value")
    )
    assert typed != residual
    kept = rows_of(file, "bigint", Comparison("==", 4))
    assert 11 in kept
    assert set(range(4, 7)) <= set(kept)
    assert len(kept) < 12


def test_ancestor_residuals_and_unindexed_pages_do_not_mislead() -> None:
    values = [reference.object_of([(0, prim("int32", n)), (1, prim("string", "residual"))]) for n in range(6)]
    assert rows_of(written(values, "a BIGINT", page_rows=2), "bigint", Comparison("==", 3)) == [2, 3]
    without = written(values, "a BIGINT", page_rows=2, page_index={"v.typed_value.a.value": False})
    assert rows_of(without, "bigint", Comparison("==", 3)) == [2, 3]
    without = written(values, "a BIGINT", page_rows=2, page_index=False)
    assert rows_of(without, "bigint", Comparison("==", 3)) == list(range(6))
    assert rows_of(without, "bigint", Comparison("==", 9)) == []


@pytest.mark.spec("shredding.skipping.bloom")
def test_leaf_bloom_filters_are_named_by_path_and_exclude_absent_values() -> None:
    names = [at_a(prim("string", text)) for text in ("ant", "bee", "cow", "dog")]
    file = written(names, "a STRING", bloom_filters={"v.typed_value.a.typed_value": True})
    node = file.schema.find("v")
    assert node is not None
    (group,) = file.row_groups

    def page_match(type: str, predicate: Predicate) -> bool:
        return may_match(node, group, VariantPredicate("$.a", type, predicate))

    assert not page_match("string", Comparison("==", b"cat"))
    assert page_match("string", Comparison("==", b"cow"))
    assert page_match("string", IsIn((b"cat", b"cow")))
    assert not page_match("binary", IsIn((b"cat", b"crow")))
    assert page_match("string", Comparison("<", b"cat"))
    assert page_match("bigint", Comparison("==", 5))
    assert rows_of(file, "string", Comparison("==", b"cat")) == []


@pytest.mark.spec("shredding.skipping.bloom")
@pytest.mark.parametrize(
    ("leaf", "value", "type", "literal"),
    [
        ("DECIMAL(9,2)", prim("int8", 5), "decimal(9,2)", 5),
        ("DECIMAL(9,2)", prim("decimal4", (499, 2)), "bigint", 4),
        ("DECIMAL(9,2)", prim("decimal4", (499, 2)), "double", 4.99),
        ("DECIMAL(9,2)", prim("decimal4", (495, 2)), "decimal(9,1)", 5),
        ("BIGINT", prim("int64", 2**53 + 1), "double", float(2**53)),
        ("BIGINT", prim("decimal4", (500, 2)), "double", 5.0),
        ("DOUBLE", prim("double", -0.0), "double", 0.0),
        ("DOUBLE", prim("double", 0.1), "float", 0.10000000149011612),
        ("FLOAT", prim("float", 0.5), "double", 0.5),
        ("TIMESTAMP_NS", prim("timestamp_nanos", 1999), "timestamp", 1000),
        ("TIMESTAMP_NS", prim("timestamp", 1), "timestamp", 1000),
        ("TIMESTAMP", prim("timestamp", 1), "timestamp_ntz", 1000),
        ("DATE", prim("date", 1), "timestamp", 86_400 * 10**9),
    ],
)
def test_bloom_filters_find_every_encoding_of_an_equal_value(leaf: str, value: bytes, type: str, literal: Any) -> None:
    others = [at_a(prim("int8", 100)), at_a(prim("double", 1e9)), at_a(prim("float", 1e9)), at_a(prim("date", 10**6))]
    file = written([at_a(value), *[one for one in others if leaf.split("(")[0] in ("DECIMAL", "BIGINT")][:1]],
                   f"a {leaf}", bloom_filters={"v.typed_value.a.typed_value": True}, statistics=False)  # fmt: skip
    assert 0 in rows_of(file, type, Comparison("==", literal))


# --- Soundness against every row -----------------------------------------------------------------

INTS = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1, 127, 128]))
UNSCALED = st.one_of(st.integers(-400, 400), st.integers(-(10**9) + 1, 10**9 - 1))
FLOATS = st.one_of(st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 0.1, 1e300, 2.0**-149]), st.floats(-3, 3))
MICROS = st.one_of(
    st.integers(-3, 3), st.sampled_from([86_400_000_000, -86_400_000_001]), st.integers(-(10**13), 10**13)
)
TEXTS = st.one_of(
    st.sampled_from(["", "5", "x" * 70, "x" * 70 + "y", "1970-01-02"]), st.text("abé\U0001f600", max_size=3)
)
ANYTHING = primitives()
OWN: dict[str, st.SearchStrategy[bytes]] = {
    "BIGINT": INTS.map(lambda n: prim("int64", n)),
    "DECIMAL(9,2)": UNSCALED.map(lambda n: prim("decimal4", (n, 2))),
    "DECIMAL(38,10)": st.tuples(UNSCALED, st.integers(0, 10)).map(lambda d: prim("decimal8", d)),
    "DOUBLE": FLOATS.map(lambda x: prim("double", x)),
    "FLOAT": st.floats(width=32).map(lambda x: prim("float", x)),
    "STRING": TEXTS.map(lambda s: prim("string", s)),
    "BINARY": st.binary(max_size=3).map(lambda b: prim("binary", b)),
    "TIMESTAMP": MICROS.map(lambda n: prim("timestamp", n)),
    "TIMESTAMP_NS": MICROS.map(lambda n: prim("timestamp_nanos", n)),
    "TIMESTAMP_NTZ": MICROS.map(lambda n: prim("timestamp_ntz", n)),
    "DATE": st.integers(-3, 3).map(lambda n: prim("date", n)),
    "TIME": st.integers(0, 5).map(lambda n: prim("time", n)),
    "BOOLEAN": st.sampled_from([prim("true"), prim("false")]),
    "UUID": st.sampled_from([b"5" * 16, b"\xff" * 16]).map(lambda b: prim("uuid", b)),
}
NUMBERS = ["tinyint", "bigint", "decimal(5,1)", "decimal(20,4)", "double", "float"]
TIMES = ["timestamp", "timestamp_ns", "timestamp_ntz", "date"]
CASTS = [
    *((leaf, type) for leaf in ("BIGINT", "DECIMAL(9,2)", "DECIMAL(38,10)", "DOUBLE", "FLOAT") for type in NUMBERS),
    *((leaf, type) for leaf in ("STRING", "BINARY") for type in ("string", "binary")),
    *((leaf, type) for leaf in ("TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_NTZ", "DATE") for type in TIMES),
    ("TIME", "time"), ("BOOLEAN", "boolean"), ("UUID", "uuid"), ("STRING", "bigint"), ("BIGINT", "string"),
]  # fmt: skip


def comparable(array: pa.Array) -> list[Any]:
    """Values in comparison form."""
    type = array.type
    if pa.types.is_string(type):
        array = array.cast(pa.binary())
    if pa.types.is_date32(type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_temporal(type):
        factor = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[type.unit]
        return [None if v is None else v * factor for v in array.cast(pa.int64()).to_pylist()]
    return array.to_pylist()


def holds(predicate: Predicate, value: Any) -> bool:
    """The truth by the slow twin's order, in which NaN is above all and -0.0 is 0.0."""
    if isinstance(predicate, IsNull) or value is None:
        return isinstance(predicate, IsNull) and value is None
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, IsIn):
        return any(twin.order(value, literal) == 0 for literal in predicate.values)
    return twin.holds(twin.order(value, predicate.value), predicate.operator)


@settings(max_examples=share(0.05))
@given(st.data())
@pytest.mark.parametrize(("leaf", "type"), CASTS)
def test_pruned_rows_never_match(leaf: str, type: str, data: st.DataObject) -> None:
    value = st.one_of(OWN[leaf], OWN[leaf], OWN[leaf], st.just(b"\0"), ANYTHING)
    pure = data.draw(st.booleans())
    row = OWN[leaf].map(at_a) if pure else st.one_of(value.map(at_a), value.map(at_a), st.none(), ANYTHING)
    rows = data.draw(st.lists(row, min_size=4, max_size=9))
    file = written(
        rows, f"a {leaf}", page_rows=2, page_bytes=40, bound_bytes=8, threads=1,
        bloom_filters={"v.typed_value.a.typed_value": True} if leaf != "BOOLEAN" else False,
        float_order=data.draw(st.sampled_from(["type", "ieee754"])),
    )  # fmt: skip
    found = comparable(variant.get(column(rows), "$.a", type))
    literals = data.draw(st.lists(st.sampled_from([v for v in found if v is not None] or [0]), min_size=1, max_size=2))
    comparisons = [Comparison(operator, literals[0]) for operator in COMPARE]
    for predicate in (*comparisons, IsIn(tuple(literals)), IsNull(), IsNotNull()):
        kept = rows_of(file, type, predicate)
        for number, one in enumerate(found):
            assert number in kept or not holds(predicate, one), (predicate, one)


@pytest.mark.spec("shredding.skipping.pages", "shredding.skipping.own-type")
def test_integers_in_the_residual_of_duckdb_are_not_lost(tmp_path: Path) -> None:
    source, path = tmp_path / "source.json", tmp_path / "v.parquet"
    source.write_bytes(b"\n".join(orjson.dumps({"id": n, "mag": n / 2}) for n in range(3000)))
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t AS SELECT json::VARIANT AS v FROM read_json_objects('{source}')")
        connection.sql(f"COPY t TO '{path}' (FORMAT parquet, SHREDDING {{v: 'STRUCT(id BIGINT, mag DOUBLE)'}})")
    for expression, expected in (
        (col("v").variant("$.id", "bigint") == 2999, [2999]),
        (col("v").variant("$.id", "bigint").isin([3, 70]), [3, 70]),
        (col("v").variant("$.mag", "double") < 1, [0, 1]),
    ):
        found = pqext.scan(path, ["v"], expression).to_table()["v"]
        assert variant.get(found, "$.id", "bigint").to_pylist() == expected
        with ParquetFile(path) as file:
            bound = bind(expression, file.schema)
            kept = [n for group in file.row_groups for one in rows_that_may_match(bound, group) for n in one]
            assert set(expected) <= set(kept)


def test_conditions_on_several_columns_intersect_their_ranges() -> None:
    sink = io.BytesIO()
    table = pa.Table.from_arrays(
        [column(INTEGERS), pa.array(range(12))], schema=pa.schema([variant_field("v"), pa.field("n", pa.int64())])
    )
    pqext.write_table(table, sink, shredding={"v": "a BIGINT"}, page_rows=4)
    a, n = col("v").variant("$.a", "bigint"), col("n")
    with ParquetFile(sink.getvalue()) as file:
        (group,) = file.row_groups
        for expression, ranges in (
            ((a > 2) & (n < 9), [range(12)]),
            ((a > 3) & (n < 8), [range(4, 8)]),
            ((a < 2) | (n > 10), [range(4), range(8, 12)]),
            ((a < 2) & (n > 10), []),
            (~(a < 8), [range(8, 12)]),
            (a.is_null() | col("v").is_null(), []),
            (col("v").is_not_null() & (a == 5), [range(4, 8)]),
        ):
            assert rows_that_may_match(bind(expression, file.schema), group) == ranges
    text = pqext.scan(sink.getvalue(), ["n"], (a < 2) | (n > 10)).explain()
    assert "row group 0: 8 of 12 rows may match by their pages (8 of 12 pages): 0 to 3, 8 to 11" in text
    (task,) = pqext.scan(sink.getvalue(), ["n"], a == 5).plan(pages=True)
    assert task.row_groups[0].rows == [range(4, 8)]
    (task,) = pqext.scan(sink.getvalue(), ["n"], a == 5).plan()
    assert task.row_groups[0].rows is None
