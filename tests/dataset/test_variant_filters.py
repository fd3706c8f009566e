"""Filters on paths of variants keep the same rows however the variants are shredded, and skip by their leaves."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import And, Comparison, Expression, IsIn, IsNotNull, IsNull, Not, Or, col
from pqext.dataset.expressions.visitors import Visitor, fold
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import row_group_may_match
from pqext.dataset.reading import read_table, scan
from reference import evaluate as twin

MISSING = object()
LEAVES = st.sampled_from([MISSING, None, True, -3, 0, 1, 2, 70_000, 2.5, "x", "yy", [1], {"b": 1}])
INNER = st.fixed_dictionaries({"a": LEAVES, "s": LEAVES})
OBJECTS = st.fixed_dictionaries({"a": LEAVES, "o": st.one_of(LEAVES, INNER)})
DOCUMENTS = st.one_of(st.sampled_from([MISSING, None, 1, "x", []]), OBJECTS, OBJECTS, OBJECTS)
SHREDDINGS = [
    "VARIANT",
    "a BIGINT",
    "a DOUBLE, o STRUCT<a: DECIMAL(9,2), s: STRING>",
    "o STRUCT<a: STRING>",
    "a ARRAY<INT>",
]


def without_missing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_missing(inner) for key, inner in value.items() if inner is not MISSING}
    return value


def value_at(value: Any, path: tuple[str, ...], type: str) -> Any:
    """The value at a path of a JSON document, cast by Spark's rules; None where it is missing or does not cast."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return None
    if type == "string":
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if isinstance(value, str | list | dict):
        return None
    return int(value) if type == "int64" else float(value)


class Truth(Visitor[bool | None]):
    """The truth of an expression on one document."""

    def __init__(self, document: Any) -> None:
        self.document = document

    def value(self, operand: Any) -> Any:
        return value_at(self.document, tuple(operand.path.split(".")[1:]), operand.type)

    def visit_and(self, operands: list[bool | None]) -> bool | None:
        return False if False in operands else None if None in operands else True

    def visit_or(self, operands: list[bool | None]) -> bool | None:
        return True if True in operands else None if None in operands else False

    def visit_not(self, operand: bool | None) -> bool | None:
        return twin.opposite(operand)

    def visit_comparison(self, node: Comparison) -> bool | None:
        value = self.value(node.operand)
        return None if value is None else twin.holds(twin.order(value, node.value), node.operator)

    def visit_is_in(self, node: IsIn) -> bool | None:
        value = self.value(node.operand)
        return None if value is None else any(twin.order(value, literal) == 0 for literal in node.values)

    def visit_relation(self, node: Any) -> bool | None:
        raise NotImplementedError

    def visit_matches(self, node: Any) -> bool | None:
        raise NotImplementedError

    def visit_is_null(self, node: IsNull) -> bool | None:
        return self.value(node.operand) is None

    def visit_is_not_null(self, node: IsNotNull) -> bool | None:
        return self.value(node.operand) is not None

    def visit_spatial(self, node: Any) -> bool | None:
        raise NotImplementedError


NUMBERS = st.sampled_from([-3, 0, 1, 2, 2.5, 70_000, 10**30])
TEXTS = st.sampled_from(["", "x", "yy", "1", "z"])
OPERANDS = st.tuples(st.sampled_from(["$.a", "$.o.a", "$.o.s", "$.o"]), st.sampled_from(["int64", "double", "string"]))


def conditions(chosen: tuple[str, str]) -> st.SearchStrategy[Expression]:
    operand = col("v").variant(*chosen)
    literals = TEXTS if chosen[1] == "string" else NUMBERS
    return st.one_of(
        st.builds(Comparison, st.just(operand), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), literals),
        st.lists(literals, max_size=2).map(lambda values: IsIn(operand, tuple(values))),
        st.sampled_from([IsNull(operand), IsNotNull(operand)]),
    )


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    OPERANDS.flatmap(conditions),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(And), st.tuples(inner, inner).map(Or), inner.map(Not)
    ),
    max_leaves=3,
)  # fmt: skip


def table_of(documents: list[Any]) -> pa.Table:
    """Documents as variants in column ``v``, MISSING as null, beside the number of their row."""
    texts = [None if document is MISSING else json.dumps(without_missing(document)) for document in documents]
    rows = pa.array(range(len(documents)), pa.int64())
    return pa.table(
        [variant.parse_json(pa.array(texts, pa.string())), rows],
        schema=pa.schema([variant.variant_field("v"), pa.field("row", pa.int64())]),
    )


@given(st.lists(DOCUMENTS, min_size=1, max_size=8), EXPRESSIONS, st.sampled_from(SHREDDINGS), st.booleans())
def test_every_shredding_returns_the_matching_rows(
    documents: list[Any], expression: Expression, shredding: str, shredded: bool
) -> None:
    plain = [None if document is MISSING else without_missing(document) for document in documents]
    expected = [row for row, document in enumerate(plain) if fold(expression, Truth(document)) is True]
    sink = pa.BufferOutputStream()
    write_table(table_of(documents), sink, row_group_rows=2, shredding={"v": shredding})
    query = scan(sink.getvalue(), ["row"], expression, shredded=shredded)
    assert query.to_table()["row"].to_pylist() == expected
    with ParquetFile(sink.getvalue()) as file:
        bound = bind(expression, file.schema)
        refused = [group.index for group in file.row_groups if not row_group_may_match(bound, group)]
    assert not {row // 2 for row in expected} & set(refused)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Events in order of magnitude, ten a row group, with one field that is of mixed type and one unshredded."""
    documents = [
        {"id": row, "p": {"mag": row / 10, "place": f"k{row // 10}", "mixed": row if row < 20 else "x"}, "rest": row}
        for row in range(50)
    ]
    path = tmp_path / "events.parquet"
    shredding = "p STRUCT<mag: DECIMAL(9,2), place: STRING, mixed: BIGINT>"
    write_table(table_of(documents), path, row_group_rows=10, shredding={"v": shredding})
    return path


@pytest.mark.parametrize(
    ("expression", "row_groups", "rows"),
    [
        (col("v").variant("$.p.mag", "double") >= 4.5, (4,), 5),
        (~(col("v").variant("$.p.mag", "double") >= 4.5), (0, 1, 2, 3, 4), 45),
        (col("v").variant("$.p.mag", pa.decimal128(9, 2)) == 1.2, (1,), 1),
        (col("v").variant("$.p.mag", "double") == 1.2, (1,), 1),
        (col("v").variant("$.p.mag", pa.decimal128(9, 2)) <= 1, (0, 1), 11),
        (col("v").variant("$.p.place", "string").isin(["k1", "k9"]), (1,), 10),
        (~col("v").variant("$.p.place", "string").isin(["k1", "k9"]), (0, 2, 3, 4), 40),
        (col("v").variant("$.p.mixed", "int64") < 5, (0, 2, 3, 4), 5),
        (col("v").variant("$.p.mixed", "string") == "x", (0, 1, 2, 3, 4), 30),
        (col("v").variant("$.rest", "int64") == 7, (0, 1, 2, 3, 4), 1),
        (col("v").variant("$.p.mag", "double").is_null(), (), 0),
        (col("v").is_null(), (), 0),
        (col("v").is_not_null() & (col("row") == 33), (3,), 1),
    ],
    ids=str,
)
def test_leaves_prune_row_groups(events: Path, expression: Expression, row_groups: tuple[int, ...], rows: int) -> None:
    query = scan(events, ["row"], expression)
    (task,) = query.plan()
    assert task.kept_row_groups == row_groups
    assert query.count() == rows


def test_variants_are_returned_unshredded_or_as_stored(events: Path) -> None:
    expression = col("v").variant("$.p.mag", "double") == 4.5
    whole = read_table(events, ["v"], expression)
    (text,) = variant.to_json(whole["v"]).to_pylist()
    assert json.loads(text) == {"id": 45, "p": {"mag": 4.5, "mixed": "x", "place": "k4"}, "rest": 45}
    stored = read_table(events, ["v"], expression, shredded=True)
    assert "typed_value" in {child.name for child in stored.schema.field("v").type}
    assert variant.to_json(variant.unshred(stored["v"])).equals(variant.to_json(whole["v"]))


@pytest.mark.parametrize(
    ("expression", "columns", "rows"),
    [
        (col("v").variant("$.o.a", "int64") == 7, ["v.typed_value.o.typed_value.a.typed_value"], [7]),
        (col("v").variant("$.o.z", "int64") == 7, ["v.metadata", "v.typed_value.o.value"], [7]),
        (col("v").variant("$.rest", "int64") == 7, ["v.metadata", "v.value"], [7]),
        (col("v").variant("$.o", "string").is_not_null(), ["v.metadata", "v.typed_value.o"], list(range(10))),
        (col("v").variant("$.l[0]", "int64") == 7, ["v.metadata", "v.typed_value.l"], [7]),
        (col("v").variant("$.l.x", "int64") == 7, ["v.metadata", "v.typed_value.l.value"], []),
        (col("v").variant("$.o.a.b", "int64") == 7, ["v.metadata", "v.typed_value.o.typed_value.a.value"], []),
        (col("v").is_not_null(), ["v.metadata"], list(range(10))),
        (col("v").variant("$.o.a", "int64").is_null() & col("v").is_null(),
         ["v.metadata", "v.typed_value.o.typed_value.a"], [10]),
        ((col("v").variant("$.rest", "int64") == 7) | (col("v").variant("$.o.a", "double") == 3.0),
         ["v.metadata", "v.value", "v.typed_value.o.typed_value.a"], [3, 7]),
    ],
    ids=str,
)  # fmt: skip
def test_condition_reads_only_the_columns_of_its_path(
    expression: Expression, columns: list[str], rows: list[int]
) -> None:
    documents = [{"o": {"a": row, "z": row}, "l": [row, "x"], "rest": row} for row in range(10)] + [MISSING]
    sink = pa.BufferOutputStream()
    shredding = "o STRUCT<a: BIGINT>, l ARRAY<BIGINT>"
    write_table(table_of(documents), sink, shredding={"v": shredding})
    query = scan(sink.getvalue(), ["row"], expression)
    assert query.to_table()["row"].to_pylist() == rows
    with ParquetFile(sink.getvalue()) as file:
        nodes = [file.schema.find(name) for name in [*columns, "row"]]
        leaves = [leaf for node in nodes for leaf in node.leaves()]  # type: ignore[union-attr]
        expected = sum(file.row_groups[0].chunk(leaf).byte_range[1] for leaf in leaves)
    assert query.plan()[0].bytes_total == expected
    assert scan(sink.getvalue(), ["v"], expression).to_table().num_rows == len(rows)
    assert scan(sink.getvalue(), ["row"], expression, strict=True).to_table()["row"].to_pylist() == rows


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (col("v").variant("$.a", "int64") == "1", TypeError, r"column v\[\$\.a: int64\] contains integer values"),
        (col("v").variant("$.a", "array<int>") == 1, TypeError, "can only be compared with null"),
        (col("v") == b"", TypeError, "column 'v' can only be compared with null"),
        (col("v.metadata") == b"", TypeError, r"column 'v\.metadata' is a value inside the VARIANT column 'v'"),
        (col("row").variant("$.a", "int64").is_null(), TypeError, "column 'row' is not a VARIANT"),
        (col("v").intersects((0, 0, 1, 1)), TypeError, "column 'v' contains no geometries"),
    ],
    ids=str,
)
def test_errors_are_named(events: Path, expression: Expression, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        scan(events, filter=expression).plan()


def test_type_unsupported_by_variants_is_rejected_immediately() -> None:
    with pytest.raises(ValueError, match="duration"):
        col("v").variant("$.a", pa.duration("s"))
    with pytest.raises(ValueError, match="COLOUR"):
        col("v").variant("$.a", "colour")


untyped = col("v").variant("$.a")


@pytest.mark.parametrize(
    ("condition", "typed"),
    [
        (untyped == 5, col("v").variant("$.a", "double") == 5),
        (untyped < 2.5, col("v").variant("$.a", "double") < 2.5),
        (untyped == "x", col("v").variant("$.a", "string") == "x"),
        (untyped != date(2024, 1, 2), col("v").variant("$.a", "date") != date(2024, 1, 2)),
        (untyped > datetime(2024, 1, 2), col("v").variant("$.a", "timestamp_ntz") > datetime(2024, 1, 2)),
        (untyped > datetime(2024, 1, 2, tzinfo=UTC),
         col("v").variant("$.a", "timestamp") > datetime(2024, 1, 2, tzinfo=UTC)),
        (~untyped, ~(col("v").variant("$.a", "boolean") == True)),  # noqa: E712
        (untyped.isin(["x", None]), col("v").variant("$.a", "string").isin(["x", None])),
        (untyped.isin([1, 2.5]), col("v").variant("$.a", "double").isin([1, 2.5])),
        (untyped.starts_with("x"), col("v").variant("$.a", "string").starts_with("x")),
        (untyped.between(1, 2), col("v").variant("$.a", "double").between(1, 2)),
        (untyped.cast("int64") > 1, col("v").variant("$.a", "int64") > 1),
        (untyped.is_null(), col("v").variant("$.a", "variant").is_null()),
    ],
    ids=str,
)  # fmt: skip
def test_untyped_value_uses_the_type_of_the_literal(condition: Expression, typed: Expression) -> None:
    assert condition == typed


@pytest.mark.parametrize(
    ("literal", "type"),
    [
        (Decimal("1.5"), "decimal(38, 1)"), (2**60, "bigint"), (2**53, "bigint"), (-(2**63) - 1, "decimal(38, 0)"),
        (b"x", "binary"), (time(1), "time"), (UUID(int=5), "uuid"),
        (pa.scalar(5, pa.timestamp("ns", "UTC")), "timestamp[ns, tz=UTC]"),
    ],
    ids=str,
)  # fmt: skip
def test_literal_without_a_definite_type_requires_an_explicit_one(literal: Any, type: str) -> None:
    written = re.escape(f"write the type of $.a, as in col('v').variant('$.a', {type!r})")
    for build in (lambda: untyped == literal, lambda: untyped.isin([literal])):
        with pytest.raises(TypeError, match=written):
            build()
    stored = pa.array([Decimal(literal) if isinstance(literal, int) else literal])
    sink = io.BytesIO()
    write_table(pa.table({"v": variant.from_arrow(pa.table({"a": stored}))}), sink)
    assert scan(sink.getvalue(), filter=col("v").variant("$.a", type) == literal).count() == 1
    with pytest.raises(ValueError, match="literals of several types"):
        untyped.isin([1, "x"])


@pytest.mark.parametrize("shredding", [{}, {"v": "a STRING"}])
def test_rows_of_an_untyped_value_match_the_documents(shredding: Any) -> None:
    documents = [{"a": "x"}, {"a": "y"}, {"a": 7}, {"b": 1}, {"a": None}, {"a": "x"}, {"a": [1]}, {"a": True}]
    sink = io.BytesIO()
    table = pa.table({"id": range(8), "v": variant.from_python(documents)})
    write_table(table, sink, row_group_rows=2, shredding=shredding)
    ids = {
        (untyped == "x",): [at for at, one in enumerate(documents) if one.get("a") == "x"],
        (untyped == 7,): [2], (untyped.is_null(),): [at for at, one in enumerate(documents) if "a" not in one],
        (untyped,): [1, 2, 7],  # which Spark casts to true, "y" and numbers too
        (col("v").variant("$.a[0]") == 1,): [6],
    }  # fmt: skip
    for (condition,), expected in ids.items():
        assert read_table(sink.getvalue(), ["id"], condition)["id"].to_pylist() == expected
    values = read_table(sink.getvalue(), [("a", untyped)])["a"]
    assert variant.to_json(values).to_pylist() == [json.dumps(one["a"]) if "a" in one else None for one in documents]


@pytest.mark.parametrize("path", ['$."zip code"', "$['zip code']", '$["zip code"]'])
def test_quoted_path_keys_match_duckdb(path: str) -> None:
    documents = ['{"zip code": 5}', '{"zip": 6}', '{"\\"zip code\\"": 7}']
    sink = io.BytesIO()
    write_table(pa.table({"v": variant.parse_json(documents)}), sink)
    quoted = '$."zip code"'  # which is how DuckDB writes them
    json = ", ".join(f"('{one}')" for one in documents)
    rows = duckdb.sql(f"select json_extract(j, '{quoted}')::int from (values {json}) t(j)").fetchall()
    expected = [row[0] for row in rows]
    found = read_table(sink.getvalue(), [col("v").variant(path, "int32").alias("zip")])["zip"].to_pylist()
    assert found == expected == [5, None, None]
    assert scan(sink.getvalue(), filter=col("v").variant(path, "int32") == 5).count() == 1
