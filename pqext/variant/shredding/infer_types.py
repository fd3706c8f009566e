"""Inference of a shredding schema: the type of each path from what a sample holds there, and the reason in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pqext.variant.shredding.infer_options import Inference
from pqext.variant.shredding.schema import UUID, Array, Object, Primitive, ShreddingSchema, Untyped, ddl_name

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
_INTEGERS = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}
_PHYSICAL_INTEGERS = {3: pa.int8(), 4: pa.int16(), 5: pa.int32(), 6: pa.int64()}
_PHYSICAL_DECIMALS = {8: 9, 9: 18, 10: 38}
_SHOWN = 5
"""Fields left in the residual that a reason names."""
SHORT_DIGITS = 15
"""Decimal digits that every double preserves; JSON numbers of more come from doubles."""
MOST_RESIDUAL = 0.2
"""Share of the numbers of a path that inference leaves in the residual to make the column a DOUBLE."""


@dataclass(slots=True)
class Place:
    """What the sample holds at one path; the numbers are those of the kernel's ``Place``."""

    name: str | None
    counts: dict[str, int]
    fractions: int
    wide: int
    integer_digits: int
    scale: int
    integer_bytes: int
    nanos: int
    far: int
    physical: tuple[int, int]
    longest: int = 0
    doubles: int = 0
    share: float = 0.0
    """Occurrences for each row, or each element of the arrays around it."""
    weight: float = 0.0
    """The shares of this path and of the arrays around it, multiplied."""
    kept: bool = False
    remark: str = ""
    children: list[Place] = field(default_factory=list)

    @classmethod
    def of(cls, counted: dict[str, Any]) -> Place:
        """The place that the kernel counted."""
        numbers = {key: value for key, value in counted.items() if key not in ("parent", "name", "counts")}
        text = counted["name"].decode("utf-8", "replace") if counted["name"] is not None else None
        counts = {kind: count for kind, count in zip(_CLASSES, counted["counts"], strict=True) if count}
        return cls(text, counts, **numbers)

    @property
    def total(self) -> int:
        """Values, nulls included."""
        return sum(self.counts.values())


def choose(place: Place, how: Inference, depth: int) -> ShreddingSchema:
    """The schema of ``place``, ``depth`` objects and arrays below the top."""
    counts = {kind: count for kind, count in place.counts.items() if kind != "null"}
    seen = f"in {place.share:.0%} of the {'elements' if place.name is None and depth else 'rows'}"
    seen += f"; {place.remark}" if place.remark else ""
    if not counts:
        return Untyped(f"{seen}, always null")
    if place.counts.get("null"):
        seen += f", null in {place.counts['null'] / place.total:.1%}"
    kind = max(counts, key=lambda kind: counts[kind])
    if how.coerce == "json" and (double := _double(place, counts, how, seen)) is not None:
        return double
    if len(counts) > 1:
        chosen, seen = _mixed(place, counts, kind, how, seen)
        if chosen is not None:
            return chosen
    if kind == "object":
        return _object(place, how, depth, seen)
    if kind == "array":
        return _array(place, how, depth, seen)
    if kind == "exact number":
        return _exact(place, counts[kind], how, seen)
    if kind in ("timestamp", "timestamp without zone"):
        return _timestamp(place, kind, counts[kind], how, seen)
    return Primitive(_PLAIN[kind], f"{seen}, {kind}")


def _double(place: Place, counts: dict[str, int], how: Inference, seen: str) -> Primitive | None:
    """DOUBLE for JSON numbers that are long, or of which the digits after the point vary; None for other values."""
    exact, doubles, values = counts.get("exact number", 0), counts.get("double", 0), sum(counts.values())
    numbers, held = exact + doubles, place.doubles + doubles
    if not exact or (how.mixed == "uniform" and len(counts) > 1):
        return None
    long = place.integer_digits + place.scale > SHORT_DIGITS
    varied = place.longest * 2 < place.fractions
    if not place.fractions or not (long or varied or doubles):
        return None
    if held < values and (how.mixed == "widen" or not (long or doubles)):
        return None  # a decimal holds them all
    if numbers * 2 <= values or held < (1 - MOST_RESIDUAL) * numbers:
        return None
    digits = f"{place.integer_digits + place.scale} digits" if long else "varying digits after the point"
    kinds = f"numbers of {digits}" if long or varied else "decimals and doubles as double"
    return Primitive(pa.float64(), f"{seen}, {kinds}{_residual(values - held, values)}")


def _residual(left: int, values: int) -> str:
    """The share of the values of the sample that stay in the residual, as a reason says it."""
    return f"; in the residual: {left / values:.1%} of the values" if left else ""


def _mixed(
    place: Place, counts: dict[str, int], kind: str, how: Inference, seen: str
) -> tuple[ShreddingSchema | None, str]:
    """What becomes of values of several classes: a schema, or None for that of ``kind``, with the reason so far."""
    values = sum(counts.values())
    others = ", ".join(f"{k} {counts[k] / values:.1%}" for k in sorted(counts, key=lambda k: -counts[k]))
    if how.mixed == "uniform":
        return Untyped(f"{seen}; mixed: {others}"), seen
    if how.mixed == "widen":
        if how.coerce == "json" and counts.keys() == {"exact number", "double"}:
            return Untyped(f"{seen}; mixed, and integers are not written like doubles: {others}"), seen
        return Untyped(f"{seen}; mixed, and no type holds all: {others}"), seen
    if counts[kind] * 2 <= values:
        return Untyped(f"{seen}; mixed, no class has more than half: {others}"), seen
    return None, f"{seen}; mostly {kind}, the rest in the residual: {others}"


def _object(place: Place, how: Inference, depth: int, seen: str) -> ShreddingSchema:
    fields: list[tuple[str, ShreddingSchema]] = []
    others: list[str] = []
    named = [(child.name, child) for child in place.children if child.name is not None]  # None: elements
    for name, child in sorted(named, key=lambda pair: (-pair[1].share, pair[0])):
        if not child.kept:
            reason = "rare" if child.share < how.min_frequency else "beyond max_fields"
            others.append(f"{name} ({reason}: in {child.share:.1%})")
            continue
        chosen = choose(child, how, depth + 1)
        if isinstance(chosen, Untyped):
            others.append(f"{name} ({chosen.note})")
        else:
            fields.append((name, chosen))
    if not fields:
        limit = depth >= how.max_depth and not place.children
        left = f": {_listed(others)}" if others else ""
        return Untyped(f"{seen}, object; {'the depth limit' if limit else 'no field to shred'}{left}")
    note = f"{seen}, object" + (f"; in the residual: {_listed(others)}" if others else "")
    return Object(tuple(sorted(fields, key=lambda field: field[0].encode("utf-8", "replace"))), note)


def _listed(others: list[str]) -> str:
    return ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")


def _array(place: Place, how: Inference, depth: int, seen: str) -> ShreddingSchema:
    elements = next((child for child in place.children if child.name is None and child.kept), None)
    if elements is None:
        reason = "the depth limit" if depth >= how.max_depth else "no elements to go by"
        if any(child.name is None for child in place.children):
            reason = "its elements are beyond max_fields"
        return Untyped(f"{seen}, array; {reason}")
    element = choose(elements, how, depth + 1)
    if isinstance(element, Untyped):
        return Untyped(f"{seen}, array; its elements have no type in common ({element.note})")
    return Array(element, f"{seen}, array")


def _timestamp(place: Place, kind: str, values: int, how: Inference, seen: str) -> ShreddingSchema:
    zone = "UTC" if kind == "timestamp" else None
    nanos = place.nanos > 0
    if how.coerce == "exact":
        nanos = place.nanos * 2 > values
    elif nanos and place.far:
        if how.mixed == "widen":
            return Untyped(f"{seen}, {kind}; some in nanoseconds, some beyond the reach of nanoseconds")
        nanos = place.nanos > place.far
        seen += f"; {place.nanos} in nanoseconds, {place.far} beyond their reach"
    return Primitive(pa.timestamp("ns" if nanos else "us", zone), f"{seen}, {kind}")


def _exact(place: Place, values: int, how: Inference, seen: str) -> ShreddingSchema:
    if how.coerce == "exact":
        return _physical(place, seen)
    fits = place.wide == 0 if how.mixed == "widen" else place.wide * 2 <= values
    if not place.fractions and fits:
        too_large = f", {place.wide} too large{_residual(place.wide, values)}" if place.wide else ""
        if how.integers == "narrowest":
            return Primitive(_INTEGERS[place.integer_bytes], f"{seen}, integers of the sample fit{too_large}")
        return Primitive(pa.int64(), f"{seen}, integers{too_large}")
    digits = place.integer_digits + place.scale
    if digits <= 38:
        reason = f"up to {place.integer_digits} digits before and {place.scale} after the point"
        if digits > SHORT_DIGITS and how.coerce == "equivalent" and place.doubles >= (1 - MOST_RESIDUAL) * values:
            reason += "; coerce='json' makes it DOUBLE, which is smaller and faster"
        return Primitive(pa.decimal128(_precision(max(digits, 1), how), place.scale), f"{seen}, {reason}")
    if place.fractions * 2 < values and how.mixed != "widen":
        left = _residual(place.fractions + place.wide, values)
        return Primitive(pa.int64(), f"{seen}, mostly integers; no {ddl_name(pa.decimal128(38, 0))} holds all{left}")
    return Untyped(f"{seen}, decimals of {digits} digits, more than 38")


def _precision(digits: int, how: Inference) -> int:
    if isinstance(how.decimals, int):
        return min(digits + how.decimals, 38)
    steps = (9, 18, 38) if how.decimals == "narrowest" else (18, 38)
    return next(step for step in steps if digits <= step)


def _physical(place: Place, seen: str) -> ShreddingSchema:
    """The type that leads among the exact numbers: under ``coerce="exact"`` no other goes to its column."""
    type_id, scale = place.physical
    if type_id in _PHYSICAL_INTEGERS:
        return Primitive(_PHYSICAL_INTEGERS[type_id], f"{seen}, the type that most values have")
    precision = _PHYSICAL_DECIMALS[type_id]
    if scale > precision:
        return Untyped(f"{seen}, decimals of scale {scale}, which no DECIMAL({precision},{scale}) can be")
    return Primitive(pa.decimal128(precision, scale), f"{seen}, the type that most values have")
