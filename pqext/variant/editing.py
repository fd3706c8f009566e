"""Edit variants row by row: set or delete a value at a path, merge (RFC 7396), or remove nulls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import VariantError
from pqext.variant.access.path import as_path, format_path
from pqext.variant.coercion import as_variants
from pqext.variant.conversion.arrow import Written, concatenate_variants, write_rows
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.edit import Action, edit
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.types import VariantLike, is_shredded_type, is_variant_type, struct_chunks, variant_type
from pqext.variant.value import Variant

_WITHOUT_VALUE = (Action.ACTION_DELETE, Action.ACTION_STRIP, Action.ACTION_STRIP_ALL)


def set(
    array: VariantLike, path: str | Sequence[str | int], value: Any, *, create: bool = True, strict: bool = False
) -> pa.StructArray | pa.ChunkedArray:
    """Replace the value at ``path`` with ``value``, or add it.

    ``value`` is one value for all rows (a :class:`~pqext.variant.Variant` or an object that
    :func:`pqext.variant.from_python` accepts), or an array as long as ``array``: variants, or any Arrow array that
    :func:`pqext.variant.from_arrow` accepts. Nulls in the array and None set a variant null.

    A missing field is added, together with missing parent objects, and the index after the last element of an array
    appends to it; ``create=False`` only replaces existing values. A negative index counts from the end. If the path
    cannot be followed (a field of a value that is not an object, an index out of range), the row is unchanged; with
    ``strict=True`` the first such row raises ``VariantError``. Null rows remain null. ``"$"`` replaces the complete
    value.

    The result is unshredded, and chunked if ``array`` is. Its objects are sorted by name, and the
    metadata of each row is a sorted dictionary with exactly the names that the row uses.

    Raises ``VariantError`` with the row and the byte if retained or new bytes are invalid,
    ``UnsupportedError`` for a primitive type added to the format later, ``ValueError`` for a bad path (including
    wildcards) or different lengths, and ``LimitError`` if an array would exceed 2 GiB.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": 1}', '{"a": {"b": 2}}'])
    >>> variant.to_json(variant.set(array, "$.c.d", True)).to_pylist()
    ['{"a":1,"c":{"d":true}}', '{"a":{"b":2},"c":{"d":true}}']
    """
    action = Action.ACTION_SET if create else Action.ACTION_REPLACE
    return apply_action(array, action, path, value, strict=strict)


def delete(array: VariantLike, path: str | Sequence[str | int], *, strict: bool = False) -> Any:
    """Delete the field or element at ``path``.

    Elements after the deleted element move up. A negative index counts from the end. Rows without a value at ``path``
    are unchanged; with ``strict=True`` the first such row raises ``VariantError``. Null rows remain null. The layout of
    the result and errors are as for :func:`set`. The path ``"$"``, the complete value, raises ``ValueError``.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": [1, 2, 3], "b": null}'])
    >>> variant.to_json(variant.delete(array, "$.a[-1]")).to_pylist()
    ['{"a":[1,2],"b":null}']
    """
    if not as_path(path, from_end=True):
        raise ValueError("the root value cannot be deleted; use pyarrow.compute.if_else to make rows null")
    return apply_action(array, Action.ACTION_DELETE, path, None, strict=strict)


def merge(array: VariantLike, patch: Any) -> pa.StructArray | pa.ChunkedArray:
    """Apply a JSON merge patch (RFC 7396) to each variant.

    ``patch`` is one patch for all rows (a :class:`~pqext.variant.Variant` or a Python object, usually a dict), or
    an array as long as ``array``: variants, or any array that :func:`pqext.variant.from_arrow` accepts, whose null
    rows change nothing. Fields of the patch replace fields of the value or are added, objects are merged field
    by field, and a null in the patch deletes the field. A patch that is not an object replaces the value. Arrays
    are replaced, not merged.

    Null rows remain null. The layout of the result and errors are as for :func:`set`. Raises ``TypeError`` for a
    ``str``, which could be JSON or a value: use ``Variant.from_json`` to create a patch from JSON text.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": 1, "b": {"x": 1, "y": 2}}'])
    >>> variant.to_json(variant.merge(array, {"a": None, "b": {"y": 3}})).to_pylist()
    ['{"b":{"x":1,"y":3}}']
    """
    if isinstance(patch, str):
        raise TypeError("a patch must not be a str, which would replace all values; use a dict or Variant.from_json")
    return apply_action(array, Action.ACTION_MERGE, "$", patch)


def strip_nulls(array: VariantLike, *, arrays: bool = True) -> pa.StructArray | pa.ChunkedArray:
    """Remove the null fields of objects, at any depth, and the null elements of arrays.

    ``arrays=False`` preserves the null elements of arrays. A value that is itself null is unchanged. The layout of the
    result and the errors for invalid values are as for :func:`set`.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": null, "b": [1, null, {"c": null}]}'])
    >>> variant.to_json(variant.strip_nulls(array)).to_pylist()
    ['{"b":[1,{}]}']
    """
    return apply_action(array, Action.ACTION_STRIP_ALL if arrays else Action.ACTION_STRIP, "$", None)


def apply_action(
    array: VariantLike, action: int, path: str | Sequence[str | int], value: Any, *, strict: bool = False
) -> pa.StructArray | pa.ChunkedArray:
    """Apply an edit, a member of ``Action``, to each variant. For the other arguments, see :func:`set`."""
    steps = as_path(path, from_end=True)
    encoded = [step.encode("utf-8", "surrogatepass") if isinstance(step, str) else step for step in steps]
    array = as_variants(array)
    chunks = struct_chunks(array)
    other, constant = (None, False) if action in _WITHOUT_VALUE else _to_variants(value)
    if other is not None and not constant and len(other) != len(array):
        raise ValueError(f"value must be a single value or have {len(array)} rows like the array, not {len(other)}")
    changed: list[pa.Array] = []
    before = 0
    for chunk in chunks:
        variants = VariantInput(_unshred_chunk(chunk))
        part = other
        if other is not None and not constant:
            part = _join_chunks(other.slice(before, len(chunk)))
        theirs = None if part is None else VariantInput(part)

        arguments = (before, action, encoded, theirs, constant, False)
        strict_path = format_path(steps) if strict else None
        arrays = write_rows(partial(_edit_rows, variants, arguments, strict_path), len(chunk))
        changed += arrays if isinstance(array, pa.ChunkedArray) else [concatenate_variants(arrays)]
        before += len(chunk)
    return pa.chunked_array(changed, variant_type()) if isinstance(array, pa.ChunkedArray) else changed[0]


def _edit_rows(variants: VariantInput, arguments: tuple[Any, ...], strict_path: str | None, start: int) -> Written:
    """Edit the rows from ``start`` on. Raises ``VariantError`` if a variant has no value at ``strict_path``."""
    written = edit(variants, start, *arguments)
    unfollowed, row = written[7]
    if strict_path is not None and unfollowed:
        raise VariantError(f"the variant has no value at {strict_path}", row=row)
    return written


def _unshred_chunk(chunk: pa.StructArray) -> pa.StructArray:
    return unshred(chunk) if is_shredded_type(chunk.type) else chunk


def _to_variants(value: Any) -> tuple[VariantLike, bool]:
    """Convert an argument to variants. Returns the variants, and whether the argument is one value for all rows."""
    from pqext.variant.conversion.arrow import from_arrow
    from pqext.variant.conversion.objects import from_python

    if isinstance(value, pa.Array | pa.ChunkedArray):
        if is_variant_type(value.type):
            return as_variants(value), False
        return (unshred(value) if is_shredded_type(value.type) else from_arrow(value)), False
    if not isinstance(value, Variant) and hasattr(value, "__arrow_c_stream__"):
        return from_arrow(value), False
    if isinstance(value, Variant):
        return as_variants([value]), True
    return from_python([value], none_is_null=False), True


def _join_chunks(values: VariantLike) -> pa.StructArray:
    chunks = struct_chunks(values)
    return concatenate_variants([unshred(chunk) for chunk in chunks]) if len(chunks) != 1 else chunks[0]
