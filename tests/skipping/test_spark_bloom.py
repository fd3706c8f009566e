"""Spark's Bloom filters: against vectors of Spark's own, and a version that hashes one value at a time."""

from __future__ import annotations

import csv
import json
import struct
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.skipping.format.java_object import ClassDescription, write_object
from pqext.skipping.format.spark_bloom import BloomBuilder, build_bloom, may_contain_any, unwrap_filter, wrap_filter
from pqext.skipping.kernels import spark_bloom
from reference import skipping_store
from reference.pace import SLOWER
from reference.skipping_store import Bloom

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.lists(LONGS | st.binary(max_size=20), max_size=12)
OUTER = [ClassDescription("a.Outer", 1, 2, (("inner", "La/Inner;"),))]
SAMPLES = ("spark4.3_V1", "spark4.3_default")


def encoded(values: list[Any]) -> list[int | bytes]:
    return [one.encode() if isinstance(one, str) else one for one in values]


def payload(values: list[int | bytes], words: int = 4, functions: int = 3, version: int = 1, seed: int = 0) -> bytes:
    """A filter of ``values`` made by the slow version, as Spark stores it."""
    made = Bloom(version, functions, seed, [0] * words)
    for value in values:
        for at in made.places(value):
            made.words[at >> 6] |= 1 << (at & 63)
    head = struct.pack(">ii", version, functions) + (struct.pack(">i", seed) if version == 2 else b"")
    return head + struct.pack(f">i{words}Q", words, *made.words)


def cells_of(*payloads: bytes) -> pa.Array:
    return pa.array([wrap_filter(one) for one in payloads], pa.binary())


@pytest.mark.spec("store.bloom.v1", "store.bloom.v2", "store.bloom.hash", "store.bloomfilter")
@pytest.mark.parametrize("name", SAMPLES)
def test_spark_filters_are_read(xskipper: Path, name: str) -> None:
    folder = xskipper / "bloom_samples"
    values = json.loads((folder / "values.json").read_text())
    cell = (folder / f"{name}_javaser.bin").read_bytes()
    told = Bloom.parse((folder / f"{name}_writeTo.bin").read_bytes())
    held, absent = encoded(values["strings"] + values["longs"]), encoded(values["absent"])
    cells = pa.array([cell])
    assert [may_contain_any(cells, [one]).tolist() for one in held] == [[True]] * len(held)
    assert [may_contain_any(cells, [one]).tolist() for one in absent] == [[False]] * len(absent)
    made = payload(held, len(told.words), told.functions, told.version, told.seed)
    assert made == (folder / f"{name}_writeTo.bin").read_bytes()


@pytest.mark.spec("store.bloomfilter", "store.cell.java")
def test_cells_of_published_stores_are_read_and_reproduced(xskipper: Path) -> None:
    seen = 0
    for version in (1, 2, 3, 4):
        for test, column in ((15, "address"), (18, "num")):
            [folder] = (xskipper / f"parquet_version_tests/end_to_end/version={version}/testID={test}").iterdir()
            for name, row in skipping_store.read(folder).rows.items():
                [cell] = [value for key, value in row.items() if key.startswith(f"{column}_bloomfilter")]
                path = next((xskipper / "input_datasets/sample1Na2/initial/csv").glob(Path(name).name.split("#")[0]))
                lines = [*csv.reader(path.read_text().splitlines())]
                at = [one.strip().lower() for one in lines[0]].index(column)
                held = {line[at].strip() for line in lines[1:] if line[at].strip()}
                asked = encoded([int(one) if column == "num" else one for one in held])
                assert may_contain_any(pa.array([cell]), asked).all() == bool(held)
                assert not may_contain_any(pa.array([cell]), [b"nowhere", -77]).any()
                if version == 4:  # but for the number of Spark's class
                    ours, serial = wrap_filter(skipping_store.bloom_payload(cell)), cell.index(b"BloomFilterImpl") + 15
                    assert ours[:serial] + cell[serial : serial + 8] + ours[serial + 8 :] == cell
                seen += 1
    assert seen == 24


@pytest.mark.spec("store.bloom.hash", "store.bloom.v1", "store.bloom.payload")
@given(st.lists(LONGS), st.lists(st.text()), st.integers(1, 50), st.sampled_from([0.5, 0.1, 0.01, 0.0001]))
def test_filters_match_the_bit_by_bit_reference(
    longs: list[int], texts: list[str], expected: int, fpp: float
) -> None:
    builder = BloomBuilder(expected, fpp)
    builder.add(pa.array([*longs, None], pa.int64()))
    builder.add(pa.chunked_array([texts[:2], texts[2:]], pa.string()))
    made = skipping_store.bloom_payload(builder.finish())
    told = Bloom.parse(made)
    assert (told.version, told.functions) == (1, builder.functions)
    assert made == payload([*longs, *encoded(list(texts))], len(told.words), told.functions)


@pytest.mark.spec("store.bloom.v1", "store.bloom.v2", "store.bloom.hash")
@given(VALUES, VALUES, st.integers(1, 40), st.integers(1, 9), st.sampled_from([1, 2]), st.integers(-5, 5))
def test_filters_match_the_reference(
    held: list[int | bytes], asked: list[int | bytes], words: int, functions: int, version: int, seed: int
) -> None:
    seed = seed if version == 2 else 0
    filters = [payload(held[:count], words, functions, version, seed) for count in range(len(held) + 1)]
    told = [any(Bloom.parse(one).may_contain(value) for value in asked) for one in filters]
    assert may_contain_any(cells_of(*filters), asked).tolist() == told
    for one in held:
        assert may_contain_any(cells_of(filters[-1]), [one]).all()


@pytest.mark.spec("store.bloom.hash")
def test_integers_of_every_width_and_strings_of_every_layout_hash_equally() -> None:
    numbers = [0, 1, 100, None]
    widths = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
    assert len({build_bloom(pa.array(numbers, kind), 10, 0.1) for kind in widths}) == 1
    texts = pa.array(["a", None, "é" * 30, ""])
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
    arrays = [texts.cast(pa.binary() if "binary" in str(kind) else pa.string()).cast(kind) for kind in kinds]
    arrays += [texts.dictionary_encode(), pa.chunked_array([texts.slice(0, 1), texts.slice(1)])]
    assert len({build_bloom(one, 10, 0.1) for one in arrays}) == 1
    sliced = pa.array(["no", "a", "é" * 30, "", "no"]).slice(1, 3)
    assert build_bloom(sliced, 10, 0.1) == build_bloom(texts, 10, 0.1)
    of_dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 2, 3], pa.int8()), pa.array(["a", "no", "é" * 30, ""]))
    assert build_bloom(of_dictionary, 10, 0.1) == build_bloom(texts, 10, 0.1)
    for kind in (pa.uint64(), pa.float64(), pa.bool_(), pa.date32()):
        with pytest.raises(TypeError, match="a Bloom filter needs strings, binary values or integers other than"):
            build_bloom(pa.array([None], kind), 10, 0.1)
    assert build_bloom(pa.nulls(3), 10, 0.1) == build_bloom(pa.array([], pa.int64()), 10, 0.1)


@pytest.mark.spec("store.bloom.size")
@pytest.mark.parametrize(
    ("expected", "fpp", "functions", "words"),
    [(100_000, 0.01, 7, 14977), (1000, 0.03, 5, 115), (7, 0.5, 1, 1), (3, 0.0001, 13, 1)],
)  # fmt: skip
def test_filters_have_the_size_chosen_by_spark(expected: int, fpp: float, functions: int, words: int) -> None:
    """The numbers are those of ``BloomFilter.create`` in Spark 3.5 and 4.3."""
    made = skipping_store.bloom_payload(build_bloom(pa.array([], pa.int64()), expected, fpp))
    assert struct.unpack(">iii", made[:12]) == (1, functions, words)


@pytest.mark.spec("store.bloom.size")
def test_false_positive_rate_is_close_to_the_requested_one() -> None:
    cell = pa.array([build_bloom(pa.array(range(10_000)), 10_000, 0.03)])
    found = sum(may_contain_any(cell, [one])[0] for one in range(10_000, 20_000))
    assert 200 < found < 400


def test_invalid_filter_sizes_are_rejected() -> None:
    for expected, fpp, message in (
        (0, 0.1, "distinct values must be positive"), (1, 0.0, "fpp must be between"), (1, 1.0, "fpp must be between"),
        (9, float("nan"), "fpp must be between"), (1 << 40, 0.01, "the maximum is 1,073,741,824"),
        (1, 1e-320, "the maximum is 1024"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            BloomBuilder(expected, fpp)


def test_filters_are_merged() -> None:
    one, other, both = (BloomBuilder(100, 0.01) for _ in range(3))
    one.add(pa.array([1, 2]))
    other.add(pa.array(["a"]))
    both.add(pa.array([1, 2]))
    both.add(pa.array(["a"]))
    one.merge(other)
    assert one.finish() == both.finish()
    with pytest.raises(ValueError, match="different distinct_count or fpp cannot be merged"):
        one.merge(BloomBuilder(100, 0.1))


def changed(found: bytes, at: int, value: int) -> bytes:
    return found[:at] + struct.pack(">i", value) + found[at + 4 :]


EMPTY = payload([])
UNKNOWN = {
    "nothing": b"", "no object": b"PAR1", "no wrapper": EMPTY, "version 0": wrap_filter(changed(EMPTY, 0, 0)),
    "version 3": wrap_filter(changed(EMPTY, 0, 3)), "no functions": wrap_filter(changed(EMPTY, 4, 0)),
    "negative functions": wrap_filter(changed(EMPTY, 4, -1)), "too many words": wrap_filter(changed(EMPTY, 8, 5)),
    "too few words": wrap_filter(changed(EMPTY, 8, 3)), "no words": wrap_filter(changed(EMPTY, 8, 0)[:12]),
    "negative words": wrap_filter(changed(EMPTY, 8, -4)), "cut": wrap_filter(EMPTY)[:-1],
    "cut payload": wrap_filter(EMPTY[:-1]),
    "longer": wrap_filter(EMPTY + b"\0"), "no payload": wrap_filter(b""),
    "another class": write_object(OUTER, [ClassDescription("a.Other", 0, 3, ())], EMPTY),
}  # fmt: skip


@pytest.mark.spec("store.bloom.unknown")
@pytest.mark.parametrize("name", UNKNOWN)
def test_unreadable_cell_excludes_nothing(name: str) -> None:
    damaged = UNKNOWN[name]
    cells = pa.array([wrap_filter(EMPTY), damaged, None, wrap_filter(EMPTY)], pa.binary())
    assert may_contain_any(cells, [1, b"a"]).tolist() == [False, True, True, False]
    assert may_contain_any(cells[1:2], [1]).tolist() == [True]


@pytest.mark.spec("store.bloom.unknown")
@given(st.data())
def test_corrupt_cell_excludes_only_like_the_reference(data: st.DataObject) -> None:
    cell = bytearray(wrap_filter(payload([1, b"a"])))
    for _ in range(data.draw(st.integers(1, 4))):
        cell[data.draw(st.integers(0, len(cell) - 1))] = data.draw(st.integers(0, 255))
    cell = cell[: data.draw(st.integers(len(cell) - 3, len(cell)))]
    [found] = may_contain_any(pa.array([bytes(cell)]), [1, b"b"])
    stored = unwrap_filter(bytes(cell))
    if not found:
        assert stored is not None
        told = Bloom.parse(stored)
        assert not told.may_contain(1)
        assert not told.may_contain(b"b")


def test_cells_of_several_writers_are_queried_in_one_column() -> None:
    held, other = payload([5]), payload([6], 200)

    def foreign_cell(number: int, data: bytes, block: int) -> bytes:
        """A cell of another writer, whose blocks have other sizes."""
        name = "org.apache.spark.util.sketch.BloomFilterImpl"
        head = write_object(OUTER, [ClassDescription(name, number, 3, ())], b"")[:-1]
        parts = [data[at : at + block] for at in range(0, len(data), block)]
        return head + b"".join(b"z" + struct.pack(">I", len(one)) + one for one in parts) + b"x"

    cells = [foreign_cell(at, one, 10_000 if at % 3 else 256 + at) for at in range(30) for one in (held, other)]
    cells += [wrap_filter(held), wrap_filter(other)]
    column = pa.chunked_array([cells[:7], [], cells[7:]], pa.large_binary())
    assert may_contain_any(column, [5]).tolist() == [True, False] * 31
    assert may_contain_any(column, [6]).tolist() == [False, True] * 31
    assert may_contain_any(column, [5, 6]).all()
    assert not may_contain_any(column, [7]).any()


def test_unsupported_conditions_have_no_result() -> None:
    cells = cells_of(EMPTY, EMPTY)
    assert may_contain_any(cells, [1 << 63]).all()
    assert may_contain_any(cells, [-(1 << 63) - 1, 3]).all()
    assert may_contain_any(pa.array([1, 2]), [1]).all()
    assert not may_contain_any(cells, []).any()
    assert may_contain_any(cells[:0], [1]).tolist() == []
    assert may_contain_any(pa.chunked_array([], pa.binary()), [1]).tolist() == []
    for wrong in (True, 1.0, "a", None):
        with pytest.raises(TypeError, match="values must be integers or bytes"):
            may_contain_any(cells, [wrong])  # type: ignore[list-item]


def test_filter_with_a_huge_hash_count_costs_nothing() -> None:
    full = changed(struct.pack(">iii", 1, 1, 64) + b"\xff" * 512, 4, 0x7FFFFFFF)
    cells = cells_of(*[full] * 200)
    began = time.process_time()
    assert may_contain_any(cells, list(range(1000))).all()
    assert time.process_time() - began < 2 * SLOWER


def test_kernels_reject_mismatched_buffers() -> None:
    words, longs, room = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros((2, 1), np.uint32)
    ends, cell = np.zeros(1, np.int64), np.frombuffer(wrap_filter(EMPTY), np.uint8)
    with pytest.raises(ValueError, match="set 1 to 1024 bits"):
        spark_bloom.insert_longs(longs, 0, words)
    with pytest.raises(ValueError, match="set 1 to 1024 bits"):
        spark_bloom.insert_longs(longs, 1, words[:0])
    for offsets in ([0, 9], [-1, 0], [2, 1]):
        with pytest.raises(ValueError, match="lies outside its buffer"):
            spark_bloom.insert_bytes(b"12345678", np.array(offsets, np.int32), 1, words)
        with pytest.raises(ValueError, match="lies outside its buffer"):
            spark_bloom.query_cells(
                b"12345678", np.array(offsets, np.int64), b"", longs, b"", ends, room, np.full(1, 2, np.uint8)
            )
        with pytest.raises(ValueError, match="lies outside its buffer"):
            spark_bloom.query_payload(cell, longs[:0], b"12345678", np.array(offsets, np.int64), room)
    with pytest.raises(ValueError, match="must have the same length"):
        spark_bloom.query_payload(cell, longs, b"", ends, room[:, :0])
    with pytest.raises(ValueError, match="must have the same length"):
        spark_bloom.query_cells(cell, np.zeros(1, np.int32), b"", longs, b"", ends, room, np.zeros(1, np.uint8))


def test_filters_are_queried_by_several_threads() -> None:
    cells = pa.array([build_bloom(pa.array([at]), 100, 0.001) for at in range(500)])
    found: list[list[int]] = [[] for _ in range(4)]

    def query_filters(number: int) -> None:
        found[number] = np.flatnonzero(may_contain_any(cells, [number])).tolist()

    threads = [threading.Thread(target=query_filters, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [number in one for number, one in enumerate(found)] == [True] * 4
    assert all(len(one) < 10 for one in found)
