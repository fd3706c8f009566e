"""Single rows of flat columns by one call for all pages: those that pyarrow has there; damage as for whole pages."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pqext
from pqext.core.base.budget import Account
from pqext.core.base.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.format import compression
from pqext.core.kernels.chosen_rows import Chosen
from pqext.core.kernels.page_table import PageTable
from pqext.core.read.pages import single_rows
from reference.effort import share, some

ROWS = 1200
CHANCE = np.random.default_rng(11)
HOLES = CHANCE.random(ROWS) < 0.3
NUMBERS = CHANCE.integers(-(2**40), 2**40, ROWS)

COLUMNS: dict[str, pa.Array] = {
    "int": pa.array(NUMBERS),
    "holes": pa.array(NUMBERS, mask=HOLES),
    "small": pa.array((NUMBERS % 50).astype(np.int32), mask=HOLES),
    "byte": pa.array((NUMBERS % 100).astype(np.int8), mask=HOLES),
    "real": pa.array(CHANCE.random(ROWS).astype(np.float32)),
    "flag": pa.array(NUMBERS % 3 == 0, mask=HOLES),
    "nothing": pa.nulls(ROWS, pa.int64()),
    "text": pa.array([f"{n:x}" * (n % 5) for n in NUMBERS.tolist()], mask=HOLES),
    "word": pa.array([f"wort ü{n % 30}" for n in NUMBERS.tolist()]),
    "fixed": pa.array([bytes([n % 256] * 7) for n in NUMBERS.tolist()], pa.binary(7), mask=HOLES),
    "price": pa.array(NUMBERS % 10**6, mask=HOLES).cast(pa.decimal128(38, 2)),
    "struct": pa.array(
        [{"a": n % 9 if n % 4 else None, "b": f"{n}"} if n % 5 else None for n in NUMBERS.tolist()],
        pa.struct([("a", pa.int16()), pa.field("b", pa.string(), nullable=False)]),
    ),
}
FORMS: list[dict[str, Any]] = [
    {"compression": codec, "data_page_version": version, "use_dictionary": dictionary, "data_page_size": size}
    for codec in ("none", "zstd", "snappy")
    for version in ("1.0", "2.0")
    for dictionary in (False, True)
    for size in (300, 1 << 20)
]


def written(array: pa.Array, **options: Any) -> bytes:
    out = io.BytesIO()
    options = {"write_page_index": True, "write_page_checksum": True, "write_batch_size": 64, **options}
    pq.write_table(pa.table({"c": array}), out, **options)
    return out.getvalue()


def rows_of(data: bytes, numbers: NDArray[np.int64], **options: Any) -> pa.Table:
    with pqext.open(data, **options) as file:
        batches = file.iter_compared(ROWS, ["c"], 0, numbers, (), file.budget())
        return pa.Table.from_batches(batches, schema=file.arrow_schema)


@pytest.mark.spec("querying.in-page")
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_those_that_pyarrow_has_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, answers = single_rows.decode, []

    def noted(*arguments: Any, **named: Any) -> Any:
        answers.append(decode(*arguments, **named))
        return answers[-1]

    monkeypatch.setattr(single_rows, "decode", noted)
    chance = np.random.default_rng(5)
    for form in some(FORMS, 4):
        data = written(COLUMNS[name], **form)
        whole = pq.read_table(io.BytesIO(data))
        for count in (1, 20, ROWS):
            numbers = np.sort(chance.choice(ROWS, count, replace=False))
            found = rows_of(data, numbers)
            found.validate(full=True)
            assert found.to_pylist() == whole.take(numbers).to_pylist(), form
    assert answers
    assert None not in answers


@pytest.mark.parametrize("encoding", ["BYTE_STREAM_SPLIT", "PLAIN"])
@pytest.mark.parametrize("name", ["int", "holes", "real", "fixed"])
def test_bytes_that_lie_apart_come_together(name: str, encoding: str) -> None:
    form = {"use_dictionary": False, "column_encoding": {"c": encoding}, "compression": "zstd", "data_page_size": 900}
    numbers = np.arange(2, ROWS, 7)
    data = written(COLUMNS[name], **form)
    assert rows_of(data, numbers).to_pylist() == pq.read_table(io.BytesIO(data)).take(numbers).to_pylist()


def answer(data: bytes, numbers: NDArray[np.int64], *, checksums: bool) -> object:
    """The values, or the kind of the error."""
    try:
        return rows_of(data, numbers, checksums=checksums).to_pylist()
    except ParquetError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore::pqext.core.indexes.reading.DamagedIndexWarning")
@pytest.mark.parametrize("name", ["holes", "text", "word", "flag", "struct"])
@settings(max_examples=share(0.6))
@given(data=st.data())
def test_damage_gives_what_pages_opened_one_after_another_give(name: str, data: st.DataObject) -> None:
    """Not more errors, not fewer, and no other rows."""
    form = data.draw(st.sampled_from(FORMS))
    damaged = bytearray(written(COLUMNS[name], **form))
    with pqext.open(bytes(damaged)) as file:
        ranges = [leaf.byte_range for leaf in map(file.row_groups[0].chunk, range(len(file.schema.leaves)))]
    start, length = data.draw(st.sampled_from(ranges))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[start + data.draw(st.integers(0, length - 1))] = data.draw(st.integers(0, 255))
    numbers = np.array(data.draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=9, unique=True).map(sorted)))
    checksums = data.draw(st.booleans())
    found = answer(bytes(damaged), numbers, checksums=checksums)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_rows, "are_served", lambda shape: False)
        assert found == answer(bytes(damaged), numbers, checksums=checksums)


def test_a_page_is_checked_although_the_rows_asked_for_are_null() -> None:
    data = bytearray(written(COLUMNS["flag"], use_dictionary=False, compression="snappy", data_page_size=300))
    with pqext.open(bytes(data)) as file:
        assert rows_of(bytes(data), np.array([0]))["c"].to_pylist() == [None]
        data[file.row_groups[0].chunk(0).byte_range[0] + 118] = 59  # more booleans than there are bits
    with pytest.raises(CorruptFileError, match="cannot hold 825 booleans"):
        rows_of(bytes(data), np.array([0]), checksums=False)


def test_values_that_a_dictionary_repeats_come_in_batches_within_the_limit() -> None:
    """Less than a byte a row stands for 60 MB."""
    entries = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), ["x" * 100_000])
    data = written(entries, compression="zstd", store_schema=False)
    limits = Limits(memory_bytes=20 << 20, memory_expansion=1)
    with pqext.open(data, limits=limits) as file:
        batches = [*file.iter_compared(ROWS, ["c"], 0, np.arange(0, ROWS, 2), (), file.budget())]
    assert max(batch.nbytes for batch in batches) < limits.memory_bytes
    assert sum(batch.num_rows for batch in batches) == ROWS // 2
    with pytest.raises(MemoryLimitError):
        pqext.read_table(data, limits=limits)
    assert rows_of(data, np.array([3, 900])).to_pylist() == [{"c": "x" * 100_000}] * 2


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd"])
def test_pages_are_unpacked_by_and_by_and_counted_before(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some KB stand for 40 MB in ten pages, of which each call unpacks but a few."""
    rows, width = 200_000, 200
    zeros = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(bytes(rows * width))])
    data = written(zeros, compression=codec, use_dictionary=False, data_page_size=1 << 23, write_batch_size=1 << 14)
    at_once: list[int] = []
    counted: list[int] = []

    def unpacker(codec: int) -> Any:
        def unpack(pages: Any, sizes: Any) -> Any:
            at_once.append(sum(sizes))
            counted.append(max(takes[-2:]))
            return unpacks(pages, sizes)

        unpacks = compression.unpacker(codec)
        return unpack

    takes = [0]
    take = Account.take

    def noted(account: Account, size: int) -> None:
        takes.append(size)
        take(account, size)

    monkeypatch.setattr(Account, "take", noted)
    monkeypatch.setattr(single_rows, "unpacker", unpacker)
    numbers = np.arange(7, rows, 10_000)
    limits = Limits(memory_bytes=30 << 20, memory_expansion=0)
    assert set(rows_of(data, numbers, limits=limits)["c"].to_pylist()) == {bytes(width)}
    assert all(size < 24 << 20 for size in at_once)
    assert all(taken >= size for taken, size in zip(counted, at_once, strict=True))
    assert bool(at_once) == (codec != "zstd")


def test_a_chunk_with_an_unusual_page_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all pages before it would be unpacked again for each group of pages."""
    decode, answers = single_rows.decode, []

    def noted(*arguments: Any, **named: Any) -> Any:
        answers.append(decode(*arguments, **named))
        return answers[-1]

    monkeypatch.setattr(single_rows, "decode", noted)
    form = {"use_dictionary": False, "column_encoding": {"c": "DELTA_BINARY_PACKED"}, "data_page_size": 300}
    data = written(COLUMNS["int"], compression="snappy", write_page_index=False, **form)
    numbers = np.array([2, 700, 1100])  # pages without rows lie between
    assert rows_of(data, numbers).to_pylist() == [{"c": n} for n in NUMBERS[numbers].tolist()]
    assert answers == [None]


@pytest.mark.parametrize("places", [[3, 3], [4, 2], [-1], [0, ROWS]])
def test_places_that_do_not_ascend_or_leave_the_pages_are_refused(places: list[int]) -> None:
    data = written(COLUMNS["int"], compression="none", use_dictionary=False)
    with pqext.open(data) as file:
        start, length = file.row_groups[0].chunk("c").byte_range
    table = PageTable(DEFAULT_LIMITS)
    table.read(np.frombuffer(data, np.uint8)[start : start + length], start, length)
    with pytest.raises(ValueError, match="ascend"):
        Chosen(table, np.array(places), 8, False, 1)
