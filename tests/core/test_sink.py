"""A disk that is full, at any moment: no remains, the target as it was, and an error that names the path."""

from __future__ import annotations

import errno
import gc
import io
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pqext
from pqext import geo, variant
from pqext.cli import app
from pqext.core.footer.writing import rewrite_footer
from pqext.core.io.sink import Sink
from pqext.core.io.sources.store import BufferedUpload
from pqext.demo.source import EXAMPLE_FILE, write_example

ROWS = 12_000
TABLE = pa.table({"i": list(range(ROWS)), "s": [f"text {i}" for i in range(ROWS)]})
PLAIN: dict[str, Any] = {"compression": "uncompressed", "dictionary": False, "row_group_rows": 5000}
KEY = b"0123456789012345"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that others are made of."""
    folder = tmp_path_factory.mktemp("inputs")
    pqext.write_table(TABLE, folder / "plain.parquet", **PLAIN)
    values = variant.parse_json(pa.array([f'{{"a": {i}, "b": "text {i}"}}' for i in range(3000)]))
    pqext.write_table(pa.table({"v": values}), folder / "variant.parquet", compression="uncompressed")
    points = geo.from_points([float(i % 90) for i in range(3000)], [float(i % 45) for i in range(3000)])
    pqext.write_table(pa.table({"g": points}), folder / "points.parquet", geometry={"g": "OGC:CRS84"})
    return folder




WRITERS: dict[str, Callable[[Path, Path], Any]] = {
    "table": lambda inputs, path: pqext.write_table(TABLE, path, **PLAIN),
    "indexes and filters": lambda inputs, path: pqext.write_table(TABLE, path, bloom_filters=True, **PLAIN),
    "encrypted": lambda inputs, path: pqext.write_table(
        TABLE, path, encryption=pqext.encryption.FileEncryption(footer_key=KEY), **PLAIN
    ),
    "concatenated": lambda inputs, path: pqext.concatenate([inputs / "plain.parquet"] * 2, path),
    "footer": lambda inputs, path: rewrite_footer(inputs / "plain.parquet", lambda metadata: None, path),
    "reshredded": lambda inputs, path: variant.reshred_file(inputs / "variant.parquet", path, "a BIGINT, b STRING"),
    "GeoJSON": lambda inputs, path: geo.write_geojson(pqext.read_table(inputs / "points.parquet"), path),
}


class FullDisk:
    """Counts what is asked of the file system; from the ``full_at``-th on, nothing more can be stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.full_at = 0
        disk = self

        class FileIO(io.FileIO):
            def __init__(self, *arguments: Any) -> None:
                disk.ask()
                super().__init__(*arguments)

            def close(self) -> None:
                was_open = not self.closed
                super().close()
                if was_open:
                    disk.ask()

        class System:
            def __getattr__(self, name: str) -> Any:
                return getattr(os, name)

            def writev(self, file: int, pieces: Any) -> int:
                if disk.full_at and disk.asked + 1 >= disk.full_at:
                    os.write(file, bytes(pieces[0])[: len(pieces[0]) // 2])
                disk.ask()
                return os.writev(file, pieces)

            def replace(self, source: str, dest: str) -> None:
                disk.ask()
                os.replace(source, dest)

        class Io:
            def __getattr__(self, name: str) -> Any:
                return FileIO if name == "FileIO" else getattr(io, name)

        monkeypatch.setattr("pqext.core.io.sink.os", System())
        monkeypatch.setattr("pqext.core.io.sink.io", Io())

    def ask(self) -> None:
        self.asked += 1
        if self.full_at and self.asked >= self.full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def full_from(self, number: int) -> Iterator[None]:
        self.asked, self.full_at = 0, number
        try:
            yield
        finally:
            self.full_at = 0


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_full_disk_at_any_moment_leaves_files_unchanged(
    name: str, existing: bool, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    path = tmp_path / "out"
    with disk.full_from(0):
        WRITERS[name](inputs, path)
    moments = disk.asked
    assert moments >= 4  # made, written, closed, renamed
    path.unlink()
    if existing:
        path.write_bytes(b"what was there")
    before = content(tmp_path)
    for moment in range(1, moments + 1):
        with pytest.raises(OSError, match="No space left") as caught, disk.full_from(moment):
            WRITERS[name](inputs, path)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
        assert content(tmp_path) == before
    WRITERS[name](inputs, path)
    assert list(content(tmp_path)) == ["out"]


def test_summary_that_does_not_fit_leaves_complete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "part.parquet"
    pqext.write_table(TABLE.slice(0, 10), part)
    pqext.write_summary([part], tmp_path)
    before = content(tmp_path)
    disk = FullDisk(monkeypatch)
    for moment in range(1, 9):
        with pytest.raises(OSError, match="No space left") as caught, disk.full_from(moment):
            pqext.write_summary([part], tmp_path)
        assert Path(caught.value.filename).name in ("_metadata", "_common_metadata")
        assert content(tmp_path) == before


def test_commands_leave_no_partial_page_or_example(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    page = tmp_path / "map.html"
    for moment in range(1, 5):
        with disk.full_from(moment):
            error = CliRunner().invoke(app, ["map", str(inputs / "points.parquet"), "-o", str(page)]).exception
        assert isinstance(error, OSError)
        assert (error.errno, error.filename) == (errno.ENOSPC, str(page))
        with pytest.raises(OSError, match="No space left") as caught, disk.full_from(moment):
            write_example(tmp_path)
        assert caught.value.filename == str(tmp_path / EXAMPLE_FILE)
        assert content(tmp_path) == {}


def test_file_size_limit_of_the_system_leaves_no_file(tmp_path: Path) -> None:
    # What the kernel does, not what the test says that it does: writes that are cut short, then refused.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = tmp_path / "out"
    pqext.write_table(TABLE, path, **PLAIN)
    whole = path.stat().st_size
    path.unlink()
    for size in (0, 1, 70_000, whole // 2, whole - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError, match="File too large") as caught:
                pqext.write_table(TABLE, path, **PLAIN)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.filename == str(path)
        assert content(tmp_path) == {}


def test_forgotten_writer_removes_its_file_but_a_forked_child_does_not(tmp_path: Path) -> None:
    sink = Sink(tmp_path / "out")
    sink.write(b"x" * 100_000)
    child = os.fork()
    if not child:  # what a child's exit would run
        sink.abort()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    sink.write(b"y")
    sink.commit()
    assert (tmp_path / "out").read_bytes() == b"x" * 100_000 + b"y"
    sink = Sink(tmp_path / "out")
    sink.write(b"x" * 100_000)
    del sink
    gc.collect()
    assert os.listdir(tmp_path) == ["out"]


def test_unfinished_upload_is_aborted_only_by_its_own_process(tmp_path: Path) -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.path = str(tmp_path / name)

        def abort(self) -> None:
            Path(self.path).touch()

    aborted, forgotten = (BufferedUpload(Named(name), lambda: None) for name in ("aborted", "forgotten"))  # type: ignore[arg-type]
    child = os.fork()
    if not child:  # what a child's exit would run
        aborted.abort()
        del forgotten
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.listdir(tmp_path) == []
    aborted.abort()
    del forgotten
    gc.collect()
    assert sorted(os.listdir(tmp_path)) == ["aborted", "forgotten"]


def test_interrupt_during_file_creation_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system has made it, and its object is not there yet."""

    def interrupted(path: str, mode: str) -> None:
        Path(path).touch(exist_ok=False)
        raise KeyboardInterrupt

    monkeypatch.setattr("pqext.core.io.sink.io.FileIO", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pqext.write_table(TABLE, tmp_path / "out")
    assert content(tmp_path) == {}


def test_permissions_that_cannot_be_preserved_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, dest: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), dest)

    path = tmp_path / "out"
    path.write_bytes(b"what was there")
    monkeypatch.setattr("pqext.core.io.sink.shutil.copymode", refuse)
    with pytest.raises(PermissionError) as caught:
        Sink(path)
    assert caught.value.filename == str(path)
    assert content(tmp_path) == {"out": b"what was there"}


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 234], ids=["255", "254 in UTF-8", "234"])
def test_every_name_valid_for_the_file_system_can_be_written(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        pqext.write_table(TABLE.slice(0, 3), tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    assert pqext.read_table(tmp_path / name).num_rows == 3


def test_overlong_name_is_rejected_before_writing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long") as caught:
        pqext.ParquetWriter(tmp_path / ("x" * 256), TABLE.schema)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert os.listdir(tmp_path) == []


class Taking(io.RawIOBase):
    """A raw file that takes so many bytes a time; 0 and None are what one that does not block gives."""

    def __init__(self, taken: int | None) -> None:
        self.taken = taken
        self.content = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        if self.taken is None:
            return None
        self.content += bytes(data)[: self.taken]
        return min(self.taken, len(data))


def test_partial_writes_continue_and_empty_writes_are_an_error() -> None:
    part, whole = Taking(7), io.BytesIO()
    for out in (part, whole):
        pqext.write_table(TABLE.slice(0, 100), out)
    assert part.content == whole.getvalue()
    for taken in (0, None):
        with pytest.raises(BlockingIOError, match="did not accept all bytes"):
            pqext.write_table(TABLE.slice(0, 100), Taking(taken))


def test_write_that_returns_none_is_complete() -> None:
    class Silent:
        def __init__(self) -> None:
            self.content = b""

        def write(self, data: Any) -> None:
            self.content += bytes(data)

    out, whole = Silent(), io.BytesIO()
    pqext.write_table(TABLE.slice(0, 100), out)
    pqext.write_table(TABLE.slice(0, 100), whole)
    assert out.content == whole.getvalue()
