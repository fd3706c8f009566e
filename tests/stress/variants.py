"""Variant columns: parsed, read by paths, shredded, changed and filtered, against the json module where it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from stress.cases import ROW_GROUP_ROWS, Case

import pqext
from pqext import col, variant

ROWS = 5000


def documents() -> list[dict[str, Any]]:
    """Events whose fields vary in type and presence, some of them with long texts and deep lists."""
    generator = np.random.default_rng(4)
    found = []
    for number in range(ROWS):
        event: dict[str, Any] = {
            "id": number,
            "kind": f"kind {number % 7}",
            "price": int(generator.integers(1, 10**6)) / 100,
        }
        if number % 3:
            event["user"] = {
                "name": f"user {generator.integers(500)}",
                "tags": [f"t{tag}" for tag in range(number % 5)],
            }
        if number % 5 == 0:
            event["price"] = f"{number} fr."
        if number % 11 == 0:
            event["note"] = "long " * int(generator.integers(1, 400))
        if number % 4 == 0:
            event["at"] = f"2026-05-{1 + number % 28:02}T00:{number % 60:02}:00Z"
        if number % 13 == 0:
            event["deep"] = [[{"x": [number, None, True]}] * (number % 3)]
        found.append(event)
    return found


def cases(folder: Path) -> Iterator[Case]:
    events = documents()
    texts = [None if number % 97 == 0 else json.dumps(event) for number, event in enumerate(events)]
    array = pa.array(texts)
    parsed = variant.parse_json(array)
    wanted = [None if text is None else json.loads(text) for text in texts]
    yield Case("parse_json", lambda threads: loaded(variant.parse_json(array, threads=threads)), wanted)
    yield Case(
        "parse_json, shredded",
        lambda threads: loaded(variant.unshred(variant.parse_json(array, shredding="infer", threads=threads))),
        wanted,
    )
    yield Case("to_json", lambda _: loaded(parsed), wanted)
    yield Case(
        "to_python",
        lambda _: [None if row is None else row["id"] for row in variant.to_python(parsed)],
        [None if row is None else row["id"] for row in wanted],
    )
    for path, kind in (
        ("$.id", "int64"),
        ("$.price", "double"),
        ("$.user.name", "string"),
        ("$.user.tags[1]", "string"),
        ("$.at", "timestamp"),
        ("$.deep", "variant"),
    ):
        yield Case(f"get {path} as {kind}", partial(get_values, parsed, path, kind))
    names = [None if row is None else row.get("user", {}).get("name") for row in wanted]
    yield Case("get names", lambda _: variant.get(parsed, "$.user.name", "string").to_pylist(), names)
    schema = variant.infer_schema(parsed)
    shredded = variant.shred(parsed, schema)
    yield Case("infer_schema", lambda _: str(variant.infer_schema(parsed)))
    yield Case("shred and unshred", lambda _: loaded(variant.unshred(variant.shred(parsed, schema))), wanted)
    yield Case("get of shredded", lambda _: variant.get(shredded, "$.user.name", "string").to_pylist(), names)
    yield Case("set", lambda _: variant.to_json(variant.set(parsed, "$.user.seen", True)))
    yield Case("delete", lambda _: variant.to_json(variant.delete(parsed, ["$.note"])))
    yield Case("strip_nulls", lambda _: variant.to_json(variant.strip_nulls(parsed)))
    yield Case("hash", lambda _: variant.hash(parsed))
    yield Case("equals", lambda _: variant.equals(parsed, parsed))
    yield Case("canonical", lambda _: variant.to_json(variant.canonical(parsed)))
    yield Case("validate", lambda _: list(variant.find_faults(parsed)))
    yield from of_files(folder, parsed, wanted)


def loaded(array: Any) -> list[Any]:
    return [None if text is None else json.loads(text) for text in variant.to_json(array).to_pylist()]


def get_values(array: Any, path: str, kind: str, _: int) -> Any:
    found = variant.get(array, path, kind)
    return variant.to_json(found) if kind == "variant" else found


def of_files(folder: Path, parsed: Any, wanted: list[Any]) -> Iterator[Case]:
    table = pa.table({"id": np.arange(len(wanted)), "v": parsed})
    for name, keywords in (("plain", {}), ("shredded", {"shredding": {"v": "infer"}})):
        path = folder / f"variant {name}.parquet"
        pqext.write_table(table, path, row_group_rows=ROW_GROUP_ROWS, **keywords)
        yield Case(f"{name} file", partial(read_variants, path), wanted)
        for text, test in (
            ("user 7", lambda row: row.get("user", {}).get("name") == "user 7"),
            ("user 499", lambda row: row.get("user", {}).get("name") == "user 499"),
        ):
            rows = [number for number, row in enumerate(wanted) if row is not None and test(row)]
            yield Case(
                f"{name} filter: {text}", partial(ids, path, col("v").variant("$.user.name", "string") == text), rows
            )
        rows = [number for number, row in enumerate(wanted) if row is not None and row["id"] >= 4500]
        yield Case(f"{name} filter: id", partial(ids, path, col("v").variant("$.id", "int64") >= 4500), rows)
        yield Case(f"{name} paths", partial(names, path), [None if row is None else row["kind"] for row in wanted])
        yield Case(f"{name} file written", partial(written, folder, table, keywords), wanted)


def read_variants(path: Path, threads: int) -> list[Any]:
    return loaded(pqext.read_table(path, ["v"], threads=threads)["v"])


def ids(path: Path, condition: Any, threads: int) -> list[int]:
    found: list[int] = pqext.read_table(path, ["id"], condition, threads=threads)["id"].to_pylist()
    return found


def names(path: Path, threads: int) -> list[str]:
    kind = {"kind": col("v").variant("$.kind", "string")}
    batches = pqext.scan(path, kind, threads=threads).to_batches(batch_rows=300)
    return [name for batch in batches for name in batch["kind"].to_pylist()]


def written(folder: Path, table: pa.Table, keywords: Any, threads: int) -> list[Any]:
    sink = pa.BufferOutputStream()
    pqext.write_table(table, sink, row_group_rows=ROW_GROUP_ROWS, threads=threads, **keywords)
    return loaded(pqext.read_table(sink.getvalue().to_pybytes(), ["v"], threads=threads)["v"])
