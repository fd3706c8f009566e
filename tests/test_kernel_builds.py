"""Which kernels are compiled, with which flags: decided by content alone."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reference.effort import some

ROOT = Path(__file__).resolve().parent.parent


def load() -> Any:
    spec = importlib.util.spec_from_file_location("build_kernels", ROOT / "build_kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


build = load()
TREE = {
    "alone.pyx": "from libc.math cimport sqrt\n",
    "a.pyx": 'from pqext.part.b cimport f, g\ninclude "walk.pxi"\n',
    "a.pxd": "cdef int own\n",
    "b.pyx": "cdef int f(): return 1\n",
    "b.pxd": "cimport pqext.part.c\ncdef int f()\n",
    "c.pxd": 'cdef extern from "lowest.h" nogil:\n    int low\n',
    "walk.pxi": "from pqext.part cimport (\n    d,\n)\n",
    "d.pxd": 'cdef extern from *:\n    """\n    #include "pqext/part/verbatim.h"\n    """\n    int x\n',
    "lowest.h": '#include "below.h"\n',
    "below.h": "#define BELOW 1\n",
    "verbatim.h": "#define X 1\n",
    "stray.h": "#define Y 1\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "pqext" / "part"
    folder.mkdir(parents=True)
    for name, text in TREE.items():
        (folder / name).write_text(text, "utf-8")
    return tmp_path


def stamps(tree: Path) -> dict[str, str]:
    return {name.rpartition(".")[2]: build.stamp(source, "3.1", tree) for name, source in build.kernels(tree).items()}


@pytest.mark.parametrize(
    ("changed", "rebuilt"),
    [
        ("alone.pyx", {"alone"}),
        ("a.pyx", {"a"}),
        ("a.pxd", {"a"}),
        ("b.pyx", {"b"}),
        ("b.pxd", {"a", "b"}),
        ("c.pxd", {"a", "b"}),
        ("lowest.h", {"a", "b"}),
        ("below.h", {"a", "b"}),
        ("walk.pxi", {"a"}),
        ("d.pxd", {"a"}),
        ("verbatim.h", {"a"}),
        ("stray.h", set()),
    ],
)
def test_changed_file_rebuilds_exactly_its_kernels(tree: Path, changed: str, rebuilt: set[str]) -> None:
    before = stamps(tree)
    with (tree / "pqext" / "part" / changed).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    after = stamps(tree)
    assert {name for name in before if before[name] != after[name]} == rebuilt


def test_changed_times_and_line_endings_rebuild_nothing(tree: Path) -> None:
    before = stamps(tree)
    for path in (tree / "pqext" / "part").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        os.utime(path, (1, 1))
    assert stamps(tree) == before


def test_another_cython_version_rebuilds_everything(tree: Path) -> None:
    source = Path("pqext", "part", "a.pyx")
    assert build.stamp(source, "3.1", tree) != build.stamp(source, "3.2", tree)
    assert build.stamp(None, "3.1", tree) != build.stamp(None, "3.2", tree)


def test_dependencies_match_those_found_by_cython() -> None:
    dependencies = pytest.importorskip("Cython.Build.Dependencies", reason="only builds need Cython")
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        tree = dependencies.create_dependency_tree(quiet=True)
        for source in some([*build.kernels().values()], 4):
            theirs = {Path(os.path.normpath(path)) for path in tree.all_dependencies(str(source))}
            ours = set(build.needs(source))
            assert {path for path in theirs if path.parts[0] == "pqext"} <= ours, source
            assert {path for path in ours if path.suffix != ".h"} <= theirs, source
    finally:
        os.chdir(here)


def test_flags_suit_the_compiler_and_the_platform() -> None:
    assert build.flags("unix", "linux", None) == build.Flags(("-O3", "-g0", build.INLINING), ("-Wl,-s",))
    assert build.flags("unix", "darwin", None) == build.Flags(("-O3", "-g0"))
    assert build.flags("msvc", "win32", None) == build.Flags(("/O2",))
    assert build.flags("unix", "linux", "-O1 -fsanitize=address") == build.Flags(("-O1", "-fsanitize=address"))


def test_each_toolchain_has_its_own_modules_and_ccache_is_ignored() -> None:
    flags = build.flags("unix", "linux", None)
    plain = build.folder_name(flags, [["gcc", "-O2"], ["gcc", "-shared"]])
    assert build.folder_name(flags, [["/usr/bin/ccache", "gcc", "-O2"], ["ccache", "gcc", "-shared"]]) == plain
    others = {
        build.folder_name(build.flags("unix", "linux", "-O1"), [["gcc", "-O2"], ["gcc", "-shared"]]),
        build.folder_name(flags, [["clang", "-O2"], ["gcc", "-shared"]]),
        build.folder_name(flags, [["gcc", "-O2"], ["gcc", "-shared", "-fsanitize=address"]]),
        build.folder_name(flags, [["gcc", "-O2"], ["gcc", "-shared"]], ["glibc-2.28", "gcc 14"]),
    }
    assert len(others | {plain}) == 5


def test_toolchain_is_identified_by_compiler_and_library_versions(tmp_path: Path) -> None:
    compilers = [tmp_path / name for name in ("old", "new")]
    for compiler in compilers:
        compiler.write_text(f"#!/bin/sh\necho cc {compiler.name}\necho more\n", "utf-8")
        compiler.chmod(0o755)
    if os.name == "posix":
        assert [build.toolchain(["ccache", str(one), "-O2"])[1:] for one in compilers] == [["cc old"], ["cc new"]]
    assert build.toolchain([str(tmp_path / "gone")]) == build.toolchain([])


def test_module_is_used_only_with_its_own_stamp(tmp_path: Path) -> None:
    cache = build.Cache(tmp_path / "kept")
    built = tmp_path / "built.so"
    built.write_bytes(b"\x7fELF")
    assert not cache.holds("a", "one")
    cache.keep("a", "one", built)
    assert cache.holds("a", "one")
    assert not cache.holds("a", "two")
    assert cache.module("a", "one").read_bytes() == b"\x7fELF"


def test_trees_that_share_a_cache_use_their_own_modules(tmp_path: Path) -> None:
    cache = build.Cache(tmp_path / "kept")
    for stamp in ("one", "two", "one"):  # in turn, as by two builds at a time
        (tmp_path / "built.so").write_text(stamp, "ascii")
        cache.keep("a", stamp, tmp_path / "built.so")
    assert {stamp: cache.module("a", stamp).read_text("ascii") for stamp in ("one", "two")} == {
        "one": "one",
        "two": "two",
    }


def test_cache_retains_the_newest_modules_of_each_name(tmp_path: Path) -> None:
    cache = build.Cache(tmp_path / "kept")
    built = tmp_path / "built.so"
    built.write_bytes(b"\x7fELF")
    cache.keep("a_longer_name", "0", built)
    for number in range(build.KEPT + 2):
        cache.keep("a", str(number), built)
        os.utime(cache.module("a", str(number)), (number, number))
    assert [cache.holds("a", str(number)) for number in range(build.KEPT + 2)] == [False] * 2 + [True] * build.KEPT
    assert cache.holds("a_longer_name", "0")


def test_interrupted_build_leaves_no_module(tmp_path: Path) -> None:
    cache = build.Cache(tmp_path / "kept")
    with pytest.raises(FileNotFoundError):
        cache.keep("a", "one", tmp_path / "gone.so")
    assert not cache.holds("a", "one")


def test_modules_without_a_source_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "pqext" / "part"
    folder.mkdir(parents=True)
    for name in ("a.x.so", "gone.x.so", "gone.y.so", "a.py"):
        (folder / name).touch()
    assert build.orphans(tmp_path, {str(Path("pqext", "part", "a.x.so"))}, ".x.so") == [folder / "gone.x.so"]


def test_first_error_cancels_builds_that_have_not_started() -> None:
    begun = []

    def work(task: int) -> None:
        begun.append(task)
        if task == 1:
            raise ValueError("does not compile")

    with pytest.raises(ValueError, match="does not compile"):
        build.run_all(range(50), work, 1)
    assert 0 in begun
    assert 49 not in begun
