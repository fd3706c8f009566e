"""Variants from and to Python and Arrow, compared and hashed, against the way through JSON text.

Run ``python benchmarks/variant_people.py [rows]`` on an idle machine; each line is the best of some runs, in seconds,
and the ratio of the way through JSON to pqext's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pqext import variant

ROUNDS = 5


def best(work: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(rows: int) -> None:
    objects = [
        {
            "id": i,
            "name": f"user {i % 1000}",
            "score": i / 7,
            "tags": ["a", "b"][: i % 3],
            "at": {"x": i % 90, "y": None},
        }
        for i in range(rows)
    ]
    table = pa.Table.from_pylist(objects)
    array = variant.from_python(objects)
    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        (
            "from_python",
            lambda: variant.from_python(objects),
            lambda: variant.parse_json(pa.array([json.dumps(row) for row in objects])),
        ),
        (
            "to_python",
            lambda: variant.to_python(array),
            lambda: [json.loads(text) for text in variant.to_json(array).to_pylist()],
        ),
        (
            "from_arrow",
            lambda: variant.from_arrow(table),
            lambda: variant.parse_json(pa.array([json.dumps(row) for row in table.to_pylist()])),
        ),
        (
            "equals",
            lambda: variant.equals(array, array),
            lambda: pa.compute.equal(variant.to_json(array), variant.to_json(array)),
        ),
        ("hash", lambda: variant.hash(array), lambda: variant.to_json(array).dictionary_encode()),
        (
            "set",
            lambda: variant.set(array, "$.at.y", 1),
            lambda: variant.parse_json([json.dumps(_set(text)) for text in variant.to_json(array).to_pylist()]),
        ),
    ]
    for name, ours, theirs in pairs:
        a, b = best(ours), best(theirs)
        print(f"{name:12} {a:8.4f} s   through JSON {b:8.4f} s   {b / a:5.1f} times")


def _set(text: str) -> Any:
    value = json.loads(text)
    value["at"]["y"] = 1
    return value


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
