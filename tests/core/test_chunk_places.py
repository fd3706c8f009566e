"""Chunks that lie where others do, by a flipped offset in the footer, give their values to no other column."""

from __future__ import annotations

import io
import time
import warnings

import pyarrow as pa
import pytest
from recovery.cut_files import by_pqext, by_pyarrow

import pqext
from pqext.core.base.errors import CorruptDataWarning
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import ColumnMetaData, FileMetaData, RowGroup
from pqext.core.format.thrift import decode, encode
from reference.pace import SLOWER

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
    [
        ((1, 2), (1, 3)), ((1, 3), (1, 2)), ((0, 0), (2, 1)), ((3, 5), (0, 0)), ((1, 0), (1, 5)), ((2, 2), (1, 2)),
        ((3, 4), (3, 5)),
    ],
)
@pytest.mark.spec("layout.chunks-apart")
def test_chunk_that_overlaps_another_loses_its_row_group_only(
    name: str, place: tuple[int, int], other: tuple[int, int]
) -> None:
    with pqext.open(FILES[name]) as file:
        assert not list(ChunkRanges(file.metadata, file.footer.offset).iter_overlaps())
    data = moved(FILES[name], place, other)
    with pqext.open(data, on_corrupt="skip") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        found = file.read()
        column, there = TABLE.column_names[place[1]], TABLE.column_names[other[1]]
        assert [(one.row_group, one.column) for one in file.damage] == [(place[0], column)]
        assert f"shares bytes with {there} in row group {other[0]}" in str(file.damage[0].error)
    kept = [TABLE.slice(GROUP_ROWS * group, GROUP_ROWS) for group in range(4) if group != place[0]]
    assert found == pa.concat_tables(kept)
    faults = [one for one in pqext.verify(data).faults if one.rule == "layout.chunks-apart"]
    assert faults
    for fault in faults:  # a longer chunk reaches into the next one too
        is_named = f"shares bytes with {column} in row group {place[0]}" in fault.message
        assert is_named or (fault.row_group, fault.column) == (place[0], column)


@pytest.mark.parametrize("leaf", range(6))
@pytest.mark.parametrize("more", [1, 14, 64, 1 << 12])
@pytest.mark.spec("layout.chunks-apart")
def test_chunks_with_inflated_lengths_do_not_affect_neighbours(leaf: int, more: int) -> None:
    def lengthened(metadata: FileMetaData) -> None:
        for group in range(4):
            chunk(metadata, group, leaf).total_compressed_size += more

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(FILES["pyarrow"]), lengthened, out)
    others = [name for name in TABLE.column_names if name != TABLE.column_names[leaf]]
    with pqext.open(out.getvalue(), on_corrupt="skip") as file:
        assert file.read(columns=others) == TABLE.select(others)
        assert not file.damage
    faults = [one for one in pqext.verify(out.getvalue()).faults if one.rule == "layout.chunks-apart"]
    assert {one.column for one in faults} <= {TABLE.column_names[leaf]}
    assert len(faults) >= (3 if leaf == 5 else 4)  # behind the last chunk is the footer


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.spec("layout.chunks-apart")
def test_chunk_that_begins_within_another_loses_its_row_group(statistics: bool) -> None:
    table = pa.table({name: range(factor, factor + 512) for factor, name in enumerate("abcd")})
    sizes = {"data_page_size": 1024, "write_batch_size": 128}
    data = by_pyarrow(table, use_dictionary=False, compression="none", write_statistics=statistics, **sizes)

    def changed(metadata: FileMetaData) -> None:
        chunk(metadata, 0, 1).data_page_offset += chunk(metadata, 0, 1).total_compressed_size // 2

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), changed, out)
    with pqext.open(out.getvalue(), on_corrupt="skip") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        assert file.read().num_rows == 0
        assert [(one.column, one.stop) for one in file.damage] == [("b", 512)]
    assert [one.column for one in pqext.verify(out.getvalue()).faults if one.rule == "layout.chunks-apart"] == ["b"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.spec("layout.chunks-apart")
def test_last_chunk_includes_bytes_after_it(name: str) -> None:
    data = moved(FILES[name], (3, 1), (3, 5))
    with pqext.open(data, on_corrupt="skip") as file:
        assert file.read(columns=["f"]) == TABLE.select(["f"])
        assert not file.damage


@pytest.mark.spec("layout.chunks-apart")
def test_many_row_groups_sharing_bytes_are_checked_quickly() -> None:
    def repeated(metadata: FileMetaData) -> None:
        groups = []
        for more in range(3_000):
            group, _ = decode(RowGroup, encode(metadata.row_groups[0]))
            columns = list(group.columns)
            for column in columns:
                assert column.meta_data is not None
                column.meta_data.total_compressed_size -= more
            group.columns = columns
            groups.append(group)
        metadata.row_groups, metadata.num_rows = groups, GROUP_ROWS * len(groups)

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(FILES["pyarrow"]), repeated, out)
    with pqext.open(out.getvalue()) as file:
        begun = time.process_time()
        assert len(list(ChunkRanges(file.metadata, file.footer.offset).iter_overlaps())) > 3_000
        assert time.process_time() - begun < 4 * SLOWER


@pytest.mark.parametrize("start", [-1, -2, -(1 << 40)])
@pytest.mark.spec("layout.chunks-apart")
def test_offset_before_the_file_is_invalid(start: int) -> None:
    def changed(metadata: FileMetaData) -> None:
        chunk(metadata, 0, 0).data_page_offset = start

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(by_pyarrow(TABLE.select("a"), use_dictionary=False)), changed, out)
    rules = {one.rule for one in pqext.verify(out.getvalue()).faults}
    assert rules
    assert "layout.chunks-apart" not in rules
