"""A folder with an unfinished save is seen as that save leaves it; folders of others are taken as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pqext
from pqext.core.errors import CorruptFileError
from pqext.dataset.folders import COMMIT, JOURNAL, Journal, Old
from pqext.dataset.sources import find_sources

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
    (folder / JOURNAL).write_bytes(Journal(new, tuple(Old.of(name, str(root / name)) for name in old)).dump())
    return folder


def seen(root: Path, source: str = "") -> list[str]:
    return [str(Path(path).relative_to(root)) for path in find_sources(os.path.join(root, source))]


def test_a_decided_save_counts_wherever_its_files_are(tmp_path: Path) -> None:
    tree(tmp_path, "t/a.parquet", "t/k=1/b.parquet", "t/n2.parquet", f"t/{COMMIT}{JOB}/n1.parquet", "u.parquet")
    unfinished(tmp_path / "t", ("n1.parquet", "n2.parquet", "n3.parquet"), ("a.parquet", "k=1/b.parquet"))
    new = [f"t/{COMMIT}{JOB}/n1.parquet", "t/n2.parquet"]
    assert seen(tmp_path, "t") == new
    assert seen(tmp_path) == ["u.parquet", *new]
    assert seen(tmp_path, "t/*") == new
    assert seen(tmp_path, "?/n*.parquet") == new
    assert seen(tmp_path, "**/*1.parquet") == new[:1]
    with pytest.raises(FileNotFoundError, match="No file matches"):
        find_sources(str(tmp_path / "t" / "k=*" / "*"))


def test_files_that_others_add_to_it_are_seen(tmp_path: Path) -> None:
    unfinished(tree(tmp_path, "a.parquet"), (), ("a.parquet",))
    tree(tmp_path, "b.parquet")
    assert seen(tmp_path) == ["b.parquet"]


def test_a_replaced_file_that_was_written_anew_is_an_error(tmp_path: Path) -> None:
    unfinished(tree(tmp_path, "a.parquet"), (), ("a.parquet",))
    (tmp_path / "a.parquet").write_bytes(b"more")
    with pytest.raises(CorruptFileError, match=r"has changed since: remove it, or rename it.*a\.parquet"):
        find_sources(tmp_path)


def test_a_folder_of_a_save_without_its_journal_hides_nothing(tmp_path: Path) -> None:
    assert seen(tree(tmp_path, "a.parquet", f"{COMMIT}{JOB}/n.parquet")) == ["a.parquet"]


@pytest.mark.parametrize(
    "journal",
    [
        b"", b"[]", b"{", b"\xff", b'{"version": 2, "new": [], "old": []}', b'{"version": 1, "new": []}',
        b'{"version": 1, "new": ["../x"], "old": []}', b'{"version": 1, "new": ["a/x"], "old": []}',
        b'{"version": 1, "new": [], "old": [["/x", 1, 1]]}', b'{"version": 1, "new": [], "old": [["a/../../x", 1, 1]]}',
        b'{"version": 1, "new": [], "old": ["a.parquet"]}', b'{"version": 1, "new": [], "old": [["a", 1, null]]}',
        b'{"version": 1, "new": [1], "old": []}', b'{"version": 1, "new": [""], "old": []}',
    ],
)  # fmt: skip
def test_a_journal_that_cannot_be_followed_is_an_error(tmp_path: Path, journal: bytes) -> None:
    folder = unfinished(tree(tmp_path, "a.parquet"), (), ())
    (folder / JOURNAL).write_bytes(journal)
    with pytest.raises(CorruptFileError, match=r"journal of an interrupted save is damaged.*journal\.json"):
        pqext.read_table(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_read_is_an_error_and_not_empty(tmp_path: Path) -> None:
    tree(tmp_path, "a.parquet", "k=1/b.parquet")
    (tmp_path / "k=1").chmod(0)
    try:
        with pytest.raises(PermissionError):
            find_sources(tmp_path)
    finally:
        (tmp_path / "k=1").chmod(0o755)
