"""The README's examples run as they stand there, and print what they are shown to print."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", README, re.M | re.S)
SPARK = [example for example in EXAMPLES if "pqext.spark" in example[0]]
PLAIN = [example for example in EXAMPLES if example not in SPARK]


def run(code: str, folder: Path) -> str:
    """Run ``code`` as a script in ``folder`` and return what it printed."""
    script = folder / "example.py"
    script.write_text(code, "utf-8")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_an_example_for_python_and_one_for_spark() -> None:
    assert PLAIN
    assert SPARK


@pytest.mark.parametrize(("code", "printed"), PLAIN, ids=range(len(PLAIN)))
def test_a_python_example_prints_what_is_shown(code: str, printed: str, tmp_path: Path) -> None:
    assert run(code, tmp_path) == printed


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.parametrize(("code", "printed"), SPARK, ids=range(len(SPARK)))
def test_a_spark_example_prints_what_is_shown(code: str, printed: str, tmp_path: Path) -> None:
    assert run(code, tmp_path).strip() == printed.strip()


def test_every_file_that_the_documents_name_exists() -> None:
    documents = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "ARCHITECTURE.md")}
    named = {
        (document, path)
        for document, text in documents.items()
        for path in re.findall(r"`((?:pqext|tests|specs|benchmarks|\.ci)/[\w./-]*)`", text)
    }
    links = {
        (document, path)
        for document, text in documents.items()
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    }
    assert [(document, path) for document, path in sorted(named | links) if not (ROOT / path).exists()] == []
