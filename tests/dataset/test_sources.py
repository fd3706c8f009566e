"""Paths, lists, directories and patterns name the files of a dataset, in order, without the hidden ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import pqext
from pqext.core.errors import UnsupportedError
from pqext.dataset.sources import find_sources, source_name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "b.parquet", "a.parquet", "_SUCCESS", ".b.parquet.crc", "k=1/c.parquet", "k=2/d.parquet",
        "_temporary/0/e.parquet", ".hidden/f.parquet",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def names(tree: Path, sources: object) -> list[str]:
    return [str(Path(found).relative_to(tree)) for found in find_sources(sources)]


def test_a_directory_stands_for_all_files_below_it(tree: Path) -> None:
    assert names(tree, tree) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree)) == names(tree, tree)


def test_links_to_folders_are_followed_where_they_are_named(tree: Path) -> None:
    (tree / "k=3").symlink_to(tree / "k=2")
    (tree / "k=4").symlink_to(tree)  # a loop
    for whole in (tree, tree / "**" / "*.parquet"):
        assert names(tree, str(whole)) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    for named in ("k=3", "k=3/*", "k=[3]/*", "k=[3]"):
        assert names(tree, str(tree / named)) == ["k=3/d.parquet"], named


def test_patterns_match_in_order(tree: Path) -> None:
    assert names(tree, str(tree / "*.parquet")) == ["a.parquet", "b.parquet"]
    assert names(tree, str(tree / "*")) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "**" / "*.parquet")) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "k=[2]" / "*")) == ["k=2/d.parquet"]


def test_a_hidden_file_that_is_named_is_read(tree: Path) -> None:
    assert names(tree, tree / "_SUCCESS") == ["_SUCCESS"]
    assert names(tree, tree / ".hidden") == [".hidden/f.parquet"]
    assert names(tree, str(tree / ".hidden" / "*.parquet")) == [".hidden/f.parquet"]


def test_a_file_whose_name_looks_like_a_pattern_is_found(tree: Path) -> None:
    (tree / "x[1].parquet").touch()
    assert names(tree, tree / "x[1].parquet") == ["x[1].parquet"]


def test_lists_keep_their_order(tree: Path) -> None:
    assert names(tree, [tree / "b.parquet", str(tree / "k=*" / "*"), tree / "a.parquet"]) == [
        "b.parquet", "k=1/c.parquet", "k=2/d.parquet", "a.parquet",
    ]  # fmt: skip


def test_what_is_no_path_is_passed_on() -> None:
    data = b"PAR1"
    assert find_sources(data) == (data,)
    assert find_sources([data, data]) == (data, data)
    assert source_name(data) == "<bytes>"
    assert source_name("x") == "x"


def test_sources_that_name_nothing_are_errors(tree: Path) -> None:
    (tree / "empty").mkdir()
    for missing, reason in (
        (tree / "none.parquet", "No such file or directory"),
        (tree / "_temporary" / "1", "No such file or directory"),
        (str(tree / "*.none"), "No file matches this pattern"),
        (tree / "empty", "No file in this folder but hidden ones"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            find_sources([missing])
        assert (caught.value.filename, caught.value.strerror) == (str(missing), reason)


def test_a_missing_file_is_told_in_the_same_words_by_a_scan_and_by_the_file_itself(tree: Path) -> None:
    told = []
    for read in (pqext.read_table, pqext.open):
        with pytest.raises(FileNotFoundError) as caught:
            read(tree / "none.parquet")
        told.append(str(caught.value))
    assert told == [f"[Errno 2] No such file or directory: '{tree / 'none.parquet'}'"] * 2


def test_an_empty_list_and_remote_or_strange_paths_are_errors(tree: Path) -> None:
    with pytest.raises(ValueError, match="list of sources is empty"):
        find_sources([])
    with pytest.raises(UnsupportedError, match="not a local file"):
        find_sources("s3://bucket/key")
    with pytest.raises(TypeError, match="a path is text"):
        find_sources(_BytesPath())


class _BytesPath:
    def __fspath__(self) -> bytes:
        return b"x"
