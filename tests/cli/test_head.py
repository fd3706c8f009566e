"""`pqext head` shows rows, `pqext schema` columns; both say what pyarrow finds in the file."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner, Result

import pqext
from pqext import geo, variant
from pqext.cli import app, query


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    events = variant.parse_json(pa.array(['{"id": 1, "tags": ["a"]}', '{"id": 2}', None]))
    points = pa.array(shapely.to_wkb(shapely.points([[1, 2], [179, -2], [5, 6]])))
    schema = pa.schema([pa.field("n", pa.int32(), False), variant.variant_field("event"), geo.geometry_field("geom")])
    path = tmp_path / "t.parquet"
    pqext.write_table(pa.table([[1, 2, 3], events, points], schema=schema), path, shredding={"event": "id INT"})
    return path


def test_table_shows_variants_as_json_and_geometries_as_wkt(file: Path) -> None:
    result = run("head", file)
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()]
    assert rows == [
        ["n", "event", "geom"],
        ["1", '{"id":1,"tags":["a"]}', "POINT", "(1", "2)"],
        ["2", '{"id":2}', "POINT", "(179", "-2)"],
        ["3", "null", "POINT", "(5", "6)"],
    ]


def test_rows_columns_and_filter_options_apply(file: Path) -> None:
    assert run("head", file, "-n", 1, "--select", "n", "--format", "csv").output == "n\n1\n"
    assert run("head", file, "-n", 0, "--select", "n", "--format", "csv").output == "n\n"
    asked = "event:$.id >= 1 and st_intersects(geom, box(170, -10, -170, 10))"
    assert run("head", file, "--where", asked, "--select", "n", "--format", "csv").output == "n\n2\n"
    assert run("head", file, "--where", "n > 9").output == "no rows\n"
    assert run("head", file, file, "-n", 4, "--select", "n", "--format", "csv").output == "n\n1\n2\n3\n1\n"
    for wrong in (["--where", "n >"], ["--where", "nope > 1"], ["--select", "nope"], ["-n", "-1"]):
        result = run("head", file, *wrong)
        assert result.exit_code == 2


VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "b": (pa.bool_(), [True, None], [True, None]),
    "i": (pa.int64(), [2**63 - 1, -1], [2**63 - 1, -1]),
    "f": (pa.float64(), [1.5, float("nan")], [1.5, "nan"]),
    "s": (pa.string(), ['a "b"\n', ""], ['a "b"\n', ""]),
    "x": (pa.binary(), [b"\x00\xff", None], ["\\x00\\xFF", None]),
    "m": (pa.decimal128(9, 2), [Decimal("1.50"), None], [1.5, None]),
    "d": (pa.date32(), [date(2024, 1, 2), None], ["2024-01-02", None]),
    "t": (pa.time64("us"), [time(1, 2, 3), None], ["01:02:03", None]),
    "ts": (pa.timestamp("us"), [datetime(2024, 1, 2, 3), None], ["2024-01-02 03:00:00", None]),
    "st": (pa.struct({"a": pa.int32(), "b": pa.string()}), [{"a": 1, "b": None}, None], [{"a": 1, "b": None}, None]),
    "l": (pa.list_(pa.int32()), [[1, None], []], [[1, None], []]),
    "mp": (pa.map_(pa.string(), pa.int32()), [[("k", 1)], None], [{"k": 1}, None]),
    "mi": (pa.map_(pa.int32(), pa.string()), [[(1, "x")], []], [{"1": "x"}, {}]),
}


def test_json_and_csv_print_every_type(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: pa.array(given, kind) for name, (kind, given, _) in VALUES.items()}), path)
    lines = run("head", path, "--format", "json").output.splitlines()
    assert [json.loads(line) for line in lines] == [
        {name: shown[row] for name, (_, _, shown) in VALUES.items()} for row in range(2)
    ]
    heading, first, second = csv.reader(io.StringIO(run("head", path, "--format", "csv").output, newline=""))
    assert heading == list(VALUES)
    assert first[heading.index("s")] == 'a "b"\n'
    assert json.loads(first[heading.index("l")]) == [1, None]
    assert second[0] == ""


def test_lists_and_maps_of_later_row_groups_are_printed_correctly(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    lists = [[n] * (n % 3) if n % 5 else None for n in range(100)]
    maps = [[(str(n), v) for v in range(n % 2)] for n in range(100)]
    table = pa.table({"l": lists, "m": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    pq.write_table(table, path, row_group_size=7)
    found = [json.loads(line) for line in run("head", path, "-n", 100, "--format", "json").output.splitlines()]
    assert [row["l"] for row in found] == lists
    assert [row["m"] for row in found] == [dict(pairs) for pairs in maps]


def test_closed_pipe_ends_the_command_silently(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["x" * 1000] * 5000}), path)
    code = "from pqext.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "head", str(path), "-n", "5000", "--format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        assert job.stdout.readline().startswith(b'{"text"')
        job.stdout.close()
        assert job.stderr.read() == b""
    assert job.returncode == 1


def test_schema_tree_shows_shredding_as_ddl(file: Path) -> None:
    output = run("schema", file).output
    event = "event VARIANT(1) optional"
    for expected in ("n INT32 required", event, "shredded as STRUCT<id: INT>", "GEOMETRY(OGC:CRS84)"):
        assert expected in output
    assert "typed_value" not in output


def test_schema_as_json_and_arrow_matches_pyarrow(file: Path) -> None:
    described = json.loads(run("schema", file, "--format", "json").output)
    assert [one["name"] for one in described] == pq.read_schema(file).names
    assert [one.get("shredding") for one in described] == [None, "STRUCT<id: INT>", None]
    shown = variant.shredding_schema(described[1]["shredding"])
    assert shown == variant.schema_of_file(file, "event")
    plain = file.with_name("plain.parquet")
    pq.write_table(pa.table({"a": [1], "s": [{"x": "y"}]}), plain)
    assert run("schema", plain, "--format", "arrow").output.strip() == pq.read_schema(plain).to_string().strip()


def test_schema_as_ddl_uses_spark_types(tmp_path: Path, file: Path) -> None:
    assert run("schema", file, "--format", "ddl").output == "n INT NOT NULL,\nevent VARIANT,\ngeom GEOMETRY(4326)\n"
    path = tmp_path / "t.parquet"
    fields = {
        "a b": pa.uint8(), "u": pa.uint64(), "m": pa.map_(pa.string(), pa.list_(pa.float32())),
        "s": pa.struct({"x": pa.decimal128(9, 2)}), "t": pa.timestamp("us", "UTC"), "n": pa.timestamp("ns"),
        "d": pa.date32(), "b": pa.binary(3),
    }  # fmt: skip
    pq.write_table(pa.schema(fields).empty_table(), path)
    assert run("schema", path, "--format", "ddl").output == (
        "`a b` SMALLINT,\nu DECIMAL(20,0),\nm MAP<STRING, ARRAY<FLOAT>>,\ns STRUCT<x: DECIMAL(9,2)>,\n"
        "t TIMESTAMP,\nn TIMESTAMP_NTZ,\nd DATE,\nb BINARY\n"
    )


def test_folder_schema_includes_partition_columns(tmp_path: Path, file: Path) -> None:
    folders = tmp_path / "folders"
    for year, place in ((2025, "Suva"), (2026, "Nome")):
        folder = folders / f"year={year}" / f"place={place}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": [1], "year": [7]}), folder / "a.parquet")
    (folders / "README.txt").write_text("no Parquet")
    lines = run("schema", folders).output.splitlines()
    assert lines[0] == f"{folders}: 2 files, the first is {folders / 'year=2025' / 'place=Suva' / 'a.parquet'}"
    assert [line[4:] for line in lines[1:]] == ["n INT64 optional", "year INT32 by folder", "place STRING by folder"]
    read = pqext.scan(str(folders / "year=*")).schema
    assert run("schema", folders, "--format", "arrow").output == f"{read.to_string(show_field_metadata=False)}\n"
    assert run("schema", folders, "--format", "ddl").output == "n BIGINT,\nyear INT,\nplace STRING\n"
    described = json.loads(run("schema", folders, "--json").output)
    assert [(one["name"], one.get("partition", False)) for one in described] == [
        ("n", False), ("year", True), ("place", True),
    ]  # fmt: skip
    folder = tmp_path / "days" / "day=2024-01-31"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), folder / "a.parquet")
    assert "day DATE by folder" in run("schema", tmp_path / "days").output
    assert "by folder" not in run("schema", folders / "year=2025" / "place=Suva" / "a.parquet").output
    assert run("schema", file, file).output == run("schema", file).output


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a\x1b[31m": ["\x1b]0;gone\x07"]}), path)
    for command in (["head"], ["schema"], ["schema", "--format", "ddl"], ["schema", "--format", "arrow"]):
        assert "\x1b" not in run(command[0], path, *command[1:]).output


def test_table_lines_have_no_trailing_whitespace(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pqext.write_table(pa.table({"a": ["long text", "b", "c"], "b": [1, 2, 3]}), path)
    for command in ("head", "query", "inspect", "verify", "schema"):
        shown = run(command, path).output
        assert "\n" in shown
        assert all(line == line.rstrip() for line in shown.split("\n"))


def test_table_omits_columns_only_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": [1]} | {f"column{at}": ["x" * 50] for at in range(9)} | {"last": [True]})
    pq.write_table(table, tmp_path / "wide.parquet")
    head, row = CliRunner().invoke(app, ["head", str(tmp_path / "wide.parquet")]).stdout.splitlines()
    assert head.split() == table.column_names
    assert row.split() == ["1", *["x" * 50] * 9, "true"]
    monkeypatch.setattr(query, "terminal_width", lambda: 40)
    head, row, more = CliRunner().invoke(app, ["head", str(tmp_path / "wide.parquet")]).stdout.splitlines()
    assert head.split() == ["id", "column0", "column1", "column2"]
    assert row.startswith("1   xxxxxxx")
    assert len(row.rstrip()) <= 40
    assert more == "and 7 more columns; use --select or --format json"
    monkeypatch.setattr(query, "terminal_width", lambda: 5)
    assert CliRunner().invoke(app, ["head", str(tmp_path / "wide.parquet")]).stdout.startswith("id\n1\nand 10 more")
