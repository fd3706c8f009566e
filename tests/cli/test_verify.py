"""`pqext verify` shows what is wrong with a file, in text or JSON, and says so by its status."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext.cli import app
from pqext.encryption import FileEncryption
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_files import annotated


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    both = {"metadata": reference.encode_metadata([]), "value": b"\0", "typed_value": 1}
    column = pa.array([both] * 5, storage_struct(shredding_schema("INT")))
    path = tmp_path / "broken.parquet"
    path.write_bytes(annotated(pa.table({"v": column, "i\x1b[31m": range(5)})))
    return path


def test_valid_file_exits_with_status_0(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"i": [1, 2]}), tmp_path / "sound.parquet")
    result = run("verify", tmp_path)
    assert result.exit_code == 0
    for expected in ("no faults", "2 rows in 1 row group", "chunks, sorting, variants"):
        assert expected in result.output


def test_file_with_faults_exits_with_status_1_location_and_remedy(broken: Path) -> None:
    result = run("verify", broken, "--limit", 2)
    assert result.exit_code == 1
    for expected in (
        "5 faults", "shredding.value.exclusive", "row group 0, row 0, column v.value, byte 0 of the value",
        "and 3 more", "pqext reshred",
    ):
        assert expected in result.output
    assert "\x1b" not in result.output


def test_partially_checked_file_exits_with_status_3(tmp_path: Path) -> None:
    key = b"0123456789012345"
    encryption = FileEncryption(key, column_keys={"i": key}, encrypt_columns="listed", plaintext_footer=True)
    pqext.write_table(pa.table({"i": [1], "j": [2]}), tmp_path / "half.parquet", encryption=encryption)
    for limit in (100, 0):
        result = run("verify", tmp_path / "half.parquet", "--limit", limit)
        assert result.exit_code == 3
        assert "no faults in the checked data" in result.output


def test_page_beyond_the_memory_limit_is_skipped_and_the_option_is_named(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    pqext.write_table(pa.table({"s": ["x" * 1000] * 1000}), path, dictionary=False, compression="zstd")
    assert run("verify", path).exit_code == 0
    result = run("verify", path, "--memory-bytes", 1000)
    assert result.exit_code == 3
    assert "raise it with --memory-bytes" in " ".join(result.output.split())
    assert "iter_batches" not in result.output
    assert run("verify", path, "--memory-bytes", 10_000_000).exit_code == 0


def test_file_without_its_key_exits_with_status_3(tmp_path: Path) -> None:
    encryption = FileEncryption(b"0123456789012345")
    pqext.write_table(pa.table({"i": [1]}), tmp_path / "closed.parquet", encryption=encryption)
    result = run("verify", tmp_path / "closed.parquet")
    assert result.exit_code == 3
    assert "encrypted" in result.output


def test_json_contains_all_facts(broken: Path) -> None:
    result = run("verify", broken, "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert report == json.loads(json.dumps(pqext.verify(broken).to_dict()))
    assert (report["ok"], report["total"], len(report["faults"])) == (False, 5, 5)
    assert report["faults"][0]["rule"] == "shredding.value.exclusive"
    assert report["counts"][0]["advice"]


def test_checks_and_columns_limit_the_work(broken: Path) -> None:
    assert run("verify", broken, "--checks", "chunks").exit_code == 0
    assert run("verify", broken, "--checks", "variants").exit_code == 1
    assert run("verify", broken, "--columns", "i\x1b[31m").exit_code == 0
    for wrong in (("--checks", "all"), ("--columns", "x"), ("--limit", "-1")):
        assert run("verify", broken, *wrong).exit_code == 2


def test_file_that_is_not_parquet_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no Parquet here")
    result = run("verify", path)
    assert result.exit_code == 1
    assert "layout.footer-lost" in result.output


@pytest.fixture
def lake(tmp_path: Path, broken: Path) -> Path:
    """A folder with one sound file, one with faults and one that is partly closed, and a file of another kind."""
    folder = tmp_path / "lake"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text("no Parquet here")
    pqext.write_table(pa.table({"i": [1]}), folder / "a.parquet")
    (folder / "deep" / "b.parquet").write_bytes(broken.read_bytes())
    encryption = FileEncryption(b"0123456789012345")
    pqext.write_table(pa.table({"i": [1]}), folder / "c.parquet", encryption=encryption)
    return folder


def test_each_file_has_a_line_and_the_worst_status_is_returned(lake: Path) -> None:
    result = run("verify", lake)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert f"{lake}/a.parquet: no faults" in lines
    assert f"{lake}/deep/b.parquet: 5 faults" in lines
    assert any(line.startswith(f"{lake}/c.parquet: could not be checked: ") for line in lines)
    assert lines[-1] == "3 files: 1 sound, 1 with faults, 1 not checked in full"
    assert "shredding.value.exclusive" in result.output
    assert run("verify", f"{lake}/[ac].parquet").exit_code == 3
    assert run("verify", lake / "a.parquet", lake / "a.parquet").exit_code == 0
    assert run("verify", f"{lake}/*.txt", lake / "a.parquet").exit_code == 1


def test_json_of_several_files_is_a_list(lake: Path) -> None:
    result = run("verify", lake, "--format", "json")
    assert result.exit_code == 1
    reports = json.loads(result.stdout)
    assert [(Path(report["path"]).name, report["ok"], report["complete"]) for report in reports] == [
        ("a.parquet", True, True), ("c.parquet", False, False), ("b.parquet", False, True),
    ]  # fmt: skip
    assert "encrypted" in reports[1]["error"]
    assert [len(json.loads(run("verify", f"{lake}/a*", "--format", "json").stdout))] == [1]


def test_paths_without_files_are_reported_before_any_work(lake: Path) -> None:
    for wrong in ("none.parquet", "*.none"):
        result = run("verify", lake / "a.parquet", lake / wrong)
        assert result.exit_code == 1
        assert isinstance(result.exception, FileNotFoundError)
        assert "no faults" not in result.output


def test_all_named_files_are_checked(tmp_path: Path, broken: Path) -> None:
    sound = tmp_path / "sound.parquet"
    pqext.write_table(pa.table({"a": [1]}), sound)
    result = run("verify", sound, broken)
    assert result.exit_code == 1
    assert f"{sound}: no faults" in result.output
    assert f"{broken}: " in result.output
