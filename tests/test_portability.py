"""The product runs on Windows as on Linux and macOS: what only some systems have has a substitute."""

from __future__ import annotations

import ast
import builtins
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import variant
from pqext.core.base import local_paths
from pqext.core.base.local_paths import scheme_of
from pqext.core.io import sink, source
from pqext.dataset.files import folders, manifests, sources
from pqext.dataset.writing import commit
from pqext.spark.base import files

ROOT = Path(__file__).resolve().parent.parent

POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_ONLY = {
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "chown", "fchmod", "fork", "forkpty", "getegid",
    "geteuid", "getgid", "getloadavg", "getpgid", "getuid", "killpg", "lchown", "mkfifo", "nice", "posix_fadvise",
    "posix_fallocate", "pread", "preadv", "pwrite", "pwritev", "sched_getaffinity", "sched_setaffinity", "setsid",
    "statvfs", "sysconf", "uname", "wait", "waitpid", "writev",
}  # fmt: skip


def faults(text: str) -> Iterator[str]:
    """What a module does that fails on some system, or is read otherwise there."""
    tree = ast.parse(text)
    tolerant = {
        node
        for attempt in ast.walk(tree)
        if isinstance(attempt, ast.Try) and any("ImportError" in ast.unparse(one) for one in attempt.handlers)
        for statement in attempt.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            if POSIX_MODULES & set(named) and node not in tolerant:
                yield f"line {node.lineno}: imports {named[0]} without a substitute"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in POSIX_ONLY and f'hasattr(os, "{node.attr}")' not in text:
                yield f"line {node.lineno}: os.{node.attr} without a substitute"
        elif isinstance(node, ast.Call) and not takes_encoding(node):
            yield f"line {node.lineno}: text in the encoding of the system"
        elif isinstance(node, ast.Constant) and re.match(r"/(tmp|var|usr|dev)/", str(node.value)):
            yield f"line {node.lineno}: {node.value}"


def takes_encoding(call: ast.Call) -> bool:
    """Does a call that opens text name its encoding?"""
    named = {keyword.arg for keyword in call.keywords}
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("read_text", "write_text"):
        return "encoding" in named or len(call.args) > (call.func.attr == "write_text")
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        mode = call.args[1] if len(call.args) > 1 else None
        return "encoding" in named or (isinstance(mode, ast.Constant) and "b" in str(mode.value))
    return True


def test_no_module_depends_on_one_operating_system() -> None:
    found = {
        f"{path.relative_to(ROOT)}, {fault}"
        for path in sorted((ROOT / "pqext").rglob("*.py"))
        for fault in faults(path.read_text("utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        "import fcntl", "from resource import getrusage", "import os\nos.fork()", "open('x')", "open('x', 'w')",
        "p.read_text()", "p.write_text('x')", "q = '/tmp/x'",
    ],
)  # fmt: skip
def test_platform_dependent_code_is_detected(code: str) -> None:
    assert list(faults(code))


def test_files_are_read_and_written_without_vector_io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has neither preadv nor writev."""
    monkeypatch.delattr(source.os, "preadv", raising=False)
    monkeypatch.delattr(sink.os, "writev", raising=False)
    table = pa.table({"i": range(100_000), "s": [str(i) for i in range(100_000)]})
    path = tmp_path / "t.parquet"
    pqext.write_table(table, path, row_group_rows=30_000)
    assert pq.read_table(path).equals(table)
    assert pqext.read_table(path).equals(table)


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """``os.replace`` refuses a file that this process has open, as it does there, and files have no locks."""
    replace = os.replace

    def deny(old: Any, new: Any) -> None:
        held = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
        if {os.path.realpath(old), os.path.realpath(new)} & held:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(new))
        replace(old, new)

    monkeypatch.setattr(os, "replace", deny)
    monkeypatch.setattr("pqext.core.io.local_writers.lock_module", lambda: None)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not tell which files are open")
@pytest.mark.usefixtures("on_windows")
def test_file_is_rewritten_in_place_on_close(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    column = variant.parse_json(pa.array(['{"a": 1}']))
    pqext.write_table(pa.table([column], schema=pa.schema([variant.variant_field("v")])), path)
    variant.reshred_file(path, path, "a INT")
    assert str(variant.schema_of_file(path, "v")) == "STRUCT<a: INT>"
    variant.unshred_file(path, path)
    pqext.rewrite_footer(path, lambda footer: footer)
    pqext.concatenate([path, path], path)
    assert len(pqext.read_table(path)) == 2


def test_paths_with_a_drive_are_not_urls() -> None:
    for path in (r"C:\data\x.parquet", "C:/data/x.parquet", r"\\server\share\x.parquet", "c:x.parquet"):
        assert scheme_of(path) is None
    assert scheme_of("s3://bucket/x.parquet") == "s3"


def test_file_uris_may_contain_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.local_path("file:///C:/a%20b") == "/C:/a b"
    monkeypatch.setattr(local_paths, "ON_WINDOWS", True)
    assert files.local_path("file:///C:/a%20b") == "C:/a b"
    assert files.local_path("file:/home/x") == "/home/x"


def test_journal_paths_reject_drives_and_backslashes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (r"..\x.parquet", r"a\..\..\x", "C:x", r"\x"):
        assert folders._check_path(name) == name
    monkeypatch.setattr(local_paths, "ON_WINDOWS", True)
    for name in (r"..\x.parquet", r"a\..\..\x", "C:x", r"\x"):
        with pytest.raises(ValueError, match="drive"):
            folders._check_path(name)
    assert folders._check_path("a/x.parquet") == "a/x.parquet"


def test_paths_on_different_drives_have_no_common_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(paths: Any) -> str:
        raise ValueError("Paths don't have the same drive")

    parts = [tmp_path / name / "k=1" / "t.parquet" for name in ("a", "b")]
    for part in parts:
        part.parent.mkdir(parents=True)
        pq.write_table(pa.table({"i": [1]}), part)
    monkeypatch.setattr(sources.os.path, "commonpath", deny)
    assert sources.common_root(sources.locate_sources(parts)) is None
    assert pqext.read_table(parts, partitioning=None)["i"].to_pylist() == [1, 1]
    assert len(pqext.read_table(parts)) == 2


def test_saves_need_neither_locks_nor_folder_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no fcntl, and opens no folders."""
    importing, opening = builtins.__import__, os.open

    def absent(name: str, *rest: Any) -> Any:
        if name == "fcntl":
            raise ImportError(name)
        return importing(name, *rest)

    def deny(path: Any, flags: int, *rest: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opening(path, flags, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", absent)
        patch.setattr(os, "open", deny)
        patch.setattr(local_paths, "ON_WINDOWS", True)
        patch.delattr(os, "O_DIRECTORY", raising=False)
        for job in ("1", "2"):
            folder = commit.begin(tmp_path, job)
            pq.write_table(pa.table({"i": [int(job)]}), folder / f"{job}.parquet")
            commit.commit(tmp_path, job, [f"{job}.parquet"], overwrite=False)
    assert sorted(pqext.read_table(tmp_path)["i"].to_pylist()) == [1, 2]


def test_manifests_are_read_without_posix_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "note").write_bytes(b"a\r\nb")
    monkeypatch.delattr(os, "O_NONBLOCK", raising=False)
    assert manifests.read_manifest(str(tmp_path / "note")) == b"a\r\nb"


@pytest.mark.slow
def test_terminal_without_unicode_does_not_abort_a_command(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"Straße…": ["東京"]}), path)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    shown = {}
    for command in ("head", "schema", "inspect", "head --format json"):
        name, *options = command.split()
        called = [sys.executable, "-m", "pqext", name, str(path), *options]
        shown[command] = subprocess.run(called, capture_output=True, env=environment, check=True).stdout
    assert json.loads(shown["head --format json"].decode()) == {"Straße…": "東京"}
    forms = rb"Stra\xdfe", "Straße".encode()  # click takes ASCII for a mistake, and writes UTF-8
    assert all(any(form in shown[command] for form in forms) for command in ("head", "schema", "inspect"))
