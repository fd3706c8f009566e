"""JSON that is not one document a line: documents over many lines, one after another, or the elements of one array."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import CorruptFileError, VariantError, VariantLimitError
from pqext.variant.json.documents import Splitter, detect_layout
from reference.variant_strategies import fewer

_TEXT = st.text(st.sampled_from(list('a"\\{}[],:\n é')), max_size=6)
_JSON = st.recursive(
    st.one_of(st.none(), st.integers(0, 99), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=8,
)
_CONTAINERS = st.one_of(st.lists(_JSON, max_size=3), st.dictionaries(_TEXT, _JSON, max_size=3))


def read(content: bytes, **options: Any) -> list[Any]:
    return variant.to_python(variant.read_json(io.BytesIO(content), threads=1, **options).read_all()["value"])


@given(st.lists(_CONTAINERS, min_size=1, max_size=4), st.sampled_from([None, 0, 2]), st.integers(1, 30), st.booleans())
@fewer
def test_consecutive_documents_are_read_for_any_chunk_size(
    documents: list[Any], indent: int | None, batch_bytes: int, spaced: bool
) -> None:
    content = ("\n" if spaced else "").join(json.dumps(doc, indent=indent, ensure_ascii=False) for doc in documents)
    assert read(content.encode(), format="documents", batch_bytes=batch_bytes) == documents
    bare = read(
        content.encode(), format="documents", batch_bytes=batch_bytes, shredding="a INT, b ARRAY<STRING>",
        column="value",
    )
    assert bare == documents


@given(st.lists(_JSON, max_size=4), st.sampled_from([None, 0, 2]), st.integers(1, 30))
@fewer
def test_array_elements_are_documents(documents: list[Any], indent: int | None, batch_bytes: int) -> None:
    content = b" \n" + json.dumps(documents, indent=indent).encode() + b"\n "
    assert read(content, format="array", batch_bytes=batch_bytes) == documents
    assert read(content, batch_bytes=batch_bytes) == documents


@given(st.lists(_CONTAINERS, min_size=2, max_size=4).filter(lambda some: some[0]), st.sampled_from([None, 2]))
@fewer
def test_json_format_is_detected_at_the_first_document(documents: list[Any], indent: int | None) -> None:
    content = "\n".join(json.dumps(doc, indent=indent) for doc in documents).encode()
    assert read(content) == documents


@pytest.mark.parametrize(
    ("head", "whole", "form"),
    [
        (b"", True, "lines"),
        (b"1\n2\n", True, "lines"),
        (b'{"a":1}\n{"a":2}\n', True, "lines"),
        (b'{"a":1}{"a":2}', True, "lines"),
        (b'{\n "a":1}', True, "documents"),
        (b'{"a":\n1}', True, "documents"),
        (b'{"a": "\n"}\n', True, "lines"),
        (b'{"a": 1\n{"b": 2}\n', True, "lines"),
        (b"[1,2]\n", True, "array"),
        (b"[1,2]\n[3]\n", True, "lines"),
        (b"[1,2]", False, "lines"),
        (b"[\n1,\n2\n]\n", True, "array"),
        (b"[\n1]\n[\n2]", True, "documents"),
        (b"[\n1, ", False, "array"),
        (b'[{"a":1}, {"b', False, "array"),
    ],
)
def test_json_formats_are_detected(head: bytes, whole: bool, form: str) -> None:
    assert detect_layout(head, whole) == form


@pytest.mark.parametrize("length", [1, 2, 3, 7, 1 << 20])
def test_backslashes_are_counted_across_chunks(length: int) -> None:
    text = b'{"a\\\\":"\\"}","b":"\\\\\\""}{"c":"\\\\"}'
    splitter, ends = Splitter(0), []
    for at in range(0, len(text), length):
        ends += [int(end) + at for end in splitter.find_ends(np.frombuffer(text[at : at + length], np.uint8))]
    assert ends == [text.index(b"}{") + 1, len(text)]


@pytest.mark.parametrize(
    ("content", "form", "line", "message"),
    [
        (b'{\n"a": 1,\n"b": x\n}', "documents", 3, "value"),
        (b'[\n{"a": 1},\n{"b": }]', "array", 3, "value"),
        (b"[1,\n,2]", "array", 2, "no JSON value"),
        (b"[1]\n\n x", "array", 1, "text follows the end of the array"),
        (b"[1,\n2", "array", 2, "ends within its array"),
        (b'{"a":1}', "array", 1, r"begins with \["),
        (b'{"a":\n 1', "documents", 2, "ends|end"),
        (b"{}\n}", "documents", 2, ""),
    ],
)
@pytest.mark.parametrize("batch_bytes", [1, 1000])
def test_error_names_its_line(content: bytes, form: Any, line: int, message: str, batch_bytes: int) -> None:
    with pytest.raises(VariantError, match=f"line {line}: .*({message})"):
        read(content, format=form, batch_bytes=batch_bytes)


def test_invalid_documents_become_null_rows() -> None:
    content = b'{"a":\n1}\n{"a": x}\n{"a":\n3}'
    reader = variant.read_json(io.BytesIO(content), format="documents", on_error="null")
    assert variant.to_python(reader.read_all()["value"]) == [{"a": 1}, None, {"a": 3}]
    assert [(fault.line, fault.offset) for fault in reader.faults] == [(3, 6)]


def test_document_over_the_limit_is_rejected_before_reading_it_completely() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b'{"a":"' + b"x" * (size - 6) if self.given == size else b"x" * size

    file = Endless()
    with pytest.raises(VariantLimitError, match="line 1: a document is longer than 100000 bytes"):
        variant.read_json(file, format="documents", max_bytes=100_000, batch_bytes=10_000).read_all()
    assert file.given < 400_000


def test_folders_patterns_and_compressed_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "_hidden" / "no.json").write_text("0")
    (tmp_path / "a.json").write_text('{\n "n": 1\n}')
    (tmp_path / "b.ndjson").write_text('{"n": 2}\n{"n": 3}\n')
    (tmp_path / "notes.txt").write_text("not JSON")
    (tmp_path / "sub" / "c.json.gz").write_bytes(gzip.compress(b'[{"n": 4},\n {"n": 5}]'))

    def numbers(source: Any) -> list[int]:
        return variant.get(variant.read_json(source).read_all()["value"], "$.n", int).to_pylist()  # type: ignore[no-any-return]

    assert numbers(tmp_path) == [1, 2, 3, 4, 5]
    assert numbers(str(tmp_path / "*.*json")) == [1, 2, 3]
    assert numbers([tmp_path / "sub", tmp_path / "a.json"]) == [4, 5, 1]
    assert numbers(str(tmp_path / "**" / "*.gz")) == [4, 5]
    for nowhere in (tmp_path / "*.nothing", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(FileNotFoundError, match="no JSON files in"):
            variant.read_json(nowhere)
    for invalid in ("\ud800/*.json", "a\ud800.json", "a\0*.json"):
        with pytest.raises(ValueError, match="is not a valid path: it contains"):
            variant.read_json(invalid)


def test_files_can_be_read_again_but_file_objects_cannot(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    reader = variant.read_json(path, shredding="infer", batch_bytes=4)
    first = next(iter(reader))
    assert first.num_rows == 1
    assert reader.read_all().equals(reader.read_all())
    assert pa.table(reader).num_rows == 2
    once = variant.read_json(io.BytesIO(b"1\n2\n"), shredding="infer")
    assert once.schema == once.schema
    assert once.read_all().num_rows == 2
    with pytest.raises(ValueError, match=r"read only once; pass its path to read_json"):
        once.read_all()


def test_reader_repr_lists_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a.json", "b.json", "<c>.json", "d.json"]
    for name in names:
        Path(name).touch()
    reader = variant.read_json(names, shredding="infer")
    assert repr(reader) == "JsonReader('a.json', 'b.json', '<c>.json' and 1 more; value: schema to be inferred)"
    assert "&lt;c&gt;" in reader._repr_html_()
    assert "BytesIO" in repr(variant.read_json(io.BytesIO(b"")))


def test_unknown_json_format_is_rejected() -> None:
    with pytest.raises(ValueError, match="format must be one of 'auto', 'lines', 'documents', 'array', not 'ndjson'"):
        variant.read_json("a", format="ndjson")  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_bytes", [1, 2, 3, 4, 5, 1000])
@pytest.mark.parametrize("text", ["[1,2,]", "[1,2}", "[1}", "[}", "[1,\n]", "[,]"])
def test_invalid_array_is_rejected_for_any_chunk_size(text: str, batch_bytes: int) -> None:
    for form in ("auto", "array"):
        with pytest.raises(VariantError, match=r"line [12]: (a brace ends the array|no JSON value)"):
            read(text.encode(), format=form, batch_bytes=batch_bytes)


@pytest.mark.parametrize("batch_bytes", [1, 7, 1000])
def test_unmatched_closing_bracket_is_one_error(batch_bytes: int) -> None:
    text = b'{"a": 1} ]} {"a": {"b": [1]}} {"a": {"b": 2}}'
    found = read(text, format="documents", on_error="null", batch_bytes=batch_bytes)
    assert found == [{"a": 1}, None, None, {"a": {"b": [1]}}, {"a": {"b": 2}}]


def test_whitespace_before_an_array_is_limited() -> None:
    with pytest.raises(VariantLimitError, match="the first 100 bytes contain no document"):
        read(b" " * 300 + b"[1]", format="array", max_bytes=100, batch_bytes=64)


def test_corrupt_compressed_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"\n".join(b'{"a": %d}' % i for i in range(1000)))
    for name, content in (("cut.ndjson.gz", whole[: len(whole) // 2]), ("junk.ndjson.gz", b"\x1f\x8bjunkjunk")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorruptFileError, match=rf"the compressed file cannot be read: .*{name}"):
            variant.read_json(tmp_path / name).read_all()


@pytest.mark.parametrize("form", ["documents", "array"])
def test_document_of_many_chunks_is_read_in_linear_time(form: Any) -> None:
    class Counting(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            self.reads += 1
            return super().read(size)

    text = b'"' + b"x" * 1_000_000 + b'"'
    file = Counting(b"[" + text + b"]" if form == "array" else text)
    (batch,) = variant.read_json(file, format=form, batch_bytes=16)
    assert batch.num_rows == 1
    assert file.reads < 100
