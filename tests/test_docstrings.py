"""The examples in the docstrings of all modules run and print what they show."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "pqext").rglob("*.py")
    if re.search("(?m)^ *>>> (?!.*SKIP)", path.read_text("utf-8"))
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_print_what_they_show(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
