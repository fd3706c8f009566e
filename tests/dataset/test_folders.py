"""A folder with an unfinished save is seen as that save leaves it; folders of others are taken as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.dataset.files.folders import COMMIT, JOURNAL, Journal, ReplacedFile
from pqext.dataset.files.sources import find_sources

JOB = "0" * 32


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def unfinished(root: Path, new: tuple[str, ...], old: tuple[str, ...]) -> Path:
    folder = root / (COMMIT + JOB)
    folder.mkdir(exist_ok=True)
    (folder / JOURNAL).write_bytes(
        Journal(new, tuple(ReplacedFile.from_path(name, str(root / name)) for name in old)).dump()
    )
    return folder


def visible_files(root: Path, source: str = "") -> list[str]:
    return [str(Path(path).relative_to(root)) for path in find_sources(os.path.join(root, source))]


def test_decided_save_applies_wherever_its_files_are(tmp_path: Path) -> None:
    tree(tmp_path, "t/a.parquet", "t/k=1/b.parquet", "t/n2.parquet", f"t/{COMMIT}{JOB}/n1.parquet", "u.parquet")
    unfinished(tmp_path / "t", ("n1.parquet", "n2.parquet", "n3.parquet"), ("a.parquet", "k=1/b.parquet"))
    new = [f"t/{COMMIT}{JOB}/n1.parquet", "t/n2.parquet"]
    assert visible_files(tmp_path, "t") == new
    assert visible_files(tmp_path) == ["u.parquet", *new]
    assert visible_files(tmp_path, "t/*") == new
    assert visible_files(tmp_path, "?/n*.parquet") == new
    assert visible_files(tmp_path, "**/*1.parquet") == new[:1]
    with pytest.raises(FileNotFoundError, match="No file matches"):
        find_sources(str(tmp_path / "t" / "k=*" / "*"))


def test_files_added_by_others_are_visible(tmp_path: Path) -> None:
    unfinished(tree(tmp_path, "a.parquet"), (), ("a.parquet",))
    tree(tmp_path, "b.parquet")
    assert visible_files(tmp_path) == ["b.parquet"]


def test_modified_replaced_file_is_an_error(tmp_path: Path) -> None:
    unfinished(tree(tmp_path, "a.parquet"), (), ("a.parquet",))
    (tmp_path / "a.parquet").write_bytes(b"more")
    with pytest.raises(CorruptFileError, match=r"has changed since .*: remove the file, or rename it.*a\.parquet"):
        find_sources(tmp_path)


def test_staging_folder_without_a_journal_hides_no_files(tmp_path: Path) -> None:
    assert visible_files(tree(tmp_path, "a.parquet", f"{COMMIT}{JOB}/n.parquet")) == ["a.parquet"]


@pytest.mark.parametrize(
    "journal",
    [
        b"", b"[]", b"{", b"\xff", b'{"version": 2, "new": [], "old": []}', b'{"version": 1, "new": []}',
        b'{"version": 1, "new": ["../x"], "old": []}',
        b'{"version": 1, "new": [], "old": [["/x", 1, 1]]}', b'{"version": 1, "new": [], "old": [["a/../../x", 1, 1]]}',
        b'{"version": 1, "new": [], "old": ["a.parquet"]}', b'{"version": 1, "new": [], "old": [["a", 1, null]]}',
        b'{"version": 1, "new": [1], "old": []}', b'{"version": 1, "new": [""], "old": []}',
        b"[" * 100_000, b'{"version": 1, "new": [], "old": [["a", 1e999, 1]]}',
        b'{"version": 1, "new": ["\\ud800"], "old": []}', b'{"version": 1, "new": [], "old": [["\\ud800", 1, 1]]}',
    ],
)  # fmt: skip
def test_invalid_journal_is_an_error(tmp_path: Path, journal: bytes) -> None:
    folder = unfinished(tree(tmp_path, "a.parquet"), (), ())
    (folder / JOURNAL).write_bytes(journal)
    with pytest.raises(CorruptFileError, match=r"journal of an interrupted save is corrupt.*journal\.json"):
        pqext.read_table(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path, "a.parquet", "k=1/b.parquet")
    (tmp_path / "k=1").chmod(0)
    try:
        with pytest.raises(PermissionError):
            find_sources(tmp_path)
    finally:
        (tmp_path / "k=1").chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_journal_or_log_that_is_a_pipe_is_an_error_without_blocking(tmp_path: Path) -> None:
    folder = unfinished(tree(tmp_path / "saved", "a.parquet"), (), ())
    (folder / JOURNAL).unlink()
    os.mkfifo(folder / JOURNAL)
    tree(tmp_path / "streamed", "a.parquet", "_spark_metadata/x")
    os.mkfifo(tmp_path / "streamed" / "_spark_metadata" / "0")
    for name in ("saved", "streamed"):
        with pytest.raises(CorruptFileError, match="not a regular file"):
            find_sources(tmp_path / name)


@pytest.mark.slow
def test_folders_nest_to_the_limit_of_the_system(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath(*["a"] * 1200)
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("a", dir_fd=at)
        below = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    (deepest / "b.parquet").touch()
    try:
        assert find_sources(tmp_path) == (str(deepest / "b.parquet"),)
        assert find_sources(tmp_path / "**" / "b*") == (str(deepest / "b.parquet"),)
    finally:  # pytest removes folders by recursion
        (deepest / "b.parquet").unlink()
        for folder in (deepest, *deepest.parents[:1199]):
            folder.rmdir()
