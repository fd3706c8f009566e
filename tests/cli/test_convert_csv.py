"""`pqext convert` of CSV: values are exact, text has its encoding, and errors name row and column."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from pqext.cli import app, csv_input
from pqext.core.io.sources import csv_text

BIG = 12345678901234567890


def convert(path: Path, *options: str, input: bytes | None = None) -> Result:
    dest = path.parent / "out.parquet"
    return CliRunner().invoke(app, ["convert", str(path), str(dest), "--force", *options], input=input)


def converted(path: Path, *options: str) -> pa.Table:
    result = convert(path, *options)
    assert result.exit_code == 0, (result.output, result.exception)
    return pq.read_table(path.parent / "out.parquet")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.csv"


def test_integers_beyond_int64_are_exact(path: Path) -> None:
    path.write_text(f"id,n\n{BIG},1\n{BIG + 1},2\n,{-(1 << 63)}\n")
    table = converted(path)
    assert table["id"].type == pa.decimal128(38, 0)
    assert table["n"].type == pa.int64()
    expected = duckdb.sql(f"SELECT id::VARCHAR, n FROM '{path}'").fetchall()
    assert [(i and str(i), n) for i, n in zip(*table.to_pydict().values(), strict=True)] == expected
    assert table["id"].to_pylist() == [i and Decimal(i) for i in pl.read_csv(path)["id"].to_list()]


@pytest.mark.parametrize("where", ["later block", "second file"])
def test_integers_beyond_int64_after_the_first_block_are_exact(
    path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_input, "BLOCK_BYTES", 64)
    first, rest = "id,n\n" + "".join(f"{n},{-n}\n" for n in range(20)), f"{BIG},-{BIG}\n{BIG + 1},-1\n"
    dest = path.parent / "out.parquet"
    if where == "later block":
        path.write_text(first + rest)
        result = convert(path)
    else:
        path.write_text(first)
        (path.parent / "more.csv").write_text(f"id,n\n{rest}")
        result = CliRunner().invoke(app, ["convert", str(path), str(path.parent / "more.csv"), str(dest)])
    assert result.exit_code == 0, result.exception
    expected = duckdb.sql(f"SELECT id::VARCHAR i, n::VARCHAR n FROM read_csv('{path.parent}/*.csv') ORDER BY i, n")
    read = duckdb.sql(f"SELECT id::VARCHAR i, n::VARCHAR n FROM '{dest}' ORDER BY i, n")
    assert read.fetchall() == expected.fetchall()
    assert {p.name for p in path.parent.iterdir()} <= {"in.csv", "more.csv", "out.parquet"}


@pytest.mark.parametrize(
    ("value", "type"), [(BIG, "DECIMAL(38,0)"), pytest.param(10**40, "STRING", marks=pytest.mark.slow)]
)
def test_pipe_that_cannot_be_reread_names_the_type_option(path: Path, value: int, type: str) -> None:
    text = "id\n" + "123456789012345\n" * (csv_input.BLOCK_BYTES // 8) + f"{value}\n"
    command = [sys.executable, "-m", "pqext", "convert", "-", str(path.parent / "out.parquet"), "--input-format", "csv"]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    assert done.returncode == 1
    assert f"--types, for example {type}" in " ".join(done.stderr.decode().split())
    assert not list(path.parent.iterdir())
    done = subprocess.run([*command, "--types", f"id {type}"], input=text.encode(), capture_output=True)
    assert done.returncode == 0
    assert int(pq.read_table(path.parent / "out.parquet")["id"][-1].as_py()) == value


@pytest.mark.parametrize(("name", "text", "is_advised"), [
    ("in.txt", "id,n\n1,2\n", True), ("in", "name,n\n", True), ("in.ndjson", "id,n\n", False),
])  # fmt: skip
def test_error_for_invalid_json_names_the_csv_option(path: Path, name: str, text: str, is_advised: bool) -> None:
    (path.parent / name).write_text(text)
    result = convert(path.parent / name)
    assert result.exit_code == 1
    assert ("--input-format csv reads CSV" in str(result.exception)) is is_advised


@pytest.mark.parametrize("digits", ["9" * 40, str((1 << 128) + 5), str((1 << 256) + 5)])
@pytest.mark.parametrize("block", [csv_input.BLOCK_BYTES, 128])
def test_integers_of_more_than_38_digits_are_text(
    path: Path, digits: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_input, "BLOCK_BYTES", block)
    values = [str(BIG), *map(str, range(30)), digits]
    path.write_text("id\n" + "".join(f"{value}\n" for value in values))
    assert converted(path)["id"].to_pylist() == values
    assert "column 'id' has integers of more than 38 digits" in convert(path).output


@given(st.lists(st.one_of(st.integers(), st.integers(-(1 << 70), 1 << 70)), min_size=1), st.integers(16, 200))
def test_integers_of_any_size_match_the_text(values: list[int], block: int) -> None:
    before, csv_input.BLOCK_BYTES = csv_input.BLOCK_BYTES, max(block, max(len(str(value)) for value in values) + 2)
    try:
        form, losses = csv_input.CsvOptions(), csv_input.Losses()
        source = io.BytesIO("".join(["id\n", *(f"{value}\n" for value in values)]).encode())
        while True:
            try:
                batches = csv_input.read_csv([source], form, "stop", losses).batches
                column = [v for b in batches for v in b[0].to_pylist()]
                break
            except csv_input.TypeTooNarrowError as error:
                form = csv_input.widen_types(form, error, [source])
    finally:
        csv_input.BLOCK_BYTES = before
    assert list(map(int, column)) == values


def test_wrong_text_encoding_is_an_error_with_row_and_column(path: Path) -> None:
    path.write_bytes("name,n\nabc,1\ncafé,2\n".encode("latin-1"))
    result = convert(path)
    assert result.exit_code == 1
    assert "row 3, column 'name'" in str(result.exception)
    assert "--encoding" in str(result.exception)
    assert "Usage" not in result.output
    assert converted(path, "--types", "name BINARY")["name"].to_pylist() == [b"abc", b"caf\xe9"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "cp1252", "shift_jis"])
def test_text_is_read_in_the_specified_encoding(path: Path, encoding: str) -> None:
    word = "日本" if encoding == "shift_jis" else "café"
    path.write_bytes(f"name,n\nabc,1\n{word},2\n{word},3".encode(encoding))
    table = converted(path, "--encoding", encoding)
    assert table.to_pydict() == {"name": ["abc", word, word], "n": [1, 2, 3]}
    if encoding == "utf-16":
        assert "--encoding utf-16" in str(convert(path).exception)


def test_unknown_or_wrong_encoding_is_an_error(path: Path) -> None:
    path.write_bytes(b"a\n\x81\n")
    assert convert(path, "--encoding", "latin-9000").exit_code == 2
    wrong = convert(path, "--encoding", "cp1252")
    assert wrong.exit_code == 1
    assert "the text is not valid cp1252" in str(wrong.exception)
    assert "offset 2" in str(wrong.exception)


def test_errors_name_row_and_column(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_input, "BLOCK_BYTES", 64)
    path.write_text("skipped\nid,price\n" + "1,2\n" * 30 + "1,abc\n")
    result = convert(path, "--skip-rows", "1")
    assert result.exit_code == 1
    assert "row 33, column 'price'" in str(result.exception)  # as editors count lines
    assert "'abc'" in str(result.exception)
    path.write_text("id,day\n1,2024-01-01\n2,soon\n")
    result = convert(path, "--types", "day DATE")
    assert "row 3, column 'day'" in str(result.exception)


def test_headerless_files_have_numbered_or_specified_names(path: Path) -> None:
    path.write_text("1,a\n2,b\n")
    assert converted(path, "--no-header").to_pydict() == {"f0": [1, 2], "f1": ["a", "b"]}
    assert converted(path, "--names", "id, name").to_pydict() == {"id": [1, 2], "name": ["a", "b"]}
    assert converted(path, "--names", "id,name", "--skip-rows", "1").to_pydict() == {"id": [2], "name": ["b"]}
    assert converted(path, "--names", "id,x", "--types", "id STRING")["id"].to_pylist() == ["1", "2"]
    for wrong in ("a,,b", "a,a"):
        assert convert(path, "--names", wrong).exit_code == 2
    assert convert(path, "--names", "a").exit_code == 1


def test_comments_and_leading_lines_are_skipped_like_in_duckdb(path: Path) -> None:
    path.write_text('made by hand\n# one\na,b\n1,"x\n# kept\n"\n#,2\n3,"#"\n# end')
    table = converted(path, "--skip-rows", "1", "--comment", "#")
    expected = duckdb.sql(f"FROM read_csv('{path}', skip=1, comment='#', header=true, delim=',')").fetchall()
    assert list(zip(*table.to_pydict().values(), strict=True)) == expected == [(1, "x\n# kept\n"), (3, "#")]


_FIELDS = st.sampled_from(["1", 'a"b', "# x\n# y", "#", "x\n", "", "é", ","])


@given(
    st.lists(st.one_of(st.sampled_from(["#", '# "', "#a,b"]), st.tuples(_FIELDS, _FIELDS))),
    st.integers(1, 60), st.integers(1, 60), st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_comments_are_recognised_across_block_boundaries(lines: list[object], cut: int, size: int, end: str) -> None:
    rows = [line if isinstance(line, str) else ",".join(map(_quoted, line)) for line in lines]  # type: ignore[call-overload]
    kept = [row for row, line in zip(rows, lines, strict=True) if not isinstance(line, str)]
    before, csv_text._CHUNK_BYTES = csv_text._CHUNK_BYTES, cut
    try:
        text = csv_text.CsvText(io.BytesIO("".join(row + end for row in rows).encode()), comment="#")
        read = b"".join(iter(lambda: text.read(size), b""))
    finally:
        csv_text._CHUNK_BYTES = before
    assert read.decode() == "".join(row + end for row in kept)


def _quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


def test_numbers_and_dates_may_use_local_formats(path: Path) -> None:
    path.write_text("price;day;at;iso\n1,5;31.12.2024;31.12.2024 07:30;2024-12-31\n2;01.02.2024;01.02.2024 00:00;\n")
    table = converted(path, "--decimal-comma", "--date-format", "%d.%m.%Y", "--date-format", "%d.%m.%Y %H:%M")
    assert table.to_pylist() == [
        {"price": 1.5, "day": date(2024, 12, 31), "at": datetime(2024, 12, 31, 7, 30), "iso": date(2024, 12, 31)},
        {"price": 2, "day": date(2024, 2, 1), "at": datetime(2024, 2, 1), "iso": None},
    ]
    expected = duckdb.sql(f'''SELECT price, day, "at" FROM read_csv('{path}', delim=';', decimal_separator=',',
        dateformat='%d.%m.%Y', timestampformat='%d.%m.%Y %H:%M')''')
    assert table.select(["price", "day", "at"]).to_pylist() == expected.to_arrow_table().to_pylist()
    path.write_text("day\n31.12.2024\n2024-12-31T05:00:00\n")
    typed = ["--types", "day DATE", "--date-format", "%d.%m.%Y"]
    assert "row 3, column 'day': 2024-12-31 05:00:00 is not a date" in str(convert(path, *typed).exception)


def test_csv_options_are_rejected_for_other_input(path: Path) -> None:
    path = path.with_suffix(".ndjson")
    path.write_text("1\n")
    for option in (["--encoding", "latin-1"], ["--no-header"], ["--skip-rows", "1"], ["--decimal-comma"]):
        result = convert(path, *option)
        assert result.exit_code == 2
        assert f"{option[0]} applies to CSV only; pass --input-format csv" in " ".join(result.output.split())
    assert convert(path, "--input-format", "csv", "--decimal-comma", "--delimiter", ",").exit_code == 2
    assert convert(path, "--input-format", "csv", "--comment", "//").exit_code == 2


@pytest.mark.parametrize(
    "values",
    [["01234", "1"], ["0", "1"], ["00", "1"], ["0.5", "1.5"], ["007.5", "1"], ["1", "2", "03"], ["1", "", "007"],
     ["10", "100"], ["1.05", "2.005"]],
    ids=" ".join,
)  # fmt: skip
def test_leading_zeros_make_text_like_in_duckdb(tmp_path: Path, values: list[str]) -> None:
    path = tmp_path / "in.csv"
    path.write_text("zip,n\n" + "".join(f"{value},0\n" for value in values))
    expected = duckdb.sql(f"from '{path}'").to_arrow_table()
    assert converted(path).to_pydict() == expected.to_pydict()
    stated = converted(path, "--types", "zip DOUBLE")["zip"]
    assert stated.to_pylist() == [float(one) if one else None for one in values]


@pytest.mark.parametrize("text", ["# made by hand\na,b\n1,2\n", "a,b\n1,2\n# more\n3,4\n", "a,b\n1,2\n% more\n"])
def test_errors_about_comment_like_rows_name_the_option(tmp_path: Path, text: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text)
    failed = convert(path)
    mark = "%" if "%" in text else "#"
    assert f"pass --comment '{mark}'" in str(failed.exception)
    assert convert(path, "--comment", mark).exit_code == 0
