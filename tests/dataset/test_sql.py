"""Filters as SQL text mean what the same expressions in Python mean, and what is not understood is refused in place."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, filters
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Expression
from pqext.dataset.notations.json_text import to_json
from pqext.dataset.notations.sql import MAX_LENGTH, from_sql, value_from_sql
from reference.effort import share

TRIANGLE = shapely.Polygon([(0, 0), (9, 0), (9, 9)])
POINT = shapely.Point(1, 2)
BOX = (170, -30, -170, -10)
TRUE = True
a, b, v, g = col("a"), col("b"), col("v"), col("g")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a >= 5", a >= 5), ("5 <= a", a >= 5), ("a <> 5", a != 5), ("a != 5", a != 5), ("a == -1.5", a == -1.5),
        ("s.b = 'it''s'", col("s.b") == "it's"), ('"x y" = 1', col(["x y"]) == 1),
        ("`x.y`.z = 1", col(["x.y", "z"]) == 1), ("a.b.c.d.e = 1", col("a.b.c.d.e") == 1),
        ("s['b'] = 1", col("s.b") == 1), ("a > b", a > b), ("a + 1 > b * 2", a + 1 > b * 2), ("-a < 3", -a < 3),
        ("a % 2 = 1", a % 2 == 1), ("1 - a / 2 > 3 * 4 - 2", 1 - a / 2 > 10), ("a in (1, 2)", a.isin([1, 2])),
        ("a in (1, null)", a.isin([1, None])), ("a not in (null)", ~a.isin([None])), ("not a", ~(a == TRUE)),
        ("v:$.a in ('x', null)", v.variant("$.a", "string").isin(["x", None])),
        ("a::boolean", a.cast("boolean") == TRUE),
        ("a not in (1)", ~a.isin([1])), ("a between 1 and b", (a >= 1) & (a <= b)),
        ("a not between 1 and 2", ~((a >= 1) & (a <= 2))), ("a is null", a.is_null()),
        ("a is not null", ~a.is_null()), ("not a = 1 and b = 2 or c", ((~(a == 1)) & (b == 2)) | (col("c") == TRUE)),
        ("v:$.a", v.variant("$.a", "boolean") == TRUE), ("a is true", a.is_not_null() & (a == TRUE)),
        ("a like 'x%'", a.like("x%")), ("a not like 'x!%' escape '!'", ~a.like("x!%", "!")),
        ("a not ilike 'x'", ~a.ilike("x")), ("a <=> 5", (a == 5) & a.is_not_null()), ("a <=> null", a.is_null()),
        ("a is not distinct from 5", (a == 5) & a.is_not_null()), ("a is distinct from null", ~a.is_null()),
        ("a <=> b", ((a == b) & a.is_not_null() & b.is_not_null()) | (a.is_null() & b.is_null())),
        ("a in (1L, 2S, 3Y)", a.isin([1, 2, 3])), ("a = 1.5D", a == 1.5), ("a = 1.50BD", a == Decimal("1.5")),
        ("try_variant_get(v, '$.a', 'int') = 5", v.variant("$.a", "int") == 5),
        ("starts_with(a, 'x') and ENDS_WITH(a, 'y')", a.starts_with("x") & a.ends_with("y")),
        ("contains(a, 'x')", a.contains("x")), ("list_length(a) > 2", a.list_length() > 2), ("isnan(a)", a.is_nan()),
        ("a::double > 5", a.cast("double") > 5), ("cast(a as bigint) = 5", a.cast("int64") == 5),
        ("try_cast(a as decimal(9, 2)) = 5", a.cast("decimal(9,2)") == 5), ("a::uint8 = 5", a.cast("uint8") == 5),
        ("v:$.a.b::double > 5", v.variant("$.a.b", "double") > 5),
        ("v:a.b[0] = 'x'", v.variant("$.a.b[0]", "string") == "x"),
        ("v:$['x y'].order > 5", v.variant("$['x y'].order", "double") > 5),
        ("v:$.a in (1, 2)", v.variant("$.a", "double").isin([1, 2])),
        ("v:$.a is null", v.variant("$.a", "variant").is_null()),
        ("v['$.a'] = true", v.variant("$.a", "boolean") == TRUE),
        ("v:$.a like 'x%'", v.variant("$.a", "string").like("x%")),
        ("v:$.a::int + 1 = b", v.variant("$.a", "int32") + 1 == b),
        ("v:$.t >= timestamp '2024-01-31 10:00:00'", v.variant("$.t", "timestamp_ntz") >= dt.datetime(2024, 1, 31, 10)),
        ("a < date '2024-01-31'", a < dt.date(2024, 1, 31)), ("a < date('2024-01-31')", a < dt.date(2024, 1, 31)),
        ("a > timestamp '2024-01-31T10:00:00.5'", a > dt.datetime(2024, 1, 31, 10, 0, 0, 500_000)),
        ("a > timestamp '1970-01-01 00:00:00.000000007'", a > pa.scalar(7, pa.timestamp("ns"))),
        ("a > timestamp '2024-01-31 10:00:00+02:00'", a > dt.datetime(2024, 1, 31, 8, tzinfo=dt.UTC)),
        ("a > timestamptz '2024-01-31 10:00:00'", a > dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC)),
        ("a = time '10:30:00'", a == dt.time(10, 30)), ("a = decimal '1.50'", a == Decimal("1.50")),
        ("a = 1.255::decimal(5, 2)", a == Decimal("1.26")), ("a = 0.1", a == 0.1), ("a = 1e3", a == 1000.0),
        ("a = 0.10000000000000000000001", a == Decimal("0.10000000000000000000001")),
        ("a = 'nan'::double", a.is_nan()), ("a = x'00ff'", a == b"\x00\xff"),
        (f"a = uuid '{UUID(int=7)}'", a == UUID(int=7)), ("a = 1 -- so", a == 1),
        ("st_intersects(g, box(170, -30, -170, -10))", g.intersects(BOX)),
        ("st_within(g, 'POINT (1 2)')", g.within(POINT)), ("st_within(st_point(1, 2), g)", g.contains(POINT)),
        ("st_covers('POINT (1 2)', g)", g.covered_by(POINT)),
        ("st_contains(g, st_geomfromtext('POLYGON ((0 0, 9 0, 9 9, 0 0))'))", g.contains(TRIANGLE)),
        ("st_contains(g, st_geomfromwkt('POLYGON ((0 0, 9 0, 9 9, 0 0))'))", g.contains(TRIANGLE)),
        ("st_dwithin(g, st_makeenvelope(1, 2, 3, 4), 1000)", g.dwithin((1, 2, 3, 4), 1000)),
        ("st_equals(g, st_geomfromwkb(x'0101000000000000000000f03f0000000000000040'))", g.geom_equals(POINT)),
    ],
)  # fmt: skip
def test_text_parses_to_the_expression(text: str, meant: Expression) -> None:
    assert from_sql(text).equals(meant)
    assert filters.from_sql(text) == meant


def test_text_is_accepted_wherever_filters_are(tmp_path: Any) -> None:
    path = str(tmp_path / "f.parquet")
    pqext.write_table(pa.table({"a": [1, 2, 3, None], "b": ["x", "yy", None, "zz"]}), path)
    assert pqext.read_table(path, ["a"], "a >= 2")["a"].to_pylist() == [2, 3]
    assert pqext.scan(path, filter="b like '%y' or a is null").count() == 2
    assert pqext.scan(path, filter=to_json(a >= 2)).count() == 2
    assert pqext.scan(path, filter="a * 2 > 3 and a < 3").to_table()["b"].to_pylist() == ["yy"]


def test_literals_parse_to_values() -> None:
    assert value_from_sql("a * 2 + b").equals(a * 2 + b)
    with pytest.raises(ValueError, match="expected a column"):
        value_from_sql("a > 2")


REFUSED = [
    ("", "one condition", 1), ("a >", "expected a value at the end of the text", 4), ("1 < 2", "two literals", 1),
    ("a = null", "is null", 5), ("b = 2 and f(a)", "no function 'f'", 11),
    ("a = 1 and st_intersect(g, 'POINT (1 2)')", "did you mean 'st_intersects'", 11),
    ("a in (select 1)", "a list of literals", 1), ("case when a then 1 end = 2", "not supported", None),
    ("a = 1 limit 5", "the end instead of 'limit'", 7), ("a = 1; b = 2", "one condition", None),
    ("drop table x", "not supported", None), ("a = 1 as y", "instead of 'y'", 10),
    ("a between symmetric 1 and 2", "not supported", 1), ("a = 'abc", "quote", None), ("a like b", "in quotes", 8),
    ("a in (b)", "not columns", None), ("v:$[ = 5", "path", None), ("v:$.a > b", "write the type of", 1),
    ("v:$.a = 9007199254740992", "::bigint", 1), ("v:$.a in (1, 9007199254740993)", "::bigint", 1),
    ("v:$.a = 9223372036854775808", "::decimal", 1),
    ('v:$.a = "x"', "single quotes: 'x'", 1),
    ("a = '5'::foo", "foo", None), ("a < date 'x'", "write date '2026-05-31'", 10),
    ("a < timestamp 'x'", "write timestamp '2026-05-31 23:59:59'", 15),
    ("a < decimal 'x'", "not a decimal", None), ("a & b", "'and' and 'or'", 1), ("a || 'x' = 'y'", "not supported", 3),
    ("a[1] = 2", "brackets", 1), ("(a, b) = (1, 2)", "not supported", None),
    ("1 + 'x' = a", "arithmetic requires numbers", None), ("1 % 0 > a", "is undefined", None),
    ("a + true = 1", "requires numbers", None), ("st_within(g)", "does not accept 1 argument", 1),
    ("st_within(g, 5)", "a column and a geometry", 1), ("st_within(g, 'POINT')", "not valid WKT", 1),
    ("count(*) > 1", "aggregates many rows", 1), ("a like any ('x')", "in quotes", None),
    ("a not in (1) over ()", "not ", None), ("a = interval '1 month'", "length varies", None),
    ("a rlike 3", "operator is not supported", 3), ("g = st_point(1, 2)", "a column or a literal", 5),
    ("a = " + "9" * 5000, "more than 1,000 characters", 5), ("a = 0." + "1" * 5000, "more than 1,000 characters", 5),
    ("if if a", "one condition", None), ("kill a", "not", None),
    ("not " * 3000 + "a = 1", "too deep", None), ("(" * 300 + "a" + ")" * 300, "nest", 51),
    ("a = 1 " + "or a = 1 " * 12_000, "characters", None), ("x.__class__() = 1", "expected a column", None),
    ('__import__("os").system("x")', "expected a column", None),
    ("a = cast(b as int format 'x')", "not supported", None), ("'x' like a", "expected a column", None),
    ("a = 1\n  and b <", "expected a value at the end of the text", None),
    ("id = 3 and ", "expected a condition at the end of the text", 11), ("id in (3, 4", r"'\)' at the end", 12),
    ("id = 3 or or a = 4", "expected a condition instead of 'or'", 11), ("(a = 1", r"'\)' at the end", 7),
    ("a ~ 'S.*'", "expected a comparison, 'and', 'or' or the end instead of '~'", 3), ("a = 1)", "unmatched", 6),
    ("a = 3 city", "expected 'and', 'or' or the end instead of 'city'", 7), ("a = = 3", "instead of '='", 5),
    ("a in 3", "a list of literals in parentheses", 1), ("at in box(1, 2, 3, 4)", "for areas use st_inter", 1),
    ("select a from b", "one condition.*, without select", 1), ("a = 3; drop", "one condition", 12),
    ("a between 3", "expected and with a second value at", 12), ("a = @x", "not supported", None),
    ("st_dwithin(g, 'POINT (1 2)', 'x')", "float", 1), ("a::array<int> is null", "to a scalar type", None),
    ("list_length(a + 1) > 1", "list_length requires", None), ("a like 'x!' escape '!'", "must precede", 1),
    ("exists(select 1)", "not supported", None), ("a = '\ud800'", "surrogate", 1),
    ("st_within(g, st_geomfromwkb(9999999999))", "WKB must be written", 14),
    ("b = 2 and a rlike 1", "operator is not supp", 13),
    ("b = 2 and a in (1, b)", "not columns", 20), ("variant_get(a, '$.b', 'int') = 1", "try_variant_get", 1),
    ("s = 'x /* y", "a quote is not closed", None), ("a = 1 /* /* */", "a comment is not closed", 7),
    ("/* /* */ a = 1", "a comment is not closed", 1),
    ("a = 1e999", "exceeds the range of double", None), ("a = '-1e999'::double", "exceeds the range of double", 5),
]  # fmt: skip


@pytest.mark.spec("querying.sql")
@pytest.mark.parametrize(("text", "told", "place"), REFUSED, ids=[case[0][:30] for case in REFUSED])
def test_unsupported_syntax_is_rejected_with_its_position(text: str, told: str, place: int | None) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        from_sql(text)
    if place is not None:
        assert str(caught.value).startswith(f"at character {place}: ")
        *_, line, caret = str(caught.value).splitlines()
        assert len(line) >= len(caret) - 1


@pytest.mark.parametrize("text", ["if if a", "show \x1b[31m a", "kill a", "call a(b)", "explain a = 1"])
def test_statements_are_rejected_and_not_logged(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="at character"):
        from_sql(text)
    assert not caplog.records


def test_long_literal_is_shortened_in_messages() -> None:
    for text in (f"st_within(g, '{'x(' * 9_000}')", f"a = '{'x' * 9_000}'::date", f"{'x' * 9_000}() = 1"):
        with pytest.raises(ValueError, match=r"xxx|x\(x\(") as told:
            from_sql(text)
        assert len(str(told.value)) < 1_000


def test_unknown_name_is_shown_at_its_position() -> None:
    table = pa.table({"mag": [1.0], "user": [{"name": "x"}]})
    sink = pa.BufferOutputStream()
    pqext.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    with pytest.raises(ValueError, match="did you mean 'mag'") as caught:
        pqext.scan(data, filter="user.name = 'x' and mgg > 5").count()
    *_, line, caret = str(caught.value).splitlines()
    assert line[caret.index("^") :] == "mgg > 5"
    with pytest.raises(ValueError, match=r"did you mean 'user\.name'"):
        pqext.scan(data, filter="user.nme = 'x'").count()


NUMBERS = st.sampled_from(
    ["i", "f", "d", "i + 1", "f * 2", "i - f", "-i", "d + i", "i / 2", "i % 3", "f / i", "d * d", "i / 0", "i % 0",
     "5", "2.5", "-1", "0.25"]
)  # fmt: skip


def has_column(text: str) -> bool:
    """Is one side of a comparison no literal?"""
    return any(name in text.replace("'a'", "").replace("'ab'", "") for name in "ifdst")


OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
TEXTS = st.sampled_from(["s", "t", "'a'", "'ab'", "''"])
CONDITIONS = st.one_of(
    st.tuples(NUMBERS, OPERATORS, NUMBERS).map(" ".join).filter(has_column),
    st.tuples(TEXTS, st.sampled_from(["=", "<>", "<", ">="]), TEXTS).map(" ".join).filter(has_column),
    st.tuples(
        st.sampled_from(["s", "t"]), st.sampled_from(["like", "not like", "ilike"]), st.text("aAb%_", max_size=3)
    ).map(
        lambda parts: f"{parts[0]} {parts[1]} '{parts[2]}'"
    ),
    st.tuples(
        st.sampled_from(["i", "f", "d", "i * 2"]), st.sampled_from(["", "not "]),
        st.sampled_from(["(1, 2, -3)", "(1, null)", "(null)"]),
    ).map(lambda parts: f"{parts[0]} {parts[1]}in {parts[2]}"),
    st.sampled_from(
        ["i between -2 and 2", "f not between d and 2", "s is null", "not i is null", "b", "not b",
         "b is not true", "b is false", "p.x > 1", "day >= date '2024-01-02'", "starts_with(s, 'a')",
         "contains(t, 'b')", "i::double > 1", "moment > timestamp '2024-01-02 03:04:05'", "len(l) > 1",
         "day = moment", "cast(i as varchar) = '1'", "isnan(f)"]
    ),
)  # fmt: skip
TREES = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda parts: f"({''.join(parts)})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=4,
)
ROWS = pa.table(
    {
        "i": pa.array([0, 1, -2, 3, None, 5, 2, 1], pa.int32()),
        "f": [0.5, -1.0, math.nan, None, 2.5, 5.0, 2.0, -0.0],
        "d": pa.array([Decimal(text) for text in ("0.25", "1.00", "-2.50", "2.50", "5.00", "0.00", "2.00")] + [None]),
        "s": ["a", "ab", "", None, "A", "b", "aab", "é"],
        "t": ["a", "b", "", "ab", None, "ba", "AB", "a"],
        "b": [True, False, None, True, False, None, True, False],
        "p": [{"x": x} for x in (1, 2, None, 3, 0, 5, 1, 2)],
        "l": [[1], [], None, [1, 2], [1, 2, 3], [], [None, None], [0]],
        "day": [dt.date(2024, 1, day) for day in (1, 2, 3, 1, 2, 3)] + [None, dt.date(2024, 1, 2)],
        "moment": [dt.datetime(2024, 1, day, 3, 4, 5) for day in (1, 2, 3, 1)] + [None] + [dt.datetime(2024, 1, 2)] * 3,
    }
)  # fmt: skip


@pytest.mark.spec("querying.sql")
@settings(max_examples=share(1.0))
@given(TREES)
def test_duckdb_interprets_the_text_equally(text: str) -> None:
    expression = from_sql(text)
    connection = duckdb.connect()
    connection.execute("set error_on_division_by_zero = false")
    connection.register("data", ROWS)
    expected = connection.sql(f"select ({text}) as found from data").fetchall()
    assert evaluate(expression, ROWS).to_pylist() == [found for (found,) in expected]


def test_long_lists_are_parsed() -> None:
    text = f"a in ({', '.join(map(str, range(5000)))})"
    assert len(text) < MAX_LENGTH
    assert from_sql(text).equals(a.isin(range(5000)))


@pytest.mark.parametrize("text", ["a = 1 and " + "not " * 3_000 + "b", "a = 1 and " + "+".join(["b"] * 3_000) + " > 1"])
def test_excessive_nesting_is_reported_with_its_position(text: str) -> None:
    with pytest.raises(ValueError, match=r"at character \d+: the text is nested too deeply\n"):
        from_sql(text)
