"""Some values of pages, taken without the others: the same as all of them decoded and then chosen from."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.base.usage import Account, Budget
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.metadata import Encoding
from pqext.core.kernels.decode import selected_values
from pqext.core.kernels.encodings import rle
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.read.column import ColumnReader
from pqext.core.read.pages import table_decoder
from pqext.core.read.pages.table_decoder import FallbackRequired, TableDecoder
from pqext.core.read.pages.value_selection import select
from pqext.core.schema.arrow_schema.arrays import filter_batch
from reference import hybrid
from reference.effort import share, some

WORDS = [f"word {i}" * (i % 5) for i in range(40)]


def positions(flags: list[bool]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.flatnonzero(flags).astype(np.int64)


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), max_size=20), max_size=4), st.data())
@settings(max_examples=share(0.3))
def test_fixed_width_values_are_located_by_offset(pages: list[list[int]], data: st.DataObject) -> None:
    total = sum(map(len, pages))
    chosen = positions(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)))
    whole = np.array([value for page in pages for value in page], np.int64)
    for width, kind in ((8, np.int64), (4, np.int32), (2, np.int16)):
        for split in (False, True):
            stored = [np.array(page, np.int64).astype(kind) for page in pages]
            parts = [one.view(np.uint8).reshape(-1, width) for one in stored]
            raw = [(part.T if split else part).tobytes() for part in parts]
            out = np.empty(len(chosen) * width, np.uint8)
            run = PageRun([np.frombuffer(page, np.uint8) for page in raw], [len(p) for p in pages])
            selected_values.select_fixed(run, width, split, chosen, out)
            assert (out.view(kind) == whole.astype(kind)[chosen]).all()


@given(st.lists(st.lists(st.binary(max_size=9), max_size=9), max_size=4), st.data())
@settings(max_examples=share(0.3))
def test_byte_arrays_are_located_by_preceding_lengths(pages: list[list[bytes]], data: st.DataObject) -> None:
    total = sum(map(len, pages))
    chosen = positions(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)))
    whole = [value for page in pages for value in page]

    def plain(values: list[bytes]) -> bytes:
        return b"".join(len(value).to_bytes(4, "little") + value for value in values)

    run = PageRun([np.frombuffer(plain(page), np.uint8) for page in pages], [len(page) for page in pages])
    assert bytes(selected_values.select_byte_arrays(run, chosen)) == plain([whole[at] for at in chosen])


@given(
    st.integers(0, 20),
    st.lists(st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 2**20)), max_size=5), max_size=3),
    st.data(),
)
@settings(max_examples=share(0.3))
def test_indices_are_located_in_their_runs(width: int, pages: list[Any], data: st.DataObject) -> None:
    raw, counts, whole = [], [], []
    for page in pages:
        values: list[int] = []
        body = bytes([width])
        for packed, count, seed in page:
            made = [(seed * (i + 1)) % (1 << width) if packed else seed % (1 << width) for i in range(count)]
            made = made + [0] * (-count % 8) if packed else made
            body += hybrid.encode_packed(made, width) if packed else hybrid.encode_runs([(made[0], count)], width)
            values += made
        raw.append(np.frombuffer(body, np.uint8))
        counts.append(len(values))
        whole += values
    chosen = positions(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))))
    out = np.empty(len(chosen), np.int32)
    rle.indices_at(PageRun(raw, counts), 1 << width, chosen, out)
    assert out.tolist() == [whole[at] for at in chosen]


@given(st.lists(st.integers(0, 3), max_size=60), st.data())
@settings(max_examples=share(0.3))
def test_levels_and_flags_locate_the_values(levels: list[int], data: st.DataObject) -> None:
    chosen = positions(data.draw(st.lists(st.booleans(), min_size=len(levels), max_size=len(levels))))
    count = len(chosen)
    present, places = np.empty(count, np.uint8), np.empty(count, np.int64)
    flags = np.array([level == 3 for level in levels], np.uint8)
    found = selected_values.select_flags(flags, chosen, present, places)
    values = {at: number for number, at in enumerate(np.flatnonzero(flags).tolist())}
    assert present.tolist() == [levels[at] == 3 for at in chosen]
    assert places[:found].tolist() == [values[at] for at in chosen.tolist() if at in values]
    kept = np.empty(count, np.int16)
    cut = data.draw(st.integers(0, len(levels)))
    counts, held = np.array([cut, len(levels) - cut]), np.empty(2, np.int64)
    slots, found = selected_values.select_levels(
        np.array(levels, np.int16), counts, chosen, 2, 3, kept, present, places, held
    )
    assert kept.tolist() == [levels[at] for at in chosen]
    assert present[:slots].tolist() == [levels[at] == 3 for at in chosen if levels[at] >= 2]
    assert places[:found].tolist() == [values[at] for at in chosen.tolist() if at in values]
    assert held.tolist() == [levels[:cut].count(3), levels[cut:].count(3)]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=12), st.data())
@settings(max_examples=share(0.3))
def test_rows_of_lists_are_located_by_their_levels(rows: list[list[int]], data: st.DataObject) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    levels = [level for row in rows for level in row]
    repetition = [int(at > 0) for row in rows for at in range(len(row))]
    total = len(levels)
    outputs = np.empty(total, np.int16), np.empty(total, np.int16), np.empty(total, np.uint8), np.empty(total, np.int64)
    held = np.empty(1, np.int64)
    kept, slots, found = selected_values.select_entries(
        np.array(repetition, np.int16), np.array(levels, np.int16), np.array([total]), positions(flags), 2, 3,
        *outputs, held,
    )  # fmt: skip
    mine = [at for row, flag in zip(np.split(np.arange(total), np.cumsum([len(row) for row in rows])), flags,
                                    strict=False) if flag for at in row.tolist()]  # fmt: skip
    values = {at: number for number, at in enumerate(at for at in range(total) if levels[at] == 3)}
    assert outputs[0][:kept].tolist() == [repetition[at] for at in mine]
    assert outputs[1][:kept].tolist() == [levels[at] for at in mine]
    assert outputs[2][:slots].tolist() == [levels[at] == 3 for at in mine if levels[at] >= 2]
    assert outputs[3][:found].tolist() == [values[at] for at in mine if at in values]
    assert held.tolist() == [levels.count(3)]


@given(st.lists(st.booleans(), max_size=200), st.data())
@settings(max_examples=share(0.3))
def test_mask_positions_match_its_bits(flags: list[bool], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(flags)))
    mask = pa.array(flags, pa.bool_())[start:]
    expected = [7 + at for at, flag in enumerate(flags[start:]) if flag]
    if not flags:
        return
    out = np.empty(len(expected), np.int64)
    bits = np.frombuffer(mask.buffers()[1], np.uint8)
    selected_values.mask_positions(bits, mask.offset, len(mask), 7, out)
    assert out.tolist() == expected
    with pytest.raises(ValueError, match="number of set bits differs"):
        selected_values.mask_positions(bits, mask.offset, len(mask), 7, np.empty(len(expected) + 1, np.int64))
    with pytest.raises(ValueError, match="exceeds the buffer"):
        selected_values.mask_positions(bits, 0, 8 * len(bits) + 1, 7, out)


@given(
    st.integers(0, 300), st.integers(0, 2**32), st.sampled_from([0.02, 0.5, 0.98, 1]),
    st.sampled_from([pa.int32(), pa.int64(), pa.float32(), pa.decimal128(30, 2), pa.timestamp("us"), pa.int16()]),
)
@settings(max_examples=share(0.5))
def test_filtered_batches_equal_arrows(rows: int, seed: int, density: float, type: pa.DataType) -> None:
    random = np.random.default_rng(seed)
    values, flags = pa.array(random.integers(0, 90, rows)).cast(pa.int32()).cast(type), random.random(rows) < density
    start = rows // 3
    batch = pa.record_batch({
        "v": values, "text": values.cast(pa.string()), "nulls": pc.if_else(pa.array(flags), values, None)
    })[start:]
    for mask in (pa.array(flags)[start:], pa.array(flags, mask=random.random(rows) < 0.1)[start:]):
        result = filter_batch(batch, mask)
        result.validate(full=True)
        assert result.equals(batch.filter(mask))


def test_fixed_width_filters_check_their_buffers() -> None:
    values, bits = np.arange(16, dtype=np.uint8), np.array([0b1010], np.uint8)
    out = np.zeros(8, np.uint8)
    selected_values.filter_fixed(values, 4, bits, 0, out)
    assert out.tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    with pytest.raises(ValueError, match="number of set bits differs"):
        selected_values.filter_fixed(values, 4, bits, 0, out[:4])
    with pytest.raises(ValueError, match="exceeds the buffer"):
        selected_values.filter_fixed(values, 1, bits, 0, out)
    with pytest.raises(ValueError, match="complete values"):
        selected_values.filter_fixed(values, 3, bits, 0, out)


def test_positions_that_do_not_ascend_or_exceed_the_pages_are_rejected() -> None:
    page = PageRun([np.zeros(32, np.uint8)], [4])
    out = np.empty(16, np.uint8)
    for places in ([1, 1], [2, 1], [0, 4], [-1, 0]):
        chosen = np.array(places, np.int64)
        with pytest.raises(ValueError, match="ascend"):
            selected_values.select_fixed(page, 8, False, chosen, out)
        with pytest.raises(ValueError, match="ascend"):
            selected_values.select_byte_arrays(page, chosen)
        with pytest.raises(ValueError, match="ascend"):
            rle.indices_at(PageRun([np.array([0], np.uint8)], [4]), 1, chosen, np.empty(2, np.int32))
        with pytest.raises(ValueError, match="ascend"):
            selected_values.select_flags(np.ones(4, np.uint8), chosen, np.empty(2, np.uint8), np.empty(2, np.int64))
        with pytest.raises(ValueError, match="ascend"):
            selected_values.select_levels(np.ones(4, np.int16), np.array([4]), chosen, 0, 1, np.empty(2, np.int16),
                             np.empty(2, np.uint8), np.empty(2, np.int64), np.empty(1, np.int64))  # fmt: skip
        levels = np.zeros(4, np.int16)
        with pytest.raises(ValueError, match="ascend"):
            selected_values.select_entries(levels, levels, np.array([4]), chosen, 0, 1, levels.copy(), levels.copy(),
                              np.empty(4, np.uint8), np.empty(4, np.int64), np.empty(1, np.int64))  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "page"),
    [
        (Encoding.PLAIN, bytes(9)), (Encoding.BYTE_STREAM_SPLIT, bytes(9)), (Encoding.RLE_DICTIONARY, b"\x01\x03"),
        (Encoding.RLE_DICTIONARY, b""), (Encoding.RLE_DICTIONARY, b"\x02\x08\x03"), (Encoding.RLE_DICTIONARY, b"\x21"),
    ],
)  # fmt: skip
def test_short_pages_and_invalid_references_are_rejected(encoding: Encoding, page: bytes) -> None:
    kind = next(
        leaf.leaf_type for leaf in pqext.open(stored(pa.table({"a": [1]}))).schema.leaves
    )
    dictionary = Dictionary(2, np.zeros(16, np.uint8))
    run = PageRun([np.frombuffer(page, np.uint8)], [4])
    with pytest.raises(CorruptFileError):
        select(encoding, run, np.array([1, 3]), kind, dictionary)


def stored(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def rich(rows: int) -> pa.Table:
    """Columns of many types and layouts, with nulls on every level."""
    chance = np.random.default_rng(8)
    numbers = chance.integers(-(2**40), 2**40, rows)
    mask = chance.random(rows) < 0.2
    texts = [WORDS[n % len(WORDS)] if n % 7 else None for n in range(rows)]
    return pa.table(
        {
            "int": numbers,
            "null": pa.array(numbers, mask=mask),
            "short": pa.array((numbers % 100).astype(np.int16), mask=mask),
            "real": chance.random(rows),
            "flag": pa.array(numbers % 3 == 0, mask=mask),
            "text": pa.array([f"{n:x}" for n in numbers.tolist()], mask=mask),
            "word": pa.array(texts),
            "fixed": pa.array([bytes([n % 256] * 5) for n in range(rows)], pa.binary(5)),
            "struct": [{"a": n % 9 if n % 4 else None, "b": texts[n]} if n % 5 else None for n in range(rows)],
            "list": [None if n % 11 == 0 else [texts[(n + i) % rows] for i in range(n % 4)] for n in range(rows)],
            "lists": [[[n, None], [], None][: n % 4] if n % 6 else None for n in range(rows)],
            "map": pa.array([[("k", n)] if n % 3 else [] for n in range(rows)], pa.map_(pa.string(), pa.int64())),
            "price": pa.array(numbers % 10**6).cast(pa.decimal128(38, 0)),
        }
    )


TABLE = rich(3000)


def by_pyarrow(**options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out, write_page_index=True, **options)
    return out.getvalue()


FILES = {
    "dictionaries": stored(TABLE, page_rows=171),
    "plain": stored(TABLE, page_rows=171, dictionary=False, compression="uncompressed"),
    "delta": stored(
        TABLE.drop(["flag", "fixed", "price", "real"]), page_rows=500, dictionary=False,
        encodings=dict.fromkeys(("text", "word"), "delta_byte_array")
        | dict.fromkeys(("int", "null", "short"), "delta_binary_packed"),
    ),
    "split": stored(TABLE.select(["int", "null", "real", "lists"]), dictionary=False, encodings="byte_stream_split"),
    "no page index": stored(TABLE, page_index=False, page_rows=400),
    "second version": stored(TABLE, page_version=2, compression="zstd", page_rows=400),
    "of pyarrow": by_pyarrow(data_page_size=600, compression="gzip"),
    "of pyarrow, version 2": by_pyarrow(data_page_size=900, data_page_version="2.0", use_dictionary=["word"]),
}  # fmt: skip


@pytest.mark.spec("querying.in-page")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("strings", ["string", "view", "dictionary"])
def test_rows_selected_one_by_one_match_the_full_table(name: str, strings: str) -> None:
    chance = np.random.default_rng(4)
    with pqext.open(FILES[name], strings=strings) as file:
        names, rows = file.arrow_schema.names, file.num_rows
        whole = TABLE.select(names).to_pylist()
        for count, batch_rows in some(list(itertools.product((1, 30, 1500, rows), (rows, 190))), 3):
            numbers = np.sort(chance.choice(rows, count, replace=False))
            found = pa.Table.from_batches(
                file.iter_dictionary_batches(batch_rows, names, 0, numbers, (), Budget(DEFAULT_LIMITS, 1 << 20)),
                schema=file.arrow_schema,
            )
            assert found.to_pylist() == [whole[number] for number in numbers.tolist()]
            found.validate(full=True)


@pytest.mark.parametrize("name", [name for name in FILES if name != "no page index"])
def test_ordinary_pages_are_never_fully_decoded_for_some_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise AssertionError("a page was decoded whole")

    monkeypatch.setattr(ColumnReader, "_switch_to_page_decoder", fail)
    monkeypatch.setattr(ColumnReader, "read", fail)
    with pqext.open(FILES[name]) as file:
        numbers = np.arange(5, 3000, 40)
        found = list(file.iter_dictionary_batches(50, file.arrow_schema.names, 0, numbers, (), file.budget()))
    assert sum(map(len, found)) == len(numbers)


def test_fully_read_pages_between_skipped_pages_return_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page table declines, as for encrypted columns, only pages with wanted rows are there all the same."""
    monkeypatch.setattr(TableDecoder, "read_at", declining)
    for name in ("plain", "of pyarrow"):
        numbers = np.array([3, 4, 900, 901, 2400, 2999])
        with pqext.open(FILES[name]) as file:
            found = pa.Table.from_batches(
                file.iter_dictionary_batches(
                    4, file.arrow_schema.names, 0, numbers, (), file.budget()
                ), schema=file.arrow_schema
            )
        assert found.to_pylist() == [TABLE.to_pylist()[number] for number in numbers.tolist()]


def declining(*arguments: object) -> None:
    raise FallbackRequired


@pytest.mark.spec("querying.in-page")
def test_values_next_to_selected_rows_are_not_decoded() -> None:
    """Proof by damage: an index beyond the dictionary and text that is no UTF-8 show only to those who decode them."""
    table = pa.table({"n": np.arange(8192) % 500, "s": [f"value {n:05}" for n in range(8192)]})
    for column, place, damage in (("s", b"value 00100", b"\xff" * 11), ("n", None, b"")):
        plain = stored(table.select([column]), compression="uncompressed", dictionary=column == "n", checksums=False)
        data = bytearray(plain)
        if place is not None:
            at = data.index(place)
            data[at : at + len(damage)] = damage
        else:
            with pqext.open(plain) as file:
                first = file.row_groups[0].chunk(0).pages.byte_range(0)
            data[first[0] + first[1] // 2] = 0xFF
            data[first[0] + first[1] // 2 + 1] = 0xFF
        with pqext.open(bytes(data)) as file:
            with pytest.raises(CorruptFileError):
                file.read()
            numbers = np.array([0, 3, 8190])
            batches = list(file.iter_dictionary_batches(10, [column], 0, numbers, (), file.budget()))
            assert batches[0].column(0).to_pylist() == table[column].take(numbers).to_pylist()


def test_retained_memory_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    settle = Account.resize

    def record(self: Account, size: int) -> None:
        settle(self, size)
        seen.append(size)

    monkeypatch.setattr(Account, "resize", record)
    with pqext.open(FILES["plain"]) as file:
        budget = file.budget()
        for _ in file.iter_dictionary_batches(100, ["text", "int"], 0, np.arange(0, 3000, 7), (), budget):
            pass
        budget.add(budget.room - 4096 * 8)  # all was given back but for what the last batch holds
    assert max(seen) > 0


@pytest.mark.parametrize("name", ["dictionaries", "plain", "of pyarrow"])
def test_corruption_in_selected_rows_is_reported_with_location(name: str) -> None:
    data = bytearray(FILES[name])
    with pqext.open(FILES[name]) as file:
        chunk = file.row_groups[0].chunk("int")
        start, length = chunk.byte_range
    data[start + length // 2 : start + length // 2 + 200] = b"\xff" * 200
    with pqext.open(bytes(data)) as file, pytest.raises(CorruptFileError) as caught:
        list(file.iter_dictionary_batches(1000, ["int"], 0, np.arange(0, 3000, 3), (), file.budget()))
    assert caught.value.column == "int"
    assert caught.value.row_group == 0
    assert caught.value.offset is not None


def test_selected_rows_match_pyarrow() -> None:
    numbers = np.arange(1, 3000, 17)
    with pqext.open(FILES["of pyarrow"]) as file:
        found = pa.Table.from_batches(
            file.iter_dictionary_batches(1000, TABLE.schema.names, 0, numbers, (), file.budget())
        )
    expected = pq.read_table(io.BytesIO(FILES["of pyarrow"])).take(numbers)
    assert found.to_pylist() == expected.to_pylist()
    assert pc.sum(found["int"]) == pc.sum(expected["int"])


def test_levels_of_selected_list_rows_need_two_bytes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    allocate = table_decoder.allocate
    monkeypatch.setattr(table_decoder, "allocate", lambda size: sizes.append(size) or allocate(size))
    table = pa.table({"key": range(20_000), "list": [[row, -row] for row in range(20_000)]})
    pq.write_table(table, out := io.BytesIO(), max_rows_per_page=1_000, write_page_index=True)
    rows = [*range(100, 20_000, 700)]
    assert pqext.scan(out, filter=pqext.col("key").isin(rows)).to_table() == table.take(rows)
    assert 0 < sum(sizes) <= 2 * 2 * 20_000
