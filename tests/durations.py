"""Where the tests' time goes: `python tests/durations.py [--record FILE] [arguments of pytest]`.

Prints the costliest files and tests, by the clock and by the processor time of the test's own process and of those that
it has waited for. Processor time barely depends on what else the machine does, but leaves out Spark's Java process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHOWN = 25


class Durations:
    """A pytest plugin that sums the time of each test's setup, call and teardown."""

    def __init__(self, record: Path | None = None) -> None:
        self.record = record
        self.tests: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        times = self.tests[report.nodeid]
        times[0] += report.duration
        times[1] += dict(report.user_properties).get(f"processor {report.when}", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for name, (clock, processor) in self.tests.items():
            file = files[name.partition("::")[0]]
            file[0] += clock
            file[1] += processor
        for title, table in (("files", files), ("tests", self.tests)):
            total = [sum(column) for column in zip(*table.values(), strict=True)] or [0.0, 0.0]
            terminalreporter.section(f"{len(table)} {title}: {total[0]:.0f} s, {total[1]:.0f} s of processor")
            for name, (clock, processor) in sorted(table.items(), key=lambda entry: -entry[1][0])[:SHOWN]:
                terminalreporter.write_line(f"{clock:8.2f} {processor:8.2f}  {name}")
        if self.record is not None:
            ordered = sorted(files.items(), key=lambda entry: -entry[1][0])
            text = {name: [round(clock, 2), round(processor, 2)] for name, (clock, processor) in ordered}
            self.record.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Notes the processor time since the last report; reports carry it from worker processes to this one."""
    children = os.times()
    now = time.process_time() + children.children_user + children.children_system
    last = getattr(item.config, "_processor_time", now)
    item.config._processor_time = now  # type: ignore[attr-defined]
    item.user_properties[:] = [(f"processor {call.when}", now - last)]
    return (yield)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="a JSON file of [clock, processor] seconds per test file")
    options, rest = parser.parse_known_args()
    return pytest.main([*rest, "-q"], plugins=[Durations(options.record)])


if __name__ == "__main__":
    sys.exit(main())
