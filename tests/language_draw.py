"""Draw docstrings, messages and names of the package for review: ``python tests/language_draw.py SEED``.

A draw has 40 docstrings, 30 messages and 30 names. The same seed on the same tree returns the same items.
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator

from messages import ROOT, messages

SIZES = {"docstring": 40, "message": 30, "name": 30}
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def items(path: str) -> Iterator[tuple[str, str]]:
    """Yield the category and the text of each item in a source file."""
    source = (ROOT / path).read_text("utf-8")
    lines = source.split("\n")
    for message in messages(path):
        yield "message", f"{path}:{message.line} {message.text!r}"
    yield "name", f"{path} (module)"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module) and (text := ast.get_docstring(node)):
            yield "docstring", f"{path}: {text.split(chr(10) * 2)[0]}"
        if not isinstance(node, Definition):
            continue
        signature = " ".join(line.strip() for line in lines[node.lineno - 1 : node.body[0].lineno - 1])
        yield "name", f"{path}:{node.lineno} {node.name} in {signature}"
        if text := ast.get_docstring(node):
            yield "docstring", f"{path}:{node.lineno} {signature}\n    {text.split(chr(10) * 2)[0]}"
        if not isinstance(node, ast.ClassDef):
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if argument.arg not in ("self", "cls"):
                    yield "name", f"{path}:{node.lineno} {argument.arg} in {signature}"


def main(seed: int) -> None:
    """Print the draw with ``seed``."""
    command = ["git", "ls-files", "pqext/*.py"]
    paths = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    population = [item for path in sorted(paths) for item in items(path)]
    generator = random.Random(seed)
    for category, size in SIZES.items():
        texts = [text for name, text in population if name == category]
        for number, text in enumerate(generator.sample(texts, size), 1):
            print(f"{category} {number}: {text}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
