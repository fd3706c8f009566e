"""Call pqext from many threads at the same time and compare every answer with a known one.

    python tests/stress/run.py --minutes 10 --threads 2,4,8,16 spatial variants scans spark_functions spark

Each part has its share of the time. Writes the number of calls by part and thread count; the status is 1 if an answer
differs or a call raises an error. A crash of a library ends the process with a traceback of all threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import random
import resource
import sys
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stress.cases import Outcome, repeat

PARTS = ("spatial", "variants", "scans", "spark_functions")


def run(part: str, thread_counts: list[int], seconds: float, seed: int, most: int | None) -> Outcome:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if part == "spark":
            module: Any = importlib.import_module("stress.spark_session")
            cases = list(module.cases(folder, stack.enter_context(module.session(4))))
        else:
            cases = list(importlib.import_module(f"stress.{part}").cases(folder))
        if most is not None:
            cases = random.Random(seed).sample(cases, min(most, len(cases)))
        outcome = repeat(cases, thread_counts, seconds, seed)
    counts = ", ".join(f"{count:,} with {threads}" for threads, count in outcome.by_threads.items())
    print(f"{part}: {outcome.calls.total():,} calls of {len(cases)} cases ({counts} threads)", flush=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all of these by default), spark")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", default="2,4,8,16", help="numbers of threads, separated by commas")
    parser.add_argument("--cases", type=int, help="draw this many cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", module="pyspark")
    parts = options.parts or PARTS
    seconds = options.minutes * 60 / len(parts)
    faults = []
    for part in parts:
        outcome = run(part, [int(count) for count in options.threads.split(",")], seconds, options.seed, options.cases)
        faults += [f"{part}: {fault}" for fault in outcome.faults]
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,} MiB at most")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
