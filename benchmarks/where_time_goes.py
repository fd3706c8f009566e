"""Time of five typical queries by phase, as ``Scan.metrics`` reports it.

    python benchmarks/where_time_goes.py [--rows 2000000] [--repeat 7] [--folder F] [--record]

Wall time with one thread, so that the phases add up to the total, from a warm file cache. Of several runs, the one with
the least total counts. ``--record`` writes the table to ``benchmarks/results/where_time_goes.md``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import scan_files
from recording import RESULTS, machine

import pqext
from pqext import Scan, col

PHASES = ("open", "plan", "fetch", "decompress", "decode", "filter", "assemble")
BOX = (10.0, 10.0, 21.4, 15.7)


def queries(paths: dict[str, Path], rows: int) -> dict[str, Scan]:
    """Return the queries by name."""
    events, documents, points = (
        pqext.scan(paths[name], threads=1) for name in ("events", "documents", "points")
    )
    return {
        "all rows of three columns": events.select(["id", "m0", "kind"]),
        "one id, all columns": events.filter(col("id") == rows * 2 // 3 + 1),
        "`kind = 'kind7'`, one column": events.select(["m1"]).filter(col("kind") == "kind7"),
        "a path in a VARIANT, all columns": documents.filter(col("v").variant("$.user.uid", "int64") == 777),
        "points in a box, all columns": points.filter(col("geom").intersects(BOX)),
    }


def measure(scan: Scan, repeat: int) -> dict[str, Any]:
    """Return the metrics of the fastest of ``repeat`` runs, each from opening the file to an Arrow table."""
    runs = []
    for _ in range(repeat + 1):
        scan.to_table()
        metrics = scan.metrics
        assert metrics is not None
        runs.append(metrics.to_dict())
    return min(runs[1:], key=lambda run: run["seconds"])  # the first run also imports modules


def table(measured: dict[str, dict[str, Any]]) -> str:
    """Format the metrics of each query as a Markdown table, with times in milliseconds."""
    head = ["query", *PHASES, "total, ms", "MB fetched", "pages", "rows"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name, run in measured.items():
        times = [run[f"{phase}_seconds"] for phase in PHASES] + [run["seconds"]]
        lines.append([
            name, *(f"{1000 * seconds:.1f}" for seconds in times), f"{run['bytes'] / 1e6:.1f}", f"{run['pages']:,}",
            f"{run['rows']:,}",
        ])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keep the files here, and take them from here")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        paths = scan_files.make(given.folder or Path(temporary), given.rows)
        text = table({name: measure(scan, given.repeat) for name, scan in queries(paths, given.rows).items()})
    print(text)
    if given.record:
        (RESULTS / "where_time_goes.md").write_text(f"{text}\n{machine()}\n", "utf-8")


if __name__ == "__main__":
    main()
