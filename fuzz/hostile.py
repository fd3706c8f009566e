"""Draw hostile inputs by seed and hand each to several public calls: ``python fuzz/hostile.py START COUNT``.

A result or a typed error is right. Any other exception, invalid Arrow data, a dead process, ten seconds of processor
time or more memory than the limits is a finding, which is printed with its seed; ``--seed`` runs one seed again.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import hostile_arrays
import hostile_files
import hostile_geometries
import hostile_stores
import hostile_text
import hostile_variants
from hostile_calls import Call, Kind, check_result, is_expected
from hostile_workers import SECONDS, print_finding, run_all

OVERHEAD = 96 << 20
"""Bytes that Python, the codecs and one batch take in addition to a call's limit."""
ADDRESS_SPACE = 3 << 30
"""Bytes that a worker may map in addition to what it maps after its imports."""

KINDS: dict[str, tuple[float, Kind]] = {
    "footer": (18, hostile_files.footers),
    "row groups": (1, hostile_files.row_groups),
    "bomb": (0.5, hostile_files.bomb_files),
    "pages": (14, hostile_files.pages),
    "flat footer": (4, hostile_files.flat_footers),
    "variant": (14, hostile_variants.variants),
    "variant text": (10, hostile_variants.texts),
    "geometry": (12, hostile_geometries.geometries),
    "geometry text": (8, hostile_geometries.texts),
    "arrow": (14, hostile_arrays.arrays),
    "filter": (8, hostile_text.conditions),
    "option": (5, hostile_text.options),
    "location": (4, hostile_text.locations),
    "conversion": (5, hostile_text.conversions),
    "skipping store": (4, hostile_stores.stores),
}
"""Share and function of each kind of input."""


def draw_kind(chance: random.Random) -> str:
    """Draw the kind of an input."""
    return chance.choices(list(KINDS), [share for share, _ in KINDS.values()])[0]


def draw(seed: int) -> tuple[str, list[Call]]:
    """Return the kind of a seed and the calls on its input."""
    chance = random.Random(seed)
    kind = draw_kind(chance)
    return kind, KINDS[kind][1](chance)


def run_call(call: Call) -> str | None:
    """Run a call; return the traceback if it is a finding."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_result(call.run())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or is_expected(error, call):
            return None
        return "".join(traceback.format_exception(error, limit=-14))[-6000:]
    return None


def peak_memory() -> int:
    """Return the highest resident size since the last reset."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def reset_peak() -> int:
    """Return the resident size, and let ``peak_memory`` count from it."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak_memory()


def run_seed(
    seed: int, before: Callable[[str, str], None] = lambda kind, call: None, measure: bool = False
) -> tuple[str, int, list[dict[str, Any]]]:
    """Run the calls of one seed; return its kind, the number of calls and the findings."""
    before("", "draw")
    try:
        kind, calls = draw(seed)
    except BaseException:
        return "", 0, [{"seed": seed, "kind": "", "call": "draw", "trace": traceback.format_exc(limit=-14)}]
    findings = []
    for call in calls:
        before(kind, call.name)
        resident = reset_peak() if measure else 0
        start = time.process_time()
        trace = run_call(call)
        seconds = time.process_time() - start
        growth = peak_memory() - resident if measure else 0  # a scan counts its table in addition to its batches
        if trace is None and growth > 2 * call.memory + OVERHEAD:
            trace = f"MemoryGrowth: {growth >> 20} MiB, limit {call.memory >> 20} MiB"
        if trace is not None:
            findings.append(
                {"seed": seed, "kind": kind, "call": call.name, "seconds": round(seconds, 2), "trace": trace}
            )
    return kind, len(calls), findings


def work(progress: int) -> None:
    """Run the seeds that arrive on standard input as lists in JSON; write a line of JSON for each seed."""
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # without a handler of its own the signal ends the process
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, -1))
    gc.freeze()  # the objects of imports, which every full collection would visit
    seed = 0

    def before(kind: str, call: str) -> None:
        os.pwrite(progress, f"{seed}\t{kind}\t{call}".encode().ljust(300), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    for line in sys.stdin:
        for seed in json.loads(line):
            began = time.process_time()
            kind, calls, findings = run_seed(seed, before, measure=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - began
            report = {"seed": seed, "kind": kind, "calls": calls, "seconds": seconds, "findings": findings}
            reports.write(json.dumps(report) + "\n")


def main() -> int:
    """Run the seeds of the command line; return 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", nargs="?", type=int, default=0)
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kind", choices=list(KINDS), help="run only the seeds of one kind of input")
    parser.add_argument("--record", help="append findings to this file, a line of JSON each")
    parser.add_argument("--seed", type=int, help="run one seed in this process and print its calls")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return 0
    if options.seed is not None:
        _, _, findings = run_seed(
            options.seed, lambda kind, call: print(kind, call, sep=": ", flush=True), measure=True
        )
        for finding in findings:
            print_finding(finding)
        return bool(findings)
    record = open(options.record, "a", buffering=1) if options.record else None  # noqa: SIM115
    seeds = range(options.start, options.start + options.count)
    if options.kind is not None:
        seeds = [seed for seed in seeds if draw_kind(random.Random(seed)) == options.kind]
    run = run_all(__file__, seeds, options.jobs, record)
    run.print_summary()
    return bool(run.signatures)


if __name__ == "__main__":
    sys.exit(main())
