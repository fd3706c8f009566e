"""Errors on the command line name options and SQL instead of Python."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app
from pqext.cli.errors import describe


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    values = variant.parse_json(pa.array(['{"mag": 10}', '{"mag": 9}']))
    schema = pa.schema([pa.field("id", pa.int64()), variant.variant_field("event")])
    pqext.write_table(pa.table([pa.array([1, 2]), values], schema=schema), path)
    return path


@pytest.mark.parametrize("option", ["--order-by", "--select"])
@pytest.mark.parametrize("name", ["mag", "event.mag"])
def test_values_inside_variants_are_shown_in_sql(events: Path, option: str, name: str) -> None:
    wrong = run("query", events, option, name)
    assert wrong.exit_code == 2
    assert "is event:$.mag, with a type event:$.mag::double" in wrong.output
    assert "col(" not in wrong.output
    right = run("query", events, "--order-by", "event:$.mag::double", "--select", "id", "--format", "csv")
    assert right.output.split() == ["id", "2", "1"]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("count(*)", "use pqext count, at"), ("max(id)", "use pqext query --limit 1 with --order-by, at"),
     ("min(id)", "use pqext query --limit 1 with --order-by, at"), ("sum(id)", "query the file with DuckDB, at")],
)  # fmt: skip
def test_aggregates_name_a_command(events: Path, text: str, remedy: str) -> None:
    wrong = run("query", events, "--select", text)
    assert wrong.exit_code == 2
    assert remedy in wrong.output
    assert "Scan." not in wrong.output


def test_python_methods_are_not_in_errors(events: Path, tmp_path: Path) -> None:
    wrong = run("query", events, "--select", "id as x, id as x")
    assert wrong.output.rstrip().endswith('as in "x as other"')
    large = tmp_path / "large.parquet"
    pqext.write_table(pa.table({"a": [str(i) * 50 for i in range(20_000)]}), large, row_group_rows=1000)
    wrong = run("query", large, "--order-by", "a", "--format", "csv", "--memory-bytes", 1_000_000)
    assert isinstance(wrong.exception, pqext.LimitError)
    assert "--order-by keeps all rows of its result in memory: pass --limit" in describe(wrong.exception)


@pytest.mark.parametrize("command", ["recover", "repair", "reshred", "unshred", "convert"])
@pytest.mark.parametrize("option", ["-o", "--out", "--output"])
def test_output_path_is_an_argument(events: Path, tmp_path: Path, command: str, option: str) -> None:
    wrong = run(command, events, option, tmp_path / "x.parquet")
    assert wrong.exit_code == 2
    assert f"No such option '{option}'; write OUT without an option." in wrong.output
