"""Faults of files give status 1 and one line, wrong arguments status 2 and the usage."""

from __future__ import annotations

import ast
import shlex
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messages import ROOT, text_of

from pqext.cli import errors as cli_errors
from pqext.cli import main
from pqext.spark.base import errors as spark_errors


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files with and without faults, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "texts", "differ"):
        Path(folder).mkdir()
    for path in ("texts/a.txt", "text.parquet", "text.geojson", "text.json"):
        Path(path).write_text("hello\n")
    pq.write_table(pa.table({"a": [1]}), "good.parquet")
    pq.write_table(pa.table({"a": [1]}), "differ/1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), "differ/2.parquet")
    Path("latin.csv").write_bytes(b"a\nb\xe9\n")
    Path("ragged.csv").write_bytes(b"a,b\n1,2\n1,2,3\n")
    Path("open.csv").write_bytes(b'a,b\n1,"2\n')
    Path("wide.csv").write_bytes(b"a\n1\n")
    return tmp_path


def test_replaced_phrases_are_phrases_of_messages() -> None:
    tables = [ROOT / "pqext" / folder / "errors.py" for folder in ("cli", "spark/base")]
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "pqext").rglob("*.py") if path not in tables]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr)]
    strings = [text for node in nodes if (text := text_of(node))]
    phrases = [phrase for phrase, _ in (*cli_errors._OPTIONS, *spark_errors._SPARK_PHRASES)]
    assert [phrase for phrase in phrases if not any(phrase in text for text in strings)] == []


def called(arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["pqext", *shlex.split(arguments)])
    with pytest.raises(SystemExit) as raised:
        main()
    return int(raised.value.code or 0)


READS = ["head {}", "query {}", "count {}", "schema {}", "inspect {}", "map {}", "verify {}",
         "metrics {} --format delta", "reshred {} out", "unshred {} out", "repair {} out", "recover {} out",
         "rewrite-footer {} -o out",
         "skipping build {} --index minmax:a", "convert {} out.parquet --input-format parquet"]  # fmt: skip


@pytest.mark.parametrize("source", ["empty", "none.parquet", "none*.parquet", "text.parquet", "texts"])
@pytest.mark.parametrize("command", READS)
def test_missing_and_corrupt_files_are_not_usage_errors(
    command: str, source: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = called(command.format(source), monkeypatch)
    told = capsys.readouterr()
    assert status == 1, told
    assert "Usage" not in told.err
    assert "Traceback" not in told.err
    assert not (files / "out").exists()


@pytest.mark.filterwarnings("ignore:1 file is not Parquet")
@pytest.mark.parametrize(
    "arguments",
    ["query differ", "query differ --union", "head texts --on-invalid skip", "convert latin.csv out.parquet",
     "convert ragged.csv out.parquet", "convert open.csv out.parquet", "convert wide.csv ragged.csv out.parquet",
     "convert text.geojson out.parquet", "convert text.json out.parquet", "skipping drop none"],
)  # fmt: skip
def test_input_errors_are_not_usage_errors(
    arguments: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(arguments, monkeypatch) == 1
    told = capsys.readouterr().err
    assert "Usage" not in told
    assert "pqext: " in told


@pytest.mark.parametrize(
    "arguments",
    ["query good.parquet --select b", "head good.parquet --where b=1", "convert wide.csv",
     "query good.parquet --limit x", "head good.parquet --int96 d", "convert wide.csv out.parquet --types 'b INT'"],
)  # fmt: skip
def test_invalid_arguments_are_usage_errors(
    arguments: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(arguments, monkeypatch) == 2
    assert "Usage" in capsys.readouterr().err
