"""Small chunks are encoded in one call each: the same bytes as the longer way makes, and that for what is unusual."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import starmap
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import strategies
from core.test_any_table import SLOW_TO_DRAW
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.kernels.encode.small_chunk import SmallChunk, SmallLeaf
from pqext.core.write import row_group_writer
from pqext.core.write.chunk_writer import encode_chunk
from pqext.core.write.write_plan import WritePlan
from reference.effort import share


@contextmanager
def generic_path() -> Iterator[None]:
    def in_place(known: WritePlan, table: pa.Table, split: Callable[..., Any]) -> Iterator[Any]:
        for field, top, column in zip(known.plan, known.shapes, table.columns, strict=True):
            yield from starmap(encode_chunk, split(field, top, column))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_group_writer, "_encode_serially", in_place)
        yield


@contextmanager
def counted() -> Iterator[list[bool]]:
    """Whether each chunk was encoded in one call, in the order of the chunks."""
    found: list[bool] = []
    encode = row_group_writer._encode_serially

    def in_place(*arguments: Any) -> Iterator[Any]:
        for chunk in encode(*arguments):
            found.append(isinstance(chunk, SmallChunk))
            yield chunk

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_group_writer, "_encode_serially", in_place)
        yield found


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def both(table: pa.Table, **options: Any) -> bytes:
    """The file, which either way makes."""
    found = written(table, **options)
    with generic_path():
        assert written(table, **options) == found
    return found


N = 500
GENERATOR = np.random.default_rng(3)
WORDS = [f"word {i}" for i in range(40)]
ARRAYS = {
    "few": pa.array(GENERATOR.integers(0, 9, N)),
    "many": pa.array(GENERATOR.integers(0, 2**60, N)),
    "unsigned": pa.array(GENERATOR.integers(0, 2**64, N, dtype=np.uint64)),
    "small": pa.array(GENERATOR.integers(-5, 5, N).astype(np.int32)),
    "unsigned small": pa.array(GENERATOR.integers(2**31, 2**32, N).astype(np.uint32)),
    "double": pa.array(GENERATOR.normal(size=N)),
    "float": pa.array(np.array([0.0, -0.0, math.nan, 1.5] * (N // 4), np.float32)),
    "nan": pa.array([math.nan] * N),
    "zeros": pa.array([0.0] * N),
    "text": pa.array([WORDS[i % 40] for i in range(N)]),
    "names": pa.array([f"né{i}" for i in range(N)]),
    "bytes": pa.array([bytes([i % 256, 255]) for i in range(N)]),
    "empty": pa.array([""] * N),
    "date": pa.array(GENERATOR.integers(0, 20_000, N).astype(np.int32)).cast(pa.date32()),
    "time": pa.array(GENERATOR.integers(0, 2**50, N)).cast(pa.timestamp("us", "UTC")),
    "nanoseconds": pa.array(GENERATOR.integers(0, 2**50, N)).cast(pa.timestamp("ns")),
}
HOLES = pa.array(GENERATOR.random(N) < 0.3)
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"page_version": 2}, {"compression": "uncompressed"}, {"page_version": 2, "compression": "zstd"},
    {"dictionary": False}, {"checksums": False}, {"statistics": False}, {"page_index": False},
)


@pytest.mark.spec(
    "page.no-repetition-levels", "page.no-definition-levels", "encoding.dictionary.page", "statistics.bounds",
    "statistics.distinct-count",
)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_both_code_paths_write_the_same_bytes(options: dict[str, Any]) -> None:
    """Whole arrays, slices that begin within a byte of the validity, arrays with some nulls and with nothing else."""
    table = pa.table(ARRAYS)
    forms = {
        "whole": table,
        "slice": table.slice(13, 77),
        "one": table.slice(7, 1),
        "holes": pa.table({name: pa.compute.if_else(HOLES, None, array) for name, array in ARRAYS.items()}),
        "nulls": pa.table({name: pa.nulls(9, array.type) for name, array in ARRAYS.items()}),
        "required": pa.table(
            list(ARRAYS.values()), pa.schema([pa.field(name, a.type, nullable=False) for name, a in ARRAYS.items()])
        ),
    }
    forms["slice of holes"] = forms["holes"].slice(21, 100)
    forms["slice between holes"] = pa.table(
        {name: pa.concat_arrays([array[:20], pa.nulls(1, array.type)])[3:9] for name, array in ARRAYS.items()}
    )
    for form in forms.values():
        with counted() as small:
            raw = both(form, **options)
        assert all(small), small
        numbers = [name for name in ARRAYS if name not in ("float", "nan")]  # NaN equals nothing
        assert pq.read_table(io.BytesIO(raw)).select(numbers).equals(form.select(numbers))


@given(st.data())
@settings(max_examples=share(0.5), suppress_health_check=SLOW_TO_DRAW, deadline=None)
def test_both_code_paths_write_arbitrary_tables(data: st.DataObject) -> None:
    table = data.draw(strategies.tables())
    chosen = data.draw(st.sampled_from(OPTIONS))
    both(table.combine_chunks(), row_group_rows=data.draw(st.integers(1, 10)), **chosen)


@pytest.mark.parametrize(
    ("array", "options"),
    [
        (pa.array(["a" * 65, "b"]), {}),
        (pa.array([None, "b" * 65]), {}),
        (pa.array(["a", "b"] * 50), {"page_rows": 99}),
        (pa.array(["a", "b"] * 50), {"page_bytes": 99}),
        (pa.array(np.arange(9000)), {"row_group_rows": 9000}),
        (pa.array(["x" * 60] * 2000), {}),
        (pa.array([True, None]), {}),
        (pa.array([1, 2], pa.int8()), {}),
        (pa.array([1, 2], pa.time32("s")), {}),
        (pa.array([[1], [2]]), {}),
        (pa.array(["a", "b"]).dictionary_encode(), {}),
        (pa.array([1, 2]), {"encodings": "delta_binary_packed"}),
        (pa.array([1, 2]), {"encodings": "auto"}),
        (pa.array([1, 2]), {"bloom_filters": True}),
        (pa.array([1.0, 2.0]), {"float_order": "ieee754"}),
        (pa.array([1, 2]), {"second_encodings": {"x": "delta_binary_packed"}}),
        (pa.array([1, 2]), {"extensions": {"x": b"more"}}),
        (pa.array([1, 2]), {"profile": "spark"}),
    ],
    ids=str,
)
def test_unusual_input_uses_the_generic_path(array: pa.Array, options: dict[str, Any]) -> None:
    table = pa.table({"x": array})
    with counted() as small:
        both(table, **options)
    assert not any(small)


def test_columns_of_both_code_paths_are_written_together() -> None:
    table = pa.table({"a": [1, None], "b": [[1], None], "c": ["x", "y"], "d": [True, False]})
    with counted() as small:
        raw = both(table)
    assert small == [True, False, True, False]
    assert pq.read_table(io.BytesIO(raw)).equals(table)
    assert pqext.read_table(both(table, bloom_filters={"d": False, "c": True})).equals(table)


def leaf(**options: Any) -> SmallLeaf:
    how = {
        "is_text": False, "optional": True, "dictionary": True, "statistics": True, "page_index": True, "version": 1,
        "bound_bytes": 64, "page_rows": 100, "page_bytes": 1 << 20, "level_bytes": 1,
    }
    return SmallLeaf(options.pop("form", "bytes"), 6, [b"x"], 0, **{**how, **options})


class Given:
    """What the kernel asks of an array, which Arrow would not make."""

    def __init__(self, length: int, buffers: list[bytes | None], null_count: int = 0, offset: int = 0) -> None:
        self.length, self.null_count, self.offset = length, null_count, offset
        self.held = [None if held is None else pa.py_buffer(held) for held in buffers]

    def __len__(self) -> int:
        return self.length

    def buffers(self) -> list[pa.Buffer | None]:
        return self.held


def falls_back(leaf: SmallLeaf, *arguments: Any, **keywords: Any) -> bool:
    array: Any = Given(*arguments, **keywords)
    return leaf.encode(array, None, None) is None


@pytest.mark.parametrize("nulls", [0, 1])
@pytest.mark.parametrize(
    "offsets", [[0, 2, 1], [0, 1, 9], [-1, 1, 2], [0, 2**31 - 1, 2], [1, 0, 3], [0, 1], []], ids=str
)
def test_byte_arrays_beyond_their_buffers_use_the_generic_path(offsets: list[int], nulls: int) -> None:
    assert falls_back(leaf(), 2, [b"\x01", np.array(offsets, np.int32).tobytes(), b"abc"], nulls)


def test_inconsistent_arrays_use_the_generic_path() -> None:
    numbers, eight = leaf(form="i8"), bytes(8 * 8)
    assert not falls_back(numbers, 8, [b"\x1f", eight], 3)
    assert falls_back(numbers, 9, [None, eight])
    assert falls_back(numbers, 8, [None, eight], offset=1)
    assert falls_back(numbers, 8, [None, eight], offset=-1)
    assert falls_back(numbers, 8, [None, eight], 3)
    assert falls_back(numbers, 8, [b"", eight], 3)
    assert falls_back(numbers, 8, [b"\xff", eight], 3)
    assert falls_back(numbers, 8, [b"\x00", eight], 3)
    assert falls_back(numbers, 8, [None, None])
    assert falls_back(leaf(form="i8", optional=False), 8, [b"\x1f", eight], 3)
    assert falls_back(leaf(), 1, [None, np.array([0, 1], np.int32).tobytes(), None])


def test_invalid_utf8_is_rejected_on_the_fast_path() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer("é".encode())]
    )
    with pytest.raises(ValueError, match="not valid UTF-8"):
        written(pa.table({"x": broken}))


def test_chunks_are_written_together_up_to_a_megabyte() -> None:
    class Counted(io.BytesIO):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        def write(self, data: Any) -> int:
            self.sizes.append(len(data))
            return super().write(data)

    out = Counted()
    pqext.write_table(pa.table({f"c{column}": [column] for column in range(300)}), out)
    assert pq.read_metadata(io.BytesIO(out.getvalue())).num_columns == 300
    assert len(out.sizes) < 20
    out = Counted()
    texts = pa.array([f"{row:0100}" for row in range(30)])
    names = map(str, range(1_000))  # 3 kB in each column
    pqext.write_table(pa.table(dict.fromkeys(names, texts)), out, dictionary=False, compression="uncompressed")
    assert 1 << 20 <= max(out.sizes) < (1 << 20) + 4_000
