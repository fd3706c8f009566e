"""What a checkout must hold so that wheels, editable installs and type checkers find all of it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_kernel_is_typed(kernel: Path) -> None:
    assert (ROOT / kernel.with_suffix(".pyi")).is_file(), f"{kernel} has no .pyi beside it"


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_no_kernel_switches_bounds_checks_off_for_a_whole_module(kernel: Path) -> None:
    assert not re.search(r"^\s*#\s*cython:.*boundscheck\s*=\s*False", (ROOT / kernel).read_text("utf-8"), re.M)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_source_file_stays_readable(source: Path) -> None:
    assert len((ROOT / source).read_text("utf-8").splitlines()) <= MOST_LINES


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
