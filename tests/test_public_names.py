"""The names that users import: all of them there, known to type checkers, listed by dir(), loaded when asked for."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pqext

ROOT = Path(__file__).resolve().parent.parent
LAZY = ("pqext", "pqext.geo", "pqext.table_metrics", "pqext.skipping", "pqext.spark", "pqext.tables", "pqext.variant")


@pytest.mark.parametrize("name", ["dissolve", "join", "nearest", "read_geopandas", "stac_item"])
def test_stubs_above_geo_have_the_parameters_of_their_functions(name: str) -> None:
    stub = ast.parse((ROOT / "pqext/geo/__init__.pyi").read_text("utf-8"))
    (declared,) = (node.args for node in stub.body if isinstance(node, ast.FunctionDef) and node.name == name)
    keywords = [] if declared.kwarg is None else [declared.kwarg]
    names = [argument.arg for argument in (*declared.args, *declared.kwonlyargs, *keywords)]
    assert names == list(inspect.signature(getattr(pqext.geo, name)).parameters)


@pytest.mark.parametrize("module", [*LAZY, "pqext.encryption", "pqext.extension", "pqext.filters"])
def test_every_public_name_exists_and_is_listed(module: str) -> None:
    package = import_module(module)
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


# Options that must be named in calls, so that parameters can be added before them.
OPTIONS = """
    aggregates allow_unknown append arrays base_line cache_lifetime coerce create curves decryption description
    double_wrapping drop_columns duplicate_keys encryption exterior_cw extensions filesystem footer format header how id
    ignore_table_format include_file_paths include_row_numbers indent int96 invalid_utf8 invalid_values json_types
    key_value_metadata layer license limit limits max_angle max_bytes max_chunks max_depth max_distance method
    min_frequency none_is_null nulls numbers on on_corrupt on_error on_fault on_foreign on_invalid outer overwrite
    partitioning preserve_topology progress properties quad_segs replace residual row_group_rows sample_rows skipping
    storage_options target_file_bytes threads timezone
"""


@pytest.mark.parametrize("module", [name for name in LAZY if name != "pqext.spark"])
def test_options_must_be_named_in_calls(module: str) -> None:
    package = import_module(module)
    functions = {name: getattr(package, name) for name in package.__all__}
    parameters = [
        (name, parameter)
        for name, function in functions.items() if inspect.isfunction(function)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in OPTIONS.split() and parameter.default is not parameter.empty
    ]
    assert parameters
    assert [(name, option.name) for name, option in parameters if option.kind is not option.KEYWORD_ONLY] == []


@pytest.mark.parametrize("module", [*LAZY, "pqext.encryption", "pqext.extension", "pqext.filters"])
def test_every_public_name_is_in_the_reference(module: str) -> None:
    text = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    told = {_at(path) for path in re.findall(r"^::: pqext\.([\w.]+)$", text, re.MULTILINE)}
    package = import_module(module)
    public = {name: getattr(package, name) for name in package.__all__ if name != "__version__"}
    things = {name: thing for name, thing in public.items() if callable(thing)}
    assert [name for name, thing in things.items() if thing not in told] == []


def _at(path: str) -> Any:
    found: Any = pqext
    for name in path.split("."):
        found = getattr(found, name, None) or import_module(f"{found.__name__}.{name}")
    return found


def test_version_matches_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert pqext.__version__ == project["version"]


def test_package_runs_as_a_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "pqext", "--help"], capture_output=True, text=True, check=True)
    assert "verify" in shown.stdout


@pytest.mark.parametrize("kind", [pqext.ReadOptions, pqext.WriteOptions])
def test_option_help_describes_every_field(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    assert [one.name for one in dataclasses.fields(kind) if f"\n    {one.name}: " not in text] == []
    assert "in bytes of Arrow data" in text or "Verify the CRC of each page" in text
