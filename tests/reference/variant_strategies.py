"""Hypothesis strategies: variants with their metadata in any legal encoding, and shredding schemas."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from pqext.variant.shredding.schema import Array, Object, Primitive, ShreddingSchema, Untyped
from reference import variant_shred as reference
from reference.effort import share

fewer = settings(max_examples=share(0.4))
"""For tests of whole variants, which are costly to make."""

NAMES = ["a", "b", "c", "", "é", "z", "aa", "x.y", "typed_value"]

_int = lambda bits: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)  # noqa: E731


def _decimal(digits: int) -> st.SearchStrategy[tuple[int, int]]:
    small = st.integers(-1000, 1000)
    full = st.integers(-(10**digits) + 1, 10**digits - 1)
    return st.tuples(st.one_of(small, full), st.one_of(st.integers(0, 4), st.integers(0, 38)))


def primitives() -> st.SearchStrategy[bytes]:
    """Encoded primitives of every type."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(), "true": st.none(), "false": st.none(),
        "int8": _int(8), "int16": _int(16), "int32": _int(32), "int64": _int(64),
        "double": st.floats(), "float": st.floats(width=32),
        "decimal4": _decimal(9), "decimal8": _decimal(18), "decimal16": _decimal(38),
        "date": _int(32), "time": st.integers(0, 86_399_999_999),
        "timestamp": _int(64), "timestamp_ntz": _int(64),
        "timestamp_nanos": st.one_of(_int(64), st.integers(-(10**15), 10**15).map(lambda n: n * 1000)),
        "timestamp_ntz_nanos": _int(64),
        "binary": st.binary(max_size=20), "uuid": st.binary(min_size=16, max_size=16),
        "string": st.one_of(st.text(max_size=8), st.text(min_size=60, max_size=70)),
    }  # fmt: skip
    return st.one_of([data.map(lambda d, name=name: reference.primitive(name, d)) for name, data in kinds.items()])


# A tree of encoded primitives, of (fields, wide, backwards) and of (elements, wide, backwards): built once, since
# Hypothesis checks a strategy anew wherever it is made.
_TREES: st.SearchStrategy[Any] = st.recursive(
    primitives(),
    lambda inner: st.one_of(
        st.tuples(st.dictionaries(st.sampled_from(NAMES), inner, max_size=5), st.booleans(), st.booleans()),
        st.tuples(st.lists(inner, max_size=4), st.booleans(), st.booleans()),
    ),
    max_leaves=12,
)
_DICTIONARIES = st.tuples(
    st.lists(st.sampled_from(["unused", "0"]), unique=True).flatmap(lambda extra: st.permutations(NAMES + extra)),
    st.booleans(),
    st.sampled_from([0, 1, 4]),
)


def _encode(tree: Any, ids: dict[str, int], in_order: bool) -> bytes:
    if isinstance(tree, bytes):
        return tree
    parts, wide, backwards = tree
    if isinstance(parts, list):
        elements = [_encode(part, ids, in_order) for part in parts]
        return reference.array_of(elements, wide=wide, backwards=backwards and not in_order)
    ranked = sorted(parts, key=str.encode)
    fields = [(ids[name], _encode(parts[name], ids, in_order)) for name in ranked]
    return reference.object_of(fields, wide=wide, backwards=backwards)


def _variant(tree: Any, dictionary: tuple[list[str], bool, int], in_order: bool = False) -> tuple[bytes, bytes]:
    names, is_sorted, size = dictionary
    names = sorted(names, key=str.encode) if is_sorted else names
    return reference.encode_metadata(names, size), _encode(tree, {name: i for i, name in enumerate(names)}, in_order)


_VARIANTS = st.builds(_variant, _TREES, _DICTIONARIES)
_VALID = st.builds(_variant, _TREES, _DICTIONARIES, st.just(True))


def variants() -> st.SearchStrategy[tuple[bytes, bytes]]:
    """(metadata, value) of any shape, sorted or unsorted dictionaries, narrow and wide forms."""
    return _VARIANTS


def valid_variants() -> st.SearchStrategy[tuple[bytes, bytes]]:
    """The same without arrays whose elements lie in another order, which readers take and validation refuses."""
    return _VALID


def _narrow(tree: Any) -> Any:
    """The same tree without the forms that are wider than they need be, or last first."""
    if isinstance(tree, bytes):
        return tree
    parts = tree[0]
    if isinstance(parts, list):
        return [_narrow(part) for part in parts], False, False
    return {name: _narrow(part) for name, part in parts.items()}, False, False


_CANONICAL = st.builds(_variant, _TREES.map(_narrow), _DICTIONARIES)


def canonical_variants() -> st.SearchStrategy[tuple[bytes, bytes]]:
    """(metadata, value) in the narrowest form: smallest offsets and ids, values one after another in order."""
    return _CANONICAL


LEAVES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.decimal128(9, 2), pa.decimal128(18, 0), pa.decimal128(38, 10), pa.decimal128(2, 2), pa.decimal128(38, 38),
    pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("us"),
    pa.timestamp("ns"), pa.binary(), pa.string(), pa.binary(16),
]  # fmt: skip


_LEAF = st.one_of(st.sampled_from(LEAVES).map(Primitive), st.just(Untyped()))
_SCHEMAS: st.SearchStrategy[ShreddingSchema] = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        inner.map(Array),
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4).map(
            lambda fields: Object(tuple(fields.items()))
        ),
    ),
    max_leaves=8,
)


def schemas() -> st.SearchStrategy[ShreddingSchema]:
    """Shredding schemas over the same names."""
    return _SCHEMAS
