"""Options of schema inference, and the choice of a type for each path, with the reason for the choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext.variant.shredding.schema import MAX_DEPTH, UUID, Array, Object, Primitive, ShreddingSchema, Untyped, ddl_name

Mixed = Literal["majority", "uniform", "widen"]
Integers = Literal["bigint", "narrowest"]
Decimals = Literal["wide", "narrowest"] | int
_GOLDEN = 0.6180339887498949
"""Golden ratio: the fractional parts of its multiples are spread evenly and never repeat."""


@dataclass(frozen=True, slots=True)
class Inference:
    """Options of schema inference: the validated keyword arguments of :func:`pqext.variant.infer_schema`."""

    sample_rows: int = 10_000
    min_frequency: float = 0.1
    max_fields: int = 300
    max_depth: int = 20
    mixed: Mixed = "majority"
    integers: Integers = "bigint"
    decimals: Decimals = "wide"
    coerce: Literal["equivalent", "exact", "json"] = "equivalent"

    def __post_init__(self) -> None:
        for name in ("sample_rows", "max_fields"):
            _check_integer(name, getattr(self, name), 1, None)
        _check_integer("max_depth", self.max_depth, 0, MAX_DEPTH)
        if isinstance(self.min_frequency, bool) or not isinstance(self.min_frequency, int | float):
            raise TypeError(f"min_frequency must be a number, not a {type(self.min_frequency).__name__}")
        if not 0 <= self.min_frequency <= 1:
            raise ValueError(f"min_frequency must be between 0 and 1, not {self.min_frequency}")
        _check_choice("mixed", self.mixed, ("majority", "uniform", "widen"))
        _check_choice("integers", self.integers, ("bigint", "narrowest"))
        _check_choice("coerce", self.coerce, ("equivalent", "exact", "json"))
        if isinstance(self.decimals, int):
            _check_integer("decimals", self.decimals, 0, 38)
        else:
            _check_choice("decimals", self.decimals, ("wide", "narrowest"))


def _check_integer(name: str, value: Any, minimum: int, maximum: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not a {type(value).__name__}")
    if value < minimum or (maximum is not None and value > maximum):
        limits = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be {limits}, not {value}")


def _check_choice(name: str, value: Any, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {value!r}")


def sample_row_numbers(rows: int, count: int) -> pa.Int64Array:
    """Choose ``count`` of ``rows`` rows at irregular distances, and return their numbers in ascending order.

    The rows are divided into ``count`` equal ranges, with one row from each, at varying offsets. Rows at equal
    distances would be a bad sample of periodic values. For example, every tenth row of ``i * 0.1`` is an integer.
    """
    numbers = np.arange(count + 1, dtype=np.int64)
    edges = numbers * rows // max(count, 1)
    widths = np.diff(edges)
    offsets = (numbers[:-1] * _GOLDEN % 1.0 * widths).astype(np.int64)
    return pa.array(edges[:-1] + np.minimum(offsets, np.maximum(widths - 1, 0)), pa.int64())


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
"""Number of residual fields that a reason names."""
SHORT_DIGITS = 15
"""Decimal digits that every double preserves. JSON numbers with more digits come from doubles."""
MOST_RESIDUAL = 0.2
"""Maximum share of a path's numbers that inference leaves in the residual in order to use a DOUBLE column."""


@dataclass(slots=True)
class PathSample:
    """Statistics of the sampled values at one path, as counted by the kernel's ``Place``."""

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
    """Occurrences per row, or per element of the enclosing arrays."""
    weight: float = 0.0
    """Product of the shares of this path and of the enclosing arrays."""
    kept: bool = False
    is_utf8: bool = True
    """Whether ``name`` is stored as valid UTF-8."""
    remark: str = ""
    children: list[PathSample] = field(default_factory=list)

    @classmethod
    def from_counts(cls, record: dict[str, Any]) -> PathSample:
        """Create the statistics of a path from the kernel's counts."""
        numbers = {key: value for key, value in record.items() if key not in ("parent", "name", "counts")}
        text = record["name"].decode("utf-8", "replace") if record["name"] is not None else None
        counts = {kind: count for kind, count in zip(_CLASSES, record["counts"], strict=True) if count}
        return cls(text, counts, **numbers, is_utf8=text is None or text.encode() == record["name"])

    @property
    def total(self) -> int:
        """Number of values, including nulls."""
        return sum(self.counts.values())


def choose(sample: PathSample, options: Inference, depth: int) -> ShreddingSchema:
    """Choose the schema for the values of a path. ``depth`` is the number of objects and arrays that enclose them."""
    counts = {group: count for group, count in sample.counts.items() if group != "null"}
    summary = f"in {sample.share:.0%} of the {'elements' if sample.name is None and depth else 'rows'}"
    summary += f"; {sample.remark}" if sample.remark else ""
    if not counts:
        return Untyped(f"{summary}, always null")
    if sample.counts.get("null"):
        summary += f", null in {sample.counts['null'] / sample.total:.1%}"
    group = max(counts, key=lambda group: counts[group])
    if options.coerce == "json" and (double := _double_type(sample, counts, options, summary)) is not None:
        return double
    if len(counts) > 1:
        chosen, summary = _mixed_schema(sample, counts, group, options, summary)
        if chosen is not None:
            return chosen
    if group == "object":
        return _object_schema(sample, options, depth, summary)
    if group == "array":
        return _array_schema(sample, options, depth, summary)
    if group == "exact number":
        return _exact_schema(sample, counts[group], options, summary)
    if group in ("timestamp", "timestamp without zone"):
        return _timestamp_schema(sample, group, counts[group], options, summary)
    return Primitive(_PLAIN[group], f"{summary}, {group}")


def _double_type(sample: PathSample, counts: dict[str, int], options: Inference, summary: str) -> Primitive | None:
    """Return DOUBLE for JSON numbers that have many digits or a varying number of decimals; None for other values."""
    exact, doubles, values = counts.get("exact number", 0), counts.get("double", 0), sum(counts.values())
    numbers, held = exact + doubles, sample.doubles + doubles
    if not exact or (options.mixed == "uniform" and len(counts) > 1):
        return None
    long = sample.integer_digits + sample.scale > SHORT_DIGITS
    varied = sample.longest * 2 < sample.fractions
    if not sample.fractions or not (long or varied or doubles):
        return None
    if held < values and (options.mixed == "widen" or not (long or doubles)):
        return None  # a decimal represents all of them
    if numbers * 2 <= values or held < (1 - MOST_RESIDUAL) * numbers:
        return None
    digits = f"{sample.integer_digits + sample.scale} digits" if long else "varying digits after the decimal point"
    kinds = f"numbers of {digits}" if long or varied else "decimals and doubles as double"
    return Primitive(pa.float64(), f"{summary}, {kinds}{_describe_residual(values - held, values)}")


def _describe_residual(residual: int, values: int) -> str:
    """Describe the share of the sampled values that stay in the residual."""
    return f"; in the residual: {residual / values:.1%} of the values" if residual else ""


def _mixed_schema(
    sample: PathSample, counts: dict[str, int], group: str, options: Inference, summary: str
) -> tuple[ShreddingSchema | None, str]:
    """Choose the schema for values of several equivalence classes. Returns the schema and the extended summary.

    The schema is None if the most frequent class, ``group``, determines it.
    """
    values = sum(counts.values())
    others = ", ".join(f"{k} {counts[k] / values:.1%}" for k in sorted(counts, key=lambda k: -counts[k]))
    if options.mixed == "uniform":
        return Untyped(f"{summary}; mixed: {others}"), summary
    if options.mixed == "widen":
        if options.coerce == "json" and counts.keys() == {"exact number", "double"}:
            return Untyped(f"{summary}; mixed, and integers are not written like doubles: {others}"), summary
        return Untyped(f"{summary}; mixed, and no type holds all: {others}"), summary
    if counts[group] * 2 <= values:
        return Untyped(f"{summary}; mixed, no class has more than half: {others}"), summary
    return None, f"{summary}; mostly {group}, the rest in the residual: {others}"


def _object_schema(sample: PathSample, options: Inference, depth: int, summary: str) -> ShreddingSchema:
    fields: list[tuple[str, ShreddingSchema]] = []
    others: list[str] = []
    named = [(child.name, child) for child in sample.children if child.name is not None]  # None for elements
    for name, child in sorted(named, key=lambda pair: (-pair[1].share, pair[0])):
        if not child.kept:
            reason = "rare" if child.share < options.min_frequency else "beyond max_fields"
            others.append(f"{name} ({reason}: in {child.share:.1%})")
            continue
        chosen = choose(child, options, depth + 1)
        if isinstance(chosen, Untyped):
            others.append(f"{name} ({chosen.note})")
        elif not child.is_utf8:
            others.append(f"{name} (the name is not UTF-8)")
        else:
            fields.append((name, chosen))
    if not fields:
        limit = depth >= options.max_depth and not sample.children
        omitted = f": {_shorten_list(others)}" if others else ""
        return Untyped(f"{summary}, object; {'the depth limit' if limit else 'no field to shred'}{omitted}")
    note = f"{summary}, object" + (f"; in the residual: {_shorten_list(others)}" if others else "")
    return Object(tuple(sorted(fields, key=lambda field: field[0].encode("utf-8", "replace"))), note)


def _shorten_list(other_paths: list[str]) -> str:
    return ", ".join(other_paths[:_SHOWN]) + (
        f" and {len(other_paths) - _SHOWN} more" if len(other_paths) > _SHOWN else ""
    )


def _array_schema(sample: PathSample, options: Inference, depth: int, summary: str) -> ShreddingSchema:
    elements = next((child for child in sample.children if child.name is None and child.kept), None)
    if elements is None:
        reason = "the depth limit" if depth >= options.max_depth else "no elements to go by"
        if any(child.name is None for child in sample.children):
            reason = "its elements are beyond max_fields"
        return Untyped(f"{summary}, array; {reason}")
    element = choose(elements, options, depth + 1)
    if isinstance(element, Untyped):
        return Untyped(f"{summary}, array; its elements have no type in common ({element.note})")
    return Array(element, f"{summary}, array")


def _timestamp_schema(sample: PathSample, group: str, values: int, options: Inference, summary: str) -> ShreddingSchema:
    zone = "UTC" if group == "timestamp" else None
    nanos = sample.nanos > 0
    if options.coerce == "exact":
        nanos = sample.nanos * 2 > values
    elif nanos and sample.far:
        if options.mixed == "widen":
            return Untyped(f"{summary}, {group}; some in nanoseconds, some beyond the reach of nanoseconds")
        nanos = sample.nanos > sample.far
        summary += f"; {sample.nanos} in nanoseconds, {sample.far} out of their range"
    return Primitive(pa.timestamp("ns" if nanos else "us", zone), f"{summary}, {group}")


def _exact_schema(sample: PathSample, values: int, options: Inference, summary: str) -> ShreddingSchema:
    if options.coerce == "exact":
        return _physical_schema(sample, summary)
    fits = sample.wide == 0 if options.mixed == "widen" else sample.wide * 2 <= values
    if not sample.fractions and fits:
        too_large = f", {sample.wide} too large{_describe_residual(sample.wide, values)}" if sample.wide else ""
        if options.integers == "narrowest":
            return Primitive(_INTEGERS[sample.integer_bytes], f"{summary}, integers of the sample fit{too_large}")
        return Primitive(pa.int64(), f"{summary}, integers{too_large}")
    digits = sample.integer_digits + sample.scale
    if digits <= 38:
        reason = f"up to {sample.integer_digits} digits before and {sample.scale} after the decimal point"
        if digits > SHORT_DIGITS and options.coerce == "equivalent" and sample.doubles >= (1 - MOST_RESIDUAL) * values:
            reason += "; coerce='json' makes it DOUBLE, which is smaller and faster"
        return Primitive(pa.decimal128(_precision(max(digits, 1), options), sample.scale), f"{summary}, {reason}")
    if sample.fractions * 2 < values and options.mixed != "widen":
        residual = _describe_residual(sample.fractions + sample.wide, values)
        widest = ddl_name(pa.decimal128(38, 0))
        return Primitive(pa.int64(), f"{summary}, mostly integers; no {widest} holds all{residual}")
    return Untyped(f"{summary}, decimals of {digits} digits, more than 38")


def _precision(digits: int, options: Inference) -> int:
    if isinstance(options.decimals, int):
        return min(digits + options.decimals, 38)
    steps = (9, 18, 38) if options.decimals == "narrowest" else (18, 38)
    return next(step for step in steps if digits <= step)


def _physical_schema(sample: PathSample, summary: str) -> ShreddingSchema:
    """Return the schema for the most frequent physical type of exact numbers.

    With ``coerce="exact"``, its column contains only values of this type.
    """
    type_id, scale = sample.physical
    if type_id in _PHYSICAL_INTEGERS:
        return Primitive(_PHYSICAL_INTEGERS[type_id], f"{summary}, the type that most values have")
    precision = _PHYSICAL_DECIMALS[type_id]
    if scale > precision:
        return Untyped(f"{summary}, decimals of scale {scale}, which no DECIMAL({precision},{scale}) can be")
    return Primitive(pa.decimal128(precision, scale), f"{summary}, the type that most values have")
