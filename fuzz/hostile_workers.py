"""Worker processes of the harness of hostile inputs, and the counts and findings of a run."""

from __future__ import annotations

import collections
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

SECONDS = 10.0
"""Processor time of one call."""
SILENCE = 300
"""Seconds by the clock without a report, after which a worker counts as deadlocked."""
BLOCK, LIFETIME = 50, 100
"""Seeds of one order to a worker, and orders after which a worker is replaced."""


class Worker:
    """A process that runs seeds, replaced after it dies and after ``LIFETIME`` orders."""

    def __init__(self, script: str) -> None:
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, script, "--worker", str(self._progress.fileno())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            pass_fds=[self._progress.fileno()],
        )  # fmt: skip
        self.orders = 0
        self._buffer = b""

    def run(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the reports of seeds in order; the last has the key ``death`` if the process died."""
        self.orders += 1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(seeds).encode() + b"\n")
        self._process.stdin.flush()
        for seed in seeds:
            line = self._read_line(self._process.stdout)
            if not line:
                yield self._death(seed)
                return
            yield json.loads(line)

    def _read_line(self, stream: IO[bytes]) -> bytes:
        while b"\n" not in self._buffer:
            if not select.select([stream], [], [], SILENCE)[0]:
                self._process.kill()
            part = os.read(stream.fileno(), 1 << 16)
            if not part:
                return b""
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _death(self, seed: int) -> dict[str, Any]:
        status = self._process.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode("utf-8", "replace")
        text = os.pread(self._progress.fileno(), 300, 0).decode("utf-8", "replace").rstrip()
        _, kind, call = [*text.split("\t"), "", "", ""][:3]
        cause = {-signal.SIGPROF: f"more than {SECONDS:.0f} s of processor time", -signal.SIGKILL: "no progress"}
        trace = f"Died: {cause.get(status, f'status {status}')}\n{errors[-6000:]}"
        finding = {"seed": seed, "kind": kind, "call": call, "seconds": 0.0, "trace": trace}
        return {"seed": seed, "kind": kind, "calls": 1, "seconds": 0.0, "findings": [finding], "death": True}

    def close(self) -> None:
        """End the process after its last order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._progress.close()
        self._errors.close()


class Run:
    """Counts and findings of a run."""

    def __init__(self, record: IO[str] | None) -> None:
        self.seeds, self.calls, self.seconds = (collections.Counter[str]() for _ in range(3))
        self.signatures: dict[str, list[int]] = {}
        self._record = record
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def add(self, report: dict[str, Any]) -> None:
        """Count a report and print its findings."""
        with self._lock:
            self.seeds[report["kind"]] += 1
            self.calls[report["kind"]] += report["calls"]
            self.seconds[report["kind"]] += report["seconds"]
            for finding in report["findings"]:
                seeds = self.signatures.setdefault(signature(finding), [])
                seeds.append(finding["seed"])
                if self._record is not None:
                    self._record.write(json.dumps(finding) + "\n")
                if len(seeds) <= 2:
                    print_finding(finding)
            if self.seeds.total() % 1000 == 0:
                print(self.total(), flush=True)

    def total(self) -> str:
        """Describe the counts in one line."""
        return (
            f"{self.seeds.total():,} inputs, {self.calls.total():,} calls, {sum(map(len, self.signatures.values()))} "
            f"findings of {len(self.signatures)} causes, {self.seconds.total():.0f} s of processor time, "
            f"{time.monotonic() - self._start:.0f} s"
        )

    def print_summary(self) -> None:
        """Print a line for each kind and cause, and the total."""
        for kind in sorted(self.seeds):
            cost = 1000 * self.seconds[kind] / self.seeds[kind]
            print(f"{kind or '-'}: {self.seeds[kind]:,} inputs, {self.calls[kind]:,} calls, {cost:.1f} ms an input")
        for cause, seeds in sorted(self.signatures.items(), key=lambda item: -len(item[1])):
            print(f"{len(seeds)} x {cause}; seeds {seeds[:5]}")
        print(self.total(), flush=True)


def signature(finding: dict[str, Any]) -> str:
    """Return what findings of one cause have in common: the error and the innermost frame of pqext."""
    lines = finding["trace"].strip().splitlines()
    frames = [line.strip() for line in lines if "pqext/" in line and "line " in line]
    error = lines[0] if lines[0].startswith(("Died", "Memory")) else lines[-1].partition(":")[0]
    frame = (frames[:1] if error.startswith("Died") else frames[-1:]) or [finding["call"]]
    return f"{error[:80]} at {frame[0].partition('pqext/')[2] or frame[0]}"


def print_finding(finding: dict[str, Any]) -> None:
    """Print a finding with its traceback."""
    print(f"--- seed {finding['seed']}, {finding['kind']}, {finding['call']}\n{finding['trace']}", flush=True)


def run_all(script: str, seeds: Sequence[int], jobs: int, record: IO[str] | None) -> Run:
    """Run seeds in ``jobs`` processes of ``script``."""
    orders: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for first in range(0, len(seeds), BLOCK):
        orders.put(list(seeds[first : first + BLOCK]))
    run = Run(record)

    def serve() -> None:
        worker = Worker(script)
        while True:
            try:
                order = orders.get_nowait()
            except queue.Empty:
                break
            while order:
                for report in worker.run(order):
                    run.add(report)
                    order = order[1:]
                    if "death" in report:
                        worker = Worker(script)
            if worker.orders >= LIFETIME:
                worker.close()
                worker = Worker(script)
        worker.close()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return run
