"""The recorded mutations fit the tree, and the runner tells a change that tests notice from one that they do not."""

from __future__ import annotations

import ast
from pathlib import Path

import ledger
import pytest
from mutations import catalogue, run
from mutations.catalogue import Mutation


def applied(mutation: Mutation) -> str:
    return mutation.applied((catalogue.ROOT / mutation.file).read_text("utf-8"))


def misfit(mutation: Mutation) -> str | None:
    """Why ``mutation`` shows nothing in this tree."""
    try:
        applied(mutation)
    except (OSError, ValueError) as error:
        return str(error)
    return f"{mutation.rule}: nothing changes" if mutation.find == mutation.replace else None


def test_every_mutation_applies() -> None:
    assert [fault for mutation in catalogue.mutations() if (fault := misfit(mutation))] == []


@pytest.mark.slow
def test_every_mutation_leaves_a_program() -> None:
    for mutation in catalogue.mutations():
        if not mutation.compiled:
            ast.parse(applied(mutation), mutation.file)


def test_every_mutation_is_of_a_rule_on_the_page_of_its_name() -> None:
    pages = {rule.id: rule.page.stem for rule in ledger.rules()}
    assert [(m.page, m.rule) for m in catalogue.mutations() if pages.get(m.rule) != m.page] == []


def test_what_is_noted_as_seen_is_a_test_of_the_rule() -> None:
    holders = {(mark.id, mark.test.relative_to(ledger.ROOT).as_posix()) for mark in ledger.marks()}
    seen = [item for page in ledger.pages() for item in catalogue.seen(page.stem).items()]
    for rule, test in ((rule, test) for rule, noted in seen for test in noted.values()):
        path, _, name = test.partition("::")
        assert (rule, path) in holders, f"{rule}: {path} does not hold it; run tests/mutations/run.py --record {rule}"
        function = name.rpartition("::")[2]
        assert f"def {function}(" in (ledger.ROOT / path).read_text("utf-8"), f"{rule}: {test} is gone"


def test_a_text_that_is_not_there_once_is_refused() -> None:
    with pytest.raises(ValueError, match="stands 2 times"):
        Mutation("page", "a.rule", "a.py", "x", "y").applied("x = x")


@pytest.mark.slow
def test_the_runner_tells_what_is_noticed_from_what_is_not(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    run.copy_tree(tree, compiled=False)
    broken, harmless = PAIR
    seen = run.attempt(broken, tree)
    assert seen.test is not None, seen.note
    assert seen.test.startswith("tests/core/test_bloom.py::")
    unseen = run.attempt(harmless, tree)
    assert (unseen.test, unseen.note) == (None, "its tests pass")
    assert (tree / broken.file).read_bytes() == (run.ROOT / broken.file).read_bytes()


CHUNK, BLOOM = "pqext/core/indexes/chunk.py", "pqext/core/indexes/bloom.py"
PAIR = (
    Mutation("bloom-filter", "bloom.booleans", CHUNK, "recipe.leaf_type.physical == Type.BOOLEAN", "False"),
    Mutation("bloom-filter", "bloom.booleans", BLOOM, "BLOCK_BYTES = 32", "BLOCK_BYTES = 4 * 8"),
)
