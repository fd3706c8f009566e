"""The recorded changes that break a rule of the ledger, and the tests that failed under them."""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mutations import kernel_source, python_source

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
SEEN = FOLDER / "seen"
KERNELS = (".pyx", ".pxd", ".pxi")


Named = tuple[tuple[str, Any], ...]
"""Definitions of a file, each with its full name after a dot."""


@dataclass(frozen=True)
class Mutation:
    """A change of one definition that breaks ``rule``: ``find`` occurs in it exactly once and becomes ``replace``.

    ``page`` is the name of the rule's page in the ledger. ``README.md`` describes the other fields.
    """

    page: str
    rule: str
    definition: str
    find: str
    replace: str
    compiled: bool = False

    @property
    def digest(self) -> str:
        """A hash of the change, which must be shown again when it changes; modules and classes may be renamed."""
        text = "\0".join((self.definition.rpartition(".")[2], self.find, self.replace))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @cached_property
    def path(self) -> Path:
        """The file that the mutation changes, relative to the root.

        Raises:
            ValueError: If ``find`` does not match exactly once in the definitions of this name.
        """
        matches = [
            path
            for path in _definitions(self.compiled).get(self.definition.rpartition(".")[2], ())
            for _ in self._matches(_source(path), _named(path))
        ]
        if len(matches) != 1:
            raise ValueError(
                f"{self.rule}: pattern matches {len(matches)} times in {self.definition}, not once: {self.find!r}"
            )
        return matches[0]

    def applied(self, path: Path, text: str) -> str:
        """Return ``text``, the content of the file at ``path``, with the change."""
        if self.compiled:
            (span,) = self._matches(text, _names_of(path, text))
            return kernel_source.replace(text, span, self.replace)
        module = ast.parse(text)
        (match,) = self._matches(module, _names_of(path, module))
        match.replace(python_source.parse(self.find, self.replace)[1])
        return ast.unparse(module)

    def _matches(self, source: ast.Module | str, named: Named) -> list[Any]:
        found = [definition for name, definition in named if name.endswith(f".{self.definition}")]
        if isinstance(source, str):
            return [span for definition in found for span in kernel_source.matches(source, definition, self.find)]
        pattern, _ = python_source.parse(self.find, self.replace)
        return [match for definition in found for match in python_source.matches(definition, pattern)]


def dotted_name(path: Path, name: str) -> str:
    """The full name of what the module at ``path``, relative to the root, defines as ``name``."""
    return ".".join((*path.with_suffix("").parts, name))


@cache
def _source(path: Path) -> ast.Module | str:
    text = (ROOT / path).read_text("utf-8")
    return text if path.suffix in KERNELS else ast.parse(text)


@cache
def _named(path: Path) -> Named:
    """The definitions of a file of the package."""
    return _names_of(path, _source(path))


def _names_of(path: Path, source: ast.Module | str) -> Named:
    found = kernel_source.definitions(source) if isinstance(source, str) else python_source.definitions(source)
    return tuple((f".{dotted_name(path, definition.name)}", definition) for definition in found)


@cache
def _definitions(compiled: bool) -> dict[str, list[Path]]:
    """The files of the package that define a name, by the name without its prefix."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(file.relative_to(ROOT) for file in (ROOT / "pqext").rglob("*")):
        if "build" in path.parts or path.suffix not in (KERNELS if compiled else (".py",)):
            continue
        for name in sorted({definition.name.rpartition(".")[2] for _, definition in _named(path)}):
            files[name].append(path)
    return files


def mutations(page: str = "*") -> list[Mutation]:
    """The mutations recorded for one page, or for all of them."""
    recorded = []
    for file in sorted(FOLDER.glob(f"{page}.toml")):
        for rule, changes in tomllib.loads(file.read_text("utf-8")).items():
            recorded += [Mutation(file.stem, rule, **change) for change in changes]
    return recorded


def seen(page: str) -> dict[str, dict[str, str]]:
    """For each rule of ``page`` the test that failed, by the digest of the mutation that was run."""
    file = SEEN / f"{page}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def note(page: str, records: dict[str, dict[str, str]]) -> None:
    """Replace the records that :func:`seen` returns."""
    SEEN.mkdir(exist_ok=True)
    (SEEN / f"{page}.json").write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", "utf-8")


def shown() -> set[str]:
    """The rules whose own tests failed under each of their mutations as now recorded."""
    known = mutations()
    records = {page: seen(page) for page in {mutation.page for mutation in known}}
    unseen = {m.rule for m in known if m.digest not in records[m.page].get(m.rule, {})}
    return {m.rule for m in known} - unseen
