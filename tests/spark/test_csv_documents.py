"""JSON documents in a column of CSV files: what Python's csv module reads is what becomes rows."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import variant
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.spark import ingest_json
from pqext.spark.json import csv_documents
from pqext.spark.json.csv_documents import CsvFormat, read_csv_rows

texts = st.text(st.sampled_from('a,"\n;é'), max_size=8)
rows = st.lists(st.tuples(st.integers(-9, 9), texts, texts), max_size=40)


def written(path: Path, header: list[str] | None, content: list[Any], delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows([*([header] if header else []), *content])


@pytest.mark.spec("spark.ingest.csv")
@given(content=rows, block=st.integers(100, 300), has_header=st.booleans())
def test_documents_and_other_columns_match_another_reader(
    tmp_path_factory: pytest.TempPathFactory, content: list[Any], block: int, has_header: bool
) -> None:
    path, names = tmp_path_factory.mktemp("csv") / "rows.csv", ["id", "doc", "word"]
    written(path, names if has_header else None, content, ";")
    chosen = {"document": "doc", "columns": {"word": "string", "id": "bigint"}, "delimiter": ";"}
    form = CsvFormat.parse(chosen if has_header else {**chosen, "header": names}, "value")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_documents, "_BLOCK_BYTES", block)
        found = [*read_csv_rows(str(path), form)]
    documents = [one.decode() for piece in found for one in piece.documents.to_pylist()]
    beside = [tuple(one.values()) for piece in found for one in piece.columns.to_pylist()]
    assert documents == [document for _, document, _ in content]
    assert beside == [(word or None, number) for number, _, word in content]
    firsts = [piece.first for piece in found]
    assert firsts == [
        1 + has_header + sum(len(piece.documents) for piece in found[:at]) for at in range(len(found))
    ]


def test_invalid_csv_is_reported_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"

    def read(text: str, **choice: Any) -> list[Any]:
        path.write_text(text)
        return [*read_csv_rows(str(path), CsvFormat.parse(choice, "doc"))]

    assert read("") == []
    with pytest.raises(CorruptFileError, match=r"row 3, column 'id': CSV conversion error to int32.*rows\.csv"):
        read("id,doc\n1,1\nx,2\n", columns={"id": "int"})
    with pytest.raises(CorruptFileError, match="Column 'doc' in include_columns does not exist"):
        read("id,text\n1,1\n")
    with pytest.raises(CorruptFileError, match="Row #2: Expected 2 columns, got 3"):
        read("id,doc\n1,1,1\n")
    for heading in ('doc,"id",doc', "id,doc,id"):
        with pytest.raises(CorruptFileError, match=r"two columns have the name '(doc|id)'.*rows\.csv"):
            read(f"{heading}\n1,1,1\n", columns={"id": "int"})
    long = ",".join(f"column{number}" for number in range(10_000))
    with pytest.raises(CorruptFileError, match="two columns have the name 'doc'"):
        read(f"doc,{long},doc\n{',' * 10_001}\n")
    assert len(read("x,doc,x\n1,1,1\n")) == 1
    with pytest.raises(CorruptFileError, match="two columns have the name 'doc'"):
        read(f"{'x' * 70_000},doc,doc\n1,1,1\n")
    with pytest.raises(LimitError, match=r"column names cannot be read.*rows\.csv"):
        read(f"{'x' * 200_000},doc\n1,1\n")
    with pytest.raises(ValueError, match="header has two columns called 'a'"):
        CsvFormat.parse({"header": ["a", "doc", "a"]}, "doc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_documents, "_BLOCK_BYTES", 50)
        with pytest.raises(LimitError, match="is longer than 50 bytes"):
            read(f"id,doc\n1,{'x' * 500}\n")
    for wrong, message in (
        ({"delimeter": ";"}, "did you mean 'delimiter'"), ({"quote": "''"}, "quote must be one ASCII character"),
        ({"delimiter": "\n"}, "except line breaks"), ({"escape": "\0"}, "except line breaks"),
        ({"quote": ","}, "the same"),
        ({"columns": {"a": "array<int>"}}, "CSV fields are not nested"),
        ({"encoding": "latin-9000"}, "is unknown"), ({"skip_rows": -1}, "an integer of at least 0, not -1"),
        ({"comment": "//"}, "comment must be one ASCII character"),
    ):
        with pytest.raises(ValueError, match=message):
            CsvFormat.parse(wrong, "doc")
    for wrong, message in (
        ({"columns": ["a"]}, "columns must map names to types"),
        ({"columns": {5: "int"}}, "the name of a column must be a string, not 5"),
        ({"header": []}, "must be a list"), ({"header": "doc"}, "must be a list"), ({"header": ["a", 5]}, "not 5"),
        ({"null_words": "NA"}, "null_words must be a list of strings"), ({"null_words": [None]}, "must be a list"),
    ):
        with pytest.raises(TypeError, match=message):
            CsvFormat.parse(wrong, "doc")


def test_empty_fields_and_null_words_are_null_like_in_convert(tmp_path: Path) -> None:
    """The oracle is the command: one file, two roads."""
    from click.testing import CliRunner

    from pqext.cli.app import app

    path, dest = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    path.write_text('iso,n,doc\nNA,1,1\nnull,,2\n,2,3\n"",3,4\nnan,4,5\n-,-,6\n"-",5,7\n')

    def both(words: list[str]) -> list[Any]:
        chosen = {"columns": {"iso": "string", "n": "double"}, "null_words": words}
        chunks = read_csv_rows(str(path), CsvFormat.parse(chosen, "doc"))
        beside = [row for chunk in chunks for row in chunk.columns.to_pylist()]
        options = [
            "--types",
            "iso STRING, n DOUBLE",
            "--force",
            *(part for one in words for part in ("--null-values", one)),
        ]
        result = CliRunner().invoke(app, ["convert", str(path), str(dest), *options])
        assert result.exit_code == 0, result.output
        assert pqext.read_table(dest, ["iso", "n"]).to_pylist() == beside
        return [tuple(row.values()) for row in beside]

    start = [("NA", 1), ("null", None), (None, 2), ("", 3), ("nan", 4)]
    assert both(["-"]) == [*start, (None, None), ("-", 5)]
    assert both(["-", "NA"]) == [(None, 1), *start[1:], (None, None), ("-", 5)]
    with pytest.raises(CorruptFileError, match=r"invalid value '-'.*; pass null fields as csv="):
        [*read_csv_rows(str(path), CsvFormat.parse({"columns": {"n": "double"}}, "doc"))]
    result = CliRunner().invoke(app, ["convert", str(path), str(dest), "--types", "n DOUBLE", "--force"])
    assert result.exit_code == 1
    assert "row 7, column 'n': CSV conversion error to double: invalid value '-'" in str(result.exception)
    assert "--null-values" in str(result.exception)


def test_other_encodings_and_leading_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("by hand\n# notes\nid,doc,name\n1,{},café\n#,2\n2,{},b\n".encode("latin-1"))
    chosen = {"columns": {"id": "bigint", "name": "string"}, "skip_rows": 1, "comment": "#"}
    [piece] = read_csv_rows(str(path), CsvFormat.parse({**chosen, "encoding": "latin-1"}, "doc"))
    with path.open(encoding="latin-1", newline="") as file:
        next(file)
        expected = [*csv.DictReader(line for line in file if not line.startswith("#"))]
    assert piece.columns.to_pylist() == [{"id": int(row["id"]), "name": row["name"]} for row in expected]
    assert piece.first == 3
    with pytest.raises(CorruptFileError, match=r"row 3, column 'name': .*csv=\{\"encoding\": ...\}"):
        [*read_csv_rows(str(path), CsvFormat.parse(chosen, "doc"))]


def test_document_equal_to_a_null_word_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('doc\nnull\n"null"\n-\n')
    [piece] = read_csv_rows(str(path), CsvFormat.parse({"null_words": ["-"]}, "doc"))
    assert piece.documents.to_pylist() == [b"null", b"null", b""]


def test_row_with_invalid_utf8_and_missing_fields_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda told: print(told.exc_value, file=sys.stderr))
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,doc\n1,1\n\xff\n2,2\n")
    with pytest.raises(CorruptFileError, match=r"Expected 2 columns, got 1.*rows\.csv"):
        [*read_csv_rows(str(path), CsvFormat.parse({}, "doc"))]
    assert capsys.readouterr().err == ""


@pytest.mark.spec("spark.ingest.csv")
@pytest.mark.parametrize("block", [30, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_unclosed_quote_does_not_swallow_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, block: int
) -> None:
    path = tmp_path / "rows.csv"
    monkeypatch.setattr(csv_documents, "_BLOCK_BYTES", block)

    def read(text: str, **choice: Any) -> list[Any]:
        path.write_bytes(text.encode())
        pieces = read_csv_rows(str(path), CsvFormat.parse(choice, "doc"))
        return [value for piece in pieces for value in piece.documents.to_pylist()]

    for start, rest in (("doc,id\n", ",1"), ("doc\n", ""), ('\ufeff"doc"\n', "")):
        for last in ("1", '"1"', '"a ""b"" c"', '"x\ny"'):
            assert len(read(f"{start}0{rest}\n{last}{rest}{end}")) == 2
    assert read("5\n6" + end, header=["doc"]) == [b"5", b"6"]
    assert read("doc-id-x\n1-2-3" + end, delimiter="-") == [b"1"]
    assert read("5,1\n6,2" + end, header=["doc", "id"]) == [b"5", b"6"]
    for text in ('doc,id\n1,"2\n3,4', 'doc,id\n1,2\n1,"', 'doc,id\n1,"2""\n3,4', 'doc\n1\n"2\n3', 'doc\n"1""'):
        with pytest.raises((CorruptFileError, LimitError), match=r"is not closed|got 1|longer than 30"):
            read(text + end)


@pytest.mark.spec("spark.ingest.csv")
def test_csv_is_ingested_with_all_columns(spark: Any, tmp_path: Path) -> None:
    content = [[n, json.dumps({"n": n, "text": 'a "b"\nc'}), f"2024-05-0{1 + n % 3}"] for n in range(50)]
    content[7][1] = "{"
    written(tmp_path / "rows.csv", ["id", "doc", "day"], content)
    packed = tmp_path / "in" / "rows.csv.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((tmp_path / "rows.csv").read_bytes()))
    out = str(tmp_path / "out")
    done = ingest_json(
        spark, str(packed.parent), out, "n INT", format="csv", column="event", on_error="null", error_column="why",
        csv={"document": "doc", "columns": {"id": "int", "day": "date"}}, bad_lines_file=True,
    )
    assert (done.rows, done.bad_lines, done.schema) == (50, 1, "STRUCT<n: INT>")
    table = pqext.read_table(out)
    assert table.schema.names == ["event", "id", "day", "why"]
    assert table.schema.field("day").type == pa.date32()
    found = zip(table["id"].to_pylist(), variant.to_python(table["event"]), map(str, table["day"]), strict=True)
    assert sorted(found, key=lambda one: one[0]) == [
        (n, None if n == 7 else json.loads(doc), day) for n, doc, day in content
    ]
    [why] = [one for one in table["why"].to_pylist() if one is not None]
    assert why.endswith("rows.csv.gz, row 9, byte 1: the text ends within a value")
    with open(str(done.bad_lines_file)) as side:
        assert json.loads(side.read())["raw"] == "{"
    with pytest.raises(ValueError, match='requires format="csv"'):
        ingest_json(spark, str(packed), out, csv={"document": "doc"})
