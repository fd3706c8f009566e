"""Arrow's view layouts exchanged for others, with whatever else a type says kept."""

from __future__ import annotations

import pyarrow as pa

from pqext.variant.coercion import replace_views


def test_type_preserves_its_field_metadata_despite_the_cache() -> None:
    # Arrow's equality of types, and so their hash, passes over metadata: a cache would mix them up.
    marked, plain, other = (
        pa.struct([pa.field("x", pa.list_(pa.field("element", pa.string_view(), metadata=metadata)))])
        for metadata in ({b"mark": b"1"}, None, {b"mark": b"2"})
    )
    assert marked == plain == other
    for type in (marked, plain, other):
        assert replace_views(type)[0].type.value_field.metadata == type[0].type.value_field.metadata
        assert replace_views(type)[0].type.value_type == pa.large_string()
