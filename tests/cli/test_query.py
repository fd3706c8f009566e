"""`pqext query` and `count` give the rows that DuckDB finds, in every form, whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner, Result

import pqext
from pqext import geo, variant
from pqext.cli import app
from pqext.cli.errors import describe
from pqext.dataset.notations.column_text import parse_selection
from pqext.dataset.notations.sql import from_sql

MAIN = [sys.executable, "-c", "from pqext.cli import main; main()"]
ROWS = 500


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


def test_order_by_matches_duckdb(plain: Path) -> None:
    order = "day desc, id % 7 desc, name nulls first"
    found = run("query", plain, "--order-by", order, "--select", "id", "--limit", 20, "--json")
    expected = duckdb.sql(f"SELECT id FROM '{plain}' ORDER BY day DESC, id % 7 DESC, name NULLS FIRST, id LIMIT 20")
    assert [(json.loads(line)["id"],) for line in found.output.splitlines()] == expected.fetchall()
    whole = run("query", plain, "--order-by", "half desc", "--select", "id", "--format", "csv")
    assert whole.output.splitlines() == ["id", *map(str, reversed(range(ROWS)))]
    wrong = run("query", plain, "--order-by", "tags")
    assert wrong.exit_code == 2
    assert "rows cannot be ordered by tags" in wrong.output


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("id sideways", "--order-by 'id sideways': after id write asc or desc, then nulls first or nulls last"),
        ("id desc nulls", "--order-by 'id desc nulls': after id write asc or desc"),
        ("", "--order-by '' contains an empty column; expected a list such as mag desc, id"),
        ("id,,", "--order-by 'id,,' contains an empty column"),
    ],
)
def test_order_by_error_lists_accepted_forms(plain: Path, order: str, message: str) -> None:
    wrong = run("query", plain, "--order-by", order)
    assert wrong.exit_code == 2
    assert message in wrong.output


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("query") / "plain.parquet"
    table = pa.table(
        {
            "id": range(ROWS),
            "name": [None if n % 11 == 0 else "" if n % 7 == 0 else f'n "{n}", x\n' for n in range(ROWS)],
            "half": [n / 2 for n in range(ROWS)],
            "day": [date(2024, 1, 1 + n % 28) for n in range(ROWS)],
            "tags": [[str(n), None] if n % 3 else None for n in range(ROWS)],
        }
    )
    pqext.write_table(table, path, row_group_rows=100)
    return path


@pytest.fixture
def special(tmp_path: Path) -> Path:
    events = variant.parse_json([json.dumps({"user": {"name": f"u{n}"}, "n": n}) for n in range(10)])
    points = pa.array(shapely.to_wkb(shapely.points([[n, -n] for n in range(10)])))
    schema = pa.schema([pa.field("n", pa.int32()), variant.variant_field("event"), geo.geometry_field("geom")])
    path = tmp_path / "special.parquet"
    pqext.write_table(pa.table([[*range(10)], events, points], schema=schema), path, shredding={"event": "infer"})
    return path


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ("id >= 490", "id >= 490"),
        ("half < 3 or id == 77", "half < 3 or id = 77"),
        ("name is null", "name is null"),
        ("day == date '2024-01-05' and id > 250", "day = DATE '2024-01-05' and id > 250"),
        ("id > 10000", "id > 10000"),
    ],
)
def test_rows_match_duckdb_in_every_format(plain: Path, tmp_path: Path, where: str, sql: str) -> None:
    expected = duckdb.sql(f"SELECT id, name, half, day, tags FROM '{plain}' WHERE {sql} ORDER BY id").fetchall()
    for suffix in ("parquet", "arrow", "arrows", "jsonl", "csv"):
        out = tmp_path / f"out.{suffix}"
        result = run("query", plain, "--where", where, "-o", out)
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"{out}: {len(expected)} row" in result.stderr
    written = "SELECT id, name, half, day, tags FROM read_parquet(?) ORDER BY id"
    assert duckdb.execute(written, [str(tmp_path / "out.parquet")]).fetchall() == expected
    for name, opened in (("out.arrow", pa.ipc.open_file), ("out.arrows", pa.ipc.open_stream)):
        with opened(tmp_path / name) as reader:
            assert [tuple(row.values()) for row in reader.read_all().to_pylist()] == expected
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    for row in lines:
        row["day"] = date.fromisoformat(row["day"])
    assert [tuple(row.values()) for row in lines] == expected
    found = pacsv.read_csv(
        tmp_path / "out.csv", parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""],
            column_types={"name": pa.string(), "tags": pa.string(), "id": pa.int64(), "half": pa.float64()},
        ),
    )
    assert found["id"].to_pylist() == [row[0] for row in expected]
    assert found["name"].to_pylist() == [row[1] for row in expected]
    assert [text and json.loads(text) for text in found["tags"].to_pylist()] == [row[4] for row in expected]
    assert run("count", plain, "--where", where).output == f"{len(expected)}\n"


def test_standard_output_supports_every_format(plain: Path) -> None:
    expected = pl.read_parquet(plain).filter(pl.col("id") < 30)
    arguments = ["query", str(plain), "--where", "id < 30", "--format"]
    done = subprocess.run([*MAIN, *arguments, "parquet"], capture_output=True, check=True)
    assert expected.equals(pl.from_arrow(pq.read_table(io.BytesIO(done.stdout))))
    assert done.stderr == b""
    streamed = run(*arguments, "arrow").stdout_bytes
    assert expected.equals(pl.from_arrow(pa.ipc.open_stream(streamed).read_all()))


def test_every_text_format_matches_duckdb(plain: Path, tmp_path: Path) -> None:
    source, theirs, ours = tmp_path / "types.parquet", tmp_path / "theirs.csv", tmp_path / "ours.csv"
    columns = (
        "id, 0.1::FLOAT AS f, CASE WHEN id % 3 = 0 THEN 'nan' ELSE id / 7 END::DOUBLE AS d, day, uuid() AS u, "
        "to_hours(id) AS span, half::DECIMAL(9, 2) AS dec, day + to_seconds(id) AS at, '\\xAB'::BLOB AS b"
    )
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM '{plain}') TO '{source}' (FORMAT parquet)")
        connection.execute(f"COPY (FROM '{source}') TO '{theirs}' (FORMAT csv, HEADER)")
    assert run("query", source, "-o", ours).exit_code == 0
    found, expected = (list(csv.reader(path.read_text("utf-8").splitlines())) for path in (ours, theirs))
    assert found == expected
    lines = run("query", source, "--json", "-n", 5).stdout.splitlines()
    shown = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    assert [list(row.values()) for row in shown] == expected[1:6]
    table = run("query", source, "-s", "id, f, d, day, u, dec, b", "-n", 5).stdout.splitlines()
    assert [line.split() for line in table[1:]] == [[*row[:5], row[6], row[8]] for row in expected[1:6]]


def test_variants_and_geometries_use_the_requested_format(special: Path, tmp_path: Path) -> None:
    out = tmp_path / "text.parquet"
    assert run("query", special, "-o", out, "--variants", "json", "--geometry", "wkt").exit_code == 0
    first = {"n": 0, "event": '{"n":0,"user":{"name":"u0"}}', "geom": "POINT (0 0)"}
    assert pq.read_table(out).slice(0, 1).to_pylist() == [first]
    kept = run("query", special, "-n", 1, "--json", "--variants", "binary", "--geometry", "wkb").stdout
    blobs = json.loads(kept)
    assert blobs["event"]["metadata"].startswith("\\x11")
    expected = duckdb.execute("SELECT ?::BLOB::VARCHAR", [shapely.to_wkb(shapely.Point(0, 0))]).fetchall()
    assert [(blobs["geom"],)] == expected
    assert run("head", special, "--geometry", "shapely").exit_code == 2


def test_limits_offsets_and_several_conditions_combine(plain: Path) -> None:
    found = run("query", plain, "-w", "id > 5", "-w", "id < 400", "-n", 2, "--offset", 3, "-s", "id", "--json").output
    assert found == '{"id": 9}\n{"id": 10}\n'
    assert run("count", plain, plain, "--json").output == f'{{"rows": {2 * ROWS}}}\n'
    assert run("query", plain, "-n", 0, "--format", "csv", "-s", "id,half").output == "id,half\n"


def test_values_of_variants_and_geometries_are_printed(special: Path) -> None:
    found = run("query", special, "-s", "n,who=event:$.user.name::string,geom,event:$.n", "-n", 1, "--json")
    assert json.loads(found.output) == {"n": 0, "who": "u0", "geom": "POINT (0 0)", "event.n": 0}
    assert run("query", special, "-s", "event", "-w", "event:$.n = 7", "--format", "csv").output == (
        'event\n"{""n"":7,""user"":{""name"":""u7""}}"\n'
    )
    kept = special.with_name("kept.parquet")
    assert run("query", special, "-w", "st_intersects(geom, box(3, -4, 4, -3))", "-o", kept).exit_code == 0
    again = pqext.read_table(kept)
    assert again["n"].to_pylist() == [3, 4]
    assert variant.to_json(again["event"]).to_pylist() == [
        f'{{"n":{n},"user":{{"name":"u{n}"}}}}' for n in (3, 4)
    ]
    assert geo.to_wkt(again["geom"]).to_pylist() == ["POINT (3 -3)", "POINT (4 -4)"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a", ["a"]),
        (" a , b.c ", ["a", "b.c"]),
        ('"a,b","say ""hi"""', ["a,b", 'say "hi"']),
        ('"x:y"', ["x:y"]),
    ],
)
def test_column_names_are_text(text: str, columns: list[str]) -> None:
    assert parse_selection(text) == columns


def test_selected_paths_may_contain_commas_and_types() -> None:
    assert str(parse_selection("v:a.b::int")[0]) == str(parse_selection("v:$.a.b::int")[0]) == "v[$.a.b: int32]"
    quoted = parse_selection("v:`zip code`, v:['it\\'s, so'] as s, v:a::struct<b: bigint, c: int> as t")
    assert [str(one if hasattr(one, "path") else one[1]) for one in quoted] == [
        "v[$['zip code']: variant]", "v[$['it\\'s, so']: variant]", "v[$.a: struct<b: int64, c: int32>]",
    ]  # fmt: skip
    (first, second) = parse_selection("p=v:$.a['x,y']::DECIMAL(9,2),v:$.b")
    assert first[0] == "p"
    assert str(first[1]) == "v[$.a.x,y: decimal(9,2)]"
    assert str(second) == "v[$.b: variant]"
    for wrong in ("", "a,,b", ",a"):
        with pytest.raises(ValueError, match="has an empty entry"):
            parse_selection(wrong)


def test_columns_are_computed_and_renamed_like_in_sql(special: Path) -> None:
    asked = 'n * 2 as twice, event:$.n::double / 4 as part, event:$.user.name as "the name", n AS m, n%2, k=n - 1'
    found = run("query", special, "-s", asked, "-w", "n = 7", "--json")
    row = {"twice": 14, "part": 1.75, "the name": "u7", "m": 7, "n%2": 1, "k": 6}
    assert json.loads(found.output) == row
    found = run("head", special, "-s", "*,n+1 as next", "-n", 1, "--json")
    assert [*json.loads(found.output)] == [*pqext.open(special).arrow_schema.names, "next"]
    found = run("head", special, "-s", '* EXCLUDE ("event", geom), n+1 as next', "-n", 1, "--json")
    names = [name for name in pqext.open(special).arrow_schema.names if name not in ("event", "geom")]
    assert [*json.loads(found.output)] == [*names, "next"]
    assert parse_selection("* except b, b as c", lambda: ["a", "b"])[0] == "a"
    assert parse_selection('* exclude "a b"', lambda: ["a b", "c"]) == ["c"]


def test_value_in_a_variant_is_selected_next_to_all_columns(special: Path) -> None:
    found = run("head", special, "-s", "* exclude (event, geom), event:$.n::int", "-n", 1, "--json")
    assert json.loads(found.output)["event.n"] == 0
    names = [f"c{number}" for number in range(50_000)]
    started = time.process_time()
    assert parse_selection("*", lambda: names) == names
    assert time.process_time() - started < 5  # a comparison of each with each takes half a minute


def test_names_that_look_computed_refer_to_existing_columns(tmp_path: Path) -> None:
    names = ["a-b", "price (USD)", "x as y", "n*2", "c:d", "b"]
    table = pa.table({**{name: [at] for at, name in enumerate(names)}, "s": [{"in-out": 9}]})
    pqext.write_table(table, tmp_path / "a.parquet")
    found = run("query", tmp_path / "a.parquet", "-s", ", ".join([*names, "s.in-out", '"a-b" as z']), "--json")
    assert json.loads(found.output) == {**{name: at for at, name in enumerate(names)}, "s": {"in-out": 9}, "z": 0}


@pytest.mark.parametrize(
    ("select", "told"),
    [
        ("n *", "expected a value at the end of the text"),
        ("n > 1 as big", "expected a column or an expression of columns"),
        ("5 as five", "expected a column or an expression of columns"),
        ("event:$.n * 2 as twice", "write the type of $.n, as in event:$.n::double"),
        ("max(n)", "use pqext query --limit 1 with --order-by"),
        ("count(*)", "pqext count"),
        ("uper(n)", "no function 'uper'"),
        ("*, n", "column 'n' is selected twice; exclude it from *, as in \"* exclude (n)\""),
        ("n, *", 'selected twice; exclude it from *, as in "* exclude (n)", or rename it, as in "n as other"'),
        ("n m", "no column 'n m'; to rename a column, write n as m"),
        ("n as", "write n as name"),
        ("* exclude (nn)", "no column 'nn'; did you mean 'n'?"),
        ("n::dubble", "DUBBLE is not a type; did you mean 'DOUBLE'? The types are BIGINT"),
        ("n::timestamtz", "did you mean 'TIMESTAMPTZ'? The"),
        ("event:$.n::dubble", "TIMESTAMP (without a zone), TIMESTAMPTZ (an instant)"),
        ("event::string as text", "event:$::string"),
    ],
)
def test_unknown_column_is_reported(special: Path, select: str, told: str) -> None:
    found = run("query", special, "-s", select)
    assert found.exit_code == 2
    assert told in " ".join(found.output.replace("\u2502", " ").split())


def test_explain_prints_the_plan_and_reads_no_data(plain: Path, tmp_path: Path) -> None:
    found = run("query", plain, "--where", "id > 450", "--explain", "-o", tmp_path / "not.parquet")
    assert found.exit_code == 0
    assert "reads 1 of 5 row groups, 100 of 500 rows" in found.output
    assert not (tmp_path / "not.parquet").exists()
    told = json.loads(run("query", plain, "--where", "id > 450", "--explain", "--json").output)
    assert told["skips"]["statistics"]["row_groups"] == 4
    metrics = run("query", plain, "--where", "id > 450", "--json", "--metrics")
    assert "<pqext.Metrics files: 1; row groups: 1; requests: " in metrics.stderr


def test_table_indicates_further_rows(plain: Path) -> None:
    found = run("query", plain, "-s", "id")
    assert len(found.stdout.splitlines()) == 101
    assert "and more rows: --limit prints more than 100" in found.stderr
    assert "more rows" not in run("query", plain, "-s", "id", "-w", "id < 100").stderr
    assert len(run("query", plain, "-s", "id", "-n", 300).stdout.splitlines()) == 301


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--where", "id >"], "cannot be parsed"),
        (["--where", "nope > 1"], "nope"),
        (["--select", "nope"], "nope"),
        (["--select", ""], "has an empty entry"),
        (["-o", "out.txt"], "has no known file extension"),
        (["-o", "https://me:word@host/x?sig=1"], "https://host/x"),
        (["-o", "out.csv", "--format", "table"], "prints at most"),
        (["-n", "20000"], "at most 10,000 rows"),
        (["--json", "--format", "csv"], "mutually exclusive"),
        (["--json", "-o", "rows.csv"], "contradicts the extension .csv of the output; omit --json"),
        (["--limit", "-1"], "Invalid value for"),
        (["--format", "xml"], "xml"),
    ],
)
def test_invalid_arguments_are_named_and_leave_no_file(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = run("query", plain, *arguments)
    assert found.exit_code == 2
    assert message in found.output
    assert "Traceback" not in found.output
    assert os.listdir() == []


def test_output_appears_atomically_and_replaces_no_file_by_default(plain: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    data = bytearray(plain.read_bytes())
    with pqext.open(plain) as file:
        start, length = file.row_groups[4].chunk("id").byte_range
    data[start : start + length] = b"\xff" * length
    damaged.write_bytes(data)
    for suffix in ("parquet", "arrow", "csv", "json"):
        out = tmp_path / f"out.{suffix}"
        assert run("query", damaged, "-o", out).exit_code == 1
        assert not out.exists()
    done = subprocess.run([*MAIN, "query", str(damaged), "-o", str(out)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("pqext: ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == ["damaged.parquet"]
    out = tmp_path / "out.csv"
    out.write_text("mine")
    refused = run("query", plain, "-o", out)
    assert (refused.exit_code, out.read_text()) == (2, "mine")
    assert "already exists; use --force to overwrite it" in refused.output
    assert run("query", plain, "-o", out, "--force", "-s", "id", "-n", 1).exit_code == 0
    assert out.read_text() == "id\n0\n"


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_closed_pipe_ends_the_query_silently(tmp_path: Path, form: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": [os.urandom(500).hex() for _ in range(5000)]}), path, row_group_size=500)
    with subprocess.Popen(
        [*MAIN, "query", str(path), "--format", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        assert job.stdout.read(10)
        job.stdout.close()
        assert job.stderr.read() == b""
    assert job.returncode == 1


def test_control_characters_in_values_and_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a\x1b[31m": ["\x1b]0;gone\x07", "x" * 100_000]}), path)
    for form in ("table", "json"):
        ours, theirs = pty.openpty()
        command = [*MAIN, "query", str(path), "--format", form, "-n", "1"]
        subprocess.run(command, stdout=theirs, stderr=theirs, check=True)
        os.close(theirs)
        shown = os.read(ours, 100_000)
        os.close(ours)
        assert b"gone" in shown
        assert b"\x1b]0" not in shown
        assert b"\x1b[31m" not in shown
    assert len(run("query", path).stdout) < 2000
    assert run("query", path, "--format", "csv").stdout.splitlines()[0] == "a\x1b[31m"  # exact where it is piped


def test_binary_formats_are_rejected_on_a_terminal(plain: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*MAIN, "query", str(plain), "--format", "parquet"], stdout=theirs, stderr=subprocess.PIPE
    ) as job:
        assert job.stderr is not None
        assert b"cannot be shown on a terminal" in job.stderr.read()
    os.close(theirs)
    os.close(ours)
    assert job.returncode == 1


@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema([("text", pa.string())])) as writer:
        for n in range(60):
            writer.write_table(pa.table({"text": [f"{n}" * 500] * 2000}))
    code = (
        "import resource, sys; sys.argv = ['pqext', *sys.argv[1:]]\nfrom pqext.cli import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    peaks = []
    for limit in ("2000", "120000"):
        done = subprocess.run(
            [sys.executable, "-c", code, "query", str(path), "--format", "json", "-n", limit],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True,
        )
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] - peaks[0] < 60_000  # KB, of 120 MB of text


def test_commands_do_not_import_an_installed_pandas(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "at": geo.from_points([1, 2], [3, 4])})
    pqext.write_table(table, tmp_path / "a.parquet", geometry={"at": "OGC:CRS84"})
    pytest.importorskip("pandas")
    told = "import atexit, sys; atexit.register(lambda: print('pandas' in sys.modules)); " + MAIN[-1]
    where = "id > 1 and st_intersects(at, box(0, 0, 9, 9))"
    found = subprocess.run(
        [sys.executable, "-c", told, "query", tmp_path / "a.parquet", "--where", where, "--select", "id"],
        capture_output=True, text=True, check=True,
    )
    assert found.stdout.split() == ["id", "2", "False"]


@pytest.mark.parametrize("name", ["timestamp", "TIMESTAMP", "timestamptz", "date", "double", "string"])
def test_select_accepts_the_types_of_filters(name: str) -> None:
    (field,) = parse_selection(f"e:a.b::{name}")
    condition = from_sql(f"e:a.b::{name} is null")
    assert str(field) == str(condition).removesuffix(" is null")


def test_instants_are_selected_with_zone_and_timestamps_without(tmp_path: Path) -> None:
    events = variant.parse_json(['{"at": "2026-05-01T02:00:00+02:00"}'])
    pqext.write_table(pa.table({"e": events}), tmp_path / "a.parquet")
    asked = "a=e:at::timestamptz,b=e:at::timestamp"
    where = "e:at::timestamp >= timestamp '2026-05-01 00:00:00'"
    result = CliRunner().invoke(app, ["query", str(tmp_path / "a.parquet"), "-w", where, "-s", asked, "--json"])
    assert json.loads(result.stdout) == {"a": "2026-05-01 00:00:00+00", "b": "2026-05-01 02:00:00"}


def test_files_with_different_schemas_are_read_as_one_table(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pqext.write_table(pa.table({"a": [2], "b": ["x"]}), tmp_path / "2.parquet")
    assert "--union reads files" in describe(run("query", tmp_path).exception or Exception())  # type: ignore[arg-type]
    found = run("query", tmp_path, "--union", "--json")
    assert [json.loads(line) for line in found.output.splitlines()] == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert run("head", tmp_path, "--union", "--format", "csv").output.splitlines()[0] == "a,b"
    assert run("count", tmp_path, "--union", "--where", "b = 'x'").output.strip() == "1"


def test_long_whitespace_in_a_selection_is_parsed_in_linear_time() -> None:
    began = time.process_time()
    assert len(parse_selection(f"a{' ' * 100_000}= ")) == 1
    assert parse_selection(f"a{' ' * 100_000}= b")[0][0] == "a"
    assert time.process_time() - began < 5


def test_partition_types_option_declares_the_folder_types(tmp_path: Path) -> None:
    (tmp_path / "zip=01234" / "day=2024-01-31").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "zip=01234" / "day=2024-01-31" / "a.parquet")
    inferred = run("query", tmp_path, "--format", "json")
    assert json.loads(inferred.stdout) == {"n": 1, "zip": "01234", "day": "2024-01-31"}
    stated = run("query", tmp_path, "--format", "json", "--partition-types", "zip=int,day=string")
    assert json.loads(stated.stdout) == {"n": 1, "zip": 1234, "day": "2024-01-31"}
    decimal = run("count", tmp_path, "--where", "zip > 1233.5", "--partition-types", "zip=DECIMAL(9,2),day=string")
    assert decimal.stdout == "1\n"
    assert "partition_types={'zip': 'int64'} to read numbers" in run("count", tmp_path, "--where", "zip = 1234").output
    assert "must be NAME=TYPE pairs such as" in run("count", tmp_path, "--partition-types", "zip").output


def test_where_refers_to_columns_of_the_files_like_in_sql(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"x": [1, 60, 95, 200]}), tmp_path / "t.parquet")
    expected = duckdb.sql(f"SELECT x * 2 AS x FROM '{tmp_path / 't.parquet'}' WHERE x > 90").fetchall()
    result = run("query", tmp_path / "t.parquet", "--select", "x * 2 as x", "--where", "x > 90", "--json")
    assert [(row["x"],) for row in map(json.loads, result.output.splitlines())] == expected
