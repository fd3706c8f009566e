"""The layout of a file: its parts follow one another, agree with pyarrow's metadata, and are drawn safely."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pqext
from pqext.cli import app
from pqext.inspection import Layout, layout, parts
from reference.effort import share

TABLE = pa.table(
    {
        "id": range(4000),
        "name": [f"name {i % 50}" for i in range(4000)],
        "some": [[i, None] if i % 3 else None for i in range(4000)],
    }
)


def written(table: pa.Table = TABLE, **options: object) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, row_group_size=1500, data_page_size=2000, **options)
    return sink.getvalue()


def build(table: pa.Table = TABLE, **options: object) -> bytes:
    sink = BytesIO()
    pqext.write_table(table, sink, row_group_rows=1500, **options)  # type: ignore[arg-type]
    return sink.getvalue()


def pages(found: Layout) -> dict[tuple[int | None, int | None], list[tuple[str, int, int]]]:
    chunks: dict[tuple[int | None, int | None], list[tuple[str, int, int]]] = {}
    for part in found.parts:
        if part.kind in ("dictionary", "data", "pages"):
            chunks.setdefault((part.row_group, part.column), []).append((part.kind, part.offset, part.length))
    return chunks


@pytest.mark.parametrize("form", ["thrift+flatbuffers", "flatbuffers"])
def test_parts_of_both_footer_formats_are_contiguous(form: str) -> None:
    data = build(footer=form)
    found = layout(data)
    at = 0
    for part in found.parts:
        assert part.offset == at
        at = part.stop
    assert at == len(data)
    assert any("FlatBuffers footer" in part.name for part in found.parts if part.kind == "footer")


@pytest.mark.parametrize(
    "data",
    [
        written(), written(write_page_index=True), written(data_page_version="2.0", use_dictionary=False),
        build(TABLE.slice(0, 0)), build(), build(footer="thrift+index", bloom_filters={"name": True}),
    ],
)  # fmt: skip
def test_parts_are_contiguous_and_match_pyarrow(data: bytes) -> None:
    found = layout(data)
    at = 0
    for part in found.parts:
        assert part.offset == at
        assert part.length > 0
        at = part.stop
    assert at == len(data)
    theirs = pq.ParquetFile(BytesIO(data)).metadata
    chunks = pages(found)
    for group in range(theirs.num_row_groups):
        for column in range(theirs.num_columns):
            about = theirs.row_group(group).column(column)
            own = chunks.pop((group, column), [])
            assert sum(length for _, _, length in own) == about.total_compressed_size
            dictionary = [offset for kind, offset, _ in own if kind == "dictionary"]
            assert dictionary == ([about.dictionary_page_offset] if about.has_dictionary_page else [])
            if own:
                assert next(offset for kind, offset, _ in own if kind == "data") == about.data_page_offset
    assert not chunks
    footer = sum(part.length for part in found.parts if part.kind == "footer")
    assert footer == theirs.serialized_size


def test_page_headers_provide_the_facts_of_an_offset_index(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(write_page_index=True)
    by_index = pages(layout(data))
    monkeypatch.setattr(parts._Finder, "_pages_by_index", lambda *_: None)
    assert pages(layout(data)) == by_index
    assert len(by_index[0, 0]) > 2


def test_footer_parts_indexes_and_filters_are_named() -> None:
    data = build(footer="thrift+index", bloom_filters={"name": True})
    found = layout(data)
    names = {part.name for part in found.parts if part.kind == "footer"}
    assert {"schema", "row groups", "created by", "extension: jump table"} <= names
    filters = [part for part in found.parts if part.kind == "Bloom filter"]
    assert [(part.row_group, part.column) for part in filters] == [(0, 1), (1, 1), (2, 1)]
    with pqext.open(data) as file:
        chunk = file.row_groups[0].chunk("name").metadata
        assert (filters[0].offset, filters[0].length) == (chunk.bloom_filter_offset, chunk.bloom_filter_length)
    assert {"column index", "offset index"} <= {part.kind for part in found.parts}


def test_checkpoints_between_row_groups_are_reported() -> None:
    found = [part for part in layout(build(checkpoint=1)).parts if part.kind == "checkpoint"]
    assert len(found) == 3
    assert "other" not in {part.kind for part in layout(build(checkpoint=2)).parts}
    assert "checkpoints" in layout(build(checkpoint=1)).to_html()


@pytest.mark.parametrize("name", ["alltypes_tiny_pages", "alltypes_plain", "nested_structs.rust", "list_columns"])
def test_unreferenced_dictionaries_and_metadata_copies_are_reported(
    parquet_testing: Path, name: str
) -> None:
    path = parquet_testing / "data" / f"{name}.parquet"
    found = layout(path)
    assert "other" not in {part.kind for part in found.parts}
    about = pq.ParquetFile(path).metadata.row_group(0)
    for (_, column), own in pages(found).items():
        assert sum(length for _, _, length in own) == about.column(column or 0).total_compressed_size


def test_second_copies_of_columns_are_reported() -> None:
    found = layout(build(second_encodings={"id": "delta_binary_packed"}))
    assert "other" not in {part.kind for part in found.parts}
    assert [(part.row_group, part.column) for part in found.parts if part.kind == "second copy"] == [
        (0, 0), (1, 0), (2, 0)
    ]  # fmt: skip


def test_page_sizes_are_counted_by_powers_of_two() -> None:
    found = layout(written())
    data = [length for own in pages(found).values() for kind, _, length in own if kind == "data"]
    assert sum(size.count for size in found.page_sizes) == len(data)
    assert sum(size.bytes for size in found.page_sizes) == sum(data)
    for size in found.page_sizes:
        assert size.count == sum(size.least <= length < 2 * size.least for length in data)


def test_possible_savings_are_reported() -> None:
    said = " ".join(layout(written(pa.concat_tables([TABLE] * 4), compression=None, use_dictionary=False)).savings)
    assert "stored without compression" in said
    assert layout(build(pa.table({"a": [1]}))).savings == ()


def test_large_files_are_inspected_by_a_sample_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_CHUNKS", 4)
    found = layout(written())
    assert {part.row_group for part in found.parts} == {None, 0}
    assert any(note.startswith("Omitted or only partly") and note.endswith(": 2 row groups") for note in found.notes)
    monkeypatch.setattr(parts, "MAX_CHUNKS", 2)
    assert {part.column for part in layout(written()).parts} == {None, 0, 1}
    monkeypatch.undo()
    monkeypatch.setattr(parts, "MAX_HEADERS", 3)
    found = layout(written())
    assert {part.kind for part in found.parts} >= {"pages"}
    assert any(note.startswith("Shown as a whole, because there are so many pages: ") for note in found.notes)
    monkeypatch.setattr(parts, "MAX_PAGES", 3)
    found = layout(written(write_page_index=True))
    assert any(note.startswith("Shown as a whole, because there are so many pages: ") for note in found.notes)


def test_encrypted_columns_are_reported_by_location_only() -> None:
    keys = pqext.encryption.FileEncryption(footer_key=b"0" * 16, column_keys={"name": b"1" * 16}, plaintext_footer=True)
    data = build(encryption=keys)
    found = layout(data)
    assert sum(part.length for part in found.parts) == len(data)
    assert [kind for kind, _, _ in pages(found)[0, 1]] == ["pages"]
    assert found.notes == ("Shown as a whole, because the key is missing: 3 encrypted column chunks",)
    data = build(encryption=pqext.encryption.FileEncryption(footer_key=b"0" * 16, column_keys={"name": b"1" * 16}))
    found = layout(data, decryption=pqext.encryption.FileDecryption(footer_key=b"0" * 16))
    assert sum(part.length for part in found.parts) == len(data)
    assert (0, 1) not in pages(found)
    assert "its key is missing" in found.to_html()
    assert "encrypted footer" in {part.name for part in found.parts}


@pytest.mark.parametrize("data", [written(TABLE.slice(0, 20)), build(TABLE.slice(0, 20), footer="thrift+index")])
def test_corruption_is_reported_or_rejected(data: bytes) -> None:
    step = max(1, len(data) // share(1.0))
    for at in range(0, len(data), step):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        try:
            found = layout(bytes(changed))
        except pqext.ParquetError:
            continue
        assert sum(part.length for part in found.parts) == len(data)
        assert found.to_html().endswith("</html>\n")


def test_corrupt_page_header_is_reported() -> None:
    data = bytearray(written())
    data[4:12] = b"\xff" * 8
    found = layout(bytes(data))
    assert any("row group 0, column id: a page header at 4 is damaged" in note for note in found.notes)
    assert "Shown as a whole, because the offset index or a page header is damaged: 1 column chunk" in found.notes
    assert found.parts[1].kind == "pages"


def test_command_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.parquet").write_bytes(written())
    run = CliRunner().invoke
    assert run(app, ["inspect", "a.parquet", "--html"]).output.startswith("a.parquet.layout.html: ")
    assert Path("a.parquet.layout.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    again = run(app, ["inspect", "a.parquet", "--html"])
    assert again.exit_code != 0
    assert "use --force to overwrite it" in again.output
    assert run(app, ["inspect", "a.parquet", "--html", "--force", "-o", "b.html"]).exit_code == 0
    assert Path("b.html").exists()
    for wrong in (["--columns", "id", "--html"], ["-o", "c.html"], ["--format", "json", "--html"]):
        assert run(app, ["inspect", "a.parquet", *wrong]).exit_code != 0
    assert not Path("c.html").exists()


def test_layout_is_plain_data() -> None:
    found = layout(written())
    told = json.loads(json.dumps(found.to_dict()))
    assert told["parts"][0] == {
        "kind": "frame", "offset": 0, "length": 4, "row_group": None, "column": None, "name": "magic number"
    }  # fmt: skip
    assert "<iframe" in found._repr_html_()
