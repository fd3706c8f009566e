"""Shredding: whole variants into the storage struct of a shredding schema."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from pqext.variant.coercion import as_variants
from pqext.variant.kernels import shredding as kernel
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.shredding import faults as shredding_faults
from pqext.variant.shredding.columns import storage_of
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from pqext.variant.types import VariantLike, child, is_shredded_type, like_input, struct_chunks

Coerce = Literal["equivalent", "exact", "json"]
COERCE: dict[Coerce, int] = {"equivalent": 0, "exact": 1, "json": 2}
"""The kernels' number for each way to coerce."""


def shred(array: VariantLike, schema: Any, *, coerce: Coerce = "equivalent") -> pa.Array | pa.ChunkedArray:
    """Shred a variant array: ``struct<metadata, value, typed_value>`` of the schema, row by row.

    ``schema`` is whatever :func:`pqext.variant.shredding_schema` takes, or ``"infer"``, which infers one with
    :func:`pqext.variant.infer_schema`'s defaults for ``coerce``. A shredded array is
    reconstructed first. Null rows stay null; ``metadata`` is shared with the input.

    With ``coerce="equivalent"`` a value goes to a typed column of its own equivalence class that can hold
    it exactly (2 to a ``DECIMAL(9,2)``, 2.00 to a ``BIGINT``), and comes back equal, as the column's type;
    with ``"exact"`` only values of the column's own variant type and form go there, so that canonical values
    come back with the same bytes (specs/variant-shredding.md says which); with ``"json"`` what is equivalent
    does, and decimals go to a ``DOUBLE`` that is written as the same JSON number (2.5 and 2.0, but not 2). Everything
    else stays in ``value``. Raises ``VariantError`` with the row for bytes that break the encoding, among those
    that have to be looked at: what goes to a residual whole is copied, not examined inside.

    Implements Variant Shredding, "Value Shredding".
    """
    check_coerce(coerce)
    array = as_variants(array)
    chunks = struct_chunks(array)
    if is_shredded_type(array.type):
        array = unshred(array)
        chunks = struct_chunks(array)
    if isinstance(schema, str) and schema == "infer":
        from pqext.variant.shredding.infer import infer_schema

        schema = infer_schema(array, coerce=coerce)
    compiled = compile_schema(shredding_schema(schema))
    shredded = []
    row = 0
    for chunk in chunks:
        shredded.append(_shred_chunk(chunk, compiled, COERCE[coerce], row))
        row += len(chunk)
    return like_input(array, shredded, storage_struct(compiled.nodes[0].schema))


def check_coerce(coerce: Any) -> Coerce:
    """``coerce``, when it is a way to coerce; ``ValueError`` otherwise."""
    if not isinstance(coerce, str) or coerce not in COERCE:
        raise ValueError(f"coerce is one of {', '.join(map(repr, COERCE))}, not {coerce!r}")
    return coerce


def _shred_chunk(chunk: pa.StructArray, compiled: CompiledSchema, coerce: int, first_row: int) -> pa.StructArray:
    status, row, offset, validity, columns = kernel.shred(compiled.plan, VariantInput(chunk), coerce)
    if status != 0:
        raise shredding_faults.error(status, row=first_row + row, offset=offset if offset >= 0 else None)
    metadata = child(chunk, "metadata")
    assert metadata is not None
    return storage_of(compiled, metadata.cast(pa.binary()), columns, validity, chunk.null_count)
