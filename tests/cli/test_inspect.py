"""`pqext inspect` tells what a file holds, in text or JSON, and what is wrong with one in a line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import geo
from pqext.cli import app, main
from pqext.core.format.metadata import BoundingBox, FileMetaData


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table = pa.table({"a": [1, 2, 3, None], "s": [{"b": "x"}, {"b": "y"}, {"b": None}, None]})
    path = tmp_path / "t.parquet"
    pq.write_table(table.replace_schema_metadata({"who": "me"}), path, row_group_size=2)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_text_shows_schema_levels_row_groups_and_chunks(file: Path) -> None:
    result = run("inspect", file)
    assert result.exit_code == 0
    for expected in (
        "optional INT64  D1 R0",
        "b optional BYTE_ARRAY STRING  D2 R0",
        "row group 1",
        "s.b",
        "1 to 2",
        "who",
    ):
        assert expected in result.output


def test_json_contains_all_facts(file: Path) -> None:
    report = json.loads(run("inspect", file, "--format", "json").output)
    footer = pq.read_metadata(file)
    assert report["num_rows"] == footer.num_rows
    assert report["created_by"] == footer.created_by
    assert ["who", "me"] in report["key_value_metadata"]
    for group in report["row_groups"]:
        for column in group["columns"]:
            theirs = footer.row_group(group["index"]).column(column["column"])
            assert column["path"] == theirs.path_in_schema.split(".")
            assert column["compressed"] == theirs.total_compressed_size
            assert column["null_count"] == theirs.statistics.null_count
            assert column["minimum"] == (str(theirs.statistics.min) if theirs.statistics.has_min_max else None)


def test_columns_and_row_groups_select_chunks(file: Path) -> None:
    report = json.loads(run("inspect", file, "--format", "json", "--columns", "s", "--row-groups", "1").output)
    assert [(group["index"], [c["path"] for c in group["columns"]]) for group in report["row_groups"]] == [
        (1, [["s", "b"]])
    ]
    assert report["num_row_groups"] == 2
    assert len(report["schema"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--columns", "nope"], "nope"),
        (["--row-groups", "7"], "row group 7"),
        (["--row-groups", "1-x"], "is not an index or a range"),
        (["--row-groups", "0-99999999999"], "spans more than 1,000,000 row groups"),
        (["--frob"], "frob"),
    ],
)
def test_invalid_arguments_are_usage_errors(file: Path, arguments: list[str], message: str) -> None:
    result = run("inspect", file, *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("damage", [lambda b: b[:-7], lambda b: b"", lambda b: b[:40] + b[-8:], lambda b: b"PAR1" * 9])
def test_corrupt_file_prints_one_line_with_status_1(
    file: Path, damage: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(damage)
    file.write_bytes(damage(file.read_bytes()))
    status, error = fails(["inspect", str(file)], monkeypatch, capsys)
    assert status == 1
    assert error.startswith("pqext: ")
    assert error.count("\n") == 1
    assert str(file) in error


def test_missing_file_prints_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.parquet"
    assert fails(["inspect", str(path)], monkeypatch, capsys) == (1, f"pqext: {path}: No such file or directory\n")


def test_missing_file_suggests_a_similar_name(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = file.with_name(file.name.replace("parquet", "parqet"))
    for command in ("head", "count", "schema", "verify"):
        told = f"pqext: {wrong}: No such file or directory; did you mean '{file}'?\n"
        assert fails([command, str(wrong)], monkeypatch, capsys) == (1, told)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"id": 1, "name": "Suva"}\n', "it looks like JSON: convert it with pqext convert"),
        (b"id,name\n1,Suva\n2,Nome\n", "it looks like text: if it is CSV, convert it with pqext convert"),
        (gzip.compress(b"id,name\n1,Suva\n", mtime=0), "it looks like a gzip-compressed file"),
        (b"ARROW1\0\0" + bytes(20), "it looks like an Arrow or Feather file"),
        (b"\xff" * 20, "not a Parquet file: it ends in"),
    ],
)
def test_file_of_another_format_is_identified_by_its_magic_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    status, error = fails(["head", str(tmp_path / "a.parquet")], monkeypatch, capsys)
    assert status == 1
    assert error.startswith("pqext: not a Parquet file: it ")
    assert told in error


def test_folder_with_other_files_is_an_error_with_a_remedy(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / "zz.csv").write_text("id,name\n1,Suva\n")
    (status, error) = fails(["head", str(file.parent)], monkeypatch, capsys)
    assert status == 1
    assert "and so does the pattern 'folder/**/*.parquet'" in error
    assert run("count", file.parent / "**" / "*.parquet").exit_code == 0


def test_folder_uses_its_single_file_or_lists_several(file: Path, tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    assert run("inspect", tmp_path).output == run("inspect", file).output
    other = tmp_path / "deep" / "u.parquet"
    other.parent.mkdir()
    other.write_bytes(file.read_bytes())
    result = run("inspect", tmp_path)
    assert result.exit_code == 2
    told = "".join(result.output.replace("│", "").split())
    assert "contains2Parquetfiles;passthepathofafile:" in told
    assert str(file) in told
    assert str(other) in told
    for number in range(40):
        (tmp_path / f"v{number}.parquet").write_bytes(file.read_bytes())
    told = "".join(run("inspect", tmp_path).output.replace("│", "").split())
    assert "contains42Parquetfiles;" in told
    assert "and39more" in told
    assert told.count(".parquet") == 3


def test_folder_without_a_parquet_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fails(["inspect", str(tmp_path)], monkeypatch, capsys) == (
        1,
        f"pqext: {tmp_path}: The folder is empty\n",
    )
    (tmp_path / "readme.txt").touch()
    assert fails(["inspect", str(tmp_path)], monkeypatch, capsys) == (
        1,
        f"pqext: {tmp_path}: No file in this folder ends in .parquet; pass the path of a file\n",
    )


@pytest.mark.parametrize("error", [ValueError("no\nsuch thing"), TypeError("no such thing")])
def test_nested_argument_error_prints_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**settings: object) -> None:
        raise error

    monkeypatch.setattr(app, "main", fail)
    assert fails([], monkeypatch, capsys) == (1, "pqext: no such thing\n")


def fails(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    monkeypatch.setattr("sys.argv", ["pqext", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code, capsys.readouterr().err


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "hostile.parquet"
    name = "a\x1b[31m\nb\u202e[bold]"
    table = pa.table({name: ["\x1b]0;gone\x07"]}).replace_schema_metadata({"\x1bkey": "\x9bvalue"})
    pq.write_table(table, path)
    output = run("inspect", path).output
    assert not any(c in output for c in "\x1b\u202e\x9b\x07")
    assert r"a\x1b[31m\nb\u202e[bold]" in output
    assert json.loads(run("inspect", path, "--format", "json").output)["schema"][0]["path"] == [name]


def test_wide_file_is_shortened_in_text_but_not_in_json(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{i}": [i] for i in range(1200)}), path)
    text = run("inspect", path).output
    assert len(text.splitlines()) < 2000
    assert "and 1000 column chunks; choose with --columns" in text
    assert len(json.loads(run("inspect", path, "--format", "json").output)["row_groups"][0]["columns"]) == 1200
    assert "c1199" in run("inspect", path, "--columns", "c1199").output


def test_help_and_version_are_printed() -> None:
    assert "inspect" in run("--help").output
    assert run("--version").output.startswith("pqext ")
    assert run().exit_code == 2


def test_numbers_not_representable_in_json_are_text(tmp_path: Path) -> None:
    path = tmp_path / "box.parquet"
    pqext.write_table(pa.table({"g": geo.from_points([1.0], [2.0])}), path, geometry={"g": "OGC:CRS84"})

    def unbounded(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        assert about.geospatial_statistics is not None
        about.geospatial_statistics.bbox = BoundingBox(xmin=float("nan"), xmax=float("inf"), ymin=-float("inf"), ymax=1)

    pqext.rewrite_footer(path, unbounded)
    output = run("inspect", path, "--format", "json").output
    json.loads(output, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert all(f'"{name}"' in output for name in ("NaN", "Infinity", "-Infinity"))
