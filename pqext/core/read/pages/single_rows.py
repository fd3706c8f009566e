"""Single rows of many pages of a column as one array: pages are unpacked and decoded in one call, and only theirs.

For columns without repetition whose values are shown as they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from pqext.core.base.budget import Account
from pqext.core.base.buffers import allocate
from pqext.core.format import zstd_library
from pqext.core.format.compression import unpacker
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.metadata import CompressionCodec, Type
from pqext.core.kernels.chosen_rows import Chosen
from pqext.core.kernels.page_table import PageTable
from pqext.core.read.leaf_column import LeafColumn, decoded_bytes
from pqext.core.schema.shape import LeafShape
from pqext.core.schema.types import leaf


def are_served(shape: LeafShape) -> bool:
    """May rows of such a column be decoded so?"""
    return not (shape.node.max_repetition_level or shape.encoded or shape.viewed or shape.node.leaf_type.width == 0)


def decode(
    table: PageTable, places: NDArray[np.int64], shape: LeafShape, codec: int, dictionary: Dictionary | None,
    account: Account, *, checksums: bool,
) -> tuple[LeafColumn, int] | None:
    """The first of the rows at ``places``, and how many they are: those of as many pages as should be held at once.

    Places ascend and are counted from the first page of the ``table``. ``None`` for pages that are unusual or wrong.
    ``account`` counts what it takes; raises ``LimitError`` where that is too much, and what a type says of its values.
    """
    kind, highest = shape.node.leaf_type, shape.node.max_definition_level
    work = Chosen(table, places, kind.width or 0, kind.physical == Type.BOOLEAN, highest)
    rows, packed = work.count, codec != CompressionCodec.UNCOMPRESSED
    context = zstd_library.context() if codec == CompressionCodec.ZSTD else None
    if not work.look(packed, context is not None, isal_zlib.crc32 if checksums else None):
        return None
    account.take(work.scratch + decoded_bytes(shape, rows))
    if packed and context is None:
        work.unpack(unpacker(codec))
    levels = allocate(rows * 2).view(np.int16) if highest > shape.nullable else None
    validity = np.empty((rows + 7) // 8, np.uint8)
    values = None if kind.width is None else allocate(rows * kind.width)
    ends = allocate(rows * 4 + 4).view(np.int32) if kind.width is None else None
    known = None if dictionary is None else (dictionary.count, dictionary.data, dictionary.offsets)
    found = work.decode(context, known, levels, validity, values, ends, account.take)
    if found is None:
        return None
    nulls, data = found
    bits = pa.py_buffer(validity) if nulls else None
    if values is not None:
        array = leaf.from_fixed(kind, rows, bits, values)
    else:
        array = leaf.from_byte_arrays(kind, rows, bits, ends, data)
    account.give_back(work.scratch)
    account.decoded(work.size)
    return LeafColumn(None, levels, array), rows
