"""What a checkout must hold so that wheels, editable installs and type checkers find all of it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
KERNELS = sorted(path.relative_to(ROOT) for path in (ROOT / "pqext").rglob("*.pyx"))
SOURCES = sorted(
    path.relative_to(ROOT)
    for suffix in ("*.py", "*.pyx", "*.pxd")
    for path in (ROOT / "pqext").rglob(suffix)
    if "build" not in path.relative_to(ROOT).parts
)
MOST_LINES = 450


def commands(document: str) -> list[str]:
    """The README's shell commands: the lines of its ``sh`` blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document, re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def test_every_kernel_is_typed() -> None:
    assert len(KERNELS) > 20
    assert [str(kernel) for kernel in KERNELS if not (ROOT / kernel.with_suffix(".pyi")).is_file()] == []


def test_no_kernel_switches_bounds_checks_off_for_a_whole_module() -> None:
    unchecked = re.compile(r"^\s*#\s*cython:.*boundscheck\s*=\s*False", re.M)
    assert [str(kernel) for kernel in KERNELS if unchecked.search((ROOT / kernel).read_text("utf-8"))] == []


def test_source_files_stay_readable() -> None:
    lengths = {str(source): len((ROOT / source).read_text("utf-8").splitlines()) for source in SOURCES}
    assert {source: lines for source, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_folder_of_code_is_a_package() -> None:
    bare = {str(source.parent) for source in SOURCES if not (ROOT / source.parent / "__init__.py").is_file()}
    assert bare == set()


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "pqext" / "py.typed").is_file()
    assert {"*.pxd", "*.pyi", "py.typed"} <= set(PROJECT["tool"]["setuptools"]["package-data"]["*"])


def test_the_tests_are_no_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == [], "importlib mode and a bare `reference` rely on it"


def test_ci_runs_the_commands_of_the_readme() -> None:
    readme = commands((ROOT / "README.md").read_text("utf-8"))
    assert readme == ["pip install -e '.[spark]' && pqext demo", "pip install -e '.[spark,test]' && pytest"]
    assert readme[1] in (ROOT / ".ci" / "run").read_text("utf-8")
