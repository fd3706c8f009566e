"""The ledger and the tests agree: every rule is held by a test, and every mark names a rule."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import ledger
import pytest

ID = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*(?:\.[a-z0-9]+(?:[-_][a-z0-9]+)*)+")


@pytest.mark.parametrize("page", ledger.pages(), ids=lambda page: page.stem)
def test_page_contains_well_formed_rules(page: Path) -> None:
    rules = list(ledger.rules_of(page))
    assert rules, f"{page.name} has no table headed {' | '.join(ledger.HEADER)}"
    for rule in rules:
        assert ID.fullmatch(rule.id), f"{rule.place}: {rule.id!r} is not an id"
        assert rule.text, f"{rule.place}: no rule"
        assert rule.source, f"{rule.place}: no source"
        for module in rule.modules:
            assert (ledger.ROOT / module).is_file(), f"{rule.place}: there is no module {module!r}"


def test_rule_ids_are_unique() -> None:
    counts = Counter(rule.id for rule in ledger.rules())
    assert [rule_id for rule_id, count in counts.items() if count > 1] == []


def test_every_rule_has_a_test() -> None:
    held = {mark.id for mark in ledger.marks()}
    assert [f"{rule.place}: {rule.id}" for rule in ledger.rules() if rule.modules and rule.id not in held] == []


def test_unimplemented_rule_has_no_test() -> None:
    held = {mark.id for mark in ledger.marks()}
    assert [f"{rule.place}: {rule.id}" for rule in ledger.rules() if not rule.modules and rule.id in held] == []


def test_every_mark_names_a_rule() -> None:
    known = {rule.id for rule in ledger.rules()}
    assert [f"{mark.place}: {mark.id}" for mark in ledger.marks() if mark.id not in known] == []


def test_index_lists_every_page_with_its_count() -> None:
    index = ledger.INDEX.read_text("utf-8")
    missing = [row for row in map(ledger.index_row, ledger.pages()) if row not in index]
    assert missing == [], "run: python tests/ledger.py"


@pytest.mark.parametrize("document", ledger.COUNTED, ids=lambda path: str(path.relative_to(ledger.ROOT)))
def test_document_shows_the_correct_count(document: Path) -> None:
    assert ledger.COUNT.findall(document.read_text("utf-8")) == [ledger.count_line()], "run: python tests/ledger.py"


def test_escaped_pipe_does_not_end_a_cell() -> None:
    assert ledger.cells(r"| `a.b` | either x \| y | [VariantEncoding.md] | `m.py`, `n.pyx` |") == [
        "`a.b`",
        "either x | y",
        "[VariantEncoding.md]",
        "`m.py`, `n.pyx`",
    ]


def test_every_rule_can_be_violated() -> None:
    assert [rule.id for rule in ledger.rules() if not re.search(r"\b(MUST|SHOULD|MAY)\b", rule.text)] == []


def test_every_rule_is_a_single_sentence() -> None:
    assert [rule.id for rule in ledger.rules() if re.search(r"(?<![A-Z0-9])\. (?=[A-Z`])", rule.text)] == []


@pytest.mark.parametrize("page", ledger.pages(), ids=lambda page: page.stem)
def test_sources_are_links_to_public_documents(page: Path) -> None:
    text = page.read_text("utf-8")
    defined = set(re.findall(r"^\[([^\]]+)\]: https://\S+$", text, re.M))
    named = {label for rule in ledger.rules_of(page) for label in re.findall(r"\[([^\]]+)\]", rule.source)}
    assert named <= defined
    assert [rule.id for rule in ledger.rules_of(page) if re.match(r"\d{3}\b", rule.source)] == []
