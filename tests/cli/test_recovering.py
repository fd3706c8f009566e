"""`pqext recover` writes what is left of a damaged file and tells what was lost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner, Result

import pqext
from pqext.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def output_text(result: Result) -> str:
    """What it prints, on lines of any width."""
    return " ".join(result.output.replace("│", " ").split())


def test_truncated_file_is_recovered_with_ddl_and_a_sibling(tmp_path: Path) -> None:
    whole, cut, out = tmp_path / "whole.parquet", tmp_path / "cut.parquet", tmp_path / "out.parquet"
    table = pa.table({"id": range(100), "name": ["a"] * 100})
    pqext.write_table(table, whole, row_group_rows=50)
    cut.write_bytes(whole.read_bytes()[:-700])
    ddl, text = tmp_path / "columns.ddl", tmp_path / "some.csv"
    ddl.write_text("id BIGINT,\n  name STRING\n", "utf-8")
    text.write_text("id,name\n1,a\n", "utf-8")
    refused = run("recover", cut, out, "--schema", text)
    assert refused.exit_code == 2
    assert "not valid DDL" in output_text(refused)
    for schema in ("id BIGINT, name STRING", ddl, whole):
        result = run("recover", cut, out, "--schema", schema, "--force")
        assert result.exit_code == 0, result.output
        assert "recovered  100 rows in 2 row groups" in result.output
        assert pqext.read_table(out) == table
    told = json.loads(run("recover", cut, out, "--schema", whole, "-f", "--format", "json").output)
    assert (told["rows"], told["evidence"]) == (100, "pages")


def test_reports_and_errors_name_command_options(tmp_path: Path) -> None:
    whole, cut, out = tmp_path / "whole.parquet", tmp_path / "cut.parquet", tmp_path / "out.parquet"
    pqext.write_table(pa.table({"a": range(200), "b": range(200)}), whole, row_group_rows=50, dictionary=False)
    cut.write_bytes(whole.read_bytes()[:-1500])
    result = run("recover", cut, out)
    assert "pages alone do not identify columns; pass --schema" in result.output
    assert "schema=" not in result.output
    for options, told in (((), "; --row-group-rows may resolve it"), (
        ("--row-group-rows", 100, "--format", "json"), "; --row-group-rows 100 does not resolve it",
    )):
        result = run("recover", cut, out, "--schema", "a BIGINT, b BIGINT", *options)
        assert told in result.output
        assert "row_group_rows" not in result.output
    for schema in ("no such file <", "BIGINT"):
        result = run("recover", cut, out, "--schema", schema)
        assert result.exit_code == 2
        assert "--schema " in output_text(result)


def test_lost_chunks_become_nulls_on_request(tmp_path: Path) -> None:
    whole, damaged, out = tmp_path / "whole.parquet", tmp_path / "damaged.parquet", tmp_path / "out.parquet"
    pqext.write_table(pa.table({"id": range(100), "name": ["some text"] * 100}), whole, row_group_rows=50)
    data = bytearray(whole.read_bytes())
    place = data.index(b"some text")
    data[place : place + 4] = bytes(4)
    damaged.write_bytes(data)
    result = run("recover", damaged, out, "--null-columns")
    assert "nulls      name in row group 0 of the new file, rows 0 to 49" in result.output
    assert pqext.read_table(out)["name"].to_pylist() == [None] * 50 + ["some text"] * 50
    result = run("recover", damaged, out, "--null-columns", "--drop-columns", "--force")
    assert result.exit_code == 2
    assert "mutually exclusive" in output_text(result)


def test_nothing_to_recover_exits_with_status_1_and_no_file(tmp_path: Path) -> None:
    lost, out = tmp_path / "lost.parquet", tmp_path / "out.parquet"
    lost.write_bytes(b"PAR1" + bytes(1000))
    result = run("recover", lost, out)
    assert result.exit_code == 1
    assert "recovered  nothing" in result.output
    assert not out.exists()


def test_existing_output_is_not_replaced_by_default(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    pqext.write_table(pa.table({"id": [1]}), whole)
    out.write_bytes(b"mine")
    assert run("recover", whole, out).exit_code != 0
    assert out.read_bytes() == b"mine"
    for options in ((), ("--force",)):
        result = run("recover", whole, whole, *options)
        assert result.exit_code != 0
        assert "OUT must differ from the damaged source file" in result.output + str(result.exception)


def test_standard_output_is_not_a_valid_destination(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(pa.table({"a": [1]}), path)
    for command in (["recover", path, "-"], ["rewrite-footer", path, "-o", "-"]):
        result = run(*command)
        assert result.exit_code == 2
        assert "cannot write to standard output" in result.output
    assert not Path("-").exists()
