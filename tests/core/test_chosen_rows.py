"""Selected rows of flat columns are those that pyarrow reads; corruption is detected as in complete pages."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import pqext
from pqext.core.base.errors import CorruptFileError, MemoryLimitError
from pqext.core.base.limits import Limits
from reference.effort import some

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
        batches = file.iter_dictionary_batches(ROWS, ["c"], 0, numbers, (), file.budget())
        return pa.Table.from_batches(batches, schema=file.arrow_schema)


@pytest.mark.spec("querying.in-page")
@pytest.mark.parametrize("name", COLUMNS)
def test_selected_rows_match_pyarrow(name: str) -> None:
    chance = np.random.default_rng(5)
    for form in some(FORMS, 4):
        data = written(COLUMNS[name], **form)
        whole = pq.read_table(io.BytesIO(data))
        for count in (1, 20, ROWS):
            numbers = np.sort(chance.choice(ROWS, count, replace=False))
            found = rows_of(data, numbers)
            found.validate(full=True)
            assert found.to_pylist() == whole.take(numbers).to_pylist(), form


@pytest.mark.parametrize("encoding", ["BYTE_STREAM_SPLIT", "PLAIN"])
@pytest.mark.parametrize("name", ["int", "holes", "real", "fixed"])
def test_distant_byte_ranges_are_joined(name: str, encoding: str) -> None:
    form = {"use_dictionary": False, "column_encoding": {"c": encoding}, "compression": "zstd", "data_page_size": 900}
    numbers = np.arange(2, ROWS, 7)
    data = written(COLUMNS[name], **form)
    assert rows_of(data, numbers).to_pylist() == pq.read_table(io.BytesIO(data)).take(numbers).to_pylist()


def test_page_is_checked_even_if_the_selected_rows_are_null() -> None:
    data = bytearray(written(COLUMNS["flag"], use_dictionary=False, compression="snappy", data_page_size=300))
    with pqext.open(bytes(data)) as file:
        assert rows_of(bytes(data), np.array([0]))["c"].to_pylist() == [None]
        data[file.row_groups[0].chunk(0).byte_range[0] + 118] = 59  # more booleans than there are bits
    with pytest.raises(CorruptFileError, match="too short for 825 booleans"):
        rows_of(bytes(data), np.array([0]), checksums=False)


def test_repeated_dictionary_values_are_batched_within_the_limit() -> None:
    """Less than a byte a row stands for 60 MB."""
    entries = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), ["x" * 100_000])
    data = written(entries, compression="zstd", store_schema=False)
    limits = Limits(memory_bytes=20 << 20, memory_expansion=1)
    with pqext.open(data, limits=limits) as file:
        batches = [*file.iter_dictionary_batches(ROWS, ["c"], 0, np.arange(0, ROWS, 2), (), file.budget())]
    assert max(batch.nbytes for batch in batches) < limits.memory_bytes
    assert sum(batch.num_rows for batch in batches) == ROWS // 2
    with pytest.raises(MemoryLimitError):
        pqext.read_table(data, limits=limits)
    assert rows_of(data, np.array([3, 900])).to_pylist() == [{"c": "x" * 100_000}] * 2
