"""Counts in the footer that contradict each other: no filter concludes from them what reading would refuse or show."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError
from pqext.core.format import metadata
from pqext.core.format.thrift import decode, encode
from pqext.dataset.expressions import Expression

COUNT = 20
TABLE = pa.table({
    "i": pa.array(range(COUNT), pa.int32()),
    "g": pa.array([bytes.fromhex("0101000000") + bytes(16)] * COUNT, pa.binary()),
    "l": pa.array([[k, None] for k in range(COUNT)], pa.list_(pa.int32())),
})  # fmt: skip
FILTERS = [
    pqext.col("i") >= 0, pqext.col("i") == 3, pqext.col("i").isin([3, 30]), pqext.col("i").is_not_null(),
    pqext.col("g").intersects((-1, -1, 1, 1)),
]  # fmt: skip


def altered(change: Callable[[metadata.FileMetaData], None], **options: object) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(TABLE, sink, row_group_rows=10, page_rows=5, geometry={"g": "OGC:CRS84"}, **options)
    data = sink.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    footer = decode(metadata.FileMetaData, data[-8 - size : -8])[0]
    change(footer)
    raw = encode(footer)
    return data[: -8 - size] + raw + len(raw).to_bytes(4, "little") + b"PAR1"


def leaf(footer: metadata.FileMetaData, column: int) -> metadata.ColumnMetaData:
    found = footer.row_groups[0].columns[column].meta_data
    assert found is not None
    return found


def set_count(column: int, number: int, footer: metadata.FileMetaData) -> None:
    leaf(footer, column).num_values = number


def assert_right_or_refused(data: bytes, condition: Expression) -> None:
    try:
        found = pqext.read_table(data, filter=condition)
    except CorruptFileError:
        return
    assert found.equals(pqext.read_table(altered(lambda _: None), filter=condition))


@pytest.mark.filterwarnings("ignore::pqext.core.indexes.reading.DamagedIndexWarning")
@pytest.mark.parametrize("rows", [-(2**63), -10, -1, 0, 4, 11])
def test_row_group_with_inconsistent_row_counts_is_never_pruned(rows: int) -> None:
    data = altered(lambda footer: setattr(footer.row_groups[0], "num_rows", rows))
    with pytest.raises(CorruptFileError):
        pqext.read_table(data)
    with pytest.raises(CorruptFileError):
        pqext.scan(data).count()
    for condition in FILTERS[:1]:
        with pytest.raises(CorruptFileError):
            pqext.read_table(data, filter=condition)
    for condition in FILTERS[1:]:
        assert_right_or_refused(data, condition)


@pytest.mark.parametrize(("rows", "lists", "flat"), [
    (-1, False, False), (0, False, False), (1, True, False), (9, True, False), (10, True, True), (11, True, False),
    (20, True, False), (21, False, False),
])  # fmt: skip
def test_bounds_are_unknown_if_rows_and_values_contradict_each_other(rows: int, lists: bool, flat: bool) -> None:
    # A row has one value, or one or more if it is a list; the chunks have 10 values and 20.
    with pqext.open(altered(lambda footer: setattr(footer.row_groups[0], "num_rows", rows))) as file:
        known = [file.row_groups[0].bounds(leaf).minimum is not None for leaf in file.schema.leaves]
        at_once = [file.row_groups[0].chunk(index).bounds().minimum is not None for index in range(len(known))]
    assert known == at_once
    assert (known[0], known[-1]) == (flat, lists)


@pytest.mark.filterwarnings("ignore::pqext.core.indexes.reading.DamagedIndexWarning")
@pytest.mark.parametrize("number", [0, -1, 7])
def test_chunk_with_a_wrong_value_count_is_not_pruned(number: int) -> None:
    for column, conditions in ((0, FILTERS[:4]), (1, FILTERS[4:])):
        data = altered(partial(set_count, column, number))
        with pytest.raises(CorruptFileError):
            pqext.read_table(data)
        for condition in conditions:
            assert_right_or_refused(data, condition)


@pytest.mark.parametrize("page_index", [True, False])
def test_null_counts_contradicted_by_bounds_or_boxes_are_ignored(page_index: bool) -> None:
    def change(footer: metadata.FileMetaData) -> None:
        for column in (0, 1):
            statistics = leaf(footer, column).statistics
            assert statistics is not None
            statistics.null_count = 10

    data, whole = altered(change, page_index=page_index), altered(lambda _: None)
    for condition in FILTERS:
        assert pqext.read_table(data, filter=condition).equals(pqext.read_table(whole, filter=condition))


@pytest.mark.parametrize("claimed", [19, 21])
def test_footer_row_count_that_contradicts_row_groups_is_not_used(claimed: int) -> None:
    data = altered(lambda footer: setattr(footer, "num_rows", claimed))
    with pytest.raises(CorruptFileError, match=f"the row groups have 20 rows, but the footer states {claimed}"):
        pqext.scan(data).count()


def test_count_uses_row_groups_if_the_footer_states_zero_rows(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    path.write_bytes(altered(lambda footer: setattr(footer, "num_rows", 0)))
    expected = duckdb.sql(f"select count(*) from (select * from '{path}' where i >= 0)").fetchall()
    assert expected == [(pqext.scan(path).count(),)] == [(pqext.read_table(path).num_rows,)]


def test_count_rejects_a_missing_column() -> None:
    with pytest.raises(ValueError, match="nope"):
        pqext.scan(altered(lambda _: None), ["nope"]).count()


def test_empty_bloom_filter_does_not_prune_rows() -> None:
    data = bytearray(altered(lambda _: None, bloom_filters={"i": True}, statistics=False))
    with pqext.open(bytes(data)) as file:
        chunks = [group.chunk(0) for group in file.row_groups]
        held = chunks[0].bloom_filter
        assert held is not None
        assert not held.is_empty
        for chunk in chunks:
            start, length = chunk.metadata.bloom_filter_offset, chunk.metadata.bloom_filter_length
            assert start is not None
            assert length is not None
            data[start + length - held.num_bytes : start + length] = bytes(held.num_bytes)
    assert pqext.read_table(bytes(data), ["i"], filter=pqext.col("i") == 3)["i"].to_pylist() == [3]


def test_footer_with_more_rows_than_its_row_groups_is_rejected() -> None:
    def drop_row_groups(footer: metadata.FileMetaData) -> None:
        footer.row_groups = list(footer.row_groups)[:1]

    data = altered(drop_row_groups)
    for ask in (lambda: pqext.open(data).read(), lambda: list(pqext.open(data).iter_batches()),
                lambda: pqext.read_table(data), lambda: pqext.scan(data).count()):  # fmt: skip
        with pytest.raises(CorruptFileError, match=r"row groups (have|hold) 10"):
            ask()
    for columns in (None, ["i"]):
        scan = pqext.scan(data, columns, FILTERS[0])
        for ask in (scan.to_table, scan.count, scan.plan, scan.explain):
            with pytest.raises(CorruptFileError, match="row groups have 10"):
                ask()
    with pytest.warns(CorruptDataWarning, match="row groups are missing"):
        assert pqext.open(data, on_corrupt="skip").read().num_rows == 10
    with pytest.warns(CorruptDataWarning, match="row groups are missing"):
        assert pqext.scan(data, filter=FILTERS[0], on_corrupt="skip").count() == 10
    assert pqext.open(data).read(row_groups=[0]).num_rows == 10

    def count_none(footer: metadata.FileMetaData) -> None:
        footer.num_rows = 0

    assert pqext.open(altered(count_none)).read().num_rows == COUNT
