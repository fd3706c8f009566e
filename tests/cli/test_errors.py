"""Errors on the command line name options and SQL instead of Python."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app
from pqext.cli.errors import describe, replace_arguments

COMMANDS = {name: app.get_command(click.Context(app), name) for name in ("count", "query")}


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
    [("count(*)", "use pqext count"), ("max(id)", "use pqext query --limit 1 with --order-by"),
     ("min(id)", "use pqext query --limit 1 with --order-by"), ("sum(id)", "query the file with DuckDB")],
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


def test_errors_suggest_only_options_of_the_command(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pqext.write_table(pa.table({"a": [2], "b": ["x"]}), tmp_path / "2.parquet")
    remedy = "; --union reads files whose schemas differ as one table"
    failed = run("query", tmp_path)
    assert remedy in describe(failed.exception or Exception())  # type: ignore[arg-type]
    failed = run("convert", tmp_path, tmp_path / "out.parquet", "--input-format", "parquet")
    message = describe(failed.exception or Exception())  # type: ignore[arg-type]
    assert "has additional columns b" in message
    assert "union" not in message
    assert replace_arguments("wrong; pass overwrite=True", COMMANDS["count"]) == "wrong"
    assert replace_arguments("wrong; pass overwrite=True; more", COMMANDS["query"]) == "wrong; pass --force; more"
    assert replace_arguments("no sum; use Scan.min(column)\n a\n ^", COMMANDS["count"]).endswith("--order-by\n a\n ^")


@pytest.mark.parametrize("option", ["--encodings", "--bloom-filters", "--sorting"])
def test_errors_for_columns_of_options_name_the_option(events: Path, tmp_path: Path, option: str) -> None:
    value = "idd=plain" if option == "--encodings" else "idd"
    wrong = run("convert", events, tmp_path / "out.parquet", option, value)
    message = describe(wrong.exception or Exception())  # type: ignore[arg-type]
    assert message.startswith(f"{option} has column 'idd', which the schema lacks; did you mean 'id'?")


@pytest.mark.parametrize("text", ["id > 3", "id>3", "id = 3", "id is null", "st_within(geom, box(0, 0, 1, 1))"])
@pytest.mark.parametrize("command", ["query", "head", "count"])
def test_condition_as_source_suggests_where(events: Path, command: str, text: str) -> None:
    failed = run(command, events, text)
    assert failed.exit_code == 1
    assert describe(failed.exception or Exception()).endswith("pass it with --where")  # type: ignore[arg-type]
    failed = run(command, events, "year=2020")
    assert "--where" not in describe(failed.exception or Exception())  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["recover", "repair", "reshred", "unshred", "convert"])
@pytest.mark.parametrize("option", ["-o", "--out", "--output"])
def test_output_path_is_an_argument(events: Path, tmp_path: Path, command: str, option: str) -> None:
    wrong = run(command, events, option, tmp_path / "x.parquet")
    assert wrong.exit_code == 2
    assert f"No such option '{option}'; write OUT without an option." in wrong.output
