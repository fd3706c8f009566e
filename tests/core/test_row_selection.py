"""Reading chosen rows: the same values as from whole row groups, from the pages that hold them and no others."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError
from pqext.core.format.metadata import OffsetIndex
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import MemorySource, Span
from pqext.core.read import row_group_reader
from pqext.core.read.column import ColumnReader
from pqext.core.read.pages.page import raw_pages
from pqext.core.schema.row_ranges import RowQueue, difference, merge_ranges
from reference.effort import share

ROWS, GROUP, PAGE = 700, 300, 23


def table() -> pa.Table:
    chance = random.Random(0)
    return pa.table(
        {
            "i": pa.array(range(ROWS), pa.int64()),
            "s": pa.array([None if n % 7 == 0 else "x" * (n % 11) + str(n % 5) for n in range(ROWS)]),
            "b": pa.array([n % 3 == 0 for n in range(ROWS)]),
            "l": pa.array([None if n % 9 == 0 else list(range(chance.randint(0, 4))) for n in range(ROWS)]),
            "t": pa.array([{"a": n if n % 4 else None, "m": [["q"] * (n % 3)] * (n % 2)} for n in range(ROWS)]),
        }
    )


def stored(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table(), out, row_group_rows=GROUP, page_rows=PAGE, **options)
    return out.getvalue()


KEYS = pqext.encryption.FileEncryption(footer_key=b"0" * 16, column_keys={"s": b"1" * 16})
FILES = {
    "version 1": (stored(), {}),
    "version 2": (stored(page_version=2, compression="zstd"), {}),
    "plain": (stored(dictionary=False, compression="uncompressed"), {}),
    "without offset index": (stored(page_index=False), {}),
    "second copies": (stored(second_encodings={"i": "delta_binary_packed"}), {"second_copies": True}),
    "encrypted": (
        stored(encryption=KEYS),
        {"decryption": pqext.encryption.FileDecryption(footer_key=b"0" * 16, column_keys={"s": b"1" * 16})},
    ),
    "damage passed over": (stored(), {"on_corrupt": "skip"}),
}

ranges = st.lists(st.integers(0, 100), min_size=2, max_size=60, unique=True).map(
    lambda cuts: [range(a, b) for a, b in zip(sorted(cuts)[::2], sorted(cuts)[1::2], strict=False)]
)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=share(0.25))
@given(
    rows=st.dictionaries(st.integers(0, 2), ranges, min_size=1),
    columns=st.sampled_from([None, ["i"], ["l", "b"], ["t.m"], ["s", "t"]]),
    batch_rows=st.sampled_from([1000, 17, 3]),
)
def test_selected_rows_match_the_full_table(
    name: str, rows: dict[int, list[range]], columns: list[str] | None, batch_rows: int
) -> None:
    data, options = FILES[name]
    with pqext.open(data, **options) as file:
        numbers = [group * GROUP + row for group in rows for one in rows[group] for row in one]
        expected = file.read(columns).take(numbers)
        assert file.read(columns, rows=rows).equals(expected)
        batches = list(file.iter_batches(batch_rows, columns, rows=rows))
        assert pa.Table.from_batches(batches, expected.schema).equals(expected)
        assert all(0 < batch.num_rows <= batch_rows for batch in batches)


@pytest.mark.spec("page-index.skipping")
def test_only_pages_of_selected_rows_are_fetched() -> None:
    data = stored(dictionary=False, compression="uncompressed", checksums=False)
    with pqext.open(data) as file:
        pages = file.row_groups[1].chunk(0).page_locations
        assert pages is not None
        before = file.source.bytes_read
        assert file.read(["i"], rows={1: [range(PAGE, PAGE + 1), range(5 * PAGE - 1, 5 * PAGE + 1)]}).num_rows == 3
        assert file.source.bytes_read - before == sum(pages.byte_range(page)[1] for page in (1, 4, 5))


@pytest.mark.spec("querying.coalescing")
def test_pages_of_all_columns_are_fetched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    data = stored()
    fetched: list[tuple[int, int]] = []
    real = MemorySource._fetch

    def counted(self: MemorySource, offset: int, length: int) -> Any:
        fetched.append((offset, length))
        return real(self, offset, length)

    with pqext.open(data) as file:
        whole = file.read()
        file.row_groups[1].load_page_indexes()
        monkeypatch.setattr(MemorySource, "_fetch", counted)
        monkeypatch.setattr(MemorySource, "merge_gap", len(data))
        assert file.read(rows={1: [range(40, 50), range(200, 201)]}) == pa.concat_tables(
            [whole.slice(GROUP + 40, 10), whole.slice(GROUP + 200, 1)]
        )
    assert len(fetched) == 1


@pytest.mark.parametrize("selected", [range(PAGE, GROUP), range(GROUP - PAGE)], ids=["but the first", "but the last"])
def test_adjacent_pages_are_fetched_by_window(selected: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large chunk, of which one page is left out, no more is held than of all of it."""
    fetched: list[int] = []

    class Windowed(MemorySource):
        window_bytes = 1000

        def _fetch(self, offset: int, length: int) -> Any:
            fetched.append(length)
            return super()._fetch(offset, length)

    monkeypatch.setattr(row_group_reader, "STREAMED_BYTES", 0)
    data = stored(dictionary=False, compression="uncompressed")
    with pqext.open(Windowed(data)) as file:
        chunk = file.row_groups[0].chunk("i")
        places = chunk.page_locations
        assert places is not None
        page = max(places.byte_range(number)[1] for number in range(len(places)))
        fetched.clear()
        assert file.read(["i"], rows={0: [selected]})["i"].to_pylist() == list(selected)
        assert chunk.byte_range[1] > 2 * max(fetched)
        assert max(fetched) < 1000 + page


def test_scan_reads_only_pages_that_may_match() -> None:
    data = stored(dictionary=False, compression="uncompressed")
    condition = (pqext.col("i") >= 320) & (pqext.col("i") < 330)
    with pqext.open(data) as file:
        assert pqext.read_table(data, filter=condition).equals(file.read().slice(320, 10))
    (task,) = pqext.scan(data, ["s"], condition).plan(pages=True)
    assert task.kept_row_groups == (1,)
    assert (task.rows_kept, task.row_groups[1].rows) == (2 * PAGE, [range(2 * PAGE)])
    assert task.bytes_kept < task.row_groups[1].num_bytes / 4
    text = pqext.scan(data, ["s"], condition).explain()
    assert "row group 1: 46 of 300 rows may match by their pages (4 of 28 pages): 0 to 45" in text


def test_missing_row_groups_and_rows_are_rejected() -> None:
    with pqext.open(FILES["version 1"][0]) as file:
        for rows in ({3: [range(1)]}, {-1: None}, {0: [range(300, 301)]}, {0: [range(-1, 2)]}, {0: [range(2**70)]}):
            with pytest.raises(IndexError, match="row"):
                file.read(rows=rows)
        with pytest.raises(TypeError, match="by its index"):
            file.read(rows={True: None})
        for wrong in ([range(3)], {0: [3]}, {0: [range(0, 9, 2)]}):
            with pytest.raises(TypeError, match="range"):
                file.read(rows=wrong)  # type: ignore[arg-type]
        assert file.read(rows={}).num_rows == file.read(rows={1: []}).num_rows == 0
        assert file.read(["i"], [2, 0], rows={0: [range(5, 5), range(2)], 2: None})["i"].to_pylist()[-2:] == [0, 1]


def rewritten(data: bytes, column: int, change: Any) -> bytes:
    """The file with another offset index of the same length for the first row group's ``column``."""
    with pqext.open(data) as file:
        chunk = file.metadata.row_groups[0].columns[column]
        start, length = chunk.offset_index_offset, chunk.offset_index_length
        assert start is not None
        assert length is not None
        index, _ = decode(OffsetIndex, data[start : start + length])
        change(index.page_locations)
        again = encode(index)
        assert len(again) == length
        return data[:start] + again + data[start + length :]


@pytest.mark.parametrize("column", [0, 3])
def test_offset_index_with_wrong_rows_is_detected(column: int) -> None:
    def shift(pages: Any) -> None:
        pages[2].first_row_index += 1

    data = rewritten(stored(), column, shift)
    with pqext.open(data, strict=True) as file:
        name = "il"[column // 3]
        with pytest.raises(CorruptFileError, match=r"the offset index (declares|states)") as caught:
            file.read([name], rows={0: [range(PAGE, PAGE + 3)]})
        assert caught.value.column in ("i", "l.list.element")
        assert file.read([name]).num_rows == ROWS


def test_offset_index_with_wrong_page_offsets_is_detected() -> None:
    def shift(pages: Any) -> None:
        pages[1].offset, pages[1].compressed_page_size = pages[1].offset + 1, pages[1].compressed_page_size - 1

    data = rewritten(stored(dictionary=False, compression="uncompressed"), 0, shift)
    with pqext.open(data, strict=True) as file, pytest.raises(CorruptFileError) as caught:
        file.read(["i"], rows={0: [range(PAGE, PAGE + 3)]})
    assert (caught.value.column, caught.value.row_group) == ("i", 0)


def test_corruption_outside_the_selected_pages_is_read_only_on_skip() -> None:
    data = bytearray(stored(dictionary=False, compression="uncompressed"))
    with pqext.open(bytes(data)) as file:
        start, length = file.row_groups[0].chunk(0).byte_range
        page = list(raw_pages(Span(file.source, start, length), pqext.Limits()))[3]
        data[page.offset + len(page.body)] ^= 1
    with pqext.open(bytes(data)) as file:
        assert file.read(["i"], rows={0: [range(2)]}).num_rows == 2
        with pytest.raises(CorruptFileError, match="checksum"):
            file.read(["i"], rows={0: [range(3 * PAGE, 3 * PAGE + 1)]})
    with pqext.open(bytes(data), on_corrupt="skip") as file:
        wanted = [range(2), range(3 * PAGE - 1, 4 * PAGE + 1)]
        with pytest.warns(CorruptDataWarning):
            found = file.read(["i", "l"], rows={0: wanted})
        assert found["i"].to_pylist() == [0, 1, 3 * PAGE - 1, 4 * PAGE]
        assert [(one.start, one.stop) for one in file.damage] == [(3 * PAGE, 4 * PAGE)]


@pytest.mark.spec("querying.intersection")
@given(ranges, ranges, st.integers(1, 40))
def test_row_ranges_behave_like_sets_of_rows(first: list[range], second: list[range], count: int) -> None:
    def rows(parts: list[range]) -> list[int]:
        return [row for one in parts for row in one]

    one, other = merge_ranges(first), merge_ranges(second)
    assert rows(difference(one, other)) == sorted(set(rows(one)) - set(rows(other)))
    queue = RowQueue(one)
    parts = []
    while part := queue.pop(count):
        queue.push_back(part)
        assert rows(queue.pop(count)) == rows(part)
        parts.append(part)
    assert [row for part in parts for row in rows(part)] == rows(one)
    assert all(len(rows(part)) == count for part in parts[:-1])


@pytest.mark.parametrize("first", [1, 65_536, 65_537, 200_000])
def test_skipped_rows_of_a_page_are_decoded_65536_at_a_time(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"n": range(first + 70_000)}), out, page_rows=1 << 20, page_bytes=1 << 30)
    skip, skipped = ColumnReader._skip_rows, []

    def skip_rows(self: ColumnReader, rows: int) -> int:
        skipped.append(rows)
        return skip(self, rows)

    monkeypatch.setattr(ColumnReader, "_skip_rows", skip_rows)
    assert pqext.open(out).read(rows={0: [range(first, first + 5)]})["n"].to_pylist() == [*range(first, first + 5)]
    assert skipped == [65_536] * (first // 65_536) + [first % 65_536] * (first % 65_536 > 0)


@pytest.mark.parametrize("stop", [65_536, 65_537])
def test_rows_within_65536_are_decoded_together(stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"n": range(100_000)}), out, page_rows=1 << 20, page_bytes=1 << 30)
    read, groups = ColumnReader._read_covering_range, []

    def read_near(self: ColumnReader, ranges: list[tuple[int, int]]) -> Any:
        groups.append(len(ranges))
        return read(self, ranges)

    monkeypatch.setattr(ColumnReader, "_read_covering_range", read_near)
    rows = [range(1), range(7, 9), range(stop - 1, stop)]
    assert pqext.open(out).read(rows={0: rows})["n"].to_pylist() == [0, 7, 8, stop - 1]
    assert groups == ([3] if stop <= 65_536 else [2, 1])
