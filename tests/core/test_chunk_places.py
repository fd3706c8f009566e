"""Chunks that lie where others do, by a flipped offset in the footer, give their values to no other column."""

from __future__ import annotations

import io
import warnings

import pyarrow as pa
import pytest
from recovery.cut_files import by_pqext, by_pyarrow

import pqext
from pqext.core.chunk_places import ChunkPlaces
from pqext.core.errors import CorruptDataWarning
from pqext.core.files.rewrite import rewrite_footer
from pqext.core.metadata import ColumnMetaData, FileMetaData

GROUP_ROWS = 100
TABLE = pa.table({name: [row * factor for row in range(4 * GROUP_ROWS)] for factor, name in enumerate("abcdef", 1)})


def chunk(metadata: FileMetaData, group: int, leaf: int) -> ColumnMetaData:
    found = metadata.row_groups[group].columns[leaf].meta_data
    assert found is not None
    return found


def moved(data: bytes, place: tuple[int, int], other: tuple[int, int]) -> bytes:
    """The file with a footer that has one chunk where another is."""

    def change(metadata: FileMetaData) -> None:
        here, there = chunk(metadata, *place), chunk(metadata, *other)
        here.data_page_offset, here.dictionary_page_offset = there.data_page_offset, there.dictionary_page_offset

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), change, out)
    return out.getvalue()


FILES = {
    "pyarrow": by_pyarrow(TABLE, row_group_size=GROUP_ROWS, use_dictionary=False, compression="none"),
    "dictionaries": by_pyarrow(TABLE, row_group_size=GROUP_ROWS),
    "filters": by_pqext(TABLE, row_group_rows=GROUP_ROWS, bloom_filters=True),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("place", "other"),
    [((1, 2), (1, 3)), ((1, 3), (1, 2)), ((0, 0), (2, 1)), ((3, 5), (0, 0)), ((1, 0), (1, 5)), ((2, 2), (1, 2))],
)
@pytest.mark.spec("layout.chunks-apart")
def test_a_chunk_that_lies_where_another_does_costs_its_row_group_alone(
    name: str, place: tuple[int, int], other: tuple[int, int]
) -> None:
    assert not list(ChunkPlaces(pqext.open(FILES[name]).metadata).shared())
    data = moved(FILES[name], place, other)
    with pqext.open(data, on_corrupt="skip") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        found = file.read()
        column, there = TABLE.column_names[place[1]], TABLE.column_names[other[1]]
        assert [(one.row_group, one.column) for one in file.damage] == [(place[0], column)]
        assert f"where those of {there} in row group {other[0]} are" in str(file.damage[0].error)
    kept = [TABLE.slice(GROUP_ROWS * group, GROUP_ROWS) for group in range(4) if group != place[0]]
    assert found == pa.concat_tables(kept)
    faults = [one for one in pqext.verify(data).faults if one.rule == "layout.chunks-apart"]
    assert faults
    for fault in faults:  # a longer chunk reaches into the next one too
        is_named = f"of {column} in row group {place[0]} are" in fault.message
        assert is_named or (fault.row_group, fault.column) == (place[0], column)


@pytest.mark.parametrize("leaf", range(6))
@pytest.mark.parametrize("more", [1, 14, 64, 1 << 12])
@pytest.mark.spec("layout.chunks-apart")
def test_chunks_that_say_to_be_longer_cost_none_of_their_neighbours(leaf: int, more: int) -> None:
    def lengthened(metadata: FileMetaData) -> None:
        for group in range(4):
            chunk(metadata, group, leaf).total_compressed_size += more

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(FILES["pyarrow"]), lengthened, out)
    others = [name for name in TABLE.column_names if name != TABLE.column_names[leaf]]
    with pqext.open(out.getvalue(), on_corrupt="skip") as file:
        assert file.read(columns=others) == TABLE.select(others)
        assert not file.damage
    assert "layout.chunks-apart" not in {one.rule for one in pqext.verify(out.getvalue()).faults}
