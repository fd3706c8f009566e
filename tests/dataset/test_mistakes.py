"""Errors of conditions show what to write instead, in the notation in which the condition was written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col, geo, variant
from pqext.dataset.expressions import Expression

_MIDNIGHT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of one row in folders of years and months."""
    root = tmp_path_factory.mktemp("mistakes")
    table = pa.table({
        "id": [1], "city": ["Suva"], "day": [date(2026, 5, 1)], "ok": [True], "price": [1.5],
        "local": [datetime(2026, 5, 1)], "instant": pa.array([_MIDNIGHT], pa.timestamp("us", "UTC")),
        "user": [{"name": "Ann"}], "event": variant.parse_json(['{"type": "view"}']), "at": geo.from_points([1], [2]),
    })
    for year in (2025, 2026):
        (root / f"year={year}" / "month=1").mkdir(parents=True)
        pqext.write_table(
            table, root / f"year={year}" / "month=1" / "a.parquet", geometry={"at": "OGC:CRS84"}
        )
    return root


@pytest.mark.parametrize("schema", [None, "union"])
def test_partition_columns_are_among_the_suggestions(folder: Path, schema: Any) -> None:
    for filter in ("yeer = 2025", col("yeer") == 2025):
        with pytest.raises(ValueError, match=r"no column 'yeer'( \[file .*\])?; did you mean 'year'"):
            pqext.read_table(folder, ["id"], filter, schema=schema)
    with pytest.raises(ValueError, match="no column 'yeer'; did you mean 'year'"):
        pqext.read_table(folder, ["id", "yeer"], schema=schema)
    with pytest.raises(ValueError, match=r"'zzzz'; the columns are 'id', .*, \.\.\.; a value inside a VARIANT"):
        pqext.read_table(folder, ["zzzz"], schema=schema)


CONDITIONS: list[tuple[str, Expression | None, str, str]] = [
    ("day > '20260501'", col("day") > "20260501", "date '2026-05-01'", "datetime.date(2026, 5, 1)"),
    (
        "local > '2026-05-01T02:00:00+02:00'", col("local") > "2026-05-01T02:00:00+02:00",
        "timestamp '2026-05-01 00:00:00'", "datetime.datetime(2026, 5, 1)",
    ),
    (
        "instant > timestamp '2026-05-01 12:30:00'", col("instant") > datetime(2026, 5, 1, 12, 30),
        "timestamptz '2026-05-01 12:30:00Z'", "datetime.datetime(2026, 5, 1, 12, 30, tzinfo=datetime.UTC)",
    ),
    ("id in ('12')", col("id").isin(["12"]), "12", "12"),
    ("price = '1.5'", col("price") == "1.5", "1.5", "1.5"),
    ("month = '01'", col("month") == "01", "1", "1"),
    ("price = 'NaN'", col("price") == "NaN", "double 'NaN'", "float('NaN')"),
    ("price = '-inf'", col("price") == "-inf", "double '-inf'", "float('-inf')"),
    ("ok = 'TRUE'", col("ok") == "TRUE", "true", "True"),
    ("ok = 0", col("ok") == 0, "false", "False"),
    ("city = 5", col("city") == 5, "'5'", "'5'"),
]


@pytest.mark.parametrize(("text", "expression", "sql", "python"), CONDITIONS, ids=[case[0] for case in CONDITIONS])
def test_incomparable_literal_is_shown_in_a_comparable_form(
    folder: Path, text: str, expression: Expression, sql: str, python: str
) -> None:
    for filter, instead in ((text, sql), (expression, python)):
        with pytest.raises(TypeError) as told:
            pqext.scan(folder, ["id"], filter).to_table()
        lines = str(told.value).split("\n")
        assert lines[0].endswith(f"; write {instead}")
        assert lines[1:] == ([f"  {text}", "  ^"] if filter is text else [])
    mended = text[: text.index(" ")] + " = " + sql
    pqext.scan(folder, ["id"], mended).to_table()


@pytest.mark.parametrize("text", ["day = 'soon'", "id = '1.5'", "id = 'abc'", "ok = 2", "price = '١٢'"])
def test_literal_without_a_comparable_form_gets_no_hint(folder: Path, text: str) -> None:
    with pytest.raises(TypeError, match="which cannot be compared with") as told:
        pqext.scan(folder, ["id"], text).to_table()
    assert "; write" not in str(told.value)


HINTS = [
    ("city = Suva", ValueError, r"no column 'Suva' \[file .*\]; .*quotes: 'Suva'\n  city = Suva"),
    ('"city" = "Suva"', ValueError, "quote text with single quotes: 'Suva'"),
    ("city in (Suva, Nome)", ValueError, "quote text with single quotes"),
    ("event:$.type = view", ValueError, "quote text with single quotes: 'view'"),
    ("Id = 1", ValueError, r"no column 'Id' \[file .*\]; did you mean 'id'"),
    ("lower(city) = 'suva'", ValueError, "no function 'lower'; use ilike to ignore case"),
    ("year(day) = 2026", ValueError, "no function 'year'; compare with dates, as in day >= '2026-01-01'"),
    ("max(id) = 2", ValueError, "max aggregates many rows"),
    ("id", TypeError, "column 'id' contains integer values, .*; only a column of booleans"),
    ("day like '2026%'", TypeError, "like requires text; day::string makes it text\n  day like"),
]


@pytest.mark.parametrize(("text", "error", "hint"), HINTS, ids=[one[0] for one in HINTS])
def test_syntax_of_sql_engines_gets_a_hint(
    folder: Path, text: str, error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match=hint):
        pqext.scan(folder, ["id"], text).to_table()


INSIDE = [
    ("event.user.id = 7", col("event.user.id") == 7, "event:$.user.id", r"col('event').variant('$.user.id', 'string')"),
    ("event = 'x'", col("event") == "x", "event:$.name", "col('event').variant('$.name', 'string')"),
    ("user = 'x'", col("user") == "x", "user.name", "col('user.name')"),
    ("at = 1", col("at") == 1, "use st_intersects", "use intersects"),
    ("browser = 1", col("browser") == 1, "event:$.browser", "col('event').variant('$.browser', 'string')"),
]


@pytest.mark.parametrize(("text", "expression", "sql", "python"), INSIDE, ids=[case[0] for case in INSIDE])
def test_nested_value_is_suggested_in_the_notation_of_the_condition(
    folder: Path, text: str, expression: Expression, sql: str, python: str
) -> None:
    for filter, form, other in ((text, sql, python), (expression, python, sql)):
        with pytest.raises((TypeError, ValueError)) as told:
            pqext.scan(folder, ["id"], filter).to_table()
        assert form in str(told.value)
        assert other == "user.name" or other not in str(told.value)


def test_unknown_result_column_is_suggested_for_python_and_command_line(folder: Path) -> None:
    both = r"col\('event'\)\.variant\('\$\.user', 'string'\), on the command line event:\$\.user"
    with pytest.raises(ValueError, match=both):
        pqext.read_table(folder, ["event.user"])
    with pytest.raises(ValueError, match=r"no column 'user\.nam'; did you mean 'user\.name'"):
        pqext.read_table(folder, ["user.nam"])
