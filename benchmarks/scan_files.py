"""The files of the benchmark of scans: events of thirteen columns, nested rows, shredded documents, points in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import variant_documents

import pqext
from pqext import geo, variant

SHREDDING = "id BIGINT, event STRING, price DECIMAL(9,2), user STRUCT<uid: BIGINT, country: STRING>"
"""What of the documents has leaves of its own."""


def events(rows: int) -> pa.Table:
    """A key that rises, a user at random, measures, a kind of a hundred, places with prefixes, a blob of JSON."""
    chance = np.random.default_rng(15)
    kinds = np.array([f"kind{i}" for i in range(100)], object)
    places = np.array([f"{a}/{b}/{i}" for i, (a, b) in enumerate(
        (country, city) for country in ("de", "fj", "fr", "jp", "us") for city in range(2000)
    )], object)  # fmt: skip
    words = chance.integers(0, 2**40, (2, rows)).tolist()
    blobs = [
        json.dumps({"n": n, "a": f"{a:x}", "b": f"{b:x}", "ok": n % 3 == 0}, separators=(",", ":"))
        for n, (a, b) in enumerate(zip(*words, strict=True))
    ]
    columns: dict[str, Any] = {
        "id": np.arange(rows, dtype=np.int64),
        "user": chance.integers(0, max(rows // 9, 1), rows),
        "time": pa.array(np.cumsum(chance.integers(0, 5000, rows))).cast(pa.timestamp("us", "UTC")),
    }
    columns |= {f"m{i}": chance.random(rows) for i in range(5)}
    columns |= {
        "kind": pa.array(kinds[chance.integers(0, 100, rows)]),
        "place": pa.array(places[chance.integers(0, len(places), rows)]),
        "quantity": pa.array(chance.integers(0, 1000, rows), mask=chance.random(rows) < 0.01),
        "few": chance.integers(0, 8, rows).astype(np.int32),
        "blob": pa.array(blobs),
    }
    return pa.table(columns)


def nested(rows: int) -> pa.Table:
    """A struct and a list of structs beside a number at random."""
    chance = np.random.default_rng(16)
    offsets = np.concatenate([[0], np.cumsum(chance.integers(0, 5, rows))]).astype(np.int32)
    words = np.array([f"word {i}" for i in range(500)], object)
    count = int(offsets[-1])
    items = pa.StructArray.from_arrays(
        [pa.array(chance.integers(0, 2**40, count)), pa.array(words[chance.integers(0, 500, count)])], ["n", "word"]
    )
    inner = pa.StructArray.from_arrays(
        [pa.array(chance.random(rows)), pa.array(words[chance.integers(0, 500, rows)])], ["x", "word"]
    )
    return pa.table({"s": inner, "items": pa.ListArray.from_arrays(pa.array(offsets), items), "id": np.arange(rows)})


def documents(rows: int) -> pa.Table:
    """Documents of about 230 bytes as a shredded VARIANT; each of 90,000 users has about ``rows`` / 90,000."""
    texts = variant_documents.generated(variant_documents.SMALL, rows)
    return pa.table({"id": np.arange(rows), "v": variant.parse_json(pa.array(texts))})


def points(rows: int) -> pa.Table:
    """Points anywhere, to be written along a curve."""
    chance = np.random.default_rng(17)
    x, y = chance.uniform(-180, 180, rows), chance.uniform(-90, 90, rows)
    return pa.table({"id": np.arange(rows), "value": chance.normal(size=rows), "geom": geo.from_points(x, y)})


def make(folder: Path, rows: int) -> dict[str, Path]:
    """The files by name; those that are in the folder already are taken as they are."""
    found = {}
    for name, build, count, options in (
        ("events", events, rows, {"bloom_filters": {"user": True}}),
        ("nested", nested, rows // 2, {}),
        ("documents", documents, rows // 2, {"shredding": {"v": SHREDDING}}),
        ("points", points, rows, {"geometry": {"geom": {"order": "hilbert"}}}),
    ):
        found[name] = folder / f"{name}-{count}.parquet"
        if not found[name].exists():
            pqext.write_table(build(count), found[name], compression="zstd", **options)
    return found
