"""Files of JSON lines, batch after batch: every line once, faults by file and line, whatever the size of a batch."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import variant
from pqext.core.base.errors import LimitError, VariantError, VariantLimitError
from pqext.variant.json.documents import first_lines, read_lines, split_lines
from reference.effort import share


def texts(source: Any, **options: Any) -> list[str | None]:
    found: list[str | None] = []
    for batch in variant.read_json(source, **options):
        found += variant.to_json(batch.column(0)).to_pylist()
    return found


LINES = st.lists(st.sampled_from([b"", b"1", b"[2]", b'"some longer line"', b"\r", b'{"a":1}\r']), max_size=12)


@settings(max_examples=share(0.5))
@given(LINES, st.booleans(), st.integers(1, 40), st.integers(1, 3))
def test_batches_of_any_size_cover_the_file_once(
    lines: list[bytes], ends: bool, batch_bytes: int, threads: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    expected = [line.decode().strip() for line in lines if line.strip()]
    assert texts(io.BytesIO(content), format="lines", batch_bytes=batch_bytes, threads=threads) == expected


@settings(max_examples=share(0.5))
@given(LINES, st.booleans(), st.integers(1, 40), st.integers(1, 30))
def test_ranges_of_any_length_cover_the_file_once_in_complete_lines(
    lines: list[bytes], ends: bool, step: int, piece: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    found = b""
    for start in range(0, len(content), step):
        for at, text in read_lines(
            io.BytesIO(content), start, min(start + step, len(content)), chunk_bytes=piece, max_line_bytes=1000
        ):
            assert at == len(found)
            assert at == 0 or content[at - 1 : at] == b"\n"
            found += text
    assert found == content


@pytest.mark.parametrize("content", [b"1\n22\n333", b"4444444", b"", b"\n"])
@pytest.mark.parametrize("piece", [1, 2, 3, 4, 50])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 9, None])
def test_byte_order_mark_belongs_to_the_first_line_and_is_dropped(content: bytes, piece: int, step: int | None) -> None:
    size = 3 + len(content)
    found = b""
    for start in range(0, size, step or size):
        file = io.BytesIO(b"\xef\xbb\xbf" + content)
        stop = None if step is None else min(start + step, size)
        for at, text in read_lines(file, start, stop, chunk_bytes=piece, max_line_bytes=1000):
            assert at == 3 + len(found)
            found += text
    assert found == content


@given(LINES, st.integers(0, 60), st.integers(1, 30))
def test_open_range_returns_all_lines_from_its_start(lines: list[bytes], start: int, piece: int) -> None:
    content = b"\n".join(lines)
    first = start if start == 0 or content[start - 1 : start] == b"\n" else content.find(b"\n", start) + 1
    expected = content[first:] if first or not start else b""
    found = [*read_lines(io.BytesIO(content), start, chunk_bytes=piece, max_line_bytes=1000)] if start else []
    assert b"".join(text for _, text in found) == (expected if start else b"")
    assert [at for at, _ in found[:1]] == [first] * bool(found)


@given(LINES, st.integers(1, 9), st.integers(1, 20))
def test_text_in_memory_is_split_into_complete_lines(lines: list[bytes], parts: int, smallest: int) -> None:
    content = b"\n".join(lines)
    pieces = [bytes(piece) for piece in split_lines(memoryview(content), parts, smallest)]
    assert b"".join(pieces) == content
    assert len(pieces) <= parts
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    start = bytes(first_lines(memoryview(content), smallest))
    assert content.startswith(start)
    assert start == content or (start.endswith(b"\n") and len(start) >= smallest)


def test_text_in_memory_is_split_into_equal_parts() -> None:
    for parts, smallest, expected in ((4, 100, 4), (9, 300, 2)):
        sizes = [len(part) for part in split_lines(memoryview(b"1\n" * 400), parts, smallest)]
        assert len(sizes) == expected
        assert max(sizes) - min(sizes) <= 2 * len(b"1\n")


def test_several_files_are_read_in_order_compressed_or_not(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{"a":1}\n2\n'
    for name, data in (("1.ndjson", text), ("2.json.gz", gzip.compress(text, mtime=0)), ("3.BZ2", bz2.compress(text))):
        (tmp_path / name).write_bytes(data)
    with pa.CompressedOutputStream(str(tmp_path / "4.zst"), "zstd") as out:
        out.write(text)
    (tmp_path / "5.empty").write_bytes(b"")
    paths = sorted(tmp_path.iterdir())
    assert texts(paths) == ['{"a":1}', "2"] * 4
    assert texts([str(path) for path in paths], batch_bytes=1) == ['{"a":1}', "2"] * 4
    with open(paths[0], "rb") as file:
        assert texts(file) == ['{"a":1}', "2"]


def test_error_names_file_line_and_byte_for_any_batch_start(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"1\n\n2\n")
    bad.write_bytes(b"1\n\n" * 100 + b"[1 2]\n3\n")
    for batch_bytes in (1, 7, 64, 1000):
        for threads in (1, 2):
            with pytest.raises(VariantError, match="line 201: a comma or the closing bracket") as caught:
                texts([good, bad], batch_bytes=batch_bytes, threads=threads)
            assert (caught.value.path, caught.value.offset) == (str(bad), 3)


def test_invalid_lines_are_null_rows_and_reported_by_batch(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1\nx\n\nnull\n" * 5)
    for shredding in (None, "a INT"):
        reader = variant.read_json(path, on_error="null", batch_bytes=10, shredding=shredding)
        lines = []
        for batch in reader:
            assert batch.column(0).null_count == len(reader.faults)
            lines += [(fault.path, fault.line, fault.offset) for fault in reader.faults]
        assert lines == [(str(path), line, 0) for line in range(2, 21, 4)]
        reader = variant.read_json(path, on_error="null", shredding=shredding)
        assert reader.read_all().column(0).null_count == 5
        assert [fault.line for fault in reader.faults] == list(range(2, 21, 4))


def test_table_and_stream_match_parsing_the_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "name": f"n{i}", "rest": [i]}) for i in range(3000)]
    path = tmp_path / "lines.ndjson"
    path.write_text("\n".join(lines))
    whole = variant.parse_json(pa.array(lines))
    reader = variant.read_json(path, column="event", batch_bytes=10_000)
    assert reader.schema == pa.schema([variant.variant_field("event")])
    table = reader.read_all()
    assert table["event"].num_chunks > 3
    assert table["event"].combine_chunks().equals(whole)
    assert reader.read_all().equals(table)
    stream = pa.table(variant.read_json(path, column="event", batch_bytes=10_000))
    assert stream.equals(table)
    for shredding in ("id BIGINT, name STRING", "infer", {"schema": "infer", "coerce": "exact"}):
        reader = variant.read_json(path, shredding=shredding, batch_bytes=20_000, threads=2)
        type = reader.schema.field("value").type
        table = reader.read_all()
        assert table.schema.field("value").type == type
        choice = shredding if isinstance(shredding, dict) else {"schema": shredding}
        expected = variant.shred(whole, type, coerce=choice.get("coerce", "equivalent"))
        assert table["value"].combine_chunks().equals(expected)


def test_batches_are_written_to_shredded_parquet(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "name": f"n{i}", "rest": [i]}) for i in range(3000)]
    source, target = tmp_path / "lines.ndjson", tmp_path / "events.parquet"
    source.write_text("\n".join(lines))
    batches = variant.read_json(source, shredding="infer", batch_bytes=30_000)
    pqext.write_table(batches, target, row_group_rows=1000)
    with pqext.open(target) as file:
        assert [group.num_rows for group in file.row_groups] == [1000] * 3
        assert "value.typed_value.id.typed_value" in {leaf.dotted_path for leaf in file.schema.leaves}
        assert variant.to_json(file.read()["value"]).to_pylist() == [line.replace(" ", "") for line in lines]


@pytest.mark.parametrize("form", ["lines", "array"])
def test_fields_that_begin_later_in_the_sample_are_inferred(form: Any, tmp_path: Path) -> None:
    documents = [json.dumps({"id": i} | ({"late": i} if i >= 50 else {})) for i in range(1000)]
    source = tmp_path / "events.json"
    source.write_text("\n".join(documents) if form == "lines" else f"[{','.join(documents)}]")
    batch = next(iter(variant.read_json(source, shredding="infer", format=form)))
    assert [field.name for field in batch.column(0).type.field("typed_value").type] == ["id", "late"]


def test_file_without_documents_returns_no_batch() -> None:
    for content in (b"", b"\n \n", b"\xef\xbb\xbf", b"\xef\xbb"):
        for shredding in (None, "infer", "a INT"):
            reader = variant.read_json(io.BytesIO(content[:3]), shredding=shredding, on_error="null")
            assert reader.read_all().num_rows == (content == b"\xef\xbb")


class Endless(io.RawIOBase):
    """A file of one line without end, which counts what was read of it."""

    taken = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert size > 0
        self.taken += size
        return b"x" * size


def test_endless_line_is_rejected_at_the_limit() -> None:
    file = Endless()
    with pytest.raises(VariantLimitError, match="longer than 100000 bytes"):
        texts(file, max_bytes=100_000, batch_bytes=10_000)
    assert file.taken < 200_000


def test_read_ahead_is_limited_by_the_thread_count() -> None:
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            text = super().read(size)
            self.taken += len(text)
            return text

    file = Counted(b"[1,2,3]\n" * 100_000)
    reader = iter(variant.read_json(file, batch_bytes=8000, threads=2))
    next(reader)
    assert file.taken <= 5 * 8000
    del reader


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch_bytes": 0}, ValueError),
        ({"threads": -1}, ValueError),
        ({"column": 5}, TypeError),
        ({"numbers": "all"}, ValueError),
        ({"shredding": "no DDL("}, ValueError),
    ],
)
def test_invalid_arguments_are_rejected_before_opening_files(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        variant.read_json("/no/such/file", **options)


def test_invalid_source_is_rejected() -> None:
    for source in (5, None, [5], b"1\n"):
        with pytest.raises(TypeError, match="source must be a path"):
            variant.read_json(source)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        texts("/no/such/file")


def test_document_too_large_for_one_column_is_rejected_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # 2^31 bytes are too many for a test: the kernel's answer is given for it.
    from pqext.variant.json import parser

    monkeypatch.setattr(parser, "shred_lines", lambda *arguments: (-50, 0, 7))
    with pytest.raises(LimitError, match="line 7: a column exceeds"):
        variant.parse_json_lines(b"1\n", shredding="a INT")


class Counted(bytes):
    """Bytes that know how many of them were copied to be joined to others one piece at a time."""

    copied = 0

    def __radd__(self, other: bytes) -> bytes:
        Counted.copied += len(other) + len(self)
        return bytes(other) + bytes(self)


class CountingFile(io.BytesIO):
    """A file that counts what is read of it."""

    bytes_read = 0

    def read(self, size: int | None = -1) -> bytes:
        text = Counted(super().read(size))
        self.bytes_read += len(text)
        return text


@pytest.mark.parametrize("step", [None, 100_000, 7_000])
def test_line_across_chunks_and_ranges_is_read_and_copied_once(step: int | None) -> None:
    content = b'1\n"' + b"x" * 1_000_000 + b'"\n2\n'
    file = CountingFile(content)
    starts = range(0, len(content), step) if step else [0]
    Counted.copied = 0
    found = []
    for start in starts:
        file.seek(0)
        stop = None if step is None else start + step
        found += read_lines(file, start, stop, chunk_bytes=1000, max_line_bytes=1 << 20)
    assert b"".join(text for _, text in found) == content
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert file.bytes_read <= 2 * len(content) + 2 * len(starts)
    assert Counted.copied <= 2 * len(content)
