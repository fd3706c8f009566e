"""The parts of the job that need no Spark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pqext.cli import app
from pqext.core.errors import CorruptFileError, VariantError
from pqext.demo import compare, derive
from pqext.demo.damage import destroy_others
from pqext.demo.faults import typed
from pqext.demo.source import MAX_ROW_GROUP_ROWS, example, own, row_group_rows
from pqext.examples import earthquakes


def test_the_example_is_every_feature_on_a_line_of_its_own(tmp_path: Path) -> None:
    source = example(tmp_path)
    features = json.loads(earthquakes().read_text("utf-8"))["features"]
    assert [json.loads(line) for line in source.path.read_text("utf-8").splitlines()] == features
    assert len(features) == 1707


def test_the_example_is_in_the_public_domain() -> None:
    assert "public domain" in earthquakes().with_name("README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "paths"),
    [("lon,lat", ("$.lon", "$.lat")), ("$.a.x, $['b c'][1],z", ("$.a.x", "$['b c'][1]", "$.z"))],
)
def test_coordinates_are_paths_with_or_without_the_dollar(tmp_path: Path, text: str, paths: tuple[str, ...]) -> None:
    file = tmp_path / "f.ndjson"
    file.touch()
    assert own(file, "v", text, None).coordinates == paths


@pytest.mark.parametrize("text", ["lon", "a,b,c,d", "$.a[,b", "a..b,c"])
def test_coordinates_that_are_no_paths_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.ndjson"
    file.touch()
    with pytest.raises(ValueError, match=r"path|field name"):
        own(file, "v", text, None)


@pytest.mark.parametrize(("lines", "rows"), [(1707, 64), (10, 1), (0, 1), (27, 1), (28, 2)])
def test_a_small_file_is_cut_into_about_27_row_groups(tmp_path: Path, lines: int, rows: int) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n" * lines)
    assert row_group_rows(file) == rows


def test_the_last_line_counts_without_its_line_break_and_a_row_group_has_an_upper_limit(tmp_path: Path) -> None:
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
    assert (compare.canonical(left) == compare.canonical(right)) is equal


def test_null_and_the_variant_null_differ() -> None:
    assert compare.canonical(None) is None
    assert compare.difference([(None, b"")], [(compare.canonical("null"), b"")]) is not None


def test_rows_are_compared_with_their_counts_in_any_order() -> None:
    rows: list[compare.Row] = [("1", None), ("2", b"x"), ("1", None)]
    assert compare.difference(rows, reversed(rows)) is None
    assert "1 rows missing" in str(compare.difference(rows, rows[1:]))


def test_destroying_row_groups_leaves_the_others_and_the_footer(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.parquet", tmp_path / "copy" / "b.parquet"
    pq.write_table(pa.table({"a": range(100), "b": ["x"] * 100}), path, row_group_size=10)
    destroy_others(path, {3, 7}, copy)
    assert path.stat().st_size == copy.stat().st_size
    damaged = pq.ParquetFile(copy)
    assert damaged.read_row_groups([3, 7]).column("a").to_pylist() == [*range(30, 40), *range(70, 80)]
    for group in (0, 2, 4, 9):
        with pytest.raises((OSError, pa.ArrowException)):
            damaged.read_row_group(group)


def test_a_derived_box_lies_around_the_middle_row_and_holds_about_a_tenth_each_way() -> None:
    x = np.repeat(np.arange(100.0), 100)
    y = np.tile(np.arange(100.0), 100)
    box = derive.box_around_the_middle(np.append(x, np.nan), np.append(y, 0.0))
    assert box is not None
    assert box.xmin <= 50 <= box.xmax
    assert box.ymin <= y[5000] <= box.ymax
    assert 8 <= box.xmax - box.xmin <= 12


def test_without_points_there_is_no_box() -> None:
    assert derive.box_around_the_middle(np.array([np.nan]), np.array([1.0])) is None


def test_an_error_of_pqext_is_found_in_the_text_that_spark_makes_of_it() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "x.py", line 3, in read\n    raise VariantError(...)\n'
        "pqext.core.errors.VariantError: f.ndjson, line 3, byte 7: expected a value\n"
    )
    error = typed(RuntimeError(text))
    assert isinstance(error, VariantError)
    assert str(error) == "f.ndjson, line 3, byte 7: expected a value"
    corrupt = typed(RuntimeError("x\npqext.core.errors.CorruptFileError: bad [file a, offset 3]\nmore"))
    assert isinstance(corrupt, CorruptFileError)


def test_another_error_of_spark_is_told_in_one_line() -> None:
    assert str(typed(RuntimeError("Job aborted.\n  at x.y\njava.lang.IllegalStateException: no room\n"))) == (
        "Spark: IllegalStateException: no room"
    )
    assert str(typed(RuntimeError("it broke\nat a.b"))) == "Spark: it broke"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--variant", "v"],
        ["--input", "f.ndjson"],
        ["--input", "f.ndjson", "--variant", "v", "--geometry", "lon"],
        ["--on-error", "ignore"],
    ],
)
def test_wrong_arguments_are_usage_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.ndjson").touch()
    assert CliRunner().invoke(app, ["demo", *arguments]).exit_code == 2
