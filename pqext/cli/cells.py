"""Values of any column as text: variants as JSON, geometries as WKT, the rest as JSON has it."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def texts(array: pa.Array, field: pa.Field) -> list[str | None]:
    """Each value as JSON text, None for nulls. ``array`` is a column of ``field``.

    What JSON has no type for is a string: NaN and infinities, decimals, dates and times in ISO form, bytes in base64,
    geometries in WKT. A map is a list of pairs unless its keys are strings.
    """
    import pyarrow as pa

    from pqext.geo.types import type_of
    from pqext.variant.types import is_shredded_type, is_variant_type, storage_type

    if type_of(field) is not None:
        from pqext.geo.text.wkt import to_wkt

        return [None if text is None else json.dumps(text) for text in to_wkt(array).to_pylist()]
    kind = storage_type(field.type)
    if is_variant_type(kind) or is_shredded_type(kind):
        from pqext.variant.json.text import to_json

        found: list[str | None] = to_json(array).to_pylist()
        return found
    array = getattr(array, "storage", array)
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_struct(kind):
        return _structs(array, kind)
    if pa.types.is_map(kind):
        return _maps(array, kind)
    if pa.types.is_nested(kind):
        below = texts(array.flatten(), kind.value_field)
        return _lists(array, below)
    return [None if value is None else _leaf(value) for value in _values(array)]


def _values(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    try:
        values: list[Any] = array.to_pylist()
        return values
    except (ValueError, OverflowError):  # times that Python cannot hold
        import pyarrow.compute as pc

        return list(pc.cast(array, pa.string()).to_pylist())


def _structs(array: pa.Array, kind: pa.StructType) -> list[str | None]:
    names = [json.dumps(field.name, ensure_ascii=False) for field in kind]
    columns = [texts(part, field) for part, field in zip(array.flatten(), kind, strict=True)]
    valid = array.is_valid().to_pylist()
    return [
        "{" + ", ".join(f"{name}: {column[row] or 'null'}" for name, column in zip(names, columns, strict=True)) + "}"
        if valid[row] else None
        for row in range(len(array))
    ]


def _maps(array: pa.Array, kind: pa.MapType) -> list[str | None]:
    import pyarrow as pa

    start = array.offsets[0].as_py() if len(array) else 0
    stop = array.offsets[-1].as_py() if len(array) else 0
    keys = texts(array.keys.slice(start, stop - start), kind.key_field)
    items = [text or "null" for text in texts(array.items.slice(start, stop - start), kind.item_field)]
    named = pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)
    pairs = [f"{key}: {item}" if named else f"[{key}, {item}]" for key, item in zip(keys, items, strict=True)]
    ends = [offset.as_py() - start for offset in array.offsets]
    valid = array.is_valid().to_pylist()
    left, right = "{}" if named else "[]"
    return [
        left + ", ".join(pairs[ends[row] : ends[row + 1]]) + right if valid[row] else None for row in range(len(array))
    ]


def _lists(array: pa.Array, below: list[str | None]) -> list[str | None]:
    import pyarrow.compute as pc

    made: list[str | None] = []
    at = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            made.append(None)
            continue
        made.append("[" + ", ".join(text or "null" for text in below[at : at + length]) + "]")
        at += length
    return made


def _leaf(value: Any) -> str:
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return json.dumps(value if math.isfinite(value) else str(value))
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    return json.dumps(value.isoformat() if hasattr(value, "isoformat") else str(value))
