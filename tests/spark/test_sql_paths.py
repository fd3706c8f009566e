"""Paths of SQL text into VARIANT columns lead where Spark's own lead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from spark.sessions import INTERPRETED, SPARK_4_1, by_conditions
from spark.test_settings import settings

import pqext
from pqext import variant

KEYS = ["zip code", "it's", 'q"q', "both'\"", "tick`s", "back\\slash", "plain", "Case", "case", "x,y", "[0]", "é"]
DOCUMENTS = [json.dumps({key: at}) for at, key in enumerate(KEYS)] + [
    json.dumps({"a": {"b": 100, "c d": {"e": 101}}, "l": [102, {"m": 103}]}), json.dumps({"a.b": 104}),
]  # fmt: skip
FIRST = len(KEYS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paths") / "documents.parquet"
    table = pa.table({"id": range(len(DOCUMENTS)), "v": variant.parse_json(DOCUMENTS)})
    pqext.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def documents(spark: Any) -> Any:
    frame = spark.createDataFrame(list(enumerate(DOCUMENTS)), "id int, text string")
    return frame.selectExpr("id", "parse_json(text) as v")


def by_spark(spark: Any, documents: Any, conditions: list[str]) -> list[list[int]]:
    with settings(spark, **INTERPRETED):
        return by_conditions(documents, conditions)


def ids(path: Path, condition: str) -> list[int]:
    return list(pqext.read_table(path, ["id"], condition)["id"].to_pylist())


CONDITIONS = [
    "v:`zip code`::int = 0", "v:['zip code']::int = 0", "v:`it's`::int = 1", "v:['q\"q']::int = 2",
    "v:`q\"q`::int = 2", "v:`both'\"`::int = 3", "v:`tick``s`::int = 4", "v:`back\\slash`::int = 5",
    "v:plain::int = 6", "v:['plain']::int = 6", "v:Case::int = 7", "v:case::int = 8", "v:['x,y']::int = 9",
    "v:`é`::int = 11", "v:a.b::int = 100", "v:a:b::int = 100", "v:a['b']::int = 100", "v:['a'].b::int = 100",
    "v:a.`c d`.e::int = 101", "v:a['c d'].e::int = 101", "v:l[0]::int = 102", "v:l[1].m::int = 103",
    "v:['l'][1]['m']::int + 1 = 104", "v:['a.b']::int = 104", "v : a.b::int = 100", "v:zip::int = 0",
    "cast(v:a as struct<b: bigint>) is not null", "v:a::struct<b: bigint> is not null",
    "v:a::struct<b bigint, `c d`: struct<e: int>> is not null", "v:l::array<variant> is not null",
    "v:a::map<string, variant> is not null", "v:a is null",
]  # fmt: skip


@pytest.mark.skipif(SPARK_4_1, reason="Spark 4.1 has no such paths")
def test_paths_resolve_like_in_spark(spark: Any, documents: Any, path: Path) -> None:
    asked = [condition.replace("cast(", "try_cast(") for condition in CONDITIONS]
    for condition, expected in zip(CONDITIONS, by_spark(spark, documents, asked), strict=True):
        assert ids(path, condition) == expected, condition


QUOTED = [
    ('v:"zip code" = 0', "zip code"), ("v:[\"zip code\"] = 0", "zip code"), ("v:$.`zip code` = 0", "zip code"),
    ("v:['it\\'s'] = 1", "it's"), ("v:['it''s'] = 1", "it's"), ("v:[\"it's\"] = 1", "it's"),
    ("v:$['it\\'s'] = 1", "it's"), ("v:[\"q\\\"q\"] = 2", 'q"q'), ('v:"q""q" = 2', 'q"q'),
    ("v:['both\\'\"'] = 3", "both'\""), ("v:[\"both'\\\"\"] = 3", "both'\""), ("v:\"both'\"\"\" = 3", "both'\""),
    ("v:['back\\\\slash'] = 5", "back\\slash"), ("v:['back\\slash'] = 5", "back\\slash"),
    ("v['$[\"zip code\"]'] = 0", "zip code"), ("v:['[0]'] = 10", "[0]"),
]  # fmt: skip


@pytest.mark.skipif(SPARK_4_1, reason="Spark 4.1 has no such paths")
def test_quotes_unsupported_by_spark_name_the_same_keys(spark: Any, documents: Any, path: Path) -> None:
    asked = [f"try_cast(v as map<string, variant>)['{_text(key)}'] is not null" for _, key in QUOTED]
    for (condition, key), expected in zip(QUOTED, by_spark(spark, documents, asked), strict=True):
        assert ids(path, condition) == expected == [KEYS.index(key)], condition


def _text(text: str) -> str:
    """A text within the single quotes of Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
