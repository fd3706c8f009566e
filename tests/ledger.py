"""The ledger as data: the rules on the pages of specs/, the tests that hold them, and those seen to fail without them.

Run as a script, it writes the present counts into specs/README.md and README.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mutations.catalogue import shown

ROOT = Path(__file__).resolve().parent.parent
SPECS = ROOT / "specs"
INDEX = SPECS / "README.md"
GENERATED = SPECS / "conformance.md"
HEADER = ["id", "rule", "source", "module"]
COUNTED = (INDEX, ROOT / "README.md")
NOT_IMPLEMENTED = "not implemented"
MARK = re.compile(r"\bpytest\.mark\.spec\([^()]*\)")
COUNT = re.compile(r"\b[\d,]+ rules, [\d,]+ held by a test, [\d,]+ shown to fail without them\b")


@dataclass(frozen=True)
class Rule:
    """One row of a page: ``line`` counts from 1, ``modules`` are paths from the root of the repository.

    A rule of the specification that pqext does not implement has no modules.
    """

    id: str
    text: str
    source: str
    modules: tuple[str, ...]
    page: Path
    line: int

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Mark:
    """One id in a ``pytest.mark.spec(...)``; ``id`` is None where it is not a literal string."""

    id: str | None
    test: Path
    line: int

    @property
    def place(self) -> str:
        return f"{self.test.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of rules; the index and the table of public files are none."""
    return sorted(page for page in SPECS.glob("*.md") if page not in (INDEX, GENERATED))


def cells(line: str) -> list[str]:
    """The cells of one row of a markdown table; a pipe inside a cell is written ``\\|``."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def rules_of(page: Path) -> Iterator[Rule]:
    """The rows of the page's tables whose heading is the ledger's; a short or long row is an error."""
    inside = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if not line.startswith("|"):
            inside = False
            continue
        row = cells(line)
        if row == HEADER:
            inside = True
        elif inside and not re.fullmatch(r"[|\s:-]+", line):
            if len(row) != len(HEADER):
                raise ValueError(f"{page.relative_to(ROOT)}:{number}: {len(row)} cells instead of {len(HEADER)}")
            modules = tuple(part.strip().strip("`") for part in row[3].split(",") if row[3] != NOT_IMPLEMENTED)
            yield Rule(row[0].strip("`"), row[1], row[2], modules, page, number)


def rules() -> list[Rule]:
    """Every rule of the ledger, in page order."""
    return [rule for page in pages() for rule in rules_of(page)]


@lru_cache(maxsize=1)
def marks() -> list[Mark]:
    """Every use of ``pytest.mark.spec`` in the tests, found without importing them or parsing whole files."""
    found = []
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        text = test.read_text("utf-8")
        for use in MARK.finditer(text):
            call = ast.parse(use[0], mode="eval").body
            assert isinstance(call, ast.Call)
            line = text.count("\n", 0, use.start())
            for argument in call.args:
                literal = argument.value if isinstance(argument, ast.Constant) else None
                found.append(Mark(literal if isinstance(literal, str) else None, test, line + argument.lineno))
    return found


@dataclass(frozen=True)
class Counts:
    """How many rules there are, how many a test holds, and how many of those were seen to fail without the rule."""

    rules: int
    held: int
    shown: int


def counts(page: Path | None = None) -> Counts:
    """The counts of one page, or of all."""
    ids = {rule.id for rule in (rules() if page is None else rules_of(page))}
    return Counts(len(ids), len(ids & {mark.id for mark in marks()}), len(ids & shown()))


def count_line() -> str:
    """The clause that the documents show."""
    total = counts()
    return f"{total.rules:,} rules, {total.held:,} held by a test, {total.shown:,} shown to fail without them"


def index_row(page: Path) -> str:
    """How the index names a page: link, and the numbers of rules, of those held and of those shown to fail."""
    of = counts(page)
    return f"| [{page.stem}]({page.name}) | {of.rules} | {of.held} | {of.shown} |"


def main() -> None:
    """Bring the counts in the documents up to date."""
    for document in COUNTED:
        text = COUNT.sub(count_line(), document.read_text("utf-8"))
        if document == INDEX:
            for page in pages():
                text = re.sub(rf"\| \[{page.stem}\]\(.*", index_row(page), text)
        document.write_text(text, "utf-8")
    print(count_line())


if __name__ == "__main__":
    main()
