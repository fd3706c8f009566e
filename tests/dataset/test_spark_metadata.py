"""In a folder of a streaming sink of Spark, the files count that its log names."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from pqext.core.base.errors import CorruptFileError, LimitError, UnsupportedError
from pqext.core.io.sources import pending_files
from pqext.dataset.files.manifests import SINK_LOG, SinkLog
from pqext.dataset.files.sources import find_sources
from reference.pace import SLOWER


def folder(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / SINK_LOG).mkdir(exist_ok=True)
    return root


def log(root: Path, batches: Mapping[str, list[str]]) -> None:
    """Batches by the names of their files; a file that begins with ``-`` is deleted."""
    for batch, names in batches.items():
        lines = ["v1"]
        for name in names:
            action = "delete" if name.startswith("-") else "add"
            path = (root / name.removeprefix("-")).as_uri()
            lines.append(json.dumps({"path": path, "size": 1, "isDir": False, "action": action}))
        (root / SINK_LOG / batch).write_text("\n".join(lines))


def visible_files(root: Path, source: str = "") -> list[str]:
    return [str(Path(path).relative_to(root)) for path in find_sources(str(root / source))]


def test_files_without_a_batch_are_ignored(tmp_path: Path) -> None:
    root = folder(tmp_path / "t", "a.parquet", "y=1/b c%2F.parquet", "orphan.parquet", "y=1/orphan.parquet")
    log(root, {"0": ["a.parquet"], "1": ["y=1/b c%2F.parquet"]})
    (root / SINK_LOG / ".2.tmp").write_text("v1\nbroken")
    assert visible_files(root) == ["a.parquet", "y=1/b c%2F.parquet"]
    assert visible_files(root, "*.parquet") == ["a.parquet"]
    assert visible_files(tmp_path) == ["t/a.parquet", "t/y=1/b c%2F.parquet"]
    assert find_sources(str(root / "orphan.parquet")) == (str(root / "orphan.parquet"),)


def test_log_combines_the_last_compact_file_with_later_batches(tmp_path: Path) -> None:
    root = folder(tmp_path, *(f"{i}.parquet" for i in range(6)))
    log(root, {"1": ["5.parquet"], "2.compact": ["0.parquet", "1.parquet"]})
    log(root, {"3": ["2.parquet", "-0.parquet"], "4": ["3.parquet"]})
    assert visible_files(root) == ["1.parquet", "2.parquet", "3.parquet"]
    (root / SINK_LOG / "3").unlink()
    with pytest.raises(CorruptFileError, match="does not contain batch 3"):
        visible_files(root)


def test_folder_may_move_but_files_must_exist(tmp_path: Path) -> None:
    root = folder(tmp_path / "t", "y=1/a.parquet", "y=2/a.parquet", "b.parquet")
    log(root, {"0": ["y=1/a.parquet", "b.parquet"]})
    moved = tmp_path / "elsewhere" / "deep"
    shutil.copytree(root, moved)
    assert visible_files(moved) == ["b.parquet", "y=1/a.parquet"]
    (root / "b.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.parquet: the file is listed in the log .* does not exist"):
        visible_files(root)


def test_empty_log_has_no_files_and_a_corrupt_log_is_named(tmp_path: Path) -> None:
    root = folder(tmp_path, "a.parquet")
    with pytest.raises(FileNotFoundError, match="The folder contains only hidden files"):
        visible_files(root)
    for text, error in (
        ("v2\n{}", UnsupportedError),
        ("v1\n{", CorruptFileError),
        ('v1\n{"path": 1, "action": "add"}', CorruptFileError),
        ('v1\n{"path": "/", "action": "add"}', CorruptFileError),
        ('v1\n{"path": "/a", "action": "move"}', CorruptFileError),
        ("v1\n[]", CorruptFileError),
        ("v1\n" + "[" * 100_000, CorruptFileError),
    ):
        (root / SINK_LOG / "0").write_text(text)
        with pytest.raises(error, match=rf"{SINK_LOG}/0"):
            visible_files(root)
    (root / SINK_LOG / "0").write_bytes(b"v1\n\xff")
    with pytest.raises(CorruptFileError, match="corrupt"):
        visible_files(root)


def test_files_with_the_same_name_in_many_folders_take_linear_time(tmp_path: Path) -> None:
    count = 30_000
    entries = tuple(("old", "place", f"k={i}", "a.parquet") for i in range(count))
    files = [entry[2:] for entry in entries]
    began = time.process_time()
    assert SinkLog("", entries).committed_files([*files, ("k=x", "a.parquet"), ("a.parquet",)], True) == set(files) | {
        ("a.parquet",)
    }
    assert time.process_time() - began < 2 * SLOWER


def test_length_of_log_lines_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_files, "MAX_MANIFEST_BYTES", 1000)
    names = [f"part-{number}.parquet" for number in range(100)]
    log(folder(tmp_path, *names, "stray.parquet"), {"9.compact": names})
    assert (tmp_path / SINK_LOG / "9.compact").stat().st_size > 1000
    assert sorted(visible_files(tmp_path)) == sorted(names)
    with (tmp_path / SINK_LOG / "10").open("wb") as file:
        file.write(b"v1\n")
        file.truncate(1 << 40)  # zeros without end, which take no space
    with pytest.raises(LimitError, match=r"a line of the manifest has 1,048,576 bytes.*10"):
        visible_files(tmp_path)
