"""`pqext convert` makes Parquet of JSON lines, CSV, GeoJSON and Parquet; other readers say what is in it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner, Result

import pqext
from pqext import geo, variant
from pqext.cli import app, convert
from pqext.core.io.sources.csv_text import suppress_arrow_messages
from pqext.core.options.layout import parse_checkpoint

LINES = ['{"id": 1, "at": {"x": 1.5, "y": 2}, "p": 12.50}', '{"id": 2, "at": {"x": 179, "y": -2}}', '{"id": 3}']
COMMAND = [sys.executable, "-c", "from pqext.cli import main; main()", "convert"]


def run(*arguments: object, input: bytes | None = None, force: bool = True) -> Result:
    forced = ["--force"] if force else []
    return CliRunner().invoke(app, ["convert", *map(str, arguments), *forced], input=input, env={"COLUMNS": "500"})


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.ndjson"
    path.write_text("".join(line + "\n" for line in LINES), "utf-8")
    return path


def documents(path: Path, column: str = "value") -> list[object]:
    """The variants of a file by DuckDB, which reads shredded ones as values."""
    rows = duckdb.sql(f"SELECT {column}::JSON::VARCHAR FROM read_parquet('{path}')").fetchall()
    return [None if text is None else json.loads(text) for (text,) in rows]


def stored_share(path: Path) -> float:
    """The share of the values of x that pyarrow finds in the residual."""
    group = pq.read_table(path)["value"].combine_chunks().field("typed_value").field("x")
    left, typed = (len(group) - group.field(name).null_count for name in ("value", "typed_value"))
    return float(left / (left + typed))


def test_residual_share_is_reported(tmp_path: Path) -> None:
    source, dest = tmp_path / "in.ndjson", tmp_path / "out.parquet"
    source.write_text("".join(f'{{"x": {i if i % 8 == 0 else i / 7}, "y": [1]}}\n' for i in range(2000)))
    result = run(source, dest, "--row-group-rows", 700)
    assert f"in the residual: {stored_share(dest):.1%} of value: $.x\n" in result.output
    assert stored_share(dest) == 0.125
    source.write_text("".join(f'{{"x": {i / 7}}}\n' for i in range(2000)))
    assert "in the residual" not in run(source, dest).output
    assert stored_share(dest) == 0


def test_json_lines_are_converted_to_a_shredded_variant_column(lines: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    result = run(lines, dest)
    assert result.exit_code == 0
    assert "3 rows in 1 row group" in result.output
    assert "value: STRUCT<at: STRUCT<x: " in result.output
    assert documents(dest) == [json.loads(line) for line in LINES]
    typed = pq.read_schema(dest).field("value").type.field("typed_value").type
    assert [field.name for field in typed] == ["at", "id", "p"]
    assert pqext.verify(dest).ok


def test_shredding_is_explicit_inferred_or_off(lines: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    run(lines, dest, "--shredding", "id INT", "--column", "v")
    typed = pq.read_schema(dest).field("v").type.field("typed_value").type
    assert [field.name for field in typed] == ["id"]
    run(lines, dest, "--shredding", "none")
    assert [field.name for field in pq.read_schema(dest).field("value").type] == ["metadata", "value"]
    run(lines, dest, "--shredding", '{"max_fields": 1}')
    assert pq.read_metadata(dest).num_columns == 4
    for wrong in ("id INTEGR", "w=id INT"):
        assert run(lines, dest, "--shredding", wrong).exit_code == 2


def test_multiline_documents_and_arrays_are_read(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.json", tmp_path / "out.parquet"
    given = [json.loads(line) for line in LINES]
    for text in (json.dumps(given, indent=2), "\n".join(json.dumps(one, indent=2) for one in given)):
        path.write_text(text)
        assert run(path, dest).exit_code == 0
        assert documents(dest) == given
    path.write_text("[1]\n[2]\n")
    assert run(path, dest, "--json-layout", "lines", "--shredding", "none").exit_code == 0
    assert documents(dest) == [[1], [2]]


def test_points_wkt_and_geojson_are_converted_to_geometries(tmp_path: Path) -> None:
    shapes = [shapely.Point(1, 2), shapely.LineString([(0, 0), (3, 4)])]
    path, dest = tmp_path / "in.ndjson", tmp_path / "out.parquet"
    at = {"x": 1.5, "y": 2}
    given = [{"at": at, "text": one.wkt, "shape": json.loads(shapely.to_geojson(one))} for one in shapes]
    path.write_text("\n".join(map(json.dumps, given)))
    made = ["--geometry", "$.at.x,at.y", "--wkt", "w=text", "--geojson", "g=shape"]
    result = run(path, dest, *made, "--edges", "spherical")
    assert result.exit_code == 0
    stored = pq.read_table(dest)
    assert shapely.from_wkb(stored["w"].to_numpy()).tolist() == shapes
    assert shapely.from_wkb(stored["g"].to_numpy()).tolist() == shapes
    assert shapely.from_wkb(stored["geom"].to_numpy()).tolist() == [shapely.Point(1.5, 2)] * 2
    with pqext.open(dest) as file:
        assert {node.logical_name for node in file.schema.root.children} == {"VARIANT", "GEOGRAPHY"}


def test_missing_coordinates_are_null_and_absent_ones_are_reported(lines: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    assert "no row" not in run(lines, dest, "--geometry", "at.x,at.y").output
    assert pq.read_table(dest)["geom"].is_valid().to_pylist() == [True, True, False]
    dest.unlink()
    lost = run(lines, dest, "--geometry", "lon,lat")
    assert lost.exit_code == 1
    assert "no row contains the path lon or lat; the first rows have" in str(lost.exception)
    assert not dest.exists()


def test_inputs_may_be_files_patterns_folders_and_compressed(lines: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(b'{"id": 5}\n'))
    (folder / "a.ndjson").write_bytes(b'{"id": 4}\n')
    dest = tmp_path / "out.parquet"
    for given in ([folder], [f"{folder}/*.ndjson*"], [folder / "a.ndjson", folder / "b.ndjson.gz"]):
        assert run(lines, *given, dest).exit_code == 0
        table = pqext.read_table(dest)
        assert variant.get(table["value"], "$.id", "int64").to_pylist() == [1, 2, 3, 4, 5]


def test_writer_options_apply_to_the_file(lines: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    options = [
        "--compression", "zstd", "--compression-level", "9", "--row-group-rows", "2", "--geometry", "at.x,at.y",
        "--encodings", "auto", "--geoparquet", "2.0", "--order", "hilbert",
        "--bloom-filters", "value.typed_value.id.typed_value",
    ]
    result = run(lines, dest, *options)
    assert result.exit_code == 0, result.output
    footer = pq.read_metadata(dest)
    assert footer.num_row_groups >= 2
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert b"geo" in footer.metadata
    report = pqext.inspect(dest)
    assert any(column.bloom_filter for group in report.row_groups for column in group.columns)
    for wrong in (["--compression", "lzo"], ["--encodings", "best"], ["--row-group-rows", "0"], ["--sorting", "x"]):
        assert run(lines, dest, *wrong).exit_code == 2


@pytest.mark.parametrize(("how", "kept"), [("null", [{"id": 1}, None, {"id": 3}]), ("skip", [{"id": 1}, {"id": 3}])])
def test_lines_that_are_not_json_become_null_or_are_skipped(tmp_path: Path, how: str, kept: list[object]) -> None:
    path, dest = tmp_path / "in.json", tmp_path / "out.parquet"
    path.write_text('{"id": 1}\n{"id": \n{"id": 3}\n')
    result = run(path, dest, "--on-error", how)
    assert result.exit_code == 0
    assert documents(dest) == kept
    assert "1 value could not be read" in result.output
    assert f"{path}, line 2, byte" in result.output


def test_invalid_input_aborts_and_leaves_no_file(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.json", tmp_path / "out.parquet"
    path.write_text('{"id": 1}\nno\n')
    result = run(path, dest)
    assert result.exit_code == 1
    assert isinstance(result.exception, pqext.VariantError)
    assert "line 2" in str(result.exception)
    assert "--on-error null or skip" in str(result.exception)
    path.write_text('{"g": "POINT (1 2)"}\n{"g": "POINT"}\n')
    result = run(path, dest, "--wkt", "g")
    assert isinstance(result.exception, pqext.GeometryError)
    assert "row 1" in str(result.exception)
    assert [one.name for one in tmp_path.iterdir()] == ["in.json"]


def test_column_of_lists_is_rejected_as_text_of_geometries(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    feature = {"type": "Feature", "geometry": None, "properties": {"a": []}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    result = run(path, dest, "--wkt", "a")
    assert isinstance(result.exception, pqext.GeometryError)
    assert "column 'a' has type list<item: null>, which cannot be cast to string" in str(result.exception)
    assert not dest.exists()


def test_text_that_is_not_a_geometry_becomes_null_or_skips_its_row(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.json", tmp_path / "out.parquet"
    path.write_text("".join(json.dumps({"g": f"POINT ({n} 0)" if n % 7 else "?"}) + "\n" for n in range(100)))
    bad = len(range(0, 100, 7))
    result = run(path, dest, "--wkt", "g", "--on-error", "null")
    assert result.exit_code == 0
    assert f"{bad} values could not be read" in result.output
    assert pq.read_table(dest)["geom"].is_valid().to_pylist() == [n % 7 > 0 for n in range(100)]
    run(path, dest, "--wkt", "g", "--on-error", "skip")
    points = shapely.from_wkb(pq.read_table(dest)["geom"].to_numpy())
    assert shapely.get_x(points).tolist() == [n for n in range(100) if n % 7]


@pytest.mark.parametrize("texts", [["{}", "no", "1"], ["no", "1"], ["no", "nor"], []])
def test_text_that_is_not_json_becomes_a_null_variant(tmp_path: Path, texts: list[str]) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text("\n".join(["doc", *texts, ""]))
    result = run(path, dest, "--json", "doc", "--on-error", "null")
    assert result.exit_code == 0, result.output
    assert pq.read_table(dest)["doc"].is_valid().to_pylist() == [text[0] != "n" for text in texts]


def test_csv_columns_are_preserved(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text('zip,lon,lat,extra\n01234,1.5,2,"{""a"": 1}"\n99999,3,4,\n')
    result = run(path, dest, "--types", "zip STRING", "--geometry", "lon,lat", "--json", "extra")
    assert result.exit_code == 0, result.output
    table = pqext.read_table(dest)
    assert table["zip"].to_pylist() == ["01234", "99999"]
    assert variant.to_json(table["extra"]).to_pylist() == ['{"a":1}', None]
    assert geo.to_wkt(table["geom"]).to_pylist() == ["POINT (1.5 2)", "POINT (3 4)"]
    other = tmp_path / "more.csv"
    other.write_text("zip,lon,lat,extra\nx,y,4,\n")
    result = run(path, other, dest, "--types", "zip STRING")
    assert result.exit_code == 1
    assert "--types" in str(result.exception)
    assert str(other) in str(result.exception)
    assert run(path, dest, "--types", "zap STRING").exit_code == 2


def test_csv_delimiter_is_the_option_or_detected(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    for given, written in ((";", ";"), (r"\t", "\t"), ("|", "|")):
        path.write_text("id;name;price\n1;a;1,5\n2;b;2,5\n".replace(";", written))
        result = run(path, dest, "--force", "--delimiter", given)
        assert result.exit_code == 0, result.output
        assert pq.read_table(dest).to_pylist() == [
            {"id": 1, "name": "a", "price": "1,5"},
            {"id": 2, "name": "b", "price": "2,5"},
        ]
        result = run(path, dest, "--types", "id INT")
        assert result.exit_code == 0
        assert f"detected delimiter '{given}'; --delimiter overrides it" in result.output
        assert pq.read_table(dest).to_pylist() == duckdb.sql(f"FROM read_csv('{path}')").to_arrow_table().to_pylist()
    path.write_text("id;name\n1;a\n2\n")
    result = run(path, dest)
    assert "has one column, 'id;name'; try --delimiter ';'" in result.output
    result = run(path, dest, "--delimiter", ";", "--on-error", "skip")
    assert result.exit_code == 0
    assert "--delimiter" not in result.output
    for wrong in ("", ";;", "\n", "é", '"'):
        assert run(path, dest, "--force", "--delimiter", wrong).exit_code == 2


def test_options_of_another_format_are_rejected(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text('id,meta\n1,"{""a"": 1}"\n')
    result = run(path, dest, "--column", "meta")
    assert result.exit_code == 2
    assert "--json meta for a column of JSON text" in " ".join(result.output.split())
    lines = tmp_path / "in.ndjson"
    lines.write_text("1\n")
    for option in ("--delimiter", "--null-values"):
        result = run(lines, dest, option, "-")
        assert result.exit_code == 2
        assert f"{option} applies to CSV only" in result.output
    for option, value in (("--numbers", "double"), ("--duplicate-keys", "last"), ("--json-layout", "lines")):
        result = run(path, dest, option, value)
        assert result.exit_code == 2
        assert f"{option} applies to JSON input only, not to csv" in result.output
        assert run(lines, tmp_path / "lines.parquet", option, value, "--force").exit_code == 0
    result = run(path, dest, "--shredding", "a INT")
    assert result.exit_code == 2
    assert "--shredding requires a VARIANT column; add a column with --json" in " ".join(result.output.split())
    assert not dest.exists()
    assert run(path, dest, "--shredding", "none").exit_code == 0
    assert run(path, dest, "--force", "--shredding", "a INT", "--json", "meta").exit_code == 0


@pytest.mark.parametrize(
    ("types", "message"),
    [("id INTT", "--types: INTT is not a type; did you mean 'INT'? The types are BIGINT, "),
     ("INT", "--types must list columns with their types, as in 'zip STRING, day DATE', not 'INT'")],
)  # fmt: skip
def test_error_for_csv_types_lists_types(tmp_path: Path, types: str, message: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id\n1\n")
    result = run(path, tmp_path / "out.parquet", "--types", types)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_csv_rows_with_too_many_values_are_skipped_on_request(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text("a,b\n1,2\n3,4,5\n6,7\n")
    assert run(path, dest).exit_code != 0
    assert run(path, dest, "--on-error", "skip").exit_code == 0
    assert pq.read_table(dest).to_pydict() == {"a": [1, 6], "b": [2, 7]}


def test_csv_threads_do_not_change_the_exception_hook() -> None:
    before, first, second = sys.unraisablehook, suppress_arrow_messages(), suppress_arrow_messages()
    first.__enter__()
    thread = threading.Thread(target=second.__enter__)
    thread.start()
    thread.join()
    first.__exit__(None, None, None)
    assert sys.unraisablehook is not before  # the other one is still reading
    second.__exit__(None, None, None)
    assert sys.unraisablehook is before


@pytest.mark.parametrize(
    ("data", "told"), [
        (b"a,b,a\n1,2,3\n", "duplicate column name 'a'"),
        (b"a,a\n1.5,2\n", "duplicate column name 'a'"),
        (b"a,b\n1,2\n\xff\n", "2 columns, got 1"),
    ],
)
def test_csv_with_duplicate_names_or_ragged_non_utf8_rows_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: bytes, told: str
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda told: print(told.exc_value, file=sys.stderr))
    (tmp_path / "in.csv").write_bytes(data)
    result = run(tmp_path / "in.csv", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert told in str(result.exception)
    assert "codec" not in result.output + capsys.readouterr().err


@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_csv_with_an_unclosed_quote_is_rejected(tmp_path: Path, mode: str) -> None:
    """Else all rows behind the quote were a part of one field."""
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    for heading in ('id,t\n1,"a', 't\n"a', '"t\nu",id\n"x\ny",q\nz,"b'):
        path.write_text(f"{heading}\n2,b\n3,c\n")
        result = run(path, dest, "--on-error", mode)
        assert result.exit_code != 0
        assert "unclosed quote" in str(result.exception)
        assert not dest.exists()
    path.write_text('"t\nu",id\n"x\ny",1\nz,"2"')
    assert run(path, dest, "--on-error", mode).exit_code == 0
    assert pq.read_table(dest).to_pydict() == {"t\nu": ["x\ny", "z"], "id": [1, 2]}


def test_csv_with_overlong_rows_is_rejected_and_the_process_exits(tmp_path: Path) -> None:
    """A thread that still read ahead while the interpreter ended aborted the process."""
    path = tmp_path / "in.csv"
    path.write_bytes(b'a,b\n1,"' + b"x\n" * (20 << 20))
    done = subprocess.run([*COMMAND, str(path), str(tmp_path / "out.parquet")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "a row exceeds" in " ".join(done.stderr.split())
    assert os.listdir(tmp_path) == ["in.csv"]


def test_csv_with_long_names_is_read(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    for start in (f"{'a' * 100_000},b\n", f'"{"a" * 100_000}",b\n', "\n" * 100_000 + "a\n"):
        path.write_text(f"{start}1{',2' if 'b' in start else ''}\n")
        assert run(path, dest, "--force").exit_code == 0
        assert [*pq.read_table(dest).to_pylist()[0].values()] == ([1, 2] if "b" in start else [1])
    path.write_text(f"{'a' * 200_000},b\n1,2\n")
    assert f"field limit (131072) [file {path}]" in str(run(path, dest).exception)
    path.write_bytes(b"\xff,b\n1,2\n")
    assert f"column names are not valid UTF-8 [file {path}]; pass --encoding" in str(run(path, dest).exception)


def test_skipped_long_csv_rows_are_reported_briefly(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text(f"a,b\n1,2,{'x' * 100_000}\n1,2\n")
    result = run(path, dest, "--on-error", "skip")
    assert result.exit_code == 0
    assert "3 values for 2 columns" in result.output
    assert len(result.output) < 1000


def test_geojson_is_converted_to_a_geometry_and_its_properties(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"name": "a"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature, feature]}))
    assert run(path, path, dest).exit_code == 0
    table = pq.read_table(dest)
    assert table["name"].to_pylist() == ["a"] * 4
    assert shapely.from_wkb(table["geometry"][0].as_py()) == shapely.Point(1, 2)


def test_parquet_is_rewritten(lines: Path, tmp_path: Path) -> None:
    first, dest = tmp_path / "first.parquet", tmp_path / "second.parquet"
    run(lines, first, "--shredding", "none")
    assert run(first, first, dest, "--shredding", "value=id INT", "--compression", "gzip").exit_code == 0
    assert documents(dest) == [json.loads(line) for line in LINES] * 2
    assert pq.read_metadata(dest).row_group(0).column(0).compression == "GZIP"
    typed = pq.read_schema(dest).field("value").type.field("typed_value").type
    assert [field.name for field in typed] == ["id"]
    assert run(dest, dest).exit_code == 0
    assert len(pq.read_table(dest, columns=[])) == 6


def test_standard_input_and_output_are_supported() -> None:
    done = subprocess.run([*COMMAND, "-", "-"], input="\n".join(LINES).encode(), capture_output=True, check=True)
    table = pqext.read_table(pa.BufferReader(done.stdout))
    assert variant.get(table["value"], "$.id", "int64").to_pylist() == [1, 2, 3]
    assert done.stderr.decode() == "3 rows\n"


def test_input_is_never_mistaken_for_the_output(lines: Path, tmp_path: Path) -> None:
    other = tmp_path / "more.ndjson"
    other.write_bytes(before := lines.read_bytes())
    result = run(lines, other)
    assert result.exit_code == 2
    assert "is not a Parquet file" in result.output
    assert other.read_bytes() == before


def test_existing_file_is_replaced_only_on_request(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run(lines, out, force=False).exit_code == 0
    before = out.read_bytes()
    refused = run(lines, out, "--shredding", "none", force=False)
    assert refused.exit_code == 2
    assert "already exists; use --force to overwrite it" in refused.output
    assert out.read_bytes() == before
    assert run(lines, out, "--shredding", "none").exit_code == 0
    assert out.read_bytes() != before
    empty = tmp_path / "empty.parquet"  # as mktemp makes one
    empty.touch()
    assert run(lines, empty, force=False).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["none.json", "out.parquet"], 1), (["in.ndjson", "no/out.parquet"], 1), (["in.ndjson", "."], 1),
        (["-", "in.ndjson", "out.parquet"], 2), (["in.ndjson"], 2), (["in.ndjson", "a.csv", "out.parquet"], 2),
        (["in.ndjson", "out.parquet", "--geometry", "lon"], 2), (["in.ndjson", "out.parquet", "--json", "x"], 2),
        (["in.ndjson", "out.parquet", "--types", "a INT"], 2), (["in.ndjson", "out.parquet", "--crs", "EPSG:1"], 2),
        (["in.ndjson", "out.parquet", "--wkt", "value=x"], 2), (["a.csv", "out.parquet", "--wkt", "nope"], 2),
    ],
)  # fmt: skip
def test_invalid_arguments_leave_no_file(
    lines: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int
) -> None:
    monkeypatch.chdir(lines.parent)
    Path("a.csv").write_text("a\n1\n")
    assert run(*arguments).exit_code == status
    assert sorted(os.listdir()) == ["a.csv", "in.ndjson"]


def test_interrupt_leaves_no_file(tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    # A shell's background jobs ignore the signal, and so does what they start.
    interruptible = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [*COMMAND[:2], interruptible + COMMAND[2], *COMMAND[3:], "-", str(dest)]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdin is not None
    try:
        for _ in range(40):  # enough for the first pieces to be read and parsed
            job.stdin.write(b'{"id": 1}\n' * 100_000)
        deadline = time.monotonic() + 300
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            job.stdin.write(b'{"id": 1}\n')
            job.stdin.flush()
        job.send_signal(signal.SIGINT)
        _, told = job.communicate(timeout=300)
    finally:
        job.kill()
    assert job.returncode == 130
    assert b"Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_inputs_and_outputs_may_be_in_object_stores(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/convert/a.ndjson", b'{"id": 1}\n{"id": 2}\n')
    store.pipe("/convert/b.ndjson.gz", gzip.compress(b'{"id": 3}\n'))
    store.pipe("/convert/t.tsv", b"a\tb\n1\tx\n")
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": 1}}
    store.pipe("/convert/g.geojson", json.dumps({"type": "FeatureCollection", "features": [point]}).encode())
    out = "memory://convert/out.parquet"
    result = run("memory://convert/a.ndjson", "memory://convert/b.ndjson.gz", out, force=False)
    assert (result.exit_code, result.output.splitlines()[0].split(", ")[0]) == (0, f"{out}: 3 rows in 1 row group")
    assert variant.to_json(pqext.read_table(out)["value"]).to_pylist() == ['{"id":1}', '{"id":2}', '{"id":3}']
    refused = run("memory://convert/a.ndjson", out, force=False)
    assert (refused.exit_code, "already exists" in refused.output) == (2, True)
    assert run("memory://convert/t.tsv", tmp_path / "t.parquet").exit_code == 0
    assert pqext.read_table(tmp_path / "t.parquet").to_pylist() == [{"a": 1, "b": "x"}]
    assert run("memory://convert/g.geojson", tmp_path / "g.parquet").exit_code == 0
    assert pqext.read_table(tmp_path / "g.parquet")["n"].to_pylist() == [1]
    assert run(out, tmp_path / "again.parquet").exit_code == 0
    asked = ["query", out, "--where", "value:$.id::int > 1", "--json", "-s", "id=value:$.id::int"]
    assert CliRunner().invoke(app, asked).output == '{"id": 2}\n{"id": 3}\n'
    written = CliRunner().invoke(app, ["query", out, "-o", "memory://convert/out.csv", "-s", "id=value:$.id::int"])
    assert (written.exit_code, store.cat("/convert/out.csv")) == (0, b"id\n1\n2\n3\n")


def test_path_with_only_null_values_returns_nulls(tmp_path: Path) -> None:
    source, dest = tmp_path / "in.ndjson", tmp_path / "out.parquet"
    source.write_text('{"lon": null, "lat": null}\n{"id": 1}\n')
    done = run(source, dest, "--geometry", "lon,lat")
    assert done.exit_code == 0
    assert "no row has a value at lon, lat" in done.output


def test_csv_coordinate_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    source, dest = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("lon,lat\n1,2\nabc,3\n")
    done = run(source, dest, "--geometry", "lon,lat")
    assert done.exit_code == 1
    assert "row 1: column 'lon' contains 'abc', which is not a double" in str(done.exception)
    assert run(source, dest, "--geometry", "lon,lat", "--on-error", "skip").exit_code == 0
    assert pqext.read_table(dest).num_rows == 1


def test_row_groups_have_the_default_size_of_the_writer() -> None:
    default = next(option.default for option in convert.convert.params if option.name == "row_group_rows")
    assert default == pqext.WriteOptions().row_group_rows


def test_missing_output_argument_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "c.csv"
    source.write_text("a\n1\n")
    result = run(source)
    assert result.exit_code == 2
    assert "OUT is missing" in result.output


@pytest.mark.parametrize(
    ("document", "advice"),
    [
        ('{"lon": 1.5, "lat": 2}', "--geometry lon,lat"),
        ('{"at": {"Longitude": 1.5, "Latitude": 2}}', "--geometry at.Longitude,at.Latitude"),
        ('{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}}', "--geojson geometry"),
        ('{"coordinates": [1, 2], "type": "Point"}', None),
        ('{"lon": 1.5}', None),
        ("[1, 2]", None),
    ],
)
def test_coordinates_in_documents_are_suggested_as_points(document: str, advice: str | None, tmp_path: Path) -> None:
    source, out = tmp_path / "in.ndjson", tmp_path / "out.parquet"
    source.write_text(f"{document}\n{document}\n")
    result = run(source, out)
    assert result.exit_code == 0
    assert ("the documents contain coordinates" in result.stderr) == (advice is not None)
    if advice is not None:
        assert f"; {advice} adds" in result.stderr
        assert "contain coordinates" not in run(source, out, *advice.split()).stderr


@pytest.mark.parametrize(("name", "format"), [("b.csv", "csv"), ("b.json.gz", "json"), ("b.GEOJSON", "geojson")])
def test_output_with_a_foreign_suffix_is_rejected(name: str, format: str, lines: Path, tmp_path: Path) -> None:
    result = run(lines, tmp_path / name)
    assert result.exit_code == 2
    assert f"has the extension of a {format} file" in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / name).exists()
    assert run(lines, tmp_path / "b").exit_code == 0  # which names no format


def test_durability_and_footer_options_apply_to_the_output(lines: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    options = ["--checkpoint", "1", "--durable", "--footer", "thrift+flatbuffers", "--row-group-rows", "2"]
    assert run(lines, dest, *options).exit_code == 0
    assert pqext.inspect(dest).footer.agrees is True
    dest.write_bytes(dest.read_bytes()[:-30])
    with pytest.warns(pqext.RecoveredFileWarning), pqext.open(dest, recover=True) as file:
        assert file.num_rows == 3
    dest.unlink()
    assert "3 rows in 1 row group" in run(lines, dest, "--append", force=False).output
    assert "3 rows added" not in run(lines, tmp_path / "other.parquet", force=False).output
    assert "3 rows added, now in 2 row groups" in run(lines, dest, "--append", force=False).output
    assert [*documents(dest)] == [json.loads(line) for line in LINES] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16", pqext.Checkpoint(row_groups=16)), ("64MB", pqext.Checkpoint(bytes=64_000_000)),
        ("1.5 KiB", pqext.Checkpoint(bytes=1536)), ("30s", pqext.Checkpoint(seconds=30)),
        ("2m", pqext.Checkpoint(seconds=120)),
    ],
)
def test_checkpoint_is_a_number_with_an_optional_unit(text: str, expected: pqext.Checkpoint) -> None:
    assert parse_checkpoint(text) == expected


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "1.5", "5q", "1e3", "0s"])
def test_invalid_checkpoints_are_rejected(text: str, lines: Path, tmp_path: Path) -> None:
    result = run(lines, tmp_path / "out.parquet", "--checkpoint", text)
    assert result.exit_code == 2
    assert "64MB" in result.output


def test_overwrite_and_append_exclude_each_other(lines: Path, tmp_path: Path) -> None:
    assert "mutually exclusive" in run(lines, tmp_path / "out.parquet", "--append").output
    assert run(lines, "-", "--append", force=False).exit_code == 2


def test_remedy_for_coordinates_out_of_range_is_not_to_skip_rows(tmp_path: Path) -> None:
    source = tmp_path / "points.csv"
    source.write_text("name,x,y\na,1,2\nb,-18,178\n")
    result = run(source, tmp_path / "p.parquet", "--geometry", "x,y")
    assert "coordinates in a geographic CRS" in str(result.exception)
    assert "--on-error" not in str(result.exception)  # which concerns values that cannot be parsed
