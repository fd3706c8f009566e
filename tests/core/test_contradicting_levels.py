"""Levels of lists that contradict each other: an entry that goes on with a list is an element of it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from core.raw_files import OPTIONAL, REPEATED, Column, group, leaf, write

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.metadata import ListType, LogicalType, SchemaElement

LIST = LogicalType(LIST=ListType())
ONE = [group("l", OPTIONAL, 1, logicalType=LIST), group("list", REPEATED, 1), leaf("element", OPTIONAL)]
TWO = [
    group("l", OPTIONAL, 1, logicalType=LIST), group("list", REPEATED, 1),
    group("element", OPTIONAL, 1, logicalType=LIST), group("list", REPEATED, 1), leaf("element", OPTIONAL),
]  # fmt: skip
BARE = [leaf("l", REPEATED)]
CASES: list[tuple[list[SchemaElement], list[tuple[int, int]], bool]] = [
    (ONE, [(0, 3), (1, 3), (0, 0), (0, 1), (0, 2), (1, 2)], True),
    (ONE, [(0, 3), (1, 1)], False),
    (ONE, [(0, 3), (1, 0)], False),
    (ONE, [(0, 1), (1, 1)], False),
    (TWO, [(0, 5), (2, 5), (1, 2), (1, 3), (1, 4), (2, 4)], True),
    (TWO, [(0, 5), (2, 3)], False),
    (TWO, [(0, 5), (2, 2)], False),
    (TWO, [(0, 5), (2, 0)], False),
    (TWO, [(0, 5), (1, 1)], False),
    (TWO, [(0, 5), (1, 0)], False),
    (BARE, [(0, 1), (1, 1), (0, 0)], True),
    (BARE, [(0, 1), (1, 0)], False),
]


def file_of(elements: list[SchemaElement], levels: list[tuple[int, int]]) -> bytes:
    repetition, definition = [one for one, _ in levels], [one for _, one in levels]
    highest = max(3 if elements is ONE else 5 if elements is TWO else 1, *definition)
    values = b"".join(number.to_bytes(4, "little") for number, one in enumerate(definition) if one == highest)
    return write(elements, [Column(values, len(levels), definition, repetition)], repetition.count(0))


@pytest.mark.parametrize(("elements", "levels", "is_sound"), CASES, ids=range(len(CASES)))
@pytest.mark.spec("levels.lists")
def test_continued_list_without_an_element_is_corrupt(
    elements: list[SchemaElement], levels: list[tuple[int, int]], is_sound: bool
) -> None:
    data = file_of(elements, levels)
    assert pqext.verify(data).ok is is_sound
    if is_sound:
        table = pqext.read_table(data)
        table.validate(full=True)
        assert table.num_rows == sum(repetition == 0 for repetition, _ in levels)
        return
    for read in (lambda: pqext.read_table(data), lambda: list(pqext.open(data).iter_batches(1))):
        with pytest.raises(CorruptFileError, match="invalid levels: a continued list has no element"):
            read()
    with pytest.warns(pqext.CorruptDataWarning):
        assert pqext.read_table(data, on_corrupt="skip").num_rows == 0


@pytest.mark.spec("levels.lists")
def test_selected_rows_of_a_page_with_invalid_levels_are_rejected() -> None:
    made = io.BytesIO()
    lists = pa.array([[1, 2], [3], None, [], [4, 5]] * 20, pa.list_(pa.int32()))
    pqext.write_table(
        pa.table({"l": lists, "n": range(100)}), made, page_rows=5, dictionary=False, compression="uncompressed",
        checksums=False,
    )  # fmt: skip
    sound = made.getvalue()
    levels = bytes([3, 0x3F, 0x3D])  # of a page: 3, 3, 3, 0, 1, 3, 3, two bits each
    assert sound.count(levels) == 20
    damaged = sound.replace(levels, bytes([3, 0x3F, 0x1D]))  # the last but one entry of the last row is 3, the last 1

    def row(data: bytes, number: int) -> Any:
        with pqext.open(data) as file:
            (batch,) = file.iter_dictionary_batches(100, ["l"], 0, np.array([number]), (), file.budget())
            return batch["l"].to_pylist()

    assert row(sound, 54) == [[4, 5]]
    with pytest.raises(CorruptFileError, match="invalid levels: a continued list has no element"):
        row(damaged, 54)
