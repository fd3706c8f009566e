"""Infer a shredding schema from a sample of a variant column."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from pqext.variant import faults
from pqext.variant.coercion import as_variants, take_without_views
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.infer import Survey
from pqext.variant.shredding.infer_types import (
    Decimals,
    Inference,
    Integers,
    Mixed,
    PathSample,
    choose,
    sample_row_numbers,
)
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import MAX_NODES, ShreddingSchema, Untyped
from pqext.variant.types import VariantLike, struct_chunks

_MAX_PLACES = 100_000


def infer_with_options(array: VariantLike, options: Inference) -> ShreddingSchema:
    """Infer a shredding schema for the values in ``array``. Raises the errors of :func:`infer_schema`."""
    survey = Survey(_MAX_PLACES, options.max_depth)
    samples = _count_paths(survey, array, options.sample_rows)
    root = samples[0]
    if not root.total:
        return Untyped("no values")
    candidates = [sample for sample in samples[1:] if sample.share >= options.min_frequency]
    candidates.sort(key=lambda sample: -sample.weight)  # stable sort: parents remain before their children
    for sample in [root, *candidates[: min(options.max_fields, MAX_NODES - 1)]]:
        sample.kept = True
    if survey.full:
        root.remark = f"only the first {_MAX_PLACES:,} paths were counted"
    return choose(root, options, 0)


def infer_schema(
    array: VariantLike,
    *,
    sample_rows: int = 10_000,
    min_frequency: float = 0.1,
    max_fields: int = 300,
    max_depth: int = 20,
    mixed: Mixed = "majority",
    integers: Integers = "bigint",
    decimals: Decimals = "wide",
    coerce: Literal["equivalent", "exact", "json"] = "equivalent",
) -> ShreddingSchema:
    """Choose a shredding schema for the values in ``array``.

    Up to ``sample_rows`` rows, spread over the column, are sampled. A path gets its own column if it occurs in at least
    ``min_frequency`` of the rows (of the elements, inside arrays). If there are more than ``max_fields`` such paths,
    only the most frequent paths get columns. Values nested deeper than ``max_depth`` stay in the residual. JSON nulls
    do not affect types.

    If a path has values of several equivalence classes, ``mixed="majority"`` selects the class of more than half of
    them, ``"uniform"`` selects none, and ``"widen"`` selects a type that stores all of them, if there is one. Integers
    and decimals form one class, exact numbers, as do timestamps in microseconds and nanoseconds. Of different classes,
    only decimals and doubles have a common type, DOUBLE, and only with ``coerce="json"``. For exact numbers,
    ``"widen"`` selects a DECIMAL if integers exceed 64 bits.

    ``integers`` is ``"bigint"``, or ``"narrowest"`` for the narrowest integer type that fits the sample. ``decimals``
    is ``"wide"`` for 18 digits, or 38 if 18 do not suffice, ``"narrowest"`` for 9, 18 or 38, or a number of digits to
    add before the decimal point to the digits of the sample. ``coerce`` is the coercion when the array will be
    shredded. With ``"exact"``, a leaf has exactly the type of most of the values, and ``integers`` and ``decimals`` are
    ignored.

    ``coerce="json"`` is for JSON text, and is the default if text is parsed and shredded together. Exact numbers with
    more than 15 digits become DOUBLE if this can store at least 80 % of the path's numbers. Shorter numbers become
    DOUBLE if it can store all of them and the number of digits after the decimal point varies, so that fewer than half
    of the fractions have the maximum. Other numbers become DECIMAL.

    The result's ``explain()`` describes the reason for each choice, and the share of each path's values that stay in
    the residual. Raises ``ValueError`` or ``TypeError`` for invalid arguments, and ``VariantError`` for invalid values
    in the sample.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"id": 1, "tag": "a"}', '{"id": 2}'])
    >>> print(variant.infer_schema(array))
    STRUCT<id: BIGINT, tag: STRING>
    >>> print(variant.infer_schema(array, min_frequency=0.8).explain())
    $: STRUCT  -- in 100% of the rows, object; in the residual: tag (rare: in 50.0%)
      id: BIGINT  -- in 100% of the rows, integers
    """
    inference = Inference(sample_rows, min_frequency, max_fields, max_depth, mixed, integers, decimals, coerce)
    return infer_with_options(array, inference)


def _count_paths(survey: Survey, array: VariantLike, sample_rows: int) -> list[PathSample]:
    """Sample values and count them for each path. Returns the statistics of the paths, parents first."""
    array = as_variants(array)
    chunks = struct_chunks(array)
    rows = sum(map(len, chunks))
    before = 0
    for chunk in chunks:
        # Sample each chunk in proportion, so that all chunks are represented.
        first, last = (sample_rows * edge // max(rows, sample_rows) for edge in (before, before + len(chunk)))
        sampled = chunk if sample_rows >= rows or last - first == len(chunk) else _sample_rows(chunk, last - first)
        status, row = survey.add(VariantInput(unshred(sampled)), len(sampled))
        if status != 0:
            raise faults.error(status, row=before + row if sampled is chunk else None)
        before += len(chunk)
    places: list[PathSample] = []
    for counted in survey.places():
        place = PathSample.from_counts(counted)
        if counted["parent"] >= 0:
            above = places[counted["parent"]]
            above.children.append(place)
            if place.name is None:
                place.share, place.weight = 1.0, above.weight
            else:
                # Relative to rows, or to elements of enclosing arrays, not only to the parent.
                part = place.total / max(above.total, 1)
                place.share, place.weight = above.share * part, above.weight * part
        else:
            place.share = place.weight = 1.0
        places.append(place)
    return places


def _sample_rows(chunk: pa.StructArray, rows: int) -> pa.StructArray:
    """Return ``rows`` rows of a chunk, spread over the chunk."""
    return take_without_views(chunk, sample_row_numbers(len(chunk), rows))
