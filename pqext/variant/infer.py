"""Inference of a shredding schema from a sample of a variant column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from pqext.variant import faults
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.infer import Survey
from pqext.variant.reconstruct import unshred
from pqext.variant.schema import (
    MAX_DEPTH,
    MAX_NODES,
    UUID,
    Array,
    Object,
    Primitive,
    ShreddingSchema,
    Untyped,
    ddl_name,
)
from pqext.variant.types import VariantLike, struct_chunks

Mixed = Literal["majority", "uniform"]

# The order of the classes in the kernel's counts.
_CLASSES = (
    "null",
    "boolean",
    "exact number",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "time",
    "timestamp",
    "timestamp without zone",
    "uuid",
    "object",
    "array",
)
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "uuid": UUID,
}
_MAX_PLACES = 100_000


@dataclass(slots=True)
class _Place:
    """What the sample holds at one path."""

    name: str | None
    counts: dict[str, int]
    fractions: int
    wide: int
    integer_digits: int
    scale: int
    nanos: int
    share: float = 0.0
    """Occurrences for each row, or each element of the arrays around it."""
    weight: float = 0.0
    """The shares of this path and of the arrays around it, multiplied."""
    kept: bool = False
    children: list[_Place] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def infer_schema(
    array: VariantLike,
    *,
    sample_rows: int = 10_000,
    min_frequency: float = 0.1,
    max_fields: int = 300,
    max_depth: int = 20,
    mixed: Mixed = "majority",
) -> ShreddingSchema:
    """Choose a shredding schema for the values in ``array``.

    Up to ``sample_rows`` rows, spread over the column, are counted. A path gets a column of its own when it
    occurs in at least ``min_frequency`` of the rows (of the elements, inside arrays); of more than
    ``max_fields`` such paths the most frequent ones do; what lies deeper than ``max_depth`` stays in the
    residual. Integers become BIGINT; decimals, with the integers beside them, one DECIMAL of 18 or 38 digits
    that holds all of them. Where values of several classes meet, ``mixed="majority"`` takes the class of more
    than half of them, and ``"uniform"`` none. JSON nulls have no say.

    The result's ``explain()`` says why each choice was made. Raises ``VariantError`` for broken values in
    the sample.
    """
    if sample_rows < 1 or max_fields < 1 or not 0 <= min_frequency <= 1:
        raise ValueError("sample_rows and max_fields are at least 1, min_frequency lies between 0 and 1")
    if not 0 <= max_depth <= MAX_DEPTH:
        raise ValueError(f"max_depth lies between 0 and {MAX_DEPTH}")
    if mixed not in ("majority", "uniform"):
        raise ValueError(f"mixed is 'majority' or 'uniform', not {mixed!r}")
    places = _survey(array, sample_rows, max_depth)
    root = places[0]
    if not root.total:
        return Untyped("there are no values")
    candidates = [place for place in places[1:] if place.share >= min_frequency]
    candidates.sort(key=lambda place: -place.weight)  # stable: parents stay before their children
    for place in [root, *candidates[: min(max_fields, MAX_NODES - 1)]]:
        place.kept = True
    return _choose(root, mixed, min_frequency, max_depth, 0)


def _survey(array: VariantLike, sample_rows: int, max_depth: int) -> list[_Place]:
    """Count the sample; the places come parents first."""
    survey = Survey(_MAX_PLACES, max_depth)
    chunks = struct_chunks(array)
    rows = sum(map(len, chunks))
    before = 0
    for chunk in chunks:
        # Each chunk gives its part of the sample, so that what it holds is heard.
        first, last = (sample_rows * edge // max(rows, sample_rows) for edge in (before, before + len(chunk)))
        sampled = chunk if sample_rows >= rows or last - first == len(chunk) else _thin(chunk, last - first)
        status, row = survey.add(VariantInput(unshred(sampled)), len(sampled))
        if status != 0:
            raise faults.error(status, row=before + row if sampled is chunk else None)
        before += len(chunk)
    places: list[_Place] = []
    for parent, name, counts, fractions, wide, digits, scale, nanos in survey.places():
        text = name.decode("utf-8", "replace") if name is not None else None
        kinds = {kind: count for kind, count in zip(_CLASSES, counts, strict=True) if count}
        place = _Place(text, kinds, fractions, wide, digits, scale, nanos)
        if parent >= 0:
            above = places[parent]
            above.children.append(place)
            if name is None:
                place.share, place.weight = 1.0, above.weight
            else:
                # Of the rows, or of the elements around: the share of the path, not of the parent alone.
                part = place.total / max(above.total, 1)
                place.share, place.weight = above.share * part, above.weight * part
        else:
            place.share = place.weight = 1.0
        places.append(place)
    return places


def _thin(chunk: pa.StructArray, rows: int) -> pa.StructArray:
    return chunk.take(pa.array([i * len(chunk) // rows for i in range(rows)], pa.int64()))


def _choose(place: _Place, mixed: Mixed, min_frequency: float, max_depth: int, depth: int) -> ShreddingSchema:
    counts = {kind: count for kind, count in place.counts.items() if kind != "null"}
    values = sum(counts.values())
    seen = f"in {place.share:.0%} of the {'elements' if place.name is None and depth else 'rows'}"
    if not counts:
        return Untyped(f"{seen}, always null")
    if place.counts.get("null"):
        seen += f", null in {place.counts['null'] / place.total:.1%}"
    kind = max(counts, key=lambda kind: counts[kind])
    if len(counts) > 1:
        others = ", ".join(f"{k} {counts[k] / values:.1%}" for k in sorted(counts, key=lambda k: -counts[k]))
        if mixed == "uniform" or counts[kind] * 2 <= values:
            return Untyped(f"{seen}; mixed: {others}")
        seen += f"; mostly {kind}: {others}"
    if kind == "object":
        return _object(place, mixed, min_frequency, max_depth, depth, seen)
    if kind == "array":
        return _array(place, mixed, min_frequency, max_depth, depth, seen)
    if kind == "exact number":
        return _exact(place, counts[kind], seen)
    if kind in ("timestamp", "timestamp without zone"):
        zone = "UTC" if kind == "timestamp" else None
        return Primitive(pa.timestamp("ns" if place.nanos else "us", zone), f"{seen}, {kind}")
    return Primitive(_PLAIN[kind], f"{seen}, {kind}")


def _object(
    place: _Place, mixed: Mixed, min_frequency: float, max_depth: int, depth: int, seen: str
) -> ShreddingSchema:
    fields: list[tuple[str, ShreddingSchema]] = []
    others: list[str] = []
    named = [(child.name, child) for child in place.children if child.name is not None]  # None: elements
    for name, child in sorted(named, key=lambda pair: (-pair[1].share, pair[0])):
        if not child.kept:
            others.append(f"{name} {child.share:.1%}")
            continue
        chosen = _choose(child, mixed, min_frequency, max_depth, depth + 1)
        if isinstance(chosen, Untyped):
            others.append(f"{name} ({chosen.note})")
        else:
            fields.append((name, chosen))
    if not fields:
        limit = depth >= max_depth and not place.children
        return Untyped(f"{seen}, object; {'the depth limit' if limit else 'no field to shred'}")
    if others:
        seen += f"; in the residual: {', '.join(others[:5])}"
        seen += f" and {len(others) - 5} more" if len(others) > 5 else ""
    return Object(tuple(sorted(fields, key=lambda field: field[0].encode("utf-8", "replace"))), f"{seen}, object")


def _array(place: _Place, mixed: Mixed, min_frequency: float, max_depth: int, depth: int, seen: str) -> ShreddingSchema:
    elements = next((child for child in place.children if child.name is None and child.kept), None)
    if elements is None:
        return Untyped(f"{seen}, array; {'the depth limit' if depth >= max_depth else 'no elements to go by'}")
    element = _choose(elements, mixed, min_frequency, max_depth, depth + 1)
    if isinstance(element, Untyped):
        return Untyped(f"{seen}, array; its elements have no type in common ({element.note})")
    return Array(element, f"{seen}, array")


def _exact(place: _Place, values: int, seen: str) -> ShreddingSchema:
    if not place.fractions and place.wide * 2 <= values:
        return Primitive(pa.int64(), f"{seen}, integers" + (f", {place.wide} too large" if place.wide else ""))
    digits = place.integer_digits + place.scale
    if digits <= 38:
        type = pa.decimal128(18 if digits <= 18 else 38, place.scale)
        reason = f"up to {place.integer_digits} digits before and {place.scale} after the point"
        return Primitive(type, f"{seen}, {reason}")
    if place.fractions * 2 < values:
        return Primitive(pa.int64(), f"{seen}, mostly integers; no {ddl_name(pa.decimal128(38, 0))} holds all")
    return Untyped(f"{seen}, decimals of {digits} digits, more than 38")
