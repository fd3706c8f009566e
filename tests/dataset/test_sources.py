"""Paths, lists, directories and patterns name the files of a dataset, in order, without the hidden ones."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import LimitError, UnsupportedError
from pqext.dataset.files.folders import expand_braces
from pqext.dataset.files.sources import find_sources, source_name


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


def test_directory_includes_all_files_below_it(tree: Path) -> None:
    assert names(tree, tree) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree)) == names(tree, tree)


def test_links_to_folders_are_followed_if_named(tree: Path) -> None:
    (tree / "k=3").symlink_to(tree / "k=2")
    (tree / "k=4").symlink_to(tree)  # a loop
    for whole in (tree, tree / "**" / "*.parquet"):
        assert names(tree, str(whole)) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    for named in ("k=3", "k=3/*", "k=[3]/*", "k=[3]"):
        assert names(tree, str(tree / named)) == ["k=3/d.parquet"], named


@pytest.mark.parametrize(("link", "goal"), [("k=2", "missing"), ("k=2", "k=2"), ("k=1/x.parquet", "missing")])
def test_broken_links_are_named_with_a_remedy(tmp_path: Path, link: str, goal: str) -> None:
    rows = pa.table({"id": [1], "k": [1]})
    pqext.write_dataset(rows, tmp_path, ["k"])
    (tmp_path / link).symlink_to(goal)
    before = sorted(map(str, tmp_path.rglob("*")))
    for use in (
        lambda: pqext.scan(tmp_path).to_table(), lambda: pqext.scan(tmp_path / link).count(),
        lambda: pqext.write_dataset(rows, tmp_path, ["k"], mode="overwrite"),
    ):  # fmt: skip
        with pytest.raises(OSError, match=f"it is a symbolic link to '{goal}'; remove the link, or") as error:
            use()
        assert error.value.filename == str(tmp_path / link)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_patterns_match_in_order(tree: Path) -> None:
    assert names(tree, str(tree / "*.parquet")) == ["a.parquet", "b.parquet"]
    assert names(tree, str(tree / "*")) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "**" / "*.parquet")) == ["a.parquet", "b.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "k=[2]" / "*")) == ["k=2/d.parquet"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("[^b].parquet", ["a.parquet"]), ("[!b].parquet", ["a.parquet"]), ("[b^].parquet", ["b.parquet"]),
        ("[^]b].parquet", ["a.parquet"]), ("k=[^1]/[^c]*", ["k=2/d.parquet"]),
    ],
)
def test_caret_in_brackets_negates_like_in_hadoop(tree: Path, pattern: str, found: list[str]) -> None:
    assert names(tree, str(tree / pattern)) == found


def test_braces_contain_alternatives(tree: Path) -> None:
    assert names(tree, str(tree / "{b,a,none}.parquet")) == ["a.parquet", "b.parquet"]
    assert names(tree, str(tree / "k={1,2}")) == ["k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "{a.parquet,k={1,2}/*}")) == ["a.parquet", "k=1/c.parquet", "k=2/d.parquet"]
    assert names(tree, str(tree / "{**/[a-c],b}.parquet")) == ["a.parquet", "b.parquet", "k=1/c.parquet"]
    assert names(tree, str(tree / "{a,a}.parquet")) == ["a.parquet"]
    (tree / "{a,b}.parquet").touch()
    assert names(tree, str(tree / "{a,b}.parquet")) == ["{a,b}.parquet"]
    with pytest.raises(FileNotFoundError, match="No file matches this pattern"):
        find_sources(str(tree / "{x,y}.parquet"))
    with pytest.raises(FileNotFoundError, match="No such file"):
        find_sources(str(tree / "{x}.parquet"))


def test_folders_of_alternatives_are_partition_columns(tree: Path) -> None:
    for name in ("k=1/c.parquet", "k=2/d.parquet"):
        pq.write_table(pa.table({"x": [int(name[2])]}), tree / name)
    assert pqext.read_table(str(tree / "k={1,2}")).to_pylist() == [{"x": 1, "k": 1}, {"x": 2, "k": 2}]


@pytest.mark.parametrize("pattern", ["{a,b}" * 20, "{" * 3000, "{,}" * 300, "{a," * 500])
def test_patterns_with_many_expansions_terminate_quickly(pattern: str) -> None:
    with pytest.raises((LimitError, OSError)):
        find_sources(pattern)


@pytest.mark.parametrize("pattern", ["{" * 50_000, "{" * 50_000 + "}" * 50_000, "{a}" * 30_000 + "{b,c}" * 5])
def test_long_patterns_are_scanned_once(pattern: str) -> None:
    began = time.process_time()
    assert len(expand_braces(pattern)) in (1, 32)
    assert time.process_time() - began < 20


def test_deeply_nested_braces_are_rejected() -> None:
    with pytest.raises(LimitError, match="too many braces"):
        expand_braces("{a," * 20_000 + "}" * 20_000)


@given(st.text(st.sampled_from("{},ab"), max_size=14))
def test_alternatives_expand_each_pair_of_braces_in_turn(pattern: str) -> None:
    def expanded(text: str) -> list[str]:
        for start in (at for at, letter in enumerate(text) if letter == "{"):
            depth, parts = 0, [""]
            for at, letter in enumerate(text[start:], start):
                depth += {"{": 1, "}": -1}.get(letter, 0)
                if depth == 0:
                    if len(parts) > 1:
                        return [one for part in parts for one in expanded(text[:start] + part + text[at + 1 :])]
                    break
                if letter == "," and depth == 1:
                    parts.append("")
                elif at > start:
                    parts[-1] += letter
        return [text]

    assert expand_braces(pattern) == [*dict.fromkeys(expanded(pattern))]


def test_hidden_file_is_read_if_named(tree: Path) -> None:
    assert names(tree, tree / "_SUCCESS") == ["_SUCCESS"]
    assert names(tree, tree / ".hidden") == [".hidden/f.parquet"]
    assert names(tree, str(tree / ".hidden" / "*.parquet")) == [".hidden/f.parquet"]


def test_file_with_a_name_like_a_pattern_is_read(tree: Path) -> None:
    (tree / "x[1].parquet").touch()
    assert names(tree, tree / "x[1].parquet") == ["x[1].parquet"]


def test_lists_preserve_their_order(tree: Path) -> None:
    assert names(tree, [tree / "b.parquet", str(tree / "k=*" / "*"), tree / "a.parquet"]) == [
        "b.parquet", "k=1/c.parquet", "k=2/d.parquet", "a.parquet",
    ]  # fmt: skip


def test_objects_that_are_not_paths_are_passed_through() -> None:
    data = b"PAR1"
    assert find_sources(data) == (data,)
    assert find_sources([data, data]) == (data, data)
    assert source_name(data) == "<bytes>"
    assert source_name("x") == "x"


def test_sources_without_files_are_errors(tree: Path) -> None:
    (tree / "empty").mkdir()
    (tree / "hidden").mkdir()
    (tree / "hidden" / "_SUCCESS").touch()
    for missing, reason in (
        (tree / "none.parquet", "No such file or directory"),
        (tree / "_temporary" / "1", "No such file or directory"),
        (str(tree / "*.none"), "No file matches this pattern"),
        (tree / "empty", "The folder is empty"),
        (tree / "hidden", "The folder contains only hidden files"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            find_sources([missing])
        assert (caught.value.filename, caught.value.strerror) == (str(missing), reason)


def test_missing_file_message_is_equal_for_scans_and_files(tree: Path) -> None:
    told = []
    for read in (pqext.read_table, pqext.open):
        with pytest.raises(FileNotFoundError) as caught:
            read(tree / "none.parquet")
        told.append(str(caught.value))
    assert told == [f"[Errno 2] No such file or directory: '{tree / 'none.parquet'}'"] * 2


def test_empty_lists_and_unsupported_paths_are_errors(tree: Path) -> None:
    with pytest.raises(ValueError, match="list of sources is empty"):
        find_sources([])
    with pytest.raises(UnsupportedError, match="is not a local file"):
        find_sources("nowhere://bucket/key")
    with pytest.raises(TypeError, match="a path must be text"):
        find_sources(_BytesPath())


class _BytesPath:
    def __fspath__(self) -> bytes:
        return b"x"


REMOTE = [*(f"t/year={year}/m=0{month}/f{month}.parquet" for year in (2020, 2021) for month in range(3)), "t/_SUCCESS"]


@pytest.fixture
def memory() -> Iterator[Any]:
    """A folder of partitions in fsspec's file system in memory."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name in REMOTE:
        sink = io.BytesIO()
        pq.write_table(pa.table({"f": [name[-9:-8]]}), sink)
        store.pipe(f"/{name}", sink.getvalue())
    yield store
    store.rm("/t", recursive=True)


@pytest.mark.parametrize(
    ("source", "months"),
    [
        ("memory://t", [0, 1, 2, 0, 1, 2]),
        ("memory://t/year=2021/", [0, 1, 2]),
        ("memory://t/*/m=01", [1, 1]),
        ("memory://t/**/f[02].parquet", [0, 2, 0, 2]),
        ("memory://t/**/f[^1].parquet", [0, 2, 0, 2]),
        ("memory://t/year=202{0,1}/m=0{1,7}", [1, 1]),
        ("memory://t/year=2020/m=02/f2.parquet", [2]),
        (["memory://t/year=2021/m=01/f1.parquet", "memory://t/year=2020"], [1, 0, 1, 2]),
    ],
)
def test_folders_and_patterns_of_other_file_systems_have_partitions(
    memory: Any, source: Any, months: list[int]
) -> None:
    table = pqext.read_table(source)
    assert table["f"].to_pylist() == list(map(str, months))
    if "m" in table.column_names:
        assert table["m"].to_pylist() == [f"{month:02}" for month in months]


def test_excluded_files_of_other_file_systems_are_not_opened(memory: Any) -> None:
    for name in REMOTE[:3]:
        memory.pipe(f"/{name}", b"no Parquet")
    found = pqext.scan("memory://t", filter=(pqext.col("year") == 2021) & (pqext.col("m") == "02"))
    assert found.to_table().num_rows == 1
    assert sum(task.prune_reason is None for task in found.plan()) == 1


def test_missing_path_in_another_file_system_is_reported(memory: Any) -> None:
    for source in ("memory://none", "memory://t/year=1*"):
        with pytest.raises(FileNotFoundError):
            pqext.scan(source)
