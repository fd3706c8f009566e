"""Choose the encoding of a column chunk by name or from its values.

``"auto"`` encodes a sample of the chunk in every candidate encoding for its physical type, compresses the results with
the column's codec, and selects the smallest. The sample consists of four runs of consecutive values, since differences
and shared prefixes depend on neighbours. Sizes of encodings that decode more slowly than PLAIN are first multiplied by
a factor above one. If the column may have a dictionary, it is compared with the selected encoding in the same way.

``"default"`` chooses between PLAIN and DELTA_BINARY_PACKED in the same way, for integers that no dictionary covers. It
never replaces a dictionary. Small chunks are PLAIN, because a sample would take longer than it saves.

Only encodings that all common readers support are selected automatically. ALP, which is in preview, is never selected;
BYTE_STREAM_SPLIT is selected only for FLOAT and DOUBLE, since its other types date from 2024; and FIXED_LEN_BYTE_ARRAY
is always PLAIN.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pqext.core.format.compression import compress
from pqext.core.format.encodings import dictionary
from pqext.core.format.encodings.table import encoder
from pqext.core.format.metadata import CompressionCodec, Encoding, Type
from pqext.core.schema.nodes import SchemaNode
from pqext.core.write.dictionary_builder import IndexedValues

NAMES = {
    "plain": Encoding.PLAIN,
    "rle": Encoding.RLE,
    "delta_binary_packed": Encoding.DELTA_BINARY_PACKED,
    "delta_length_byte_array": Encoding.DELTA_LENGTH_BYTE_ARRAY,
    "delta_byte_array": Encoding.DELTA_BYTE_ARRAY,
    "byte_stream_split": Encoding.BYTE_STREAM_SPLIT,
    "alp": Encoding.ALP,
}
"""Encodings that can be requested by name, in addition to ``"auto"`` and ``"default"``."""

SUITABLE: dict[int, frozenset[Type]] = {
    Encoding.PLAIN: frozenset(Type),
    Encoding.RLE: frozenset({Type.BOOLEAN}),
    Encoding.DELTA_BINARY_PACKED: frozenset({Type.INT32, Type.INT64}),
    Encoding.DELTA_LENGTH_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY}),
    Encoding.DELTA_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY}),
    Encoding.BYTE_STREAM_SPLIT: frozenset(
        {Type.FLOAT, Type.DOUBLE, Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY}
    ),
    Encoding.ALP: frozenset({Type.FLOAT, Type.DOUBLE}),
}
"""Physical types that each encoding supports."""

_CANDIDATES = {
    Type.BOOLEAN: (Encoding.PLAIN, Encoding.RLE),
    Type.INT32: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Type.INT64: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Type.FLOAT: (Encoding.PLAIN, Encoding.BYTE_STREAM_SPLIT),
    Type.DOUBLE: (Encoding.PLAIN, Encoding.BYTE_STREAM_SPLIT),
    Type.BYTE_ARRAY: (Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.PLAIN, Encoding.DELTA_BYTE_ARRAY),
}
"""Candidates of ``"auto"``. If sizes are equal, the first candidate is selected. Other types use PLAIN."""

_FACTOR = {
    Encoding.RLE: 1.1,
    Encoding.DELTA_BINARY_PACKED: 1.1,
    Encoding.BYTE_STREAM_SPLIT: 1.1,
    Encoding.DELTA_BYTE_ARRAY: 1.3,
}
_DICTIONARY_FACTOR = 0.9
"""Factor for the size of a dictionary, which may be slightly larger since readers return it and test its entries."""

_DELTA_TYPES = frozenset({Type.INT32, Type.INT64})
SMALL = 8192
"""Number of values up to which ``"default"`` uses PLAIN without a sample, as does the encoder of small chunks."""
_RUNS = 4
_RUN_VALUES = 4096
_RUN_BYTES = 256 << 10
_LONG_VALUE = 64 << 10
"""Average length above which all encodings produce the same size."""


@dataclass(slots=True)
class EncodingChoice:
    """Encoding of a chunk. With ``keep_dictionary``, values use the dictionary, if any, until it is full."""

    encoding: Encoding
    keep_dictionary: bool = True


def check(name: str, node: SchemaNode) -> None:
    """Raise ``ValueError`` if the named encoding does not support the type of the leaf ``node``."""
    if name in ("auto", "default"):
        return
    physical_type = node.physical_type
    if physical_type is None or physical_type in SUITABLE[NAMES[name]]:
        return
    fitting = [other for other, encoding in NAMES.items() if physical_type in SUITABLE[encoding]]
    raise ValueError(
        f"encoding {name!r} does not support column {node.dotted_path!r}, which is stored as {physical_type.name}; "
        f"choose one of {', '.join(fitting)} or 'auto'; to encode columns differently, pass a mapping"
    )


def choose(
    name: str, values: pa.Array, physical_type: Type, codec: CompressionCodec, indexed_values: IndexedValues | None,
    *, split: bool = True,
) -> EncodingChoice:
    """Choose the encoding of a chunk's dense ``values``, and whether to use the dictionary ``indexed_values``.

    ``split`` allows the automatic choice of BYTE_STREAM_SPLIT.
    """
    if name == "default":
        covered = 0 if indexed_values is None else len(indexed_values.indices)
        if physical_type not in _DELTA_TYPES or len(values) <= SMALL or covered == len(values):
            return EncodingChoice(Encoding.PLAIN)
        indexed_values = None
    elif name != "auto":
        return EncodingChoice(NAMES[name])
    candidates = _CANDIDATES.get(physical_type, (Encoding.PLAIN,))
    if not split:
        candidates = tuple(encoding for encoding in candidates if encoding != Encoding.BYTE_STREAM_SPLIT)
    if len(candidates) == 1 or not len(values) or values.nbytes // len(values) > _LONG_VALUE:
        return EncodingChoice(Encoding.PLAIN)
    runs = _sample(values)
    sizes = {encoding: [_size(encoding, values[run], codec) for run in runs] for encoding in candidates}
    best = min(candidates, key=lambda encoding: sum(sizes[encoding]))
    if indexed_values is None:
        return EncodingChoice(best)
    # Only runs that the dictionary covers can be compared. Each sampled value is charged its share of the entries.
    held = [at for at, run in enumerate(runs) if run.stop <= len(indexed_values.indices)]
    share = sum(runs[at].stop - runs[at].start for at in held) / len(indexed_values.indices)
    stored = _size(Encoding.PLAIN, indexed_values.entries, codec) * share
    for at in held:
        encoded = dictionary.encode(indexed_values.indices[runs[at]], len(indexed_values.entries))
        stored += len(compress(codec, encoded))
    return EncodingChoice(best, bool(held) and stored * _DICTIONARY_FACTOR <= sum(sizes[best][at] for at in held))


def _size(encoding: Encoding, values: pa.Array, codec: CompressionCodec) -> float:
    return len(compress(codec, encoder(encoding).encode(values))) * _FACTOR.get(encoding, 1.0)


def _sample(values: pa.Array) -> list[slice]:
    count = len(values)
    length = max(2, min(_RUN_VALUES, _RUN_BYTES * count // max(values.nbytes, 1)))
    if count <= _RUNS * length:
        return [slice(0, count)]
    step = (count - length) // (_RUNS - 1)
    return [slice(start, start + length) for start in range(0, _RUNS * step, step)]
