"""What every suite shares: the folder of public test files, and how hard Hypothesis tries."""

from __future__ import annotations

import gc
import os
import re
import sys
import zlib
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from durations import pytest_runtest_makereport as pytest_runtest_makereport
from hypothesis import Phase, settings

# The processes that share the tests must name them alike, also where a name shows a set.
os.environ.setdefault("PYTHONHASHSEED", "0")

# Tests start processes that import the package, and so do Spark's workers: none compiles what another has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What commands print must not depend on the terminal, nor on the service that runs the tests.
for _name in (
    "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR", "PY_COLORS", "TERMINAL_WIDTH", "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
):  # fmt: skip
    os.environ.pop(_name, None)

# Examples are bounded by count, not by the clock: a loaded machine must not fail a test. Every run draws the same ones,
# so that a red run can be repeated; `pytest --hypothesis-profile=thorough` searches with new ones each time.
settings.register_profile("default", deadline=None, derandomize=True, print_blob=True, max_examples=15)
settings.register_profile("sanitized", settings.get_profile("default"), max_examples=6)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
# Whether a test fails is all that tests/mutations asks, not by which smallest example.
settings.register_profile(
    "mutations", settings.get_profile("default"), max_examples=100, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rule", metavar="ID", help="run only the tests that hold this rule of the ledger")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rule = config.getoption("--rule")
    if rule is not None:
        items[:] = [item for item in items if any(rule in mark.args for mark in item.iter_markers("spec"))]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # no process waits for a long one at the end


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What collecting made stays until the end: no collection of garbage looks at it again, and they are seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Processes take tests one by one, but those that share a Spark session or a module's fixtures stay together."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFixture(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid.partition("::")[0]) or nodeid

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            units = self.assigned_work[node]  # each test looks through all of them
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(units[scope].values()):
                del units[scope]

    return ByFixture(config, log)


@cache
def unit(file: str) -> str | None:
    """What the tests of ``file`` share: one of two Spark sessions, fixtures of their module, or nothing."""
    if file.startswith("tests/spark/"):
        return f"spark {zlib.crc32(file.encode()) % 2}"
    path = Path(__file__).parents[1] / file
    return file if path.is_file() and 'scope="module"' in path.read_text("utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test of a public file that the copy of parquet-testing does not have is skipped: copies differ by their age."""
    try:
        return (yield)
    except FileNotFoundError as error:
        missing = missing_public_file(str(error.filename or error))
        if missing is None:
            raise
        pytest.skip(f"{missing} is not in this copy of parquet-testing")


def missing_public_file(words: str) -> str | None:
    """The public file that an error's words name and the copy lacks, as a path below the copy."""
    root = os.environ.get("PARQUET_TEST_DATA")
    found = re.search(rf"{re.escape(root)}/([^'\"\s]+)", words) if root else None
    return None if root is None or found is None or Path(root, found[1]).exists() else found[1]


@pytest.fixture(scope="session")
def parquet_testing() -> Path:
    """The folder of the public parquet-testing files, which are not part of this project."""
    named = os.environ.get("PARQUET_TEST_DATA")
    if not named:
        pytest.skip("PARQUET_TEST_DATA does not name a copy of apache/parquet-testing")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"PARQUET_TEST_DATA names no folder: {named}")
    return folder


@pytest.fixture(scope="session")
def xskipper() -> Path:
    """The folder of test files of xskipper, the first data-skipping store, which are not part of this project."""
    named = os.environ.get("XSKIPPER_TEST_DATA")
    if not named:
        pytest.skip("XSKIPPER_TEST_DATA does not name a copy of xskipper's test files")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"XSKIPPER_TEST_DATA names no folder: {named}")
    return folder
