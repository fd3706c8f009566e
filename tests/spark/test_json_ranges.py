"""A file of lines cut into byte ranges: every line is read once, by the range in which it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.base.errors import LimitError
from pqext.spark.ingest.job import ingest_json
from pqext.spark.json.text_parts import find_parts
from pqext.variant.json.files import read_chunks

texts = st.lists(st.sampled_from([b"", b"1", b"[2]", b'"some longer line"', b"\r"]), max_size=12)


@given(lines=texts, ends=st.booleans(), step=st.integers(1, 40), piece=st.integers(1, 30))
def test_ranges_of_any_length_cover_the_file_once_in_complete_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ends: bool, step: int, piece: int
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "lines"
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    path.write_bytes(content)
    found = b""
    for start in range(0, len(content), step):
        for one in read_chunks(str(path), "lines", piece, 1 << 20, start, min(start + step, len(content))):
            assert one.start == len(found)
            assert one.start == 0 or content[one.start - 1 : one.start] == b"\n"
            found += one.text
    assert found == content


def test_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbf1\n2\n")
    [piece] = read_chunks(str(path), "lines", 100, 100)
    assert (piece.start, bytes(piece.text)) == (3, b"1\n2\n")


def test_endless_line_is_rejected_at_the_limit_without_reading_on(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1\n" + b"x" * (5 << 20))
    with pytest.raises(LimitError, match="longer than"):
        list(read_chunks(str(path), "lines", 1024, 1 << 20))


@pytest.mark.parametrize(
    ("paths", "error"), [([], ValueError), ((), ValueError), ("", OSError), (["a.json", ""], OSError)]
)
def test_ingest_without_a_path_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: Any, error: type[Exception]
) -> None:
    (tmp_path / "a.json").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    assert [part.name for part in find_parts("a.json", None)] == [str(tmp_path / "a.json")]
    with pytest.raises(error, match="list of paths is empty" if error is ValueError else "No such file"):
        find_parts(paths, None)


def test_ingest_rejects_storage_options_of_other_types_without_their_value(tmp_path: Path) -> None:
    spark: Any = None  # the arguments are checked before the session is used
    for options, message in (({"secret_key": ("hidden",)}, "secret_key must be text"), ("hidden", "must map names")):
        with pytest.raises(TypeError, match=message) as error:
            ingest_json(spark, "s3://bucket/a.json", str(tmp_path / "out"), storage_options=options)  # type: ignore[arg-type]
        assert "hidden" not in str(error.value)
