"""Inference of a shredding schema from a sample of a variant column."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from pqext.variant import faults
from pqext.variant.coercion import as_variants
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.infer import Survey
from pqext.variant.shredding.infer_types import Decimals, Inference, Integers, Mixed, PathSample, choose, sampled_rows
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import MAX_NODES, ShreddingSchema, Untyped
from pqext.variant.types import VariantLike, struct_chunks
from pqext.variant.views import take

_MAX_PLACES = 100_000


def infer_with_options(array: VariantLike, options: Inference) -> ShreddingSchema:
    """The schema for the values in ``array``; raises as :func:`infer_schema`."""
    survey = Survey(_MAX_PLACES, options.max_depth)
    samples = _count(survey, array, options.sample_rows)
    root = samples[0]
    if not root.total:
        return Untyped("no values")
    candidates = [sample for sample in samples[1:] if sample.share >= options.min_frequency]
    candidates.sort(key=lambda sample: -sample.weight)  # stable: parents stay before their children
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

    Up to ``sample_rows`` rows, spread over the column, are counted. A path gets a column of its own when it
    occurs in at least ``min_frequency`` of the rows (of the elements, inside arrays); of more than
    ``max_fields`` such paths the most frequent ones do; what lies deeper than ``max_depth`` stays in the
    residual. JSON nulls have no say in types.

    Where values of several equivalence classes meet, ``mixed="majority"`` takes the class of more than half of
    them; ``"uniform"`` takes none; ``"widen"`` takes a type that stores all of them, if there is one, and none
    otherwise. Exact numbers, integers and decimals together, are one class, as are timestamps in microseconds
    and nanoseconds; between classes only decimals and doubles have a type in common, DOUBLE, and only under
    ``coerce="json"``. Within the class of exact numbers ``"widen"`` takes a DECIMAL where integers leave 64 bits.

    ``integers`` is ``"bigint"``, or ``"narrowest"`` for the narrowest integer type that holds the sample.
    ``decimals`` is ``"wide"`` for 18 digits, or 38 where these do not do, ``"narrowest"`` for 9, 18 or 38, or a
    number: the digits of the sample and as many more before the point. ``coerce`` is how the array will be shredded:
    under ``"exact"`` a leaf takes the very type that most of the values have, and ``integers`` and ``decimals``
    do not count.

    ``coerce="json"`` is for JSON text, and the default where text is parsed and shredded together. Exact numbers of
    more than 15 digits become DOUBLE if at least 80 % of the path's numbers go there; so do shorter ones with varying
    digits after the point (fewer than half of the fractions have the most), if all go there. Others stay DECIMAL.

    The result's ``explain()`` says why each choice was made and what stays in the residual, with the share of the
    values of the path. Raises ``ValueError``
    or ``TypeError`` for arguments outside these, and ``VariantError`` for broken values in the sample.
    """
    how = Inference(sample_rows, min_frequency, max_fields, max_depth, mixed, integers, decimals, coerce)
    return infer_with_options(array, how)


def _count(survey: Survey, array: VariantLike, sample_rows: int) -> list[PathSample]:
    """Count the values of the sample by path, parents first."""
    array = as_variants(array)
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
    places: list[PathSample] = []
    for counted in survey.places():
        place = PathSample.from_counts(counted)
        if counted["parent"] >= 0:
            above = places[counted["parent"]]
            above.children.append(place)
            if place.name is None:
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
    return take(chunk, sampled_rows(len(chunk), rows))
