"""The recorded changes that break a rule of the ledger, and the tests that were seen to fail under them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
SEEN = FOLDER / "seen"
COMPILED = (".pyx", ".pxd", ".pxi", ".h")


@dataclass(frozen=True)
class Mutation:
    """A change of one file that breaks ``rule``: ``find`` stands there exactly once and becomes ``replace``.

    ``page`` is the name of the rule's page in the ledger.
    """

    page: str
    rule: str
    file: str
    find: str
    replace: str

    @property
    def compiled(self) -> bool:
        """Does the change need the kernels to be built again?"""
        return self.file.endswith(COMPILED)

    @property
    def digest(self) -> str:
        """Changes with the mutation, so that a changed one must be shown again."""
        text = "\0".join((self.file, self.find, self.replace))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def applied(self, text: str) -> str:
        """The file's text with the change. Raises ``ValueError`` unless ``find`` stands in it exactly once."""
        count = text.count(self.find)
        if count != 1:
            raise ValueError(f"{self.rule}: its text stands {count} times in {self.file}, not once: {self.find!r}")
        return text.replace(self.find, self.replace)


def mutations(page: str = "*") -> list[Mutation]:
    """The mutations recorded for one page, or for all of them."""
    found = []
    for file in sorted(FOLDER.glob(f"{page}.toml")):
        for rule, changes in tomllib.loads(file.read_text("utf-8")).items():
            found += [Mutation(file.stem, rule, **change) for change in changes]
    return found


def seen(page: str) -> dict[str, dict[str, str]]:
    """For each rule of ``page`` the test that failed, by the digest of the mutation that was run."""
    file = SEEN / f"{page}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def note(page: str, records: dict[str, dict[str, str]]) -> None:
    """Replace what :func:`seen` gives."""
    SEEN.mkdir(exist_ok=True)
    (SEEN / f"{page}.json").write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", "utf-8")


def shown() -> set[str]:
    """The rules whose own tests were seen to fail under each of their mutations as they stand now."""
    known = mutations()
    records = {page: seen(page) for page in {mutation.page for mutation in known}}
    unseen = {m.rule for m in known if m.digest not in records[m.page].get(m.rule, {})}
    return {m.rule for m in known} - unseen
