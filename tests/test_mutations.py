"""The recorded mutations fit the tree, and the runner tells a change that tests notice from one that they do not."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from pathlib import Path

import ledger
import pytest
from mutations import catalogue, run
from mutations.catalogue import Mutation


def misfit(mutation: Mutation) -> str | None:
    """Why ``mutation`` shows nothing in this tree."""
    try:
        return None if mutation.path and mutation.find != mutation.replace else f"{mutation.rule}: nothing changes"
    except ValueError as error:
        return str(error)


def test_every_mutation_matches_once() -> None:
    assert [fault for mutation in catalogue.mutations() if (fault := misfit(mutation))] == []


def test_mutations_of_a_rule_have_different_digests() -> None:
    digests = Counter((mutation.rule, mutation.digest) for mutation in catalogue.mutations())
    assert [rule for (rule, _), count in digests.items() if count > 1] == []


def test_every_mutation_belongs_to_a_rule_of_its_page() -> None:
    pages = {rule.id: rule.page.stem for rule in ledger.rules()}
    assert [(m.page, m.rule) for m in catalogue.mutations() if pages.get(m.rule) != m.page] == []


def test_recorded_test_holds_the_rule_of_its_mutation() -> None:
    holders = {(mark.id, mark.test.relative_to(ledger.ROOT).as_posix()) for mark in ledger.marks()}
    seen = [item for page in ledger.pages() for item in catalogue.seen(page.stem).items()]
    for rule, test in ((rule, test) for rule, noted in seen for test in noted.values()):
        path, _, name = test.partition("::")
        assert (rule, path) in holders, f"{rule}: {path} does not hold it; run tests/mutations/run.py --record {rule}"
        function = name.rpartition("::")[2]
        assert f"def {function}(" in (ledger.ROOT / path).read_text("utf-8"), f"{rule}: {test} is gone"


PROGRAM = """
LIMIT, SIZE = 3, 4

class Reader:
    if True:
        depth = 1

    def read(self, size):  # comment
        for item in range(size):
            if item == LIMIT:
                return "x"
        return None

def read(size):
    return size
"""


def changed(definition: str, find: str, replace: str) -> str:
    """The lines that replace those of ``PROGRAM``."""
    mutation = Mutation("page", "a.rule", definition, find, replace)
    before = ast.unparse(ast.parse(PROGRAM)).split("\n")
    after = mutation.applied(Path("pqext/program.py"), PROGRAM).split("\n")
    return "\n".join(line.strip()[2:] for line in difflib.ndiff(before, after) if line.startswith("+ "))


@pytest.mark.parametrize(
    ("definition", "find", "replace", "expected"),
    [
        ("Reader.read", "item==LIMIT", "False", "if False:"),
        ("Reader.read", "'x'", "'y'", "return 'y'"),
        ("Reader.read", "if item == LIMIT:\n  return 'x'", "", "pass"),
        ("Reader.read", "return None", "pass\nreturn 1", "pass\nreturn 1"),
        ("program.read", "size", "size + 1", "return size + 1"),
        ("SIZE", "4", "5", "LIMIT, SIZE = (3, 5)"),
        ("Reader.depth", "depth = 1", "depth = 2", "depth = 2"),
    ],
)
def test_pattern_is_replaced_only_in_its_definition(definition: str, find: str, replace: str, expected: str) -> None:
    assert [line.strip() for line in changed(definition, find, replace).split("\n")] == expected.split("\n")


KERNEL = """cdef inline int read(
    const uint8_t* data,
) except -1 nogil:
    if data == NULL:

        return   0
    return 1

cdef class Reader:
    cdef int at

    def read(self) -> int:
        return 0

LIMIT = 3
"""


@pytest.mark.parametrize(
    ("definition", "find", "replace", "expected"),
    [
        ("program.read", "if data == NULL:\n    return 0", "", "    return 1"),
        ("program.read", "return 0", "if at:\n    return 2", "        if at:\n            return 2\n    return 1"),
        ("Reader.read", "return 0", "return 5", "        return 5"),
        ("LIMIT", "LIMIT = 3", "LIMIT = 4", "LIMIT = 4"),
    ],
)
def test_kernel_lines_are_replaced(definition: str, find: str, replace: str, expected: str) -> None:
    mutation = Mutation("page", "a.rule", definition, find, replace, compiled=True)
    after = mutation.applied(Path("pqext/program.pyx"), KERNEL)
    assert expected in after
    assert len(after.split("\n")) < len(KERNEL.split("\n")) + 2


@pytest.mark.parametrize(("find", "count"), [("block_bytes", 0), ("dictionary", 2)])
def test_pattern_without_a_unique_match_is_rejected(find: str, count: int) -> None:
    mutation = Mutation("page", "a.rule", "_bloom_filter", find, "None")
    with pytest.raises(ValueError, match=f"matches {count} times in _bloom_filter"):
        _ = mutation.path


@pytest.mark.slow
def test_runner_distinguishes_detected_and_undetected_mutations(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    run.copy_tree(tree, compiled=False)
    broken, harmless = PAIR
    seen = run.attempt(broken, tree)
    assert seen.test is not None, seen.note
    assert seen.test.startswith("tests/core/test_bloom.py::")
    unseen = run.attempt(harmless, tree)
    assert (unseen.test, unseen.note) == (None, "its tests pass")
    assert (tree / broken.path).read_bytes() == (run.ROOT / broken.path).read_bytes()


PAIR = (
    Mutation("bloom-filter", "bloom.booleans", "_bloom_filter", "recipe.leaf_type.physical == Type.BOOLEAN", "False"),
    Mutation("bloom-filter", "bloom.booleans", "bloom.BLOCK_BYTES", "32", "4 * 8"),
)
