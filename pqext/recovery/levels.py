"""Has a page as many values as its levels say, were it one of a leaf? Readers pass over bytes that are left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pqext.core.base.buffers import Bytes, allocate
from pqext.core.base.leb128 import read_uleb
from pqext.core.format.encodings import rle
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, FieldRepetitionType
from pqext.core.kernels import run_ends
from pqext.core.kernels.page_run import PageRun
from pqext.core.read.pages.page import OpenedPages
from pqext.core.schema.nodes import SchemaNode

_GROUP = 7
"""Values that fill the last group of packed ones."""
_DELTAS = (Encoding.DELTA_BINARY_PACKED, Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY)


def fit(opened: OpenedPages, count: int, path: Sequence[SchemaNode], width: int | None) -> bool:
    """Can the levels of one page with ``count`` entries be those of the last node of ``path``?

    Its values, of ``width`` bytes each, then are as many as there are entries with a value.
    """
    leaf = path[-1]
    definition = _levels(opened.definition, leaf.max_definition_level, count)
    repetition = _levels(opened.repetition, leaf.max_repetition_level, count)
    if definition is None or repetition is None:
        return False
    repeated = [node.max_definition_level for node in path if node.repetition is FieldRepetitionType.REPEATED]
    for level, least in enumerate(repeated, 1):
        # A further element of a list is one at least.
        if (definition[repetition == level] < least).any():
            return False
    values = int((definition == leaf.max_definition_level).sum())
    return _are_values(int(opened.encoding), opened.values.pages[0], values, width)


def _are_values(encoding: int, data: Bytes, values: int, width: int | None) -> bool:
    """Are these bytes so many values, as far as their encoding tells how many there are?"""
    if encoding in DICTIONARY_ENCODINGS:
        return _are_indices(data, values)
    if encoding == Encoding.RLE:
        return len(data) >= 4 and run_ends.fill(data[4:], 1, values, _GROUP)
    if encoding in _DELTAS:
        if not len(data):
            return not values
        at, numbers = 0, []
        raw = data[:40].tobytes()
        for _ in range(3):  # size of a block, parts of it, how many values there are
            number, at = read_uleb(raw, at)
            numbers.append(number)
        return numbers[2] == values
    return encoding != Encoding.BYTE_STREAM_SPLIT or width is None or len(data) == values * width


def _levels(run: PageRun | None, highest: int, count: int) -> np.ndarray | None:
    """The levels of a page; ``None`` where their bytes are others."""
    found = allocate(count * 2).view("int16")
    if run is None or not highest:
        found[:] = 0
        return found
    rle.decode_levels(run, highest, found)
    return found if count == 0 or int(found.max()) <= highest else None


def _are_indices(data: Bytes, values: int) -> bool:
    if not values or not len(data):
        return len(data) <= 1 and not values
    width = int(data[0])
    return width <= 32 and ((not width and len(data) == 1) or run_ends.fill(data[1:], width, values, _GROUP))
