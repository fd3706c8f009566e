"""Run one target on changed seeds, without guidance: for the sanitizer build, under which atheris is blind.

``python fuzz/mutate.py TARGET CORPUS SECONDS FOUND [SEED]``: for so many seconds of processor time take a file of the
corpus, change it in one to eight places and hand it to the target. What raises an unexpected error is kept in
``FOUND``; the input at hand is always in ``FOUND/TARGET-last``, so that a sanitizer that ends the process leaves it.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from pathlib import Path

import targets
from variant_targets import STACK

INTERESTING = (0, 1, 2, 3, 7, 8, 0x0F, 0x10, 0x7F, 0x80, 0xFE, 0xFF)
NUMBERS = (0, 1, -1, 1 << 7, 1 << 15, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 63, (1 << 63) - 1)
MOST = 8192


def changed(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """``data`` with one thing changed."""
    held = bytearray(data)
    at = chance.randrange(len(held) + 1)
    kind = chance.randrange(8)
    if kind == 0 and at < len(held):
        held[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and at < len(held):
        held[at] = chance.choice(INTERESTING)
    elif kind == 2 and at < len(held):
        held[at] = (held[at] + chance.choice((-1, 1))) & 0xFF
    elif kind == 3:
        held[at : at + chance.randrange(1, 9)] = b""
    elif kind == 4:
        held[at:at] = chance.randbytes(chance.randrange(1, 9))
    elif kind == 5:
        size = chance.choice((4, 8))
        number = chance.choice(NUMBERS) % (1 << (8 * size))
        held[at : at + size] = number.to_bytes(size, "little")
    elif kind == 6:
        start = chance.randrange(len(held) + 1)
        piece = held[start : start + chance.randrange(1, 65)]
        held[at:at] = piece * chance.randrange(1, 4)
    else:
        start = chance.randrange(len(other) + 1)
        size = chance.randrange(1, 257)
        held[at : at + size] = other[start : start + size]
    return bytes(held[:MOST])


def main(target: str, corpus: Path, seconds: float, found: Path, seed: int) -> None:
    """Feed the target and say what came of it."""
    sys.setrecursionlimit(STACK)
    chance = random.Random(seed)
    seeds = [path.read_bytes() for path in sorted(corpus.iterdir())]
    found.mkdir(parents=True, exist_ok=True)
    runs = failures = 0
    slowest = 0.0
    started = time.process_time()
    with open(found / f"{target}-last", "wb", buffering=0) as last:
        while time.process_time() - started < seconds:
            data = chance.choice(seeds)
            for _ in range(chance.randrange(1, 9)):
                data = changed(data, chance.choice(seeds), chance)
            last.seek(0)
            last.truncate()
            last.write(data)
            before = time.process_time()
            try:
                targets.TARGETS[target](data)
            except Exception:
                failures += 1
                (found / f"{target}-{seed}-{runs}").write_bytes(data)
                traceback.print_exc()
            slowest = max(slowest, time.process_time() - before)
            runs += 1
    spent = time.process_time() - started
    print(f"{target}: {runs} inputs in {spent:.0f} s of processor time, {failures} findings, slowest {slowest:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]), int((*sys.argv[5:], 1)[0]))
