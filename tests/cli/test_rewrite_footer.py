"""`pqext rewrite-footer` changes the footer and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

import pqext
from pqext.cli import app

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_jump_table_is_added_and_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "t.parquet", tmp_path / "other.parquet"
    pq.write_table(TABLE, path)
    before = path.read_bytes()
    result = run("rewrite-footer", path, "--footer", "thrift+index", "-o", other)
    assert result.exit_code == 0, result.output
    assert result.output.endswith(", with a jump table\n")
    assert path.read_bytes() == before
    assert list(pqext.open(other).extensions) == ["file"]
    assert "jump table" in run("inspect", other).output
    assert run("rewrite-footer", other).exit_code == 0
    assert other.read_bytes() == before


def test_all_extensions_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(TABLE, path, extensions={"file": b"mine", "a": b"its", "row_groups[0].columns[1]": b"hers"})
    assert len(pqext.open(path).extensions) == 3
    assert run("rewrite-footer", path, "--footer", "thrift+index").exit_code == 1
    assert run("rewrite-footer", path, "--footer", "thrift+index", "--drop-extensions").exit_code == 0
    assert list(pqext.open(path).extensions) == ["file"]
    assert run("rewrite-footer", path, "--drop-extensions").exit_code == 0
    assert not pqext.open(path).extensions
    assert pq.read_table(path).equals(TABLE)


def test_footer_is_converted_to_each_format_and_back(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    before = path.read_bytes()
    for form, told in (("thrift+flatbuffers", "which agrees"), ("flatbuffers", "FlatBuffers"), ("thrift", "Thrift")):
        assert run("rewrite-footer", path, "--footer", form).exit_code == 0
        assert told in run("inspect", path).output
        assert run("verify", path).exit_code == 0
        with pqext.open(path) as file:
            assert file.read().equals(TABLE)
        kinds = [name for one in pqext.inspect(path).extensions for name, _ in one.holds]
        assert kinds == ["FlatBuffers footer"] * (form == "thrift+flatbuffers")
    assert path.read_bytes() == before
