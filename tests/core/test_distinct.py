"""The dictionary of a chunk: built by the kernel as the slow twin builds it, and only where it pays."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.buffers import size_of
from pqext.core.kernels.hash.distinct import index_array
from pqext.core.write import dictionary_builder
from reference import page_headers


def twin(values: list[bytes], limit: int, overhead: int) -> tuple[list[int], list[bytes]]:
    """Indices and entries of as many values as fit ``limit`` bytes of entries, each with ``overhead`` more."""
    entries: list[bytes] = []
    indices: list[int] = []
    for value in values:
        if value not in entries:
            if sum(len(entry) + overhead for entry in entries) + len(value) + overhead > limit:
                break
            entries.append(value)
        indices.append(entries.index(value))
    return indices, entries


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"a", b"ab" * 9]), max_size=60), st.integers(0, 600))
def test_byte_arrays_are_numbered_in_order_of_occurrence(values: list[bytes], limit: int) -> None:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    indices = np.empty(len(values), np.int32)
    done, starts, data = index_array(offsets, b"".join(values), 0, 0, limit, indices)
    ends = np.frombuffer(starts, np.int32)
    entries = [bytes(data)[a:b] for a, b in pairwise(ends)]
    assert (indices[:done].tolist(), entries) == twin(values, limit, 4)


@given(st.sampled_from([1, 2, 4, 7, 8, 12, 16, 33]), st.lists(st.integers(0, 12), max_size=60), st.integers(0, 200))
def test_fixed_size_values_are_numbered_in_order_of_occurrence(width: int, numbers: list[int], limit: int) -> None:
    values = [(bytes([number]) * width) for number in numbers]
    indices = np.empty(len(values), np.int32)
    done, _, data = index_array(b"".join(values), None, 0, width, limit, indices)
    entries = [bytes(data)[at : at + width] for at in range(0, len(data), width)]
    assert (indices[:done].tolist(), entries) == twin(values, limit, 0)


def test_many_entries_grow_the_hash_table() -> None:
    values = np.random.default_rng(0).integers(0, 2**62, 50_000)
    twice = np.concatenate([values, values[::-1]])
    indices = np.empty(len(twice), np.int32)
    done, _, data = index_array(twice, None, 0, 8, 1 << 30, indices)
    assert done == len(twice)
    assert np.array_equal(np.frombuffer(data, np.int64)[indices], twice)


def test_inconsistent_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="shorter than its values"):
        index_array(b"12345", None, 1, 4, 10, np.empty(1, np.int32))
    with pytest.raises(ValueError, match="ascend"):
        index_array(np.array([0, 3, 2], np.int32), b"12345", 0, 0, 10, np.empty(2, np.int32))
    with pytest.raises(ValueError, match="exceed the data"):
        index_array(np.array([0, 6], np.int32), b"12345", 0, 0, 10, np.empty(1, np.int32))


def test_mostly_distinct_values_have_no_dictionary() -> None:
    assert dictionary_builder.build_dictionary(pa.array(range(20_000), pa.int64())) is None
    assert dictionary_builder.build_dictionary(pa.array([], pa.int64())) is None
    found = dictionary_builder.build_dictionary(pa.array([7, 8, 7, 7] * 5000, pa.int64()))
    assert found is not None
    assert found.entries.to_pylist() == [7, 8]


@pytest.mark.parametrize(("distinct_values", "rows", "kept"), [
    (3_000, 200_000, True),
    (12_000, 200_000, True),
    (12_000, 20_000, False),  # entries and indices would take almost as much
    (100_000, 200_000, False),
])
def test_first_values_decide_whether_a_dictionary_is_worthwhile(distinct_values: int, rows: int, kept: bool) -> None:
    values = np.random.default_rng(0).integers(0, distinct_values, rows)
    found = dictionary_builder.build_dictionary(pa.array(values))
    assert (found is not None) == kept
    if found is not None:
        assert np.array_equal(np.array(found.entries)[found.indices], values)


@pytest.mark.spec("encoding.dictionary.fallback")
def test_oversized_dictionary_falls_back_to_plain_pages() -> None:
    few = [f"{i % 100:040d}" for i in range(100_000)]
    many = [f"{i:040d}" for i in range(1000, 101_000)]
    table = pa.table({"s": few + many})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=10_000, page_bytes=1 << 20)
    encodings = [page.encoding for page in page_headers.of_column(out.getvalue(), 0) if page.kind == "DATA_PAGE"]
    assert len(encodings) == 20
    assert encodings[:10] == ["RLE_DICTIONARY"] * 10
    assert encodings == sorted(encodings, reverse=True)
    assert encodings[-1] == "PLAIN"
    column = pq.read_metadata(io.BytesIO(out.getvalue())).row_group(0).column(0)
    assert set(column.encodings) == {"RLE", "PLAIN", "RLE_DICTIONARY"}
    assert pq.read_table(io.BytesIO(out.getvalue())).equals(table)
    assert pqext.read_table(out.getvalue()).equals(table)


@pytest.mark.parametrize("values", [
    pa.array([b"a", b"bc", b"", b"def"]), pa.array(range(4)), pa.array([b"abcde"] * 4, pa.binary(5)),
    pa.array([True, False, True, True]), pa.array([None, 1, 2, 3, 4])[1:], pa.array([None, b"a", b"", b"bc", b"d"])[1:],
])
def test_value_sizes_match_arrow(values: pa.Array) -> None:
    for start in range(4):
        for stop in range(start, 5):
            part = values[start:stop]
            alone = part if part.type == pa.bool_() else pa.array(part.to_pylist(), part.type)
            assert size_of(part, stop - start) == alone.nbytes
            assert size_of(values[start:], stop - start) == size_of(part, stop - start)
