"""`pqext metrics` shows what table formats say of a file, as JSON, and faults in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import table_metrics
from pqext.cli import app


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    pqext.write_table(pa.table({"a": [1, 2, None], "b": ["a long text of many letters", "y", "z"]}), path)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["metrics", *map(str, arguments)])


@pytest.mark.parametrize("exact", [False, True])
def test_output_matches_the_python_function(file: Path, exact: bool) -> None:
    more = ["--exact"] if exact else []
    assert json.loads(run(file, "--format", "iceberg", *more).output) == table_metrics.iceberg(file, exact).to_dict()
    assert run(file, "--format", "delta", *more).output == table_metrics.delta(file, exact).to_json() + "\n"


def test_mode_and_schema_follow_iceberg(file: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    fields = [{"id": 7, "name": "b", "required": False, "type": "string"}]
    schema.write_text(json.dumps({"type": "struct", "fields": fields}))
    shown = json.loads(run(file, "--format", "iceberg", "--schema", schema, "--mode", "truncate(2)").output)
    assert shown["columns"] == {"7": {"name": "b", "type": "string"}}
    assert bytes.fromhex(shown["lower_bounds"]["7"]) == b"a "
    for arguments in (["--mode", "full"], ["--schema", schema]):
        refused = run(file, "--format", "delta", *arguments)
        assert (refused.exit_code, "--mode and --schema require --format iceberg" in refused.output) == (2, True)


def test_invalid_arguments_and_files_print_one_line(file: Path, tmp_path: Path) -> None:
    refused = run(file, "--format", "iceberg", "--mode", "some")
    assert (refused.exit_code, "metrics mode must be none, counts, truncate(N) or full" in refused.output) == (2, True)
    assert run(file).exit_code == 2
    short = tmp_path / "short.parquet"
    short.write_bytes(file.read_bytes()[:50])
    for place in (short, tmp_path / "gone.parquet"):
        command = [sys.executable, "-m", "pqext", "metrics", str(place), "--format", "delta"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        assert place.name in done.stderr
        assert "Traceback" not in done.stderr
