"""Arrow arrays whose buffers, lengths, offsets and null counts are changed, for every function that takes arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import invalid_arrays
import pyarrow as pa
from hostile_bases import draw_array, draw_type
from hostile_calls import Call, change_bytes

from pqext import geo, variant

TEXTS = ["a", None, "a longer text than twelve bytes", ""]
ROWS = 2
"""Rows of the valid arrays that some calls compare with."""
DOUBLES = [1.0, None, float("nan"), 2.5]


def change_array(array: pa.Array, chance: random.Random) -> pa.Array:
    """Build an array of the type of ``array`` from changed buffers, of itself or of one child.

    pyarrow itself rejects buffers that are too short, except those of children that are shortened later.
    """
    if isinstance(array, pa.ExtensionArray):
        return change_array(array.storage, chance)
    if pa.types.is_nested(array.type) and len(array) and chance.random() < 0.2:
        children = array.type.num_fields if pa.types.is_struct(array.type) else 1
        return invalid_arrays.shortened(array, (chance.randrange(children),), chance.randrange(len(array)))
    for _ in range(20):
        try:
            return _rebuild(array, chance)
        except (pa.ArrowInvalid, pa.ArrowIndexError):
            continue
    return array


def _rebuild(array: pa.Array, chance: random.Random) -> pa.Array:
    type = array.type
    if pa.types.is_dictionary(type):
        if chance.random() < 0.5:
            indices = change_array(array.indices, chance)
            return pa.DictionaryArray.from_arrays(indices, array.dictionary, safe=False)
        return pa.DictionaryArray.from_arrays(array.indices, change_array(array.dictionary, chance), safe=False)
    children = _children(array)
    if children and chance.random() < 0.6:
        at = chance.randrange(len(children))
        children[at] = change_array(children[at], chance)
        buffers = array.buffers()[: _own_buffers(type)]
        return pa.Array.from_buffers(type, len(array), buffers, -1, array.offset, children)
    buffers = array.buffers()[: _own_buffers(type)] if children else array.buffers()
    choices = [at for at, buffer in enumerate(buffers) if buffer is not None]
    if choices:
        at = chance.choice(choices)
        buffers[at] = _change_buffer(buffers[at], chance)
    length = len(array) + chance.choice((0, 0, 0, 0, 1, 9, 1 << 20))
    count = chance.choice((-1, -1, -1, 0, 1, len(array)))
    return pa.Array.from_buffers(type, length, buffers, count, array.offset, children or None)


def _own_buffers(type: pa.DataType) -> int:
    if pa.types.is_struct(type) or pa.types.is_fixed_size_list(type):
        return 1
    return 3 if pa.types.is_list_view(type) else 2


def _children(array: pa.Array) -> list[pa.Array]:
    type = array.type
    if pa.types.is_struct(type):
        return [array.field(at) for at in range(type.num_fields)]
    if pa.types.is_map(type):
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=[type.key_field, type.item_field])
        return [entries]
    if pa.types.is_nested(type):
        return [array.values]
    return []


def _change_buffer(buffer: pa.Buffer, chance: random.Random) -> pa.Buffer:
    data = buffer.to_pybytes()
    choice = chance.randrange(4)
    if choice == 0:
        data = data[: chance.randrange(len(data) + 1)]
    elif choice == 1:
        data = b""
    else:
        data = change_bytes(data, chance) if data else b"\1"
    return pa.py_buffer(data)


def _sources(chance: random.Random) -> dict[str, Any]:
    """Return one valid array for each group of functions."""
    text = chance.choice((pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())))
    binary = chance.choice((pa.binary(), pa.large_binary(), pa.binary_view()))
    wkb = geo.from_wkt(["POINT (1 2)", None, "LINESTRING (0 0, 1 1)", "POINT EMPTY"])
    variants = variant.parse_json(['{"a": 1}', None, '{"a": "x"}', "[1]"])
    if chance.random() < 0.5:
        variants = variant.shred(variants, chance.choice(("a BIGINT", "ARRAY<STRING>", "a VARIANT")))
    kind = draw_type(chance)
    whole = {
        "text": pa.array(TEXTS).dictionary_encode() if pa.types.is_dictionary(text) else pa.array(TEXTS, text),
        "binary": getattr(wkb, "storage", wkb).cast(binary),
        "variant": variants,
        "number": pa.array(DOUBLES),
        "any": draw_array(chance, kind, 4),
    }
    start = chance.randrange(3)
    return {name: array.slice(start, ROWS) for name, array in whole.items()}


def _call(function: Callable[[Any], Any], argument: Any) -> None:
    """Call a function without checking its result: it may return values, such as invalid UTF-8, as they are."""
    function(argument)


def _group(arrays: dict[str, Any]) -> str:
    if arrays is invalid_arrays.VARIANTS:
        return "variant"
    if arrays is invalid_arrays.WKB:
        return "binary"
    if arrays is invalid_arrays.NUMBERS:
        return "number"
    first = next(iter(arrays.values()))
    return "table" if isinstance(first, pa.Table) else "text"


def arrays(chance: random.Random) -> list[Call]:
    """Changed arrays, handed to functions that take arrays of their type."""
    sources = _sources(chance)
    wrong = {name: change_array(array, chance) for name, array in sources.items()}
    calls = []
    for name in chance.sample(sorted(invalid_arrays.CALLS), 5):
        examples, function = invalid_arrays.CALLS[name]
        group = _group(examples)
        if group == "table":
            argument = _table(wrong, chance)
        else:
            array = wrong["any"] if chance.random() < 0.1 else wrong[group]
            argument = pa.chunked_array([array.slice(0, 0), array]) if chance.random() < 0.2 else array
            if chance.random() < 0.2:
                argument = argument.slice(1)
        if argument is not None and not (name == "pqext.write_dataset" and len(argument) != ROWS):
            calls.append(Call(name, partial(_call, function, argument), True))
    return calls


def _table(wrong: dict[str, Any], chance: random.Random) -> pa.Table | None:
    array = wrong[chance.choice(("text", "any", "variant", "binary"))]
    length = len(array)
    points = geo.from_points([1.0] * length, [3.0] * length)
    if array is wrong["binary"] and chance.random() < 0.6:
        field = geo.geometry_field("g").with_type(array.type)
        return pa.Table.from_arrays([array], schema=pa.schema([field]))
    if length == 0:
        return None
    schema = pa.schema([geo.geometry_field("g"), pa.field("x", array.type)])
    try:
        return pa.Table.from_arrays([points, array], schema=schema)
    except pa.ArrowInvalid:  # pyarrow makes no table of shortened children
        return None
