"""An expression means the same to a read, to any data frame and to ``pqext.scan``: nulls, NaN and odd literals too."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from spark.sessions import ids

import pqext
from pqext import col
from pqext import variant as variants
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Expression, Operand
from pqext.dataset.expressions.visitors import columns
from pqext.spark import read, read_metrics, shred_variant, where
from pqext.spark.options.save import write_options
from pqext.spark.pushdown.conditions import translate_condition
from pqext.spark.reading.encoding import encode_options
from pqext.spark.reading.request import Query

UTC = dt.UTC
OLD = dt.datetime(1, 3, 1, 12, 0, 0, 1)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, 0, 5, 127]),
    "u8": (pa.uint8(), [0, 5, 255]),
    "i64": (pa.int64(), [-(2**63), 0, 5, 2**53, 2**53 + 1, 2**63 - 1]),
    "u64": (pa.uint64(), [0, 5, 2**64 - 1]),
    "f32": (pa.float32(), [-math.inf, -0.0, 0.0, 0.1, 5.0, 16777216.0, math.inf, math.nan]),
    "f64": (pa.float64(), [-math.inf, -0.0, 0.0, 0.1, 5.0, 2.0**53, math.inf, math.nan]),
    "d9": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.10"), Decimal("5.00"), Decimal("5.01")]),
    "d38": (pa.decimal128(38, 18), [Decimal("0.1"), Decimal("0.100000000000000001"), Decimal("5"), Decimal(10**19)]),
    "text": (pa.string(), ["", "a", "ä", "b", "\U0001f600", "\uffff"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80"]),
    "flag": (pa.bool_(), [False, True]),
    "day": (pa.date32(), [dt.date(1, 3, 1), dt.date(1970, 1, 1), NOON.date(), dt.date(9999, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [OLD, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), NOON]),
    "wall": (pa.timestamp("us"), [OLD, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), NOON]),
}
NUMBERS = [5, 5.5, 255, 0.1, Decimal("5.005"), 2**53 + 1, -(2**70), -0.0, math.nan, math.inf, 2.0**53, Decimal("0.1")]
LITERALS: dict[str, list[Any]] = {
    "text": ["", "a", "ä", "\U0001f600"],
    "bytes": [b"", b"\x7f", b"\x80"],
    "flag": [False, True],
    "day": [dt.date(1, 3, 1), dt.date(1582, 10, 10), dt.date(1970, 1, 1), NOON.date()],
    "at": [OLD.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC), pa.scalar(-1, pa.timestamp("ns", "UTC"))],
    "wall": [OLD, NOON, dt.date(2024, 2, 29), pa.scalar(-1, pa.timestamp("ns"))],
}
LITERALS["at"].append(pa.scalar(10**15, pa.timestamp("s", "UTC")))
VALUES = [None, 5, 5.5, 0.1, -1, "5", "a", True, [1], {"b": 5}, 2**53 + 1, 300, "2024-02-29", "ä"]
FIELDS = {
    "$.x": ["bigint", "uint8", "double", "float", "decimal(9,2)", "string", "boolean", "date"],
    "$.x.b": ["int"],
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Every value of each column with nulls between, and a VARIANT of all kinds of values."""
    length = max(len(values) for _, values in COLUMNS.values()) + len(VALUES)
    columns: dict[str, Any] = {"id": pa.array(range(length), pa.int64())}
    for name, (type, values) in COLUMNS.items():
        columns[name] = pa.array([[*values, None][i % (len(values) + 1)] for i in range(length)], type)
    columns["s"] = pa.array([{"b": i, "c": None} if i % 3 else None for i in range(length)])
    columns["listed"] = pa.array([None if i % 4 == 3 else [*range(i % 4)] for i in range(length)])
    texts = [None if i % 5 == 4 else json.dumps({"x": VALUES[i % len(VALUES)]}) for i in range(length)]
    columns["v"] = variants.parse_json(pa.array(texts))
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    fields[-1] = variants.types.variant_field("v")
    return pa.table([*columns.values()], schema=pa.schema(fields))


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("where") / "file.parquet"
    pqext.write_table(table, path, row_group_rows=4)
    return str(path)


@pytest.fixture
def tokyo(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.unset("spark.sql.session.timeZone")
    spark.conf.unset("spark.sql.ansi.enabled")


def comparisons(operand: Operand, literals: list[Any]) -> list[Expression]:
    """Each literal under two operators, each operator with many literals; lists of them, and null."""
    found: list[Expression] = []
    for number, literal in enumerate(literals):
        found.append([operand == literal, operand != literal][number // 2 % 2])
        found.append([operand < literal, operand >= literal, operand <= literal, operand > literal][number % 4])
    return [*found, operand.isin(literals), operand.isin([]), operand.is_null()]


def grid() -> list[Expression]:
    """Every comparison of every column with each literal of its kind."""
    found: list[Expression] = []
    for name in COLUMNS:
        found += comparisons(col(name), LITERALS.get(name, NUMBERS))
    found += [*comparisons(col("s.b"), [3, 3.5]), col("s").is_null(), col("s.c").is_null(), col("v").is_null()]
    for field, types in FIELDS.items():
        for type in types:
            literals = {"string": ["5", "a", "ä"], "boolean": [True], "date": [NOON.date()]}.get(type, NUMBERS[:6])
            found += comparisons(col("v").variant(field, type), literals)
    for field in ("array<int>", "struct<b: int>"):
        found += [col("v").variant("$.x", field).is_null(), ~col("v").variant("$.x", field).is_null()]
    return found + computed()


def computed() -> list[Expression]:
    """Questions of what is computed, of patterns, and of columns among each other."""
    text, i8, within = col("text"), col("i8"), col("v").variant("$.x", "string")
    found: list[Expression] = []
    for value in (i8 + col("u8"), col("f64") * 2, col("f32") / i8, col("d9") - 1, col("i64") % 7, 5 - i8):
        found += [value > 4, value == 10, ~(value <= 0.5), value.is_null(), value.isin([0, 5, 12.5])]
    for value in (col("i64").cast("double"), col("f64").cast("float")):
        found += [value == 5.0, value < 5, value.is_null()]
    for value in (i8.cast("string"), col("day").cast("string")):
        found += [value == "5", value.isin(["127", "1970-01-01"]), value.is_null()]
    for value in (text, within):
        found += [value.starts_with("a"), value.ends_with("ä"), value.contains("5"), value.starts_with("")]
        found += [value.like("_%"), value.like("a"), value.ilike("A%"), ~value.like("%b")]
    inner, listed = col("s").field("b"), col("listed").list_length()
    found += [i8.between(0, 5), ~col("f64").between(0.1, 5), text.between("a", "b")]
    found += [col("day").between(OLD.date(), NOON.date()), col("at") == col("at"), text <= within]
    found += [i8 == col("u8"), col("i64") < col("u64"), col("f32") >= col("f64"), col("d9") != col("d38")]
    found += [i8 > inner, inner % 2 == 1, col("v").variant("$.x", "bigint") >= i8]
    found += [listed > 1, listed.is_null(), ~(listed == 0), (i8 + 1) * 2 <= col("i64") - col("u8")]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shredded", [False, True], ids=["variant", "shredded"])
def test_three_valued_logic_matches_pqext(
    spark: Any, tokyo: None, table: pa.Table, path: str, shredded: bool
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", str(not shredded).lower())
    questions = grid()
    df = read(spark, path)
    if shredded:
        df = shred_variant(df, {"v": "x DECIMAL(9,2)"}, storage=True)
        questions = [question for question in questions if columns(question) == ("v",)]
    conditions = [translate_condition(df, question) for question in questions]
    exact = F.array([one.exact for one in conditions])
    guarded = [i for i, one in enumerate(conditions) if one.guard is not None or one.guard_negated is not None]
    guarded = guarded[::2]
    column = F.array([conditions[i].column for i in guarded])
    negated = F.array([(~conditions[i]).column for i in guarded])
    found = df.select("id", exact, column, negated).orderBy("id").collect()
    expected = [evaluate(question, table).to_pylist() for question in questions]
    assert guarded
    for i, question in enumerate(questions):
        assert [row[1][i] for row in found] == expected[i], str(question)
    for at, i in enumerate(guarded):
        assert [row[2][at] is True for row in found] == [truth is True for truth in expected[i]], str(questions[i])
        assert [row[3][at] is True for row in found] == [truth is False for truth in expected[i]], str(questions[i])


QUESTIONS = [
    col("f64") > 5,
    ~(col("f64") <= 5) | (col("i64") == 2**53 + 1.0),
    (col("u64") >= 5.5) & ~col("f32").isin([math.nan, 0.0]),
    ~col("s.b").is_null() & (col("d38") == 0.1),
    (col("v").variant("$.x", "bigint") >= 5) | (col("v").variant("$.x", "uint8") == 5),
    ~(col("v").variant("$.x", "string") == "a"),
    (col("at") <= NOON.replace(tzinfo=UTC)) & (col("wall") > dt.date(1970, 1, 1)),
    (col("at") <= "1970-01-02T00:00:00+09:00") & (col("wall") <= "2500-01-01") | (col("day") == "1970-01-01"),
]


@pytest.mark.parametrize("shredded", [pytest.param(False, marks=pytest.mark.slow), True])
def test_read_is_narrowed_to_the_rows_of_a_filtered_frame(
    spark: Any, path: str, tmp_path: Path, shredded: bool
) -> None:
    df = read(spark, path, shredded=shredded, metrics_path=str(tmp_path))
    frames: list[Any] = []
    for question in QUESTIONS:
        frames += [where(df, question), where(df.select("*"), question), where(where(df, col("id") >= 4), question)]
    found = ids(*frames)
    for number, question in enumerate(QUESTIONS):
        expected = pqext.read_table(path, filter=question).column("id").to_pylist()
        late = [id for id in expected if id >= 4]
        assert found[3 * number : 3 * number + 3] == [expected, expected, late], str(question)


def test_original_read_and_its_options_are_unchanged(spark: Any, path: str, tmp_path: Path) -> None:
    first = read(spark, path, columns=["id", "i8"], where=col("id") < 8, metrics_path=str(tmp_path))
    second = where(first, [("id", ">=", 4)])
    assert second.columns == ["id", "i8"]
    assert [row.id for row in second.collect()] == [4, 5, 6, 7]
    assert read_metrics(str(tmp_path)).row_groups == 1
    assert first.count() == 8
    with pytest.raises(ValueError, match="no column 'f64'; the columns are id, i8"):
        where(first, col("f64") > 1)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (col("i64") == "5", "column 'i64' contains integer values, which cannot be compared with '5'"),
        (col("text") == 5, "column 'text' contains string values"),
        (col("day") <= "2024-1-1", "column 'day' contains date values"),
        (col("at") <= NOON, "column 'at' contains timestamp in UTC values, .* without timezone"),
        (col("wall") <= NOON.replace(tzinfo=UTC), "column 'wall' contains timestamp without timezone values"),
        (col("bytes") == UUID(int=1), "column 'bytes' contains binary values"),
        (col("s") == 1, "column 's' of type struct.* can be compared with null only"),
        (col("v") == 1, "column 'v' of type variant can be compared with null only"),
        (col("v").variant("$.x", "uint8") == "5", "integer values, which cannot be compared"),
        (col("i64").intersects((0, 0, 1, 1)), "column 'i64' does not contain geometries"),
        (col("i64").variant("$.x", "uint8") == 5, "column 'i64' is bigint, not VARIANT"),
    ],
)
def test_incomparable_literals_are_rejected_for_every_frame(
    spark: Any, path: str, question: Expression, text: str
) -> None:
    df = read(spark, path)
    for frame in (df, df.select("*")):
        with pytest.raises(TypeError, match=text):
            where(frame, question)


def test_option_accepts_the_serialised_filter() -> None:
    question = (col("a") > 1) & col("v").variant("$.x", "int64").is_not_null()
    text = pqext.filters.to_json(question)
    assert encode_options(where=text) == encode_options(where=question) == {"where": text}
    assert Query.from_options({"path": __file__, "where": text}).where == question
    sql = encode_options(where="a > 1")
    assert Query.from_options({"path": __file__, **sql}).where == (col("a") > 1)
    with pytest.raises(ValueError, match="cannot be parsed"):
        encode_options(where="a >")


def test_options_and_columns_of_other_apis_get_hints(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pqext.write_table(pa.table({"a": [1], "b": [2]}), path)
    for name, told in (("filter", "use where"), ("filters", "use where")):
        with pytest.raises(ValueError, match=f"unknown option '{name}'; {told}"):
            Query.from_options({"path": path, name: "true"})
    for names, told in ((["* exclude (b)"], r"not in \['b'\]"), (["a::int"], r"col\('a'\)\.cast\('int'\)")):
        with pytest.raises(ValueError, match=told):
            Query.from_options({"path": path, "columns": json.dumps(names)}).schema()
    for name, text in (("shredding", "infer"), ("geometry", "{'at': 'EPSG:4326'}"), ("key_value_metadata", "a=b")):
        with pytest.raises(ValueError, match=rf"option {name} must be JSON text, as in \{{.*\}}, not "):
            write_options({name: text})


def test_spark_filter_on_a_read_warns_once_that_it_skips_nothing(
    spark: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from pqext.spark.frames import methods

    path = str(tmp_path / "hint.parquet")
    pqext.write_table(pa.table({"a": [1, 2, 3]}), path)
    methods.log_filter_hint.cache_clear()
    df = read(spark, path)
    assert where(df, col("a") > 1).count() == where(df, "upper(a) > 1").count() == 2
    assert read(spark, path, where=~F.upper("a").isin("1")).count() == 2
    assert not caplog.messages
    assert df.where("a > 1").count() == df.filter(F.col("a") > 1).count() == 2
    df.createOrReplaceTempView("hinted")
    read(spark, path, engine="native").createOrReplaceTempView("native")
    assert [message for message in caplog.messages if "pqext.spark.where" in message] == caplog.messages[:1]
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("text", ["id = 'x'", "id between 'a' and 3", "cast(id as date) > 1"])
def test_text_rejected_by_spark_raises_the_spark_error_in_reads(spark: Any, tmp_path: Path, text: str) -> None:
    path = str(tmp_path / "ids.parquet")
    pqext.write_table(pa.table({"id": [1, 2, 3]}), path)
    with pytest.raises(PySparkException) as theirs:
        spark.read.parquet(path).where(text).collect()
    for filtered in (lambda: where(read(spark, path), text), lambda: read(spark, path, where=text)):
        with pytest.raises(type(theirs.value)) as ours:
            filtered().collect()
        assert ours.value.getCondition() == theirs.value.getCondition()


def test_read_accepts_conditions_on_collated_strings(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "words")
    spark.sql("SELECT 1 AS id, 'A' COLLATE UTF8_LCASE AS word").write.parquet(path)
    for text in ("word = 'a'", "id = 1 and word = 'a'", "word = 'b'"):
        assert read(spark, path, where=text).collect() == spark.read.parquet(path).where(text).collect()
