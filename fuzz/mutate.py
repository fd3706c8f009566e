"""Run one target on mutated inputs without coverage guidance, for the sanitizer build that atheris cannot instrument.

``python fuzz/mutate.py TARGET CORPUS SECONDS FINDINGS [SEED]`` runs for ``SECONDS`` of processor time. Each input is a
file of the corpus, changed one to eight times. Inputs that raise an unexpected error are saved in ``FINDINGS``. The
current input is always in ``FINDINGS/TARGET-last``, in case a sanitizer ends the process.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from pathlib import Path

import targets
from variant_targets import RECURSION_LIMIT

BOUNDARY_BYTES = (0, 1, 2, 3, 7, 8, 0x0F, 0x10, 0x7F, 0x80, 0xFE, 0xFF)
BOUNDARY_NUMBERS = (0, 1, -1, 1 << 7, 1 << 15, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 63, (1 << 63) - 1)
MAX_BYTES = 8192


def mutate(data: bytes, donor: bytes, chance: random.Random) -> bytes:
    """Return ``data`` with one change; ``donor`` is another input to copy bytes from."""
    result = bytearray(data)
    at = chance.randrange(len(result) + 1)
    choice = chance.randrange(8)
    if choice == 0 and at < len(result):
        result[at] ^= 1 << chance.randrange(8)
    elif choice == 1 and at < len(result):
        result[at] = chance.choice(BOUNDARY_BYTES)
    elif choice == 2 and at < len(result):
        result[at] = (result[at] + chance.choice((-1, 1))) & 0xFF
    elif choice == 3:
        result[at : at + chance.randrange(1, 9)] = b""
    elif choice == 4:
        result[at:at] = chance.randbytes(chance.randrange(1, 9))
    elif choice == 5:
        size = chance.choice((4, 8))
        number = chance.choice(BOUNDARY_NUMBERS) % (1 << (8 * size))
        result[at : at + size] = number.to_bytes(size, "little")
    elif choice == 6:
        start = chance.randrange(len(result) + 1)
        copied = result[start : start + chance.randrange(1, 65)]
        result[at:at] = copied * chance.randrange(1, 4)
    else:
        start = chance.randrange(len(donor) + 1)
        size = chance.randrange(1, 257)
        result[at : at + size] = donor[start : start + size]
    return bytes(result[:MAX_BYTES])


def main(target: str, corpus: Path, seconds: float, findings: Path, seed: int) -> None:
    """Run the target and print the counts."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    chance = random.Random(seed)
    seeds = [path.read_bytes() for path in sorted(corpus.iterdir())]
    findings.mkdir(parents=True, exist_ok=True)
    runs = failures = 0
    slowest = 0.0
    start = time.process_time()
    with open(findings / f"{target}-last", "wb", buffering=0) as last:
        while time.process_time() - start < seconds:
            data = chance.choice(seeds)
            for _ in range(chance.randrange(1, 9)):
                data = mutate(data, chance.choice(seeds), chance)
            last.seek(0)
            last.truncate()
            last.write(data)
            before = time.process_time()
            try:
                targets.TARGETS[target](data)
            except Exception:
                failures += 1
                (findings / f"{target}-{seed}-{runs}").write_bytes(data)
                traceback.print_exc()
            slowest = max(slowest, time.process_time() - before)
            runs += 1
    spent = time.process_time() - start
    print(f"{target}: {runs} inputs in {spent:.0f} s of processor time, {failures} findings, slowest {slowest:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]), int((*sys.argv[5:], 1)[0]))
