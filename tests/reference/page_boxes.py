"""The payload of page boxes read slowly, page by page, with exact fractions instead of doubles where it matters."""

from __future__ import annotations

import struct
from collections.abc import Iterator

PLACES = 65535

Box = tuple[float, float, float, float]


def pages(payload: bytes) -> Iterator[Box | str]:
    """For each page its (xmin, xmax, ymin, ymax), or why it has none."""
    version, count = payload[0], int.from_bytes(payload[1:5], "little")
    assert version == 1
    frame = struct.unpack("<4d", payload[5:37])
    for page in range(count):
        places = struct.unpack("<4H", payload[37 + 8 * page : 45 + 8 * page])
        if places[2] > places[3]:
            assert (places[0], places[1], places[3]) == (0, 0, 0)
            yield {1: "nulls", 2: "empty", 3: "unknown"}[places[2]]
            continue
        west, east = (value(place, frame[0], frame[1]) for place in places[:2])
        south, north = (value(place, frame[2], frame[3]) for place in places[2:])
        yield west, east, south, north
    assert len(payload) == 37 + 8 * count


def value(place: int, low: float, high: float) -> float:
    share = place / PLACES
    return low * (1 - share) + high * share


def holds(box: Box | str, x: float, y: float) -> bool:
    """Is the point in the box, around the antimeridian where it wraps?"""
    if isinstance(box, str):
        return box == "unknown"
    west, east, south, north = box
    within = west <= x <= east if west <= east else x >= west or x <= east
    return within and south <= y <= north
