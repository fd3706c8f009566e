"""``where`` takes Spark SQL and ``Column``: rows and errors are those of Spark's own reader and filter."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from spark.sessions import INTERPRETED, by_conditions, ids
from spark.test_settings import settings

import pqext
from pqext import col
from pqext import variant as variants
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions.patterns import matches
from pqext.dataset.planning.projection import ComputedColumn
from pqext.spark import explain_read, read, read_metrics, where
from pqext.spark.pushdown.spark_sql import condition_columns, split_condition
from pqext.spark.pushdown.sql_clauses import split_clauses

UTC = dt.UTC
ROWS = 60
TEXTS = ["A", "b", "a_b", "axb", "a\\b", "5", "\u00c9a", " ", "", "it's", "a\nb", "a%b"]
DAYS = [dt.date(2023, 11, 1) + dt.timedelta(days=11 * row) for row in range(ROWS)]
TIMES = [dt.datetime(2023, 11, 1, 5, 30) + dt.timedelta(hours=37 * row) for row in range(ROWS)]


def _with_nulls(values: list[Any], every: int) -> list[Any]:
    return [None if row % every == every - 1 else value for row, value in enumerate(values)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Values of each type with nulls between, and a VARIANT whose field is of several types."""
    rows = range(ROWS)
    columns = {
        "id": pa.array(rows, pa.int64()),
        "i": pa.array(_with_nulls([row - 20 for row in rows], 5), pa.int32()),
        "l": pa.array(_with_nulls([(row - 20) * 10 ** (row % 17) for row in rows], 7), pa.int64()),
        "f": pa.array(_with_nulls([math.nan if row == 3 else row / 4 for row in rows], 6), pa.float64()),
        "g": pa.array(_with_nulls([row / 10 for row in rows], 6), pa.float32()),
        "n": pa.array(_with_nulls([Decimal(row) / 10 for row in rows], 9), pa.decimal128(10, 2)),
        "s": pa.array(_with_nulls([TEXTS[row % len(TEXTS)] for row in rows], 8)),
        "b": pa.array(_with_nulls([row % 3 == 0 for row in rows], 4)),
        "d": pa.array(_with_nulls(DAYS, 10)),
        "t": pa.array(_with_nulls([time.replace(tzinfo=UTC) for time in TIMES], 10), pa.timestamp("us", "UTC")),
        "w": pa.array(_with_nulls(TIMES, 10), pa.timestamp("us")),
        "Mixed": pa.array(_with_nulls(list(rows), 3), pa.int32()),
        "st": pa.array(_with_nulls([{"a": row, "B": str(row)} for row in rows], 4)),
        "arr": pa.array(_with_nulls([[row, row + 1] for row in rows], 4), pa.list_(pa.int32())),
        "x": pa.array(_with_nulls([bytes([row]) for row in rows], 4)),
    }
    values = ["1", '"z"', "2.5", "null", '{"q": 1}']
    texts = [f'{{"a": {values[row % 5]}, "m": {row}, "s": "x{row % 4}"}}' for row in rows]
    columns["v"] = variants.parse_json(pa.array(texts))
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    fields[-1] = variants.types.variant_field("v")
    return pa.table([*columns.values()], schema=pa.schema(fields))


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("spark_sql") / "rows.parquet")
    pqext.write_table(table, path, row_group_rows=10)
    return path


@pytest.fixture
def new_york(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.unset("spark.sql.session.timeZone")


PATTERNS = [
    (r"a\_b", "\\"), ("a_b", "\\"), (r"a\%b", "\\"), (r"a\\b", "\\"), (r"%\_%", "\\"), (r"\_", "\\"), ("%", "\\"),
    ("a!_b", "!"), ("a!!%", "!"), (r"a\_b", "!"), (r"a\b", "!"), ("a%", "\\"), ("", "\\"), ("_", "\\"),
    ("\u00e9_", "\\"), (r"a\b", "\\"), ("a\\", "\\"), ("!a", "!"), ("b!", "!"),
]  # fmt: skip


@pytest.mark.spec("querying.like")
def test_patterns_escape_like_in_spark(spark: Any) -> None:
    texts = [*TEXTS, "a\\_b", None]
    df = spark.createDataFrame([(text,) for text in texts], "s string").coalesce(1)
    functions = {"like": F.like, "ilike": F.ilike}
    valid: list[tuple[Any, str, str]] = []
    for pattern, escape in PATTERNS:
        try:
            col("s").like(pattern, escape)
        except ValueError as error:
            assert "must precede %, _ or itself" in str(error)  # noqa: PT017
            with pytest.raises(AnalysisException, match="The escape character"):
                df.select(F.like("s", F.lit(pattern), F.lit(escape))).collect()
            continue
        valid += [(how, pattern, escape) for how in functions]
    columns = [functions[how]("s", F.lit(pattern), F.lit(escape)) for how, pattern, escape in valid]
    found = [row[0] for row in df.select(F.array(*columns)).collect()]
    assert len(PATTERNS) > len(valid) / 2 > 10
    for at, (how, pattern, escape) in enumerate(valid):
        assert matches(pa.array(texts), how, pattern, escape).to_pylist() == [row[at] for row in found], (how, pattern)


@pytest.mark.spec("querying.like")
def test_escaped_wildcard_is_read_and_pruned_as_text(spark: Any, path: str, table: pa.Table) -> None:
    texts = table["s"].to_pylist()
    (expected,) = by_conditions(spark.read.parquet(path), [r"s like 'a\_b'"])
    assert [texts[row] for row in expected] == ["a_b"] * len(expected) != []
    given: list[Any] = [r"s like 'a\_b'", "s like 'a!_b' escape '!'", col("s").like(r"a\_b"), F.col("s").like(r"a\_b")]
    assert ids(*(read(spark, path, where=question) for question in given)) == [expected] * len(given)
    for question in (r"s not like 'a\_%'", ~col("s").like(r"a\_%")):
        found = [row for row, text in enumerate(texts) if text is not None and not text.startswith("a_")]
        assert pqext.read_table(path, ["id"], question)["id"].to_pylist() == found


LEAVES = {
    "i": ["i > 5", "i <=> 5", "i <=> null", "i in (1, 2, 30)", "i not in (1, null)", "i between 0 and 9", "i = 2.0",
          "i = '7'", "i + 1 > 10", "i - 3 <= 2", "-i = 4", "coalesce(i, 0) = 0", "i = l", "i > f", "i in ('3', 4)",
          "nvl(i, 100) > 30", "case when i > 3 then 1 else 2 end = 2", "if(i > 3, b, false)", "i % 7 = 1", "I = 3L"],
    "l": ["l = 1e10", "l > 9007199254740993", "l <> 0", "l < 1.5", "l = 10D", "l > -5BD", "l is null", "abs(l) > 100"],
    "f": ["f > 5", "f = 0.25", "f <= 0.1D", "isnan(f)", "f = double('NaN')", "f * 2 > 9", "f in (1, 2.5)",
          "f > 9007199254740993", "f > n", "round(f) = 2", "f <=> null", "not f > 3"],
    "g": ["g = 0.1", "g > 0.5D", "g >= 1", "g < 16777217", "g = f", "g = cast(0.3 as float)"],
    "n": ["n = 0.1D", "n = 0.1", "n > 1.55BD", "n in (0.5, 1)", "n = 3", "n + 0.05 > 2", "n * n < 4", "n < l"],
    "s": ["s = 'A'", "upper(s) = 'A'", "lower(s) like 'a%'", r"s like 'a\_b'", r"s like 'a\\\\b'", "s rlike '^a.b$'",
          "s || 'x' = 'bx'", "s > 'a'", "s ilike 'A%'", "s not like '%b'", "length(s) > 2", "s in ('A', 'b', null)",
          "startswith(s, 'a')", "contains(s, '_')", 's = "A"', r"s = 'it\'s'", r"s = 'a\nb'", "trim(s) = ''",
          "concat(s, s) = 'bb'", "substring(s, 1, 1) = 'a'", "s is not null", "s between 'A' and 'b'"],
    "b": ["b", "not b", "b = true", "b is false", "b is not true", "b <=> null", "!b", "b or s = 'A'"],
    "d": ["d >= '2024-01-01'", "d = date'2024-01-06'", "year(d) = 2024", "year(d) < 2024", "2024 <= year(d)",
          "month(d) = 3", "day(d) > 20", "date_trunc('month', d) = '2024-02-01'", "trunc(d, 'year') > '2024-06-01'",
          "date_add(d, 30) > date'2024-05-01'", "date_sub(d, 5) <= '2024-01-01'", "datediff(d, date'2024-01-01') > 40",
          "to_date(d) between '2024-01-01' and '2024-03-01'", "d in ('2024-01-06', '2024-01-17')",
          "d > timestamp'2024-03-01 00:00:00'", "d + interval 3 days > '2024-04-01'", "d > t", "dayofweek(d) = 4"],
    "t": ["t > '2023-12-01'", "t <= timestamp'2023-12-01 00:00:00'", "t > date'2024-01-01'", "hour(t) = 3",
          "to_date(t) = '2023-12-03'", "cast(t as date) > date'2024-01-10'", "year(t) = 2024",
          "date_trunc('day', t) = '2023-12-03'",
          "t between '2023-11-20' and '2023-12-20'", "date(t) < '2023-11-09'", "date_trunc('week', t) >= '2024-01-01'",
          "t > '2023-12-01T00:00:00Z'", "t = timestamp'2023-11-03 02:30:00'", "t > timestamp'2023-12-01 00:00:00Z'"],
    "w": ["w > '2023-12-01'", "w <= timestamp'2023-12-01 00:00:00'", "w > timestamp_ntz'2023-12-01 00:00:00'",
          "to_date(w) = '2023-12-03'", "year(w) = 2024", "date_trunc('month', w) < '2023-12-01'"],
    "Mixed": ["mixed > 30", "MIXED is null", "`mixed` = 4", "Mixed in (3, 6)"],
    "st": ["st.a > 20", "ST.b = '5'", "st.B like '1%'", "st is null"],
    "arr": ["arr[0] = 5", "size(arr) = 2", "array_contains(arr, 7)", "exists(arr, e -> e > 50)"],
    "x": ["x = X'05'", "x > x'10'", "hex(x) = '0A'"],
    "v": ["try_variant_get(v, '$.a', 'int') = 1", "try_variant_get(v, '$.a', 'string') = 'z'",
          "try_variant_get(v, '$.a', 'double') > 2", "variant_get(v, '$.m', 'int') > 30", "v is null",
          "try_variant_get(v, '$.a', 'int') is null", "variant_get(v, '$.s', 'string') in ('x1', 'x2')"],
}  # fmt: skip


def _conditions(joins: int) -> list[str]:
    """Every clause, and ``joins`` of clauses by AND, OR and NOT."""
    leaves = [leaf for group in LEAVES.values() for leaf in group]
    choose = random.Random(41)
    joined = []
    for _ in range(joins):
        one, two, three = choose.sample(leaves, 3)
        joined.append(choose.choice(["{} and {}", "{} or {}", "not ({}) and {}", "({} or {}) and {}", "{} or {} and {}",
                                     "not ({} or {})", "(({}) and ({})) or ({})"]).format(one, two, three))  # fmt: skip
    return leaves + joined


@pytest.mark.spec("querying.spark-sql")
@pytest.mark.parametrize("joins", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_hundreds_of_conditions_match_the_spark_filter(
    spark: Any, new_york: None, path: str, table: pa.Table, joins: int
) -> None:
    """What pqext evaluates is exactly what Spark says, or no less where Spark evaluates the rest."""
    df = read(spark, path)
    conditions = _conditions(joins)
    assert len(conditions) > 120 + joins - 1
    with settings(spark, **INTERPRETED):
        truths = by_conditions(spark.read.parquet(path), conditions)
    alone = narrowed = 0
    for text, matching in zip(conditions, truths, strict=True):
        split = split_condition(df, text)
        found = [True] * ROWS if split.tree is None else evaluate(split.tree, table).to_pylist()
        read_rows = [at for at, is_true in enumerate(found) if is_true]
        if split.remainder is None:
            assert read_rows == matching, text
            alone += 1
        else:
            assert set(read_rows) >= set(matching), (text, str(split.tree))
            narrowed += len(read_rows) < ROWS
    assert alone > 60
    assert narrowed > 30


def _columns() -> list[Column]:
    i, s, t = F.col("i"), F.col("s"), F.col("t")
    null: Any = None
    plain = [
        i > 5, (i > 5) & (s == "A"), ~F.col("b"), i.isin(1, 2, None), s.isNull(), i.between(0, 9), s.like(r"a\_b"),
        s.startswith("a") | F.col("f").isNotNull(), F.col("f") == 0.25, F.col("d") >= dt.date(2024, 1, 6), i != 3,
        F.col("MIXED") > 30, F.col("st.b") == "5", i.eqNullSafe(null), (s == "x) or (1 = 1") | (i == 4),
        F.expr("i > 5 or b") & (i < 30), F.isnan("f"), F.col("Mixed").isNotNull() & (s != "A"),
    ]  # fmt: skip
    others = [
        F.upper("s") == "A", s == "it's", s == "a\\b", F.col("n") == Decimal("0.50"), F.col("l") == 1e10,
        F.year("d") == 2024, t > dt.datetime(2023, 12, 1), i + 1 > 10, F.col("arr")[0] == 5, F.col("f") > i, -i > 3,
        F.expr("i > 5 and upper(s) = 'A'"), F.coalesce("i", F.lit(0)) == 0, F.when(i > 3, F.col("b")).otherwise(False),
        F.try_variant_get("v", "$.m", "int") > 30, s.rlike("^a.b$"), F.to_date("t") == dt.date(2023, 12, 3),
        F.date_trunc("month", "t") == "2023-12-01", F.lit(False), (F.year("t") == 2023) & (s == "b"),
    ]  # fmt: skip
    return plain + others


@pytest.mark.spec("querying.spark-sql")
def test_column_conditions_match_the_spark_filter(spark: Any, new_york: None, path: str, table: pa.Table) -> None:
    df, given = read(spark, path), _columns()
    with settings(spark, **INTERPRETED):
        truths = by_conditions(spark.read.parquet(path), given)
    alone = narrowed = 0
    for column, matching in zip(given, truths, strict=True):
        split = split_condition(df, column)
        found = [True] * ROWS if split.tree is None else evaluate(split.tree, table).to_pylist()
        read_rows = [row for row, is_true in enumerate(found) if is_true]
        if split.remainder is None:
            assert read_rows == matching, str(column)
            alone += 1
        else:
            assert set(read_rows) >= set(matching), (str(column), str(split.tree))
            narrowed += len(read_rows) < ROWS
    assert alone > 10
    assert narrowed > 8


@pytest.mark.spec("querying.spark-sql")
def test_read_is_narrowed_and_filtered_by_sql_and_columns(
    spark: Any, path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    native = spark.read.parquet(path)
    metrics = str(tmp_path / "metrics")
    text = "year(d) = 2023 and upper(s) in ('A', 'B') and Mixed >= 0"
    df = read(spark, path, ["id"], text, metrics_path=metrics)
    assert df.columns == ["id"]
    first, second = ids(native.where(text), native.where("upper(s) = 'A' and i > 20"))
    assert ids(df) == [first]
    assert read_metrics(metrics).row_groups == 1
    df = read(spark, path)
    columns = [(df.i > 5) & (F.upper(df.s) == "A"), df["i"] > 30, F.udf(lambda i: i == 7, "boolean")("i")]
    ours, theirs = ([how(df, column) for column in columns] for how in (where, type(df).where))
    *found, last = ids(*ours, *theirs, where(where(df, "upper(s) = 'A'"), "i > 20"))
    assert found[:3] == found[3:]
    assert last == second


@pytest.mark.parametrize(
    "text",
    [
        "10 / i > 1", "i + 2147483630 > 5", "s = 5", "cast(s as int) = 5", "variant_get(v, '$.a', 'int') = 1", "i >> 5",
        "t > '2024-01-01 00:00:00+19:00'",
    ],
)
@pytest.mark.spec("querying.spark-sql")
def test_ansi_mode_errors_match_spark(spark: Any, path: str, text: str) -> None:
    df = read(spark, path)
    raised: list[Any] = []
    makers: list[Any] = [lambda: type(df).where(df, text), lambda: where(df, text)]
    for make in makers:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            make().collect()
        error: Any = caught.value
        raised.append((type(error), error.getCondition()))
    assert raised[0] == raised[1]


@pytest.fixture(scope="module")
def values_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Values near the limits of their types, one row in each row group."""
    times = [dt.datetime(2024, 1, 1, 0, 0, 0, 123456), dt.datetime(2024, 1, 1, 0, 0, 0, 123457)]
    times += [dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 3, 10, 2, 30)]
    columns = {
        "id": pa.array(range(4)),
        "f": pa.array([0.3, 0.1 + 0.2, None, math.nan]),
        "n": pa.array([Decimal("0.30"), Decimal("3.30"), Decimal("2.50"), None], pa.decimal128(10, 2)),
        "m": pa.array([Decimal("0.1000000000000000000001"), Decimal("0.1"), Decimal(3), None], pa.decimal128(38, 22)),
        "i": pa.array([44, 16777217, 16777216, 2147483647], pa.int32()),
        "l": pa.array([9007199254740993, 9007199254740992, 5, -1]),
        "s": pa.array(["a\\b", "a\\\\b", "c", "a_b"]),
        "w": pa.array(times, pa.timestamp("us")),
        "t": pa.array([time.replace(tzinfo=UTC) for time in times], pa.timestamp("us", "UTC")),
        "d": pa.array([time.date() for time in times]),
        "a": pa.array([{"b": row} for row in range(4)]),
        "a.b": pa.array([1, 0, 3, 2]),
        "v": variants.parse_json(pa.array([f'{{"a": {value}}}' for value in (2**53, 5, 2**53 + 1, "true")])),
    }
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    fields[-1] = variants.types.variant_field("v")
    path = str(tmp_path_factory.mktemp("values") / "rows.parquet")
    pqext.write_table(pa.table([*columns.values()], schema=pa.schema(fields)), path, row_group_rows=1)
    return path


@pytest.fixture(scope="module")
def names_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Columns whose names read as something else without quotes, one row in each row group."""
    p = [10, 3, 5]
    columns = {
        "id": pa.array(range(3)), "p": p, "p-1": [3, 10, 7], "1": [5, 2, 9], "x": [True, False, True],
        "not x": [True, True, False], "true": [False, True, False], "b": [False, True, True],
        "d": [dt.date(2024, 1, 1), dt.date(2023, 1, 1), dt.date(2025, 1, 1)],
        "2024-01-01": [dt.date(2024, 6, 1), dt.date(2022, 1, 1), dt.date(2024, 1, 1)],
        "st": [{"p": one, "p-1": 13 - one, "2": one} for one in p],
    }  # fmt: skip
    path = str(tmp_path_factory.mktemp("names") / "rows.parquet")
    pqext.write_table(pa.table(columns), path, row_group_rows=1)
    return path


def _outcomes(native: Any, conditions: list[Any]) -> list[Any]:
    """The rows by each condition, or the name of its error; one query for all if none fails, or else for each half."""
    try:
        return by_conditions(native, conditions)
    except PySparkException as error:
        if len(conditions) == 1:
            return [error.getCondition()]
    middle = len(conditions) // 2
    return _outcomes(native, conditions[:middle]) + _outcomes(native, conditions[middle:])


def _assert_same_outcomes(spark: Any, path: str, conditions: list[Any]) -> None:
    """Both parts of each condition leave Spark's rows; of every sixth condition also in reads, which take longer."""
    native, df = spark.read.parquet(path), read(spark, path)
    with settings(spark, **INTERPRETED):
        outcomes = [*zip(conditions, _outcomes(native, conditions), strict=True)]
        good = [(condition, rows) for condition, rows in outcomes if isinstance(rows, list)]
        splits = [split_condition(df, condition) for condition, _ in good]
        remainders = [F.lit(True) if split.remainder is None else split.remainder for split in splits]
        remaining = by_conditions(native, remainders)
    for (condition, rows), split, left in zip(good, splits, remaining, strict=True):
        scan = pqext.scan(path).select("id")
        found = (scan if split.tree is None else scan.filter(split.tree)).to_table()["id"].to_pylist()
        assert sorted({*found} & {*left}) == rows, condition
    ways: list[Callable[[Any], Any]] = [lambda one: read(spark, path, where=one), lambda one: where(df, one)]
    sample = good[::6]
    found_by_read = ids(*(way(condition) for way in ways for condition, _ in sample))
    for at, (condition, rows) in enumerate(sample):
        assert found_by_read[at :: len(sample)] == [rows] * 2, condition
    for condition, name in outcomes:
        for way in ways if isinstance(name, str) else []:
            with pytest.raises(PySparkException) as caught:
                way(condition).collect()
            assert caught.value.getCondition() == name, condition

LITERALS = [
    "f = 0.1 + 0.2", "n = 0.1 + 0.2", "n >= 1.1 * 3", "n in (1, 1.1 * 3)", "i > 2147483647 + 1",
    "i < -(-2147483648)",
    "l between 4 and 10 / 2", "not isnan(f)", "isnan(f) = false", "isnan(f) or i = 44", "not (isnan(f) or i = 44)",
    "t >= '2024-01-01T00:00:00.1234567Z'", "w = '2024-01-01T00:00:00.1234567'",
    "d > '20240101'", "d = date'20240101'",
    "w <= timestamp_ntz'2024-01-01 00:00:00.1234567'", "coalesce(w, w) >= '2024-01-01 00:00:00.1234567'",
    "l = cast(9007199254740992 as double)", "l = 9007199254740992::double", "l in (9007199254740992D)",
    "i = cast(16777216 as float)", "i = 16777216F", "m = cast(0.1 as double)", "m = 0.1D", "m > double(0.1)",
    "coalesce(w, w) > timestamp'2024-03-10 03:00:00'", "variant_get(v, '$.a', 'double') = 9007199254740993",
    "try_variant_get(v, '$.a', 'double') = 9007199254740993", "`a.b` = 1",
    "i = cast(300 as tinyint)", "i = 300Y", "i = cast('44' as int)", "upper(s) = 'C' -- note",
    "abs(i) = 44 -- a\n -- b",
    r"s = r'a\b'", r"s = 'a\\b' and upper(s) = 'A\\B'",
]  # fmt: skip


@pytest.mark.spec("querying.spark-sql")
def test_literals_have_spark_types_and_values(spark: Any, new_york: None, values_path: str) -> None:
    _assert_same_outcomes(spark, values_path, LITERALS)


@pytest.mark.spec("querying.spark-sql")
def test_backslashes_without_escapes_match_spark(spark: Any, values_path: str) -> None:
    with settings(spark, spark__sql__parser__escapedStringLiterals="true"):
        texts = [r"s = 'a\b'", r"s = 'a\\b'", r"s like 'a\_b'", r"upper(s) = 'A\B'"]
        _assert_same_outcomes(spark, values_path, texts)


@pytest.mark.spec("querying.spark-sql")
def test_local_time_columns_work_in_any_time_zone(spark: Any, new_york: None, values_path: str) -> None:
    conditions: list[Any] = []
    for hour in (3, 8, 12):
        moment, w = F.lit(dt.datetime(2024, 1, 1, hour)), F.coalesce("w", "w")
        conditions += [w > moment, w < moment, F.coalesce("t", moment) > moment, F.coalesce("d", "d") < moment]
    _assert_same_outcomes(spark, values_path, conditions)


@pytest.mark.spec("querying.spark-sql")
def test_column_names_are_not_parsed_as_sql(spark: Any, names_path: str) -> None:
    conditions = [
        F.col("p-1") > 5, F.col("`p-1`") == F.col("p"), F.col("1") == 5, F.col("p") == F.col("1"),
        F.col("b") == F.col("true"), F.col("not x"), F.col("d") >= F.col("`2024-01-01`"),
        F.col("st")["p-1"] > 5, F.col("st.`p-1`") > 5, F.col("st")["2"] == 5,
    ]  # fmt: skip
    _assert_same_outcomes(spark, names_path, conditions)


@pytest.mark.spec("querying.spark-sql")
def test_conditions_on_computed_columns_leave_the_read_narrowed(spark: Any, names_path: str) -> None:
    assert str(split_condition(read(spark, names_path), F.abs("b").isNotNull() & (F.col("p") > 5)).tree) == "p > 5"


@pytest.mark.spec("querying.spark-sql")
def test_columns_named_like_functions_and_types_prune_row_groups(spark: Any, tmp_path: Path) -> None:
    days = [dt.date(2024, 1 + month, 1) for month in range(3)]
    moments = pa.array([dt.datetime(2024, 1 + month, 1) for month in range(3)], pa.timestamp("us", "UTC"))
    columns = {"id": [0, 1, 2], "timestamp": moments, "date": days, "size": [1, 2, 3], "interval": [1, 2, 3]}
    path = str(tmp_path / "t.parquet")
    pqext.write_table(pa.table(columns), path, row_group_rows=1)
    texts = [
        "timestamp > '2024-02-15'", "timestamp <= timestamp'2024-01-10 00:00:00'", "date = '2024-02-01'",
        "date = date'2024-03-01'", "year(date) = 2024 and size > 2",
        "`timestamp` between '2024-01-20' and '2024-02-20'", "interval = 1",
        "'2024-02-20' < timestamp", "timestamp in (timestamp'2024-02-01')",
    ]  # fmt: skip
    expected = by_conditions(spark.read.parquet(path), texts)
    assert [len(found) for found in expected] == [1] * len(texts)
    assert ids(*(read(spark, path, where=text) for text in texts)) == expected
    assert [explain_read(path, where=text, spark=spark).row_groups for text in texts] == [1] * len(texts)


@pytest.mark.spec("querying.spark-sql")
def test_condition_columns_are_read_once(spark: Any, values_path: str) -> None:
    native = spark.read.parquet(values_path)
    for text in ("abs(i) = 44", "abs(I) = 44 and f > 0"):
        df = read(spark, values_path, ["I"], text)
        assert df.collect() == native.where(text).select("I").collect()
    computed = ComputedColumn("event", col("event").variant("$.a", "int"))
    stored = ["id", "event", "event_id", "x y"]
    assert condition_columns(["ID", computed], "upper(Event_Id) = 'A' and id > `x y`", stored) == ["event_id", "x y"]
    assert condition_columns(["A"], "abs(a) = 1", ["a", "A"]) == ["a"]


@pytest.mark.spec("querying.spark-sql")
def test_errors_are_shown_at_their_position_in_the_text(spark: Any, path: str) -> None:
    df = read(spark, path)
    for text, told in (("nosuch > 5", "no column 'nosuch'"), ("uper(s) = 'A'", "function 'uper'"), ("i >", "expected")):
        with pytest.raises(ValueError, match=told):
            where(df, text)
    with pytest.raises(ValueError, match="rename the computed column"):
        read(spark, path, {"s": col("v").variant("$.m", "int")}, "upper(s) = 'A'")


@pytest.mark.spec("querying.spark-sql")
def test_case_sensitivity_of_names_follows_the_option(spark: Any, path: str) -> None:
    df = read(spark, path)
    assert where(df, col("MIXED") > 30).count() == where(df, "st.b = '5' or mIXED > 30").count() - 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for question in (col("MIXED") > 30, "mixed > 30"):
            with pytest.raises(ValueError, match="no column"):
                where(df, question)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("a = 1 and b or c", "and", ["a = 1 and b or c"]),
        ("a = 1 and b or c", "or", ["a = 1 and b", "c"]),
        ("d between 1 and 2 and case when a and b then 1 end = 1", "and",
         ["d between 1 and 2", "case when a and b then 1 end = 1"]),
        ("s = ' and ' and `x and y` > 1 -- and", "and", ["s = ' and '", "`x and y` > 1 -- and"]),
        (r"s = 'it\' and ' and b", "and", [r"s = 'it\' and '", "b"]),
        ("(a and b", "and", ["(a and b"]), ("a and b)", "and", ["a and b)"]), ("s = 'a and b", "and", ["s = 'a and b"]),
    ],
)  # fmt: skip
def test_clauses_are_split_outside_of_brackets_and_quotes(text: str, word: Any, expected: list[str]) -> None:
    assert split_clauses(text, word) == expected
