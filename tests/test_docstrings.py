"""Public functions have examples, examples print what they show, and arguments are listed by their names."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from pqext.core.schema import annotations

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "pqext").rglob("*.py")
    if re.search("(?m)^ *>>> (?!.*SKIP)", path.read_text("utf-8"))
)

PUBLIC = [
    "pqext", "pqext.encryption", "pqext.geo", "pqext.inspection", "pqext.recovery", "pqext.skipping", "pqext.spark",
    "pqext.spark.functions", "pqext.table_metrics", "pqext.tables", "pqext.variant", "pqext.verification",
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_print_their_output(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(annotations, "_REGISTRY", dict(annotations._REGISTRY))
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("module", PUBLIC)
def test_public_functions_have_examples(module: str) -> None:
    package = import_module(module)
    docstrings = {
        name: inspect.getdoc(value) or ""
        for name in package.__all__
        if inspect.isroutine(value := getattr(package, name))
    }
    assert docstrings
    assert [name for name, text in docstrings.items() if ">>>" not in text] == []


def test_arguments_are_listed_by_their_names() -> None:
    wrong = []
    for path in sorted((ROOT / "pqext").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                section = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
                names = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
                for entry in re.findall(r"(?m)^    (\S.*)$", section):
                    arguments = entry.partition(":")[0].replace("*", "").split(", ")
                    if ":" not in entry or not names.issuperset(arguments):
                        wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {entry}")
    assert wrong == []
