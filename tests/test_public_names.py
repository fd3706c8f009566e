"""The names that users import: all of them there, known to type checkers, listed by dir(), loaded when asked for."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pqext

ROOT = Path(__file__).resolve().parent.parent
LAZY = ("pqext", "pqext.geo", "pqext.spark", "pqext.variant")


def test_the_stub_of_read_geopandas_has_its_parameters() -> None:
    stub = ast.parse((ROOT / "pqext/geo/__init__.pyi").read_text("utf-8"))
    declared = next(node.args for node in stub.body if isinstance(node, ast.FunctionDef))
    assert declared.kwarg is not None
    names = [argument.arg for argument in (*declared.args, *declared.kwonlyargs, declared.kwarg)]
    assert names == list(inspect.signature(pqext.geo.read_geopandas).parameters)


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
