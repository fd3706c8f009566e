"""List the messages of the package: ``python tests/messages.py [PATH...]`` prints path, line, category and text.

Categories are ``error`` (an exception that is created), ``warning`` and ``help`` (command line). Values in a text
appear as ``{}``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
WARNINGS = {"warn", "warn_about_file", "warn_once"}
HELP = {"argument", "command", "flag", "group", "option"}


class Message(NamedTuple):
    """A message, and the line that creates it."""

    path: str
    line: int
    category: str
    text: str


def text_of(node: ast.expr) -> str | None:
    """The text of a string or an f-string; None for any other expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = text_of(node.left), text_of(node.right)
        return "".join(part or "{}" for part in parts) if any(parts) else None
    return None


def messages(path: str) -> Iterator[Message]:
    """Yield the messages in a source file."""
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        texts = [(argument.lineno, text) for argument in node.args if (text := text_of(argument))]
        if name.endswith(("Error", "Exception", "Exit")) or name in WARNINGS:
            category = "warning" if name in WARNINGS else "error"
            yield from (Message(path, line, category, text) for line, text in texts if " " in text)
        elif name in HELP:
            values = (keyword.value for keyword in node.keywords if keyword.arg == "help")
            yield from (Message(path, value.lineno, "help", text) for value in values if (text := text_of(value)))


def main(paths: list[str]) -> None:
    """Print the messages of the tracked files below ``paths``."""
    command = ["git", "ls-files", *(paths or ["pqext"])]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in names:
        for message in messages(name) if name.endswith(".py") else ():
            print(f"{message.path}:{message.line}\t{message.category}\t{message.text!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
