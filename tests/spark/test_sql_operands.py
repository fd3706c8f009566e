"""Operands of AND, and literals with a type in front: cast, accepted and rejected as by Spark's own filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from spark.sessions import ids

from pqext.spark import read, where

ROWS = """
select id, if(id % 3 = 0, null, id % 2 = 0) f, string(id) s, double(id) d, decimal(id) n, binary(string(id)) b,
    date'2024-01-01' + int(id) day, timestamp'2024-01-01 00:00:00' + make_dt_interval(int(id)) t,
    timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(int(id)) w, make_dt_interval(int(id)) i
from range(12)"""


@pytest.fixture(scope="module")
def path(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("operands") / "t")
    spark.sql(ROWS).coalesce(1).write.parquet(path)
    return path


def _outcome(call: Callable[[], Any]) -> Any:
    """The frame that a call returns, or the condition of its error in Spark."""
    try:
        return call()
    except PySparkException as error:
        return error.getCondition()


def _assert_same(spark: Any, path: str, conditions: list[str]) -> list[str]:
    """Compare rows and errors with those of Spark's filter, and return the conditions that Spark rejects."""
    native, df, rejected, frames = spark.read.parquet(path), read(spark, path), [], []
    for text in conditions:
        calls: list[Callable[[], Any]] = [
            lambda text=text: native.where(text), lambda text=text: where(df, text),
            lambda text=text: read(spark, path, where=text),
        ]  # fmt: skip
        outcomes = [_outcome(call) for call in calls]
        if isinstance(outcomes[0], str):
            assert outcomes == outcomes[:1] * 3, text
            rejected.append(text)
        else:
            frames += outcomes
    found = ids(*frames)
    for at, text in enumerate(text for text in conditions if text not in rejected):
        assert found[3 * at + 1 : 3 * at + 3] == [found[3 * at]] * 2, text
    return rejected


@pytest.mark.spec("querying.spark-sql")
def test_operands_of_and_are_cast_to_boolean_as_in_spark(spark: Any, path: str) -> None:
    accepted = [
        "null and f", "f and null", "(f) and (null)", "id = 3 and null", "null and null", "null or f", "f or null",
        "not null", "not (null and f)", "null = null", "null is null", "'true' and f", "f and 'true' and id > 3",
        "upper(s) = '3' or null", "null and id = 3 and upper(s) = '3'", "null <=> f", "(id > 2 and null) or f",
    ]  # fmt: skip
    rejected = ["null", "(null)", "'true'", "id", "id and f", "1 and f", "f and day", "not id"]
    assert _assert_same(spark, path, accepted + rejected) == rejected


@pytest.mark.slow
@pytest.mark.spec("querying.spark-sql")
def test_only_spark_literals_with_a_type_in_front_are_accepted(spark: Any, path: str) -> None:
    accepted = [
        "day = date'2024-01-03'", 'day = DATE "2024-01-03"', "t = timestamp '2024-01-03 00:00:00'",
        "t = timestamp_ltz'2024-01-03 00:00:00'", "w = TIMESTAMP_NTZ '2024-01-03 00:00:00'", "b = X'37'",
        "i = interval '2' day", "i > interval '2 00:00:00' day to second", "i = interval 2 days", "s = r'7'",
        "time'01:00:00' = time'01:00:00'", "s = '7'", "s like '7' and id = bigint('7')", "id = '7'::bigint",
        "n = cast('7' as decimal)", "s in ('7', string(8))",
    ]  # fmt: skip
    types = "bigint INT tinyint double float decimal numeric boolean string varchar char text "
    types += "binary timestamptz uuid json bytes n"
    rejected = [f"id = {type}'7'" for type in types.split()]
    rejected += ["id = bigint  '7' and f", "f or id in (1, int'2')", "id between bigint'1' and 5"]
    rejected += ["s = text /* x */ '7'"]
    rejected += [f"s = {type}'7'" for type in ("decimal(10,2)", "dec(/* ) */3)", "varchar(3)", "int(11)", "date(3)")]
    rejected += ["f or id = double precision '7'", "s = character varying(3) '7'"]
    rejected += [f"t = {type} '2024-01-01 00:00:00'" for type in ("timestamp(3)", "timestamp with time zone")]
    assert _assert_same(spark, path, accepted + rejected) == rejected
