"""Compare variants by equivalence class, and compute hashes and the canonical form of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.variant.coercion import as_variants
from pqext.variant.conversion.arrow import Written, concatenate_variants, write_rows
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.edit import Action, edit
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.types import VariantLike, struct_chunks, variant_type


def canonical(array: VariantLike) -> pa.StructArray | pa.ChunkedArray:
    """Return variants in canonical form: equal values have equal bytes, in value and metadata.

    Equality is defined by :func:`equals`. Exact numbers become the narrowest possible integer, or otherwise the
    narrowest decimal without trailing zeros. Each floating-point type has one NaN and one zero. Timestamps are in
    microseconds unless they have nanoseconds. Strings and containers have their shortest encoding. The metadata is a
    sorted dictionary with exactly the names that the row uses.

    Shredded arrays are accepted. The result is unshredded, and chunked if ``array`` is. Null rows remain null. To group
    or join by a variant, use its two children as keys, or :func:`hash`::

        c = variant.canonical(table["event"]).combine_chunks()
        keys = pa.table({"metadata": c.field("metadata"), "value": c.field("value")})

    Raises ``VariantError`` with the row and the byte for bytes that violate the encoding, ``UnsupportedError`` for a
    primitive type added to the format later, and ``LimitError`` if an array would exceed 2 GiB.

    >>> from pqext import variant
    >>> a, b = variant.canonical(variant.parse_json(['{"a": 1.00}', '{"a": 1}']))
    >>> a == b
    True
    """
    array = as_variants(array)
    results: list[pa.Array] = []
    row = 0
    for chunk in struct_chunks(array):
        results += _canonical(chunk, row)
        row += len(chunk)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(results, variant_type())
    return concatenate_variants(results)


def _canonical(chunk: pa.StructArray, first_row: int) -> list[pa.StructArray]:
    whole = VariantInput(unshred(chunk))

    def write(start: int) -> Written:
        return edit(whole, start, first_row, Action.ACTION_COPY, [], None, False, True)

    return write_rows(write, len(chunk))


def equals(left: VariantLike, right: Any) -> pa.BooleanArray | pa.ChunkedArray:
    """Return whether each variant equals the variant in the same row of ``right``; null if either row is null.

    ``right`` is a variant array as long as ``left``, or one value for all rows: a :class:`~pqext.variant.Variant`, or
    an object that :func:`pqext.variant.from_python` accepts. Values are equal if they belong to the same equivalence
    class (Variant Encoding, primitive types) and have the same data. An int8 1 equals a decimal 1.00, a timestamp in
    microseconds equals the same timestamp in nanoseconds, and a short string equals a long string with the same text.
    Objects are equal if they have the same fields, whatever their dictionaries. A float never equals a double. NaN
    equals NaN and 0.0 equals -0.0. ``==`` compares two ``Variant`` objects in the same way.

    Raises the errors of :func:`canonical`, and ``ValueError`` if lengths differ.

    >>> from pqext import variant
    >>> variant.equals(variant.parse_json(["1.0", '"1"', None]), 1).to_pylist()
    [True, False, None]
    """
    from pqext.variant.conversion.objects import from_python
    from pqext.variant.value import Variant

    left = as_variants(left)
    mine = canonical(left)
    if isinstance(right, pa.Array | pa.ChunkedArray) or (
        hasattr(right, "__arrow_c_stream__") and not isinstance(right, Variant)
    ):
        right = as_variants(right)
        if len(left) != len(right):
            raise ValueError(f"the arrays must have the same length, not {len(left)} and {len(right)} rows")
        theirs: Any = canonical(right)
    else:
        scalar = canonical(from_python([right], none_is_null=False))
        theirs = {name: scalar.field(name)[0] for name in ("metadata", "value")}
    equal = [pc.equal(_masked_child(mine, name), _masked_child(theirs, name)) for name in ("metadata", "value")]
    return pc.and_(*equal)


def _masked_child(array: Any, name: str) -> Any:
    """Return the child ``name`` of canonical variants, with nulls in the rows where the variant is null."""
    return array[name] if isinstance(array, dict) else pc.struct_field(array, name)


def hash(array: VariantLike) -> pa.UInt64Array | pa.ChunkedArray:
    """Return a hash (uint64) of each variant, which is the same for equal variants; null for null rows.

    Equality is defined by :func:`equals`, so the hash does not depend on how a value is encoded or shredded. Two
    different values have the same hash with a probability of about 1 in 2^64, unless they were chosen deliberately;
    compare with :func:`equals` if that matters. Do not store hashes: other versions of pqext may compute different
    ones.

    Raises the errors of :func:`canonical`, except ``LimitError``.

    >>> import pyarrow as pa
    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": 1}', '{"a": 1.0}', '"x"'])
    >>> table = pa.table({"key": variant.hash(array), "n": [1, 2, 3]})
    >>> sorted(table.group_by("key").aggregate([("n", "sum")])["n_sum"].to_pylist())
    [3, 3]
    """
    array = as_variants(array)
    results = []
    row = 0
    for chunk in struct_chunks(array):
        whole = VariantInput(unshred(chunk))
        rows, nulls, validity, hashes = edit(whole, 0, row, Action.ACTION_HASH, [], None, False, True)
        bitmap = pa.py_buffer(validity) if nulls else None
        results.append(pa.Array.from_buffers(pa.uint64(), rows, [bitmap, pa.py_buffer(hashes)], nulls))
        row += len(chunk)
    return pa.chunked_array(results, pa.uint64()) if isinstance(array, pa.ChunkedArray) else results[0]
