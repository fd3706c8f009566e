"""The documents as programs: the code of the README, of the pages of docs/ and of the notebooks, run in its order.

All blocks of a page share one namespace and one folder. A ``python`` block must print what the ``text`` block behind it
shows, or nothing where there is none. In a ``console`` block, commands of pqext run after ``$``, and the lines below
each are its output, in which ``...`` stands for any text; ``echo $?`` prints the exit status of the last.
Their paths that begin with ``pqext/examples/`` are files of the clone. Blocks in other languages are not run, nor
blocks that import a missing library of ``OPTIONAL``. A cell of a notebook must print what it stores as its output.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from pqext.cli import app

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.M | re.S)
WIDTH = "110"
OPTIONAL = ("folium", "lonboard", "mapclassify", "matplotlib")
"""Libraries that pages show at work and that pqext does not need."""


@dataclass(frozen=True)
class Block:
    """One fenced block: ``line`` counts from 1 and is that of its first line of code."""

    language: str
    code: str
    line: int


@dataclass(frozen=True)
class Step:
    """Something to run and the text it must print; ``command`` is None for Python."""

    line: int
    printed: str
    code: str = ""
    command: str | None = None


def pages() -> list[Path]:
    """The README, every page of the site that is written by hand, and the notebooks."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").glob("*.ipynb"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found = []
    for match in FENCE.finditer(text):
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.M)
        found.append(Block(match["language"], code, text.count("\n", 0, match.start("code")) + 1))
    return found


def steps(page: Path) -> Iterator[Step]:
    """What the page asks its reader to run, with what it says will be printed."""
    if page.suffix == ".ipynb":
        yield from cells(page)
        return
    found = blocks(page.read_text("utf-8"))
    for block, following in zip_longest(found, found[1:]):
        if block.language == "python" and is_runnable(block.code):
            shown = following.code if following is not None and following.language == "text" else ""
            yield Step(block.line, shown, code=block.code)
        elif block.language == "console":
            for match in re.finditer(r"^\$ ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", block.code, re.M):
                line = block.line + block.code.count("\n", 0, match.start())
                yield Step(line, match[2], command=match[1])


def is_runnable(code: str) -> bool:
    """Whether the optional libraries that the code imports are installed."""
    imports = set(re.findall(r"^(?:import|from) (\w+)", code, re.M))
    return all(importlib.util.find_spec(name) is not None for name in imports & {*OPTIONAL})


def cells(notebook: Path) -> Iterator[Step]:
    """The code cells of a notebook; a line is the number of a cell."""
    for number, cell in enumerate(json.loads(notebook.read_text("utf-8"))["cells"], 1):
        if cell["cell_type"] == "code":
            outputs = "".join("".join(output["text"]) for output in cell["outputs"])
            yield Step(number, outputs, code="".join(cell["source"]))


def uses_spark(page: Path) -> bool:
    """Does any block of the page need a Spark session?"""
    return any("pqext.spark" in step.code for step in steps(page))


def agree(printed: str, shown: str) -> bool:
    """Is ``printed`` what was ``shown``, but for spaces at ends of lines and what ``...`` stands for?"""
    given, wanted = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (printed, shown))
    pattern = ".*?".join(re.escape(part.strip()) for part in wanted.split("..."))
    return re.fullmatch(re.sub(r"\.\*\?", r"\\s*.*?\\s*", pattern), given, re.S) is not None


@contextlib.contextmanager
def same_loggers() -> Iterator[None]:
    """Restore the handlers and the level of pqext's logger, which a page may set."""
    logger = logging.getLogger("pqext")
    handlers, level = [*logger.handlers], logger.level
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def run(page: Path, folder: Path) -> None:
    """Run the page in ``folder`` and compare all that it prints with what it shows."""
    name = page.relative_to(ROOT)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    status = 0
    with contextlib.chdir(folder), same_loggers():
        for step in steps(page):
            if step.command is None:
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile("\n" * (step.line - 1) + step.code, str(page), "exec"), namespace)
                printed = output.getvalue()
            elif step.command == "echo $?":
                printed = f"{status}\n"
            else:
                program, *arguments = shlex.split(step.command)
                assert program == "pqext", f"{name}:{step.line}: only commands of pqext can be run"
                arguments = [str(ROOT / word) if word.startswith("pqext/examples/") else word for word in arguments]
                result = CliRunner().invoke(app, arguments, env={**os.environ, "COLUMNS": WIDTH})
                printed, status = result.output, result.exit_code
                is_usage_error = "\nError: " in printed and step.printed.strip() == "..."
                assert not is_usage_error, f"{name}:{step.line} fails\n{printed}"
            assert agree(printed, step.printed), f"{name}:{step.line} prints\n{printed}"
