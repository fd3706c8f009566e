"""Conditions on CHAR columns, of which Spark pads the values, and some of the literals that it compares with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from spark.sessions import INTERPRETED, by_conditions, ids
from spark.test_settings import settings

import pqext
from pqext import col
from pqext.spark import explain_read, read, where
from pqext.spark.columns.recorded_schema import KEY
from pqext.spark.pushdown.spark_sql import needs_schema, split_condition
from pqext.spark.reading.encoding import encode_options
from pqext.spark.reading.parquet_reader import Reader
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query

TEXTS = [
    "ab   ", "ab", "ab ", "", "     ", "abc", "abc  ", "aa", "b", "abcde", "ab\t  ", "ab\t", None, "a", "ab\x1f", "ab!",
    "AB", "ab      ", "abcdefg", "abcdefgh ",
]  # fmt: skip
"""Values with and without padding, and values longer than the column."""
ADVICE = r"filter with pqext\.spark\.where\(df, condition\), which Spark evaluates"
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"


def char_file(path: Path, type: str) -> Path:
    """Write a file of CHAR columns, also within a struct, as Spark records them."""
    texts = pa.array(TEXTS)
    numbers = pa.array(range(len(TEXTS)), pa.int32())
    struct = pa.StructArray.from_arrays([texts, numbers], ["c", "n"])
    columns = {"c": texts, "same": texts.take(numbers[::-1]), "d": texts, "s": struct, "id": numbers}
    types: list[Any] = ["string"] * 3
    fields = [{"name": "c", "type": "string"}, {"name": "n", "type": "integer"}]
    types += [{"type": "struct", "fields": [field | {"nullable": True, "metadata": {}} for field in fields]}, "integer"]
    chars = [{LENGTH: type}, {LENGTH: type}, {LENGTH: "varchar(9)"}, {LENGTH: f"struct<c:{type},n:int>"}, {}]
    parts = zip(columns, types, chars, strict=True)
    noted = [{"name": name, "type": type, "nullable": True, "metadata": metadata} for name, type, metadata in parts]
    pairs = {KEY: json.dumps({"type": "struct", "fields": noted})}
    pq.write_table(pa.table(columns).replace_schema_metadata(pairs), path)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return char_file(tmp_path_factory.mktemp("chars") / "t.parquet", "char(5)")


def task_rows(path: Path, condition: Any) -> list[int]:
    """The ids of the rows that tasks read for a condition."""
    query = Query.from_options({**encode_options(where=condition), "path": str(path)}).resolve()
    reader = Reader(query, query.schema())
    batches = [batch for part in reader.partitions() if isinstance(part, Slice) for batch in reader.rows(part)]
    return [value for batch in batches for value in batch.column("id").to_pylist()]


def conditions(text: str) -> Iterator[str]:
    yield from (f"c {operator} '{text}'" for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>", "like", "rlike"))
    yield from (f"'{text}' < c", f"c in ('{text}', 'abc')", f"c not in ('{text}', 'abc')", f"c in ('{text}')")
    yield from (f"c in ('{text}', null)", f"c not in (null, '{text}')", f"d = '{text}'")
    yield from (f"c between '{text}' and 'abd'", f"c not between 'a' and '{text}'", f"'{text}' between c and 'b'")
    yield from (f"c between 'a' and '{text}' or id = 3", f"not (c between 'a' and '{text}') and id > 3")
    yield from (f"c like '{text}%'", f"not c like '%{text}'", f"c ilike '{text}%'", f"endswith(c, '{text}')")
    yield from (f"coalesce(c, 'q') = '{text}'", f"coalesce(c, 'q') > '{text}'", f"coalesce(c, 'q') <= '{text}'")
    yield from (f"upper(c) = upper('{text}')", f"trim(c) = '{text}'", f"cast(c as string) >= '{text}'")
    yield from (f"case when c = '{text}' then true else c < 'b' end", f"case c when '{text}' then true end")
    yield from (f"s.c = '{text}'", f"s.c > '{text}' and s.n > 2", f"s.c in ('{text}', 'abc')")
    yield from (f"c > '{text}' or upper(c) = 'AB   '", f"c < '{text}' and upper(c) < 'B'")
    yield from ("c = d", "c < d", "c <=> d", "c = same", "c in (d, 'ab')", "c is null", "s.c is null", "length(c) = 5")
    yield from ("s.n = 3", "s.c = c")


EVALUATED = [
    *(f"c {operator} 'ab'" for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>")), "'ab' < c", "c in ('ab', 'abc')",
    "c not in ('ab', 'abc')", "c in ('ab')", "d = 'ab'", "c is null", "s.c is null", "s.n = 3",
]  # fmt: skip
"""Conditions that tasks evaluate like Spark."""
LEFT_TO_SPARK = ["c like 'ab%'", "c between 'ab' and 'abd'", "s.c = 'ab'"]


LITERALS = ["ab", *(pytest.param(text, marks=pytest.mark.slow) for text in ("abc  ", "abcde", "abcdef", "", "ab\\t"))]


@pytest.mark.spec("spark.schema-note.char")
@pytest.mark.parametrize("literal", LITERALS)
def test_conditions_on_char_columns_match_spark(spark: Any, path: Path, literal: str) -> None:
    theirs, ours, texts = spark.read.parquet(str(path)), read(spark, str(path)), list(conditions(literal))
    with settings(spark, **INTERPRETED):
        splits = [split_condition(ours, text) for text in texts]
        remainders = [F.lit(True) if split.remainder is None else split.remainder for split in splits]
        rows_by_text, found = by_conditions(theirs, texts), by_conditions(ours, remainders)
    for text, split, expected, matches in zip(texts, splits, rows_by_text, found, strict=True):
        rows = range(len(TEXTS)) if split.tree is None else task_rows(path, split.tree)
        assert sorted({*rows} & {*matches}) == expected, (text, str(split.tree), split.text)
        if not needs_schema(text, {}.get):
            try:
                assert task_rows(path, text) == expected, text
            except pqext.UnsupportedError:
                assert split.text
    evaluated = [text for text, split in zip(texts, splits, strict=True) if not split.text]
    assert literal != "ab" or evaluated == EVALUATED


@pytest.mark.spec("spark.schema-note.char")
@pytest.mark.parametrize("engine", ["python", "native"])
def test_every_engine_pads_values_of_char_columns_like_spark(spark: Any, path: Path, engine: str) -> None:
    theirs, ours = spark.read.parquet(str(path)), read(spark, str(path), engine=engine)
    assert sorted(ours.collect(), key=lambda row: row.id) == sorted(theirs.collect(), key=lambda row: row.id)
    texts = ["c = 'ab'", "c > 'ab'", "coalesce(c, 'q') <> 'ab'", "s.c = 'ab'"]
    with settings(spark, **INTERPRETED):
        frames = [read(spark, str(path), ["id"], text, engine=engine) for text in texts]
        assert ids(*frames) == by_conditions(theirs, texts)


@pytest.mark.spec("spark.schema-note.char")
def test_reads_leave_conditions_on_char_columns_to_spark(spark: Any, path: Path) -> None:
    theirs, ours = spark.read.parquet(str(path)), read(spark, str(path))
    file, expressions = str(path), [col("c") == col("d"), col("c") < "ab\t"]
    columns = [F.col("c") == F.col("d"), F.col("c") < "ab\t"]
    with settings(spark, **INTERPRETED):
        frames = [read(spark, file, ["id"], text) for text in LEFT_TO_SPARK]
        frames.append(read(spark, file, ["id"], LEFT_TO_SPARK[0], engine="auto"))
        frames += [where(ours, expression) for expression in expressions]
        assert ids(*frames) == by_conditions(theirs, [*LEFT_TO_SPARK, LEFT_TO_SPARK[0], *columns])
    for expression in expressions:
        with pytest.raises(pqext.UnsupportedError, match=f"CHAR column.*{ADVICE}"):
            task_rows(path, expression)
    assert explain_read(file, ["id"], LEFT_TO_SPARK[0], spark=spark).columns == ("id",)


@pytest.mark.spec("spark.schema-note.char")
@pytest.mark.parametrize(("name", "value"), [
    ("spark.sql.legacy.noCharPaddingInPredicate", "true"), ("spark.sql.legacy.charVarcharAsString", "true"),
    ("spark.sql.readSideCharPadding", "false"),
])  # fmt: skip
def test_sessions_without_padding_evaluate_conditions_on_char_columns(
    spark: Any, path: Path, name: str, value: str
) -> None:
    with settings(spark, **INTERPRETED, **{name: value}):
        texts = ["c in ('ab', 'abcde')", "c = 'abcde'", "c <> 'abcde'", "c > 'abcde'"]
        frames = [read(spark, str(path), where=text) for text in texts]
        assert ids(*frames) == by_conditions(spark.read.parquet(str(path)), texts)


@pytest.mark.spec("spark.schema-note.char")
def test_char_types_of_folder_columns_and_in_capitals_match_spark(spark: Any, tmp_path: Path) -> None:
    char_file(tmp_path / "t.parquet", "CHAR(5)")
    for day in ("ab", "x"):
        (tmp_path / "days" / f"d={day}").mkdir(parents=True)
        file = pq.read_table(char_file(tmp_path / "days" / f"d={day}" / "t.parquet", "char(5)"), partitioning=None)
        noted = file.drop_columns(["d"]).replace_schema_metadata(
            {KEY: file.schema.metadata[KEY.encode()].replace(b"varchar(9)", b"char(4)")}
        )
        pq.write_table(noted, tmp_path / "days" / f"d={day}" / "t.parquet")
    with settings(spark, **INTERPRETED):
        for folder, texts in (
            (tmp_path / "t.parquet", ["c = 'ab'", "c <> 'ab'"]),
            (tmp_path / "days", ["d = 'ab  '", "d = 'ab' and c = 'ab'", "length(d) = 2"]),
        ):  # fmt: skip
            expected = ids(*(spark.read.parquet(str(folder)).where(text) for text in texts))
            for engine in ("python", "native"):
                frames = [read(spark, str(folder), where=text, engine=engine) for text in texts]
                assert ids(*frames) == expected, engine


@pytest.mark.spec("spark.schema-note.char")
def test_char_literals_that_cannot_be_padded_are_rejected(tmp_path: Path, path: Path) -> None:
    for condition in (col("c") < "ab\t", col("c") >= "\n", ~(col("c") > "a\x1f")):
        with pytest.raises(pqext.UnsupportedError, match=f"below the space.*{ADVICE}"):
            task_rows(path, condition)
    with pytest.raises(pqext.UnsupportedError, match="c is a condition on a CHAR column: Spark pads the values but"):
        task_rows(path, col("d") == col("c"))
    path = char_file(tmp_path / "u.parquet", "char(999999999)")
    for condition in (col("c") == "ab", col("c").isin(["ab", "c"]), col("c") < "ab"):
        with pytest.raises(pqext.UnsupportedError, match=f"too many spaces to pad.*{ADVICE}"):
            task_rows(path, condition)
    path = char_file(tmp_path / "v.parquet", "char(255)")
    assert task_rows(path, col("c").isin(["ab", "c"])) == [0, 1, 2, 17]
