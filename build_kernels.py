"""Compile the kernels for setup.py: every .pyx below pqext, each only when its sources or the flags have changed.

Finished modules are cached by the hash of everything they were built from, in a folder for each interpreter, compiler
and set of flags. Times are not compared: pip builds in temporary folders, and a checkout has new times. Environment
variables:

    PQEXT_KERNEL_FLAGS   flags for the compiler that replace the result of `flags`, for example for a sanitizer; modules
                         are then not stripped
    PQEXT_KERNEL_CACHE   cache of finished modules, build/kernels by default; several trees may share it
    CC, CFLAGS, LDFLAGS  as for any build; `CC="ccache gcc"` works

The folder in the cache depends on these variables, except for the cache and ccache, and on the versions of compiler and
C library. Modules are translated by Cython and compiled in separate processes, as soon as a processor is free, the
longest first. The C files are cached too, for builds with other flags.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any

ROOT = Path(__file__).resolve().parent
SHARED = "pqext.core.kernels._cython"
"""The module that holds Cython's own code (memory views above all) once, instead of once in every kernel."""
INLINING = "--param=large-unit-insns=100000"
"""GCC inlines less in large files, which makes kernels that share a module up to a tenth slower. Clang ignores it."""
KEPT = 4
"""Maximum number of versions of a module in a cache, enough for several branches or trees."""
DIRECTIVES = {"language_level": 3, "emit_code_comments": False, "show_performance_hints": False}
NEEDS = re.compile(
    r"""^[ \t]*(?:
        from[ \t]+(?P<package>[.\w]+)[ \t]+cimport[ \t]+(?P<names>\([^)]*\)|[^\n]*)
      | cimport[ \t]+(?P<modules>[^\n]*)
      | include[ \t]+["'](?P<include>[^"']+)["']
      | cdef[ \t]+extern[ \t]+from[ \t]+["'](?P<header>[^"']+)["']
      | \#[ \t]*include[ \t]+"(?P<quoted>[^"]+)"
    )""",
    re.M | re.X,
)


def kernels(root: Path = ROOT) -> dict[str, Path]:
    """The source of each kernel by the name of its module, below ``root`` and relative to it."""
    sources = sorted(path.relative_to(root) for path in (root / "pqext").rglob("*.pyx"))
    return {".".join(source.with_suffix("").parts): source for source in sources}


def _named(source: Path, text: str) -> Iterator[Path]:
    """The files that ``text``, the content of ``source``, may take in; most of these names exist nowhere."""
    for found in NEEDS.finditer(text):
        modules = []
        if found["package"]:
            package = found["package"]
            up = len(package) - len(package.lstrip("."))
            base = source.parents[up - 1].parts if up else ()
            modules = [(*base, *filter(None, package.split(".")))]
            modules += [(*modules[0], name) for name in re.findall(r"\w+", found["names"])]
        elif found["modules"]:
            modules = [tuple(name.split(".")) for name in re.findall(r"[.\w]+", found["modules"])]
        for parts in modules:
            if parts:
                yield Path(*parts).with_suffix(".pxd")
        for name in (found["include"], found["header"], found["quoted"]):
            if name:
                yield source.parent / name
                yield Path(name)


def needs(source: Path, root: Path = ROOT) -> list[Path]:
    """All files of the tree that the kernel ``source`` is made from, itself included, relative to ``root``."""
    found: set[Path] = set()
    waiting = [source, source.with_suffix(".pxd")]
    while waiting:
        path = Path(os.path.normpath(waiting.pop()))
        if path not in found and (root / path).is_file():
            found.add(path)
            waiting += _named(path, (root / path).read_text("utf-8"))
    return sorted(found)


def stamp(source: Path | None, version: str, root: Path = ROOT) -> str:
    """The hash of everything a module is made from but the toolchain; None stands for the shared module."""
    made = hashlib.sha256(repr((version, SHARED, sorted(DIRECTIVES.items()))).encode())
    for path in needs(source, root) if source else ():
        content = (root / path).read_bytes().replace(b"\r\n", b"\n")
        made.update(repr((path.as_posix(), hashlib.sha256(content).hexdigest())).encode())
    return made.hexdigest()


def weight(source: Path, root: Path = ROOT) -> int:
    """An estimate of how long a kernel takes, for the longest to come first."""
    own = (root / source).stat().st_size
    return own + sum((root / path).stat().st_size for path in needs(source, root)) // 2


@dataclass(frozen=True)
class Flags:
    compile: tuple[str, ...]
    link: tuple[str, ...] = ()


def flags(compiler: str, system: str, override: str | None) -> Flags:
    """Flags for a compiler of setuptools (`unix`, `msvc`, `mingw32`) on a platform; ``override`` replaces them."""
    if override is not None:
        return Flags(tuple(shlex.split(override)))
    if compiler == "msvc":
        return Flags(("/O2",))
    if system.startswith(("linux", "win32")):
        return Flags(("-O3", "-g0", INLINING), ("-Wl,-s",))
    return Flags(("-O3", "-g0"))


def plain(command: Sequence[str]) -> list[str]:
    """A command without ccache, which changes nothing in what is made."""
    return [word for word in command if Path(word).stem != "ccache"]


def toolchain(compiler: Sequence[str]) -> list[str]:
    """Return the versions of the C library and the compiler, if known: a container may share the cache of its host."""
    told = ["-".join(platform.libc_ver())]
    if compiler:
        try:
            done = subprocess.run([plain(compiler)[0], "--version"], capture_output=True, text=True, check=False)
        except OSError:
            return told  # the compiler reports the error
        told += done.stdout.splitlines()[:1]
    return told


def folder_name(flags: Flags, commands: Sequence[Sequence[str]], tools: Sequence[str] = ()) -> str:
    """The folder for modules of this interpreter, made by these ``commands`` of compiler and linker and ``tools``."""
    words = [plain(command) for command in commands]
    made_by = (flags, words, list(tools), sys.version_info[:2], sysconfig.get_platform())
    made = hashlib.sha256(repr(made_by).encode()).hexdigest()
    tag = str(sysconfig.get_config_var("EXT_SUFFIX") or sys.implementation.cache_tag).strip(".").split(".")[0]
    return f"{tag}-{made[:12]}"


@dataclass(frozen=True)
class Cache:
    """Finished modules in one folder, each under its name and stamp, so that trees that share it cannot mix them up."""

    folder: Path

    def module(self, name: str, stamp: str) -> Path:
        return self.folder / f"{name}-{stamp[:16]}.module"

    def holds(self, name: str, stamp: str) -> bool:
        return self.module(name, stamp).is_file()

    def keep(self, name: str, stamp: str, built: Path) -> None:
        """Take a copy of ``built``, in one step, and drop the oldest of more than ``KEPT`` copies of the module."""
        replace(built, self.module(name, stamp))
        copies = sorted(self.folder.glob(f"{name}-*.module"), key=lambda path: path.stat().st_mtime_ns)
        for old in copies[:-KEPT]:
            old.unlink(missing_ok=True)


def replace(source: Path, target: Path) -> None:
    """Copy a file in one step: a process that has the old one open keeps it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, made)
    shutil.copymode(source, made)
    os.replace(made, target)


def same(a: Path, b: Path) -> bool:
    return a.is_file() and b.is_file() and a.read_bytes() == b.read_bytes()


def orphans(folder: Path, made: Collection[str], suffix: str) -> list[Path]:
    """Modules below ``folder`` of this interpreter that are not ``made`` any more: Python would still import them."""
    modules = sorted((folder / "pqext").rglob(f"*{suffix}"))
    return [path for path in modules if str(path.relative_to(folder)) not in made]


def translate(name: str, source: str, folder: str) -> str:
    """Cython's C of one module, below ``folder``; its path. Runs in a process of its own."""
    from Cython.Build import cythonize
    from setuptools import Extension

    os.chdir(ROOT)
    options: dict[str, Any] = {"shared_utility_qualified_name": SHARED, "compiler_directives": DIRECTIVES}
    [made] = cythonize([Extension(name, [source])], build_dir=folder, force=True, quiet=True, **options)
    return str(made.sources[0])


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(tasks: Iterable[Any], work: Callable[[Any], None], workers: int) -> None:
    """Do ``work`` for each task in order, ``workers`` at a time. After an error no further task begins."""
    failed = Event()

    def attempt(task: Any) -> None:
        if not failed.is_set():
            try:
                work(task)
            except BaseException:
                failed.set()
                raise

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(attempt, task) for task in tasks]:
            done.result()


def translators(workers: int) -> Executor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
