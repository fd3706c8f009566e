"""Reads hostile files in every way and prints, as JSON, what each took; a program, in a limited address space."""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from core import bombs

import pqext
from pqext.core.base.limits import Limits

WAYS: dict[str, Callable[[bytes, Limits], object]] = {
    "read": lambda data, limits: pqext.open(data, limits=limits).read(),
    "batches": lambda data, limits: sum(
        len(batch) for batch, _ in zip(pqext.open(data, limits=limits).iter_batches(), range(3), strict=False)
    ),
    "skip": lambda data, limits: sum(
        len(batch)
        for batch, _ in zip(
            pqext.open(data, limits=limits, on_corrupt="skip").iter_batches(), range(3), strict=False
        )
    ),
    "scan": lambda data, limits: pqext.scan(data, limits=limits).to_table(),
    "verify": lambda data, limits: pqext.verify(data, limits=limits),
    "inspect": lambda data, limits: pqext.inspect(data, limits=limits),
}


def peak() -> int:
    """The most memory since the last reset, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) << 10


def measure(data: bytes, way: str, limits: Limits) -> tuple[str, float, int]:
    """(outcome, seconds, bytes taken)."""
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = peak(), time.process_time()
    try:
        WAYS[way](data, limits)
        outcome = "read"
    except pqext.ParquetError as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome, time.process_time() - begin, peak() - before


def main(memory: int, name: str) -> None:
    limits = Limits.untrusted() if name == "untrusted" else Limits()
    warnings.simplefilter("ignore")
    files = bombs.files()
    pqext.verify(bombs.wide(1, 10))  # imports are done
    for data in (bombs.wide(1, 10), bombs.variants(10, shredded=True)):
        for way in WAYS:
            measure(data, way, limits)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for file, data in files.items():
        for way in WAYS:
            print(json.dumps([file, len(data), way, *measure(data, way, limits)]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
