"""Names and prose use the terms of ``docs/contributing/language.md``: nouns and verbs of the field, plain sentences."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PROSE = {
    "a file, footer or function records, returns or reports; it does not tell": r"\b(tells?|told|telling)\b",
    "write 'is not a'": r"(?<!there )\b(is|are|was|were) no (?!longer|more|need)",
    "start with a verb or a noun": r'^\W*(What|How|Who|Whose)\b',
    "state it: 'Whether ...', 'Test whether ...'": r'^"""[^"]*\?(""")?$',
    "split the sentence": r"\b(of|by|from|in|for|with) which\b",
    "write 'after' or 'following'": r"\bbehind\b",
    "write 'next to', 'in addition to'": r"\bbesides?\b",
    "write 'skip', 'omit'": r"\b(pass(es|ed|ing)? over|(leaves?|left) out)\b",
    "write 'again'": r"\banew\b",
    "name the number": r"\bso (many|much)\b",
    "write 'reject' or 'prune'": r"\brefus(e|es|ed|al|ing)\b",
}
"""What to write instead, and the words that it replaces."""

NAMES = {
    "adopted", "agreement", "alike", "answered", "apart", "around", "asked", "checked", "claims", "counted", "cut",
    "cuts", "doing", "done", "doubts", "ends", "folded", "form", "forms", "found", "give_back", "given", "glance",
    "how", "in_turn", "kept", "kind", "kinds", "known", "left", "lessons", "listed", "looked", "misfits", "noted",
    "notes", "noting", "of", "ones", "passed", "place", "places", "refusal", "refused", "refuses", "rest", "said",
    "seen", "settle", "settling", "shown", "slots", "such", "suggested", "take", "taken", "tells", "there", "told",
    "turns", "undo", "wanted", "what", "which", "whole", "whose",
}  # fmt: skip
"""Participles, pronouns and private words that are not names."""

MOST_PROSE = 0.01
"""Flagged lines of a file, as a share of its lines."""
FEW = 3
"""Flagged lines that any file may have."""

ALLOWED_PROSE: dict[str, str] = {
    "specs/conformance.md": "names of the cases of other projects",
}
"""Files with more flagged lines, each with the reason."""
ALLOWED_NAMES: dict[str, str] = {
    "pqext/core/schema/annotations.py:claims": "a handler claims a field of its logical type: a verb",
    "pqext/dataset/spatial_joins.py:how": "the argument of Spark's and pandas' joins",
    "pqext/spark/joins/spatial.py:how": "the argument of Spark's and pandas' joins",
    "pqext/skipping/store/objects.py:take": "selects rows by index, as in Arrow",
    **dict.fromkeys((
        "pqext/dataset/spatial_joins.py:left", "pqext/geo/joins/matching.py:left",
        "pqext/spark/joins/broadcasting.py:left", "pqext/spark/joins/sides.py:left",
        "pqext/spark/joins/spatial.py:left",
    ), "the left side of a join, as in SQL and geopandas"),
    **dict.fromkeys((
        "pqext/core/format/predicate.py:left", "pqext/dataset/evaluation/arithmetic.py:left",
        "pqext/dataset/evaluation/comparison.py:left", "pqext/dataset/expressions/operands.py:left",
        "pqext/dataset/notations/sql.py:left", "pqext/dataset/notations/sql_dialect.py:left",
        "pqext/spark/functions/geometry_predicates.py:left", "pqext/variant/equality.py:left",
    ), "the left operand of an operator, a predicate or a comparison"),
}  # fmt: skip
"""Functions, classes and parameters with a flagged name, as ``path:name``, each with the reason."""


def files(*suffixes: str) -> list[str]:
    """Tracked files of the package, the specifications and the documentation with one of the suffixes."""
    command = ["git", "ls-files", "pqext", "specs", "docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in names if name.endswith(suffixes)]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings and comments, or of Markdown outside code blocks, with their numbers."""
    lines = path.read_text("utf-8").splitlines()
    if path.suffix == ".md":
        in_code = False
        for number, line in enumerate(lines, 1):
            if line.startswith("```"):
                in_code = not in_code
            elif not in_code:
                yield number, re.sub(r"`[^`]*`", "", line)
        return
    strings = (node.value for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Expr))
    documented = {
        number
        for string in strings if isinstance(string, ast.Constant) and isinstance(string.value, str)
        for number in range(string.lineno, (string.end_lineno or string.lineno) + 1)
    }  # fmt: skip
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if number in documented or text.startswith("#"):
            yield number, "" if text.startswith(">>>") else re.sub(r"``[^`]*``", "", text)


def flagged(path: Path) -> list[str]:
    """Return the lines that a rule of :data:`PROSE` applies to, with the advice."""
    rules = [(advice, re.compile(rule)) for advice, rule in PROSE.items()]
    lines = prose(path)
    return [f"{number}: {advice}: {line}" for number, line in lines for advice, rule in rules if rule.search(line)]


def defined(path: Path) -> Iterator[str]:
    """Yield the names of functions, classes and parameters."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
            if not isinstance(node, ast.ClassDef):
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                yield from (argument.arg for argument in arguments)


def test_prose_uses_plain_sentences() -> None:
    wordy = {}
    for name in files(".py", ".md"):
        found = flagged(ROOT / name)
        lines = (ROOT / name).read_text("utf-8").count("\n")
        if len(found) > max(FEW, MOST_PROSE * lines) and name not in ALLOWED_PROSE:
            wordy[name] = found
    assert wordy == {}


def test_names_are_nouns_and_verbs() -> None:
    symbols = ((name, symbol) for name in files(".py") for symbol in defined(ROOT / name))
    names = {f"{name}:{symbol}" for name, symbol in symbols if symbol.lstrip("_") in NAMES}
    assert names - set(ALLOWED_NAMES) == set()
    assert set(ALLOWED_NAMES) - names == set()


@pytest.mark.parametrize(("line", "is_flagged"), [
    ('"""What the footer tells of a column."""', True), ('"""Are there entries left?"""', True),
    ('"""Return the entries that remain."""', False), ("# the pages of which none is read", True),
    ("# skip pages without values", False),
])  # fmt: skip
def test_rules_flag_the_lines_they_describe(tmp_path: Path, line: str, is_flagged: bool) -> None:
    source = tmp_path / "module.py"
    source.write_text(f"{line}\n")
    assert bool(flagged(source)) == is_flagged
