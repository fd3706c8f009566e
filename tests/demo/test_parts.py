"""The parts of the job that need no Spark."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.console import Console

import pqext
from pqext import geo, variant
from pqext.cli import app, main
from pqext.cli.demo import Narrator
from pqext.core.base.errors import CorruptFileError, UnsupportedError, VariantError
from pqext.demo import agreement, questions
from pqext.demo.agreement import _describe_needs, overwrite_pages
from pqext.demo.job import to_pqext_error
from pqext.demo.questions import QueryResult, has_same_rows
from pqext.demo.source import MAX_ROW_GROUP_ROWS, Threshold, check, describe_file, row_group_rows, write_example
from pqext.examples import earthquakes
from pqext.report import Question, Reading


def test_example_is_one_geojson_feature_per_line(tmp_path: Path) -> None:
    source = write_example(tmp_path)
    features = json.loads(earthquakes().read_text("utf-8"))["features"]
    assert [json.loads(line) for line in source.path.read_text("utf-8").splitlines()] == features
    assert len(features) == 1707


def test_example_is_in_the_public_domain() -> None:
    assert "public domain" in earthquakes().with_name("README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "paths"),
    [("lon,lat", ("$.lon", "$.lat")), ("$.a.x, $['b c'][1],z", ("$.a.x", "$['b c'][1]", "$.z"))],
)
def test_coordinates_are_paths_with_an_optional_dollar(tmp_path: Path, text: str, paths: tuple[str, ...]) -> None:
    file = tmp_path / "f.ndjson"
    file.touch()
    assert describe_file(file, "v", text, None).coordinates == paths


@pytest.mark.parametrize("text", ["lon", "a,b,c,d", "$.a[,b", "a..b,c"])
def test_invalid_coordinate_paths_are_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.ndjson"
    file.touch()
    with pytest.raises(ValueError, match=r"path|field name"):
        describe_file(file, "v", text, None)


@pytest.mark.parametrize(("lines", "rows"), [(1707, 64), (10, 1), (0, 1), (27, 1), (28, 2)])
def test_small_file_is_split_into_about_27_row_groups(tmp_path: Path, lines: int, rows: int) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n" * lines)
    assert row_group_rows(file) == rows


def test_last_line_excludes_its_line_break_and_row_groups_are_capped(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n" * 27 + b"1")
    assert row_group_rows(file) == 2
    file.write_bytes(b"\n" * (MAX_ROW_GROUP_ROWS * 40))
    assert row_group_rows(file) == MAX_ROW_GROUP_ROWS


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ('{"a": 1, "b": 2.50}', '{"b":2.5,"a":1.0}', True),
        ("1e2", "100", True),
        ("-0.0", "0", True),
        ('"1"', "1", False),
        ("[1, 2]", "[2, 1]", False),
        ('{"a": null}', "{}", False),
        ("123456789012345678901234567890.12", "123456789012345678901234567890.13", False),
    ],
)
def test_json_is_compared_by_value(left: str, right: str, equal: bool) -> None:
    assert (agreement.normalize_json(left) == agreement.normalize_json(right)) is equal


def test_null_and_variant_null_differ() -> None:
    assert agreement.normalize_json(None) is None
    assert agreement.describe_difference([(None, b"")], [(agreement.normalize_json("null"), b"")]) is not None


def test_rows_are_compared_as_multisets() -> None:
    rows: list[agreement.Row] = [("1", None), ("2", b"x"), ("1", None)]
    assert agreement.describe_difference(rows, reversed(rows)) is None
    assert "1 row missing" in str(agreement.describe_difference(rows, rows[1:]))


def test_destroying_row_groups_preserves_the_others_and_the_footer(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.parquet", tmp_path / "copy" / "b.parquet"
    pq.write_table(pa.table({"a": range(100), "b": ["x"] * 100}), path, row_group_size=10)
    overwrite_pages(path, {3, 7}, copy)
    assert path.stat().st_size == copy.stat().st_size
    damaged = pq.ParquetFile(copy)
    assert damaged.read_row_groups([3, 7]).column("a").to_pylist() == [*range(30, 40), *range(70, 80)]
    for group in (0, 2, 4, 9):
        with pytest.raises((OSError, pa.ArrowException)):
            damaged.read_row_group(group)


def test_derived_box_surrounds_the_median_row_with_a_tenth_per_axis() -> None:
    x = np.repeat(np.arange(100.0), 100)
    y = np.tile(np.arange(100.0), 100)
    box = questions.central_box(np.append(x, np.nan), np.append(y, 0.0))
    assert box is not None
    assert box.xmin <= 50 <= box.xmax
    assert box.ymin <= y[5000] <= box.ymax
    assert 8 <= box.xmax - box.xmin <= 12


def test_derived_box_requires_points() -> None:
    assert questions.central_box(np.array([np.nan]), np.array([1.0])) is None


def test_pqext_error_is_extracted_from_the_spark_message() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "x.py", line 3, in read\n    raise VariantError(...)\n'
        "pqext.core.base.errors.VariantError: f.ndjson, line 3, byte 7: expected a value\n"
    )
    error = to_pqext_error(RuntimeError(text))
    assert isinstance(error, VariantError)
    assert str(error) == "f.ndjson, line 3, byte 7: expected a value"
    corrupt = to_pqext_error(RuntimeError("x\npqext.core.base.errors.CorruptFileError: bad [file a, offset 3]\nmore"))
    assert isinstance(corrupt, CorruptFileError)


def test_other_spark_errors_are_reported_in_one_line() -> None:
    assert str(to_pqext_error(RuntimeError("Job aborted.\n  at x.y\njava.lang.IllegalStateException: no room\n"))) == (
        "Spark: IllegalStateException: no room"
    )
    assert str(to_pqext_error(RuntimeError("it broke\nat a.b"))) == "Spark: it broke"


ROW = '{"name": "a", "at": {"lon": 1, "lat": 2.5}, "tags": ["x"], "text": "far", "n": null}\n'


@pytest.mark.parametrize(
    ("text", "paths", "message"),
    [
        (ROW * 3, "at.lon,at.latt", "a number at at.latt; did you mean 'at.lat'. There are numbers at at.lat, at.lon"),
        (ROW, "lon,lat", r"has a number at lon; did you mean 'at.lon'"),
        (ROW, "at.lon,elsewhere", r"at elsewhere; there are numbers at at.lat, at.lon. The input has a single line"),
        (ROW, "at.lon,text", r'has a number at text; the value there is "far"'),
        (ROW, "at.lon,at.lat,n", r"has a number at n; there are numbers"),
        ('{"a": "x"}\n{"b": []}\n', "u,v", "its fields are a, b, none of them a number"),
        ("1\n2\n", "a,b", "a line should be an object"),
        ("\n \n", "a,b", "contains no JSON lines"),
        ('{"a": 1}\n{"b": 1}\n', "a,b", "has numbers at both a and b"),
    ],
)
def test_missing_coordinates_are_reported_with_available_paths(
    tmp_path: Path, text: str, paths: str, message: str
) -> None:
    file = tmp_path / "f.ndjson"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        check(describe_file(file, "v", paths, None))


@pytest.mark.parametrize("text", [ROW, "\ufeff" + ROW.strip(), "\n" + ROW * 2, ROW + "{}\nnull\n"])
def test_lines_with_coordinates_are_accepted(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f.ndjson"
    file.write_text(text, "utf-8")
    check(describe_file(file, "v", "at.lon,at.lat", None))
    monkeypatch.setattr("pqext.demo.source.BLOCK_BYTES", 5)
    check(describe_file(file, "v", "at.lon,at.lat", None))


def test_first_invalid_json_line_is_named_in_any_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f.ndjson"
    file.write_text(ROW * 3 + '\n{"at": oops}\n' + ROW)
    source = describe_file(file, "v", "at.lon,at.lat", None)
    for block in (10, 1 << 20):
        monkeypatch.setattr("pqext.demo.source.BLOCK_BYTES", block)
        with pytest.raises(VariantError, match=r"f\.ndjson, line 5, byte 7: no JSON value"):
            check(source)
        check(source, "null")


def test_only_the_head_of_a_large_input_is_inspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f.ndjson"
    file.write_text('{"a": 1}\n' * 100 + ROW)
    source = describe_file(file, "v", "at.lon,at.lat", None)
    check(source)
    monkeypatch.setattr("pqext.demo.source.BLOCK_BYTES", 10)
    monkeypatch.setattr("pqext.demo.source.MAX_BYTES", 50)
    check(source)


def test_compressed_input_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "f.ndjson.gz"
    file.write_bytes(b"\x1f\x8b")
    with pytest.raises(UnsupportedError, match=r"f\.ndjson\.gz is compressed; decompress it first"):
        check(describe_file(file, "v", "a,b", None))


def test_answers_show_the_requested_number_and_schema_fields() -> None:
    ddl = "STRUCT<x: INT, y: INT, mag: DOUBLE, k: BIGINT, name: STRING, in: STRUCT<deep: STRING, tags: ARRAY<STRING>>>"
    threshold = Threshold("$.mag", 5.0)

    def names(chosen: bool, threshold: Threshold | None = threshold) -> list[str]:
        return [one.name for one in questions.choose_fields(ddl, threshold, ("$.x", "$.y"), has_choice=chosen)]

    assert names(chosen=False) == ["mag", "name", "in.deep", "k"]
    assert names(chosen=True) == ["mag", "k", "name", "in.deep"]
    assert names(chosen=True, threshold=None) == ["mag", "k", "name", "in.deep"]
    assert questions.choose_fields("VARIANT", None, (), has_choice=False) == ()


def test_answers_do_not_depend_on_number_formatting() -> None:
    def make_answer(*cells: str) -> QueryResult:
        return QueryResult(("a",), tuple((cell,) for cell in cells), ())

    assert has_same_rows(make_answer("2.50", "x"), make_answer("2.5", "x"))
    assert has_same_rows(make_answer("-0.0", "1000"), make_answer("0", "1000.000"))
    assert not has_same_rows(make_answer("2.50"), make_answer("2.51"))
    assert not has_same_rows(make_answer("1e5"), make_answer("100000"))
    assert not has_same_rows(make_answer("x"), make_answer("x", "x"))


def test_row_group_counts_of_other_readers_are_reported() -> None:
    assert _describe_needs({"box": 4, "number": 9, "both": 2}, {}, 27) == "no more than pqext: 4, 9 and 2 of 27"
    assert _describe_needs({}, {"box": 4, "number": 9}, 27) == "more than pqext's 4 and 9 of 27"
    assert _describe_needs(
        {"box": 4}, {"number": 9}, 27
    ) == "no more than pqext's 4 (box); more than its 9 (number); of 27"
    assert _describe_needs({}, {}, 0) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--column", "v"],
        ["--input", "f.ndjson"],
        ["--input", "f.ndjson", "--column", "v", "--geometry", "lon"],
        ["--on-error", "ignore"],
        ["--shredding", "temp DECMAL(9,2)"],
        ["--shredding", ""],
        ["--shredding", "infer"],
        ["--report", "."],
        ["--input", "f.ndjson", "--column", "Geom", "--geometry", "lon,lat"],
        ["--input", "f.ndjson", "--column", "_pqext_error", "--geometry", "lon,lat"],
        ["--input", "f.ndjson", "--column", "v", "--geometry", "lon,lat", "--shredding", "a INT,"],
    ],
)
def test_invalid_arguments_are_usage_errors_that_leave_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.ndjson").touch()
    assert CliRunner().invoke(app, ["demo", *arguments]).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["f.ndjson"]


def test_invalid_schema_is_reported_with_the_available_types() -> None:
    told = CliRunner().invoke(app, ["demo", "--shredding", "temp DECMAL(9,2)"], env={"COLUMNS": "500"}).output
    assert "temp DECMAL(9,2)" in told
    assert "did you mean 'DECIMAL'" in told
    assert "BIGINT" in told


OWN = ["--column", "v", "--geometry", "lon,lat"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "none.ndjson", *OWN], "pqext: none.ndjson: No such file or directory"),
        (["--input", "folder", *OWN], "pqext: folder: Is a directory"),
        (["--input", "f.ndjson", *OWN, "--output", "f.ndjson"], "pqext: f.ndjson: Not a directory"),
        (
            ["--input", "f.ndjson", *OWN[:3], "lon,latt"],
            "pqext: no line of f.ndjson has a number at latt; did you mean 'lat'? There are numbers at lat, lon.",
        ),
        (
            ["--input", "bad.ndjson", *OWN],
            "pqext: bad.ndjson, line 2, byte 0: no JSON value starts with this character "
            "(--on-error null reads these lines as null)\n",
        ),
    ],
)
def test_invalid_input_is_one_line_before_spark_starts_and_leaves_no_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pqext.spark.local_session", lambda *_: pytest.fail("Spark starts"), raising=False)
    Path("f.ndjson").write_text('{"lon": 1, "lat": 2}\n')
    Path("bad.ndjson").write_text('{"lon": 1, "lat": 2}\noops\n')
    Path("folder").mkdir()
    monkeypatch.setattr("sys.argv", ["pqext", "demo", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    error = capsys.readouterr().err
    assert caught.value.code == 1
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.ndjson", "f.ndjson", "folder"]


def test_failed_demo_removes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("there is no Java")

    monkeypatch.setattr("pqext.demo.job.run", fail)
    for output in (tmp_path / "new", tmp_path):
        result = CliRunner().invoke(app, ["demo", "--output", str(output)])
        assert isinstance(result.exception, RuntimeError)
    assert [path.name for path in tmp_path.iterdir()] == ["earthquakes.ndjson"], "a folder that was there stays"


def test_empty_answer_is_reported_in_words() -> None:
    console = Console(file=io.StringIO(), width=120)
    reading = Reading("chosen schema", frozenset(), 27, 0, 5000)
    Narrator(console).show_result(Question("Both together", "read(...)", ("place",), (), 0, (reading,)))
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Both together: no row matches" in told
    head, row = told.splitlines()[-3:-1]
    assert re.split(r"\s{2,}", head.strip()) == ["file", "rows found", "row groups read", "bytes read, with the footer"]
    assert re.split(r"\s{2,}", row.strip()) == ["chosen schema", "0", "0 of 27", "0 B of 4.9 KiB (0 %)"]


def test_duckdb_count_skips_values_that_are_not_numbers(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    lines = ['{"temp": 2.5}', '{"temp": "n/a"}', '{"temp": 1}', '{}']
    values = {"event": variant.parse_json(pa.array(lines)), "geom": geo.from_points([0.0] * 4, [0.0] * 4)}
    path = tmp_path / "mixed.parquet"
    pqext.write_table(pa.table(values), path, shredding={"event": "temp DECIMAL(9,2)"}, geometry={"geom": "OGC:CRS84"})
    assert agreement.duckdb_count(path, agreement.Columns("event"), None, ("$.temp", 2.0)) == 1
