"""JSON documents for the benchmarks of variants: nested events of about 230 and of about 2,600 bytes, or files."""

from __future__ import annotations

import json
import random
from importlib import resources
from pathlib import Path
from typing import Any

SMALL, LARGE = 230, 2600
"""Bytes of a generated document, about."""

_COUNTRIES = ("DE", "FR", "PL", "US", "JP", "BR", "IN", "KE")
_EVENTS = ("view", "click", "purchase", "refund", "login", "logout")
_WORDS = [
    "amber",
    "basin",
    "copper",
    "delta",
    "ember",
    "fjord",
    "gravel",
    "harbor",
    "iris",
    "juniper",
    "kelp",
    "lumen",
    "maple",
    "nectar",
    "opal",
    "pine",
]


def generated(size: int, count: int, seed: int = 7) -> list[str]:
    """``count`` documents of about ``size`` bytes: objects within objects, strings, integers, decimals, lists."""
    choose = random.Random(seed)
    return [json.dumps(_document(size, i, choose), separators=(",", ":"), ensure_ascii=False) for i in range(count)]


def _document(size: int, i: int, choose: random.Random) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": 1_000_000 + i,
        "ts": f"2026-{choose.randint(1, 12):02}-{choose.randint(1, 28):02}T{choose.randint(0, 23):02}:15:00Z",
        "event": choose.choice(_EVENTS),
        "user": {"uid": choose.randint(1, 90_000), "country": choose.choice(_COUNTRIES), "vip": choose.random() < 0.1},
        "price": round(choose.uniform(1, 500), 2),
        "position": {"lat": choose.uniform(-90, 90), "lon": choose.uniform(-180, 180)},
        "tags": choose.sample(_WORDS, 3),
    }
    if size <= SMALL:
        return document
    document["session"] = {
        "agent": "Mozilla/5.0 (X11; Linux x86_64) " + " ".join(choose.sample(_WORDS, 6)),
        "referrer": None if choose.random() < 0.5 else "https://example.org/" + "/".join(choose.sample(_WORDS, 3)),
        "screen": {"width": choose.choice([1280, 1920, 2560]), "height": choose.choice([720, 1080, 1440])},
    }
    document["items"] = [
        {
            "sku": f"{choose.choice(_WORDS)}-{choose.randint(100, 999)}",
            "quantity": choose.randint(1, 9),
            "price": round(choose.uniform(1, 90), 2),
            "weight": choose.uniform(0.1, 30),
            "text": " ".join(choose.sample(_WORDS, 7)) + choose.choice(["", " é", " naïve", ' "quoted"']),
            "size": {"x": choose.randint(1, 400), "y": choose.randint(1, 400)},
        }
        for _ in range(max(1, (size - 480) // 170))
    ]
    return document


def read(files: list[Path]) -> list[str]:
    """One JSON text a row, of files of JSON lines or of one JSON array, or of GeoJSON's features."""
    rows: list[str] = []
    for file in files:
        text = file.read_text("utf-8")
        try:
            whole = json.loads(text)
        except ValueError:
            rows += [line for line in text.splitlines() if line.strip()]
            continue
        listed = whole.get("features", [whole]) if isinstance(whole, dict) else whole
        rows += [json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in listed]
    return rows


def earthquakes() -> list[str]:
    """The GeoJSON features that come with the package, one a row."""
    text = resources.files("pqext.examples").joinpath("earthquakes.json").read_text("utf-8")
    return [json.dumps(feature, separators=(",", ":")) for feature in json.loads(text)["features"]]


def samples(files: list[Path], megabytes: float) -> dict[str, list[str]]:
    """The documents of each size, or of ``files`` when there are any, repeated to about ``megabytes``."""
    if files:
        found = {"files": read(files)}
    else:
        found = {f"{size} bytes": generated(size, max(1000, 3_000_000 // size)) for size in (SMALL, LARGE)}
        found["earthquakes"] = earthquakes()
    return {
        name: rows * max(1, round(megabytes * 1e6 / sum(len(r.encode()) for r in rows))) for name, rows in found.items()
    }
