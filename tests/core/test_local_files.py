"""Local files that are opened several at once, with their ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pqext.core.io.source import PathSource
from pqext.core.kernels.local_files import open_files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files are opened one by one on Windows")


def test_each_file_is_returned_with_its_head_and_tail(tmp_path: Path) -> None:
    data = {"short": b"PAR1", "long": bytes(range(256)) * 100}
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    found = open_files([os.fsencode(tmp_path / name) for name in data], 1000)
    for file, (name, content) in zip(found, data.items(), strict=True):
        stat = (tmp_path / name).stat()
        assert file is not None
        assert (file.size, file.mtime_ns) == (stat.st_size, stat.st_mtime_ns)
        assert (file.head, file.tail) == (content[:4], content[-1000:])
        assert os.fstat(file.fileno()).st_ino == stat.st_ino
        file.close()
        file.close()
        with pytest.raises(ValueError, match="closed"):
            file.fileno()


def test_short_and_irregular_files_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "tiny").write_bytes(b"PAR")
    os.mkfifo(tmp_path / "pipe")  # which nobody writes to: opening it must not wait
    places = [tmp_path / "tiny", tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/null")]
    assert open_files([os.fsencode(place) for place in places], 1000) == [None] * 5
    assert open_files([], 1000) == []
    with pytest.raises(ValueError, match="null byte"):
        open_files([b"a\0b"], 1000)


@pytest.mark.parametrize("size", [100, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 50_000])
def test_source_reads_the_same_bytes_with_or_without_its_tail(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(os.urandom(size))
    (together,) = PathSource.open_several([str(path)])
    assert together is not None
    with together, PathSource(str(path)) as alone:
        for offset, length in ((0, 4), (2, 4), (size - 8, 8), (size // 2, size - size // 2), (0, size), (size, 0)):
            assert bytes(together.read(offset, length)) == bytes(alone.read(offset, length))
