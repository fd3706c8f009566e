"""Break rules one at a time and see whether their own tests fail.

    python tests/mutations/run.py                     # every mutation of Python files
    python tests/mutations/run.py bloom statistics.nulls   # those whose rule begins so
    python tests/mutations/run.py --compiled          # those of kernels, each with a build of its own: slow
    python tests/mutations/run.py --record            # and note in seen/ which test failed
    python tests/mutations/run.py --unseen --record   # those of which no failed test is noted

Each mutation is applied to a copy of the tree, where only the tests marked with its rule run. The exit status is 1 when
a mutation was not noticed by them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import ledger  # noqa: E402
from mutations.catalogue import Mutation, mutations, note, seen  # noqa: E402

SECONDS = 600
"""A mutated kernel may loop for ever; a run that takes longer counts as not noticed."""
NEEDED = ("pqext", "tests", "specs", "fuzz", "pyproject.toml", "setup.py", "build_kernels.py", "README.md", "LICENSE")
OBJECTS = ("build/kernels",)
"""Finished modules with their stamps: only what a mutation changes is compiled."""
FAILED = re.compile(r"^FAILED (\S+?)(?:\[.*| - .*)?$", re.M)


@dataclass(frozen=True)
class Outcome:
    """``test`` is the first test that failed, None when all passed or nothing could be run; ``note`` says why."""

    mutation: Mutation
    test: str | None
    note: str = ""


def copy_tree(target: Path, compiled: bool) -> None:
    """Copy what the tests need, compiled kernels included, to ``target``."""
    ignored = shutil.ignore_patterns("__pycache__", "*.tmp", "*.c")
    for name in (*NEEDED, *(OBJECTS if compiled else ())):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        elif source.is_file():
            shutil.copy2(source, target / name)


def environment(tree: Path) -> dict[str, str]:
    """Python imports the copy, and Hypothesis repeats its examples and does not shrink."""
    return os.environ | {
        "PYTHONPATH": str(tree),
        "HYPOTHESIS_PROFILE": "mutations",
        "PYTHONHASHSEED": "0",
    }


def build(tree: Path) -> str:
    """Build the kernels of the copy anew where they changed; what the compiler said when it failed, else nothing."""
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tree, env=environment(tree), capture_output=True, text=True,
    )
    return "" if done.returncode == 0 else f"does not compile: {done.stderr[-2000:]}"


def tests_of(rule: str) -> list[str]:
    """The test files that hold ``rule``; those of Spark, which takes long to start, last."""
    files = {mark.test.relative_to(ROOT).as_posix() for mark in ledger.marks() if mark.id == rule}
    return sorted(files, key=lambda file: (file.startswith("tests/spark/"), file))


def run_tests(mutation: Mutation, tree: Path) -> Outcome:
    """Run the rule's own tests on the mutated copy until one fails."""
    files = tests_of(mutation.rule)
    if not files:
        return Outcome(mutation, None, "no test is marked with it")
    options = ["-n", "0", "-m", "", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-rf"]
    command = [sys.executable, "-m", "pytest", *options]
    try:
        done = subprocess.run(
            [*command, "--rule", mutation.rule, *files],
            cwd=tree, env=environment(tree), capture_output=True, text=True, timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome(mutation, None, f"did not end in {SECONDS} seconds")
    failed = FAILED.search(done.stdout)
    # Not 1 alone: Arrow's threads may abort Python where it ends, after the tests have told of their failure.
    if done.returncode and failed is not None:
        return Outcome(mutation, failed[1])
    if done.returncode == 0:
        return Outcome(mutation, None, "its tests pass")
    return Outcome(mutation, None, f"its tests did not run: {done.stdout[-2000:]}{done.stderr[-1000:]}")


def attempt(mutation: Mutation, tree: Path) -> Outcome:
    """Apply ``mutation`` in ``tree``, run its tests, and take it back."""
    path = tree / mutation.path
    original, times = path.read_bytes(), path.stat()
    try:
        path.write_bytes(mutation.applied(mutation.path, original.decode("utf-8")).encode("utf-8"))
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        fault = build(tree) if mutation.compiled else ""
        return Outcome(mutation, None, fault) if fault else run_tests(mutation, tree)
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def run(chosen: list[Mutation], jobs: int) -> Iterator[Outcome]:
    """The outcomes of ``chosen``, in their order; mutations of kernels have a copy each, others share ``jobs``."""
    with tempfile.TemporaryDirectory(prefix="pqext-mutations-") as work:
        trees: SimpleQueue[Path] = SimpleQueue()
        if any(not mutation.compiled for mutation in chosen):
            for job in range(jobs):
                copy_tree(Path(work, str(job)), compiled=False)
                trees.put(Path(work, str(job)))

        def one(mutation: Mutation) -> Outcome:
            if mutation.compiled:
                with tempfile.TemporaryDirectory(dir=work) as own:
                    copy_tree(Path(own), compiled=True)
                    return attempt(mutation, Path(own))
            tree = trees.get()
            try:
                return attempt(mutation, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(one, chosen)


def record(outcomes: list[Outcome]) -> None:
    """Note the outcomes; what is noted of rules that have no mutation any more goes."""
    for page in sorted({outcome.mutation.page for outcome in outcomes}):
        records = seen(page)
        for outcome in outcomes:
            if outcome.mutation.page == page:
                noted = records.setdefault(outcome.mutation.rule, {})
                noted.pop(outcome.mutation.digest, None)
                if outcome.test is not None:
                    noted[outcome.mutation.digest] = outcome.test
        kept = {(m.rule, m.digest) for m in mutations(page)}
        records = {
            rule: {digest: test for digest, test in noted.items() if (rule, digest) in kept}
            for rule, noted in records.items()
        }
        note(page, {rule: noted for rule, noted in records.items() if noted})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("prefixes", nargs="*", metavar="RULE", help="only rules whose id begins so")
    parser.add_argument("--compiled", action="store_true", help="the mutations of kernels instead of those of Python")
    parser.add_argument("--record", action="store_true", help="note in seen/ which tests failed")
    parser.add_argument("--unseen", action="store_true", help="only those of which no failed test is noted")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutations at once")
    given = parser.parse_args()
    chosen = [
        mutation
        for mutation in mutations()
        if mutation.compiled == given.compiled and mutation.rule.startswith(tuple(given.prefixes) or "")
        if not given.unseen or mutation.digest not in seen(mutation.page).get(mutation.rule, {})
    ]
    outcomes = []
    for outcome in run(chosen, given.jobs):
        print(f"{outcome.mutation.rule}: {outcome.test or 'NOT NOTICED, ' + outcome.note}", flush=True)
        outcomes.append(outcome)
    if given.record:
        record(outcomes)
    missed = sum(outcome.test is None for outcome in outcomes)
    print(f"{len(outcomes)} mutations, {len(outcomes) - missed} noticed by their rule's own test, {missed} not")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
