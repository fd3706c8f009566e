"""The names that users import: all of them there, known to type checkers, listed by dir(), loaded when asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pqext

ROOT = Path(__file__).resolve().parent.parent
LAZY = ("pqext", "pqext.geo", "pqext.spark", "pqext.variant")


def declared(module: str) -> set[str]:
    """The names that a package imports for type checkers."""
    tree = ast.parse((ROOT / module.replace(".", "/") / "__init__.py").read_text("utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


@pytest.mark.parametrize("module", LAZY)
def test_type_checkers_know_every_public_name(module: str) -> None:
    public = set(import_module(module).__all__)
    assert declared(module) - {"read_geopandas"} == public - {"read_geopandas"}  # which lies above geo


@pytest.mark.parametrize("module", [*LAZY, "pqext.encryption", "pqext.extension", "pqext.filters"])
def test_every_public_name_is_there_and_listed(module: str) -> None:
    package = import_module(module)
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert pqext.__version__ == project["version"]


def test_the_package_runs_as_a_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "pqext", "--help"], capture_output=True, text=True, check=True)
    assert "verify" in shown.stdout
