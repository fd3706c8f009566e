"""Row groups of a few kilobytes are read by few requests, and say what they say one by one."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.read.small_chunks import SmallLeaves
from reference.effort import some


def written(path: Path, groups: int, rows: int = 10) -> pa.Table:
    """A file of pyarrow's with many small row groups of four columns."""
    count = groups * rows
    table = pa.table({
        "a": np.arange(count), "b": [str(i % 7) for i in range(count)], "c": pa.nulls(count, pa.float64()),
        "d": [[i] * (i % 3) for i in range(count)],
    })
    pq.write_table(table, path, row_group_size=rows)
    return table


def test_many_small_row_groups_are_read_with_few_requests(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    table = written(path, 100)
    with pqext.open(path) as file:
        opened = file.source.requests
        assert file.read(["a"]) == table.select(["a"])
        assert file.source.requests - opened < 10


def test_read_ahead_of_small_row_groups_grows_with_consumption(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    table = written(path, 100)
    with pqext.open(path) as file:
        opened = file.source.bytes_read
        batches = file.iter_batches(1000, ["a", "b", "c"])
        assert next(batches).column(0).to_pylist() == table["a"][:10].to_pylist()
        first, requests = file.source.bytes_read - opened, file.source.requests
        for taken in range(2, 60):
            next(batches)
            assert file.source.bytes_read - opened <= 3 * taken * first
        assert file.source.requests - requests < 10


@pytest.mark.parametrize(("rows", "groups", "together"), [(7000, 40, 19), (5, 600, 256)])
def test_chunks_fetched_together_are_limited_to_256_or_a_megabyte(rows: int, groups: int, together: int) -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 62, rows * groups)
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": numbers}), sink, row_group_size=rows, use_dictionary=False, compression="none")
    stored = pq.ParquetFile(sink).metadata
    sizes = [stored.row_group(group).column(0).total_compressed_size for group in range(together)]
    assert sum(sizes[:-1]) < 1 << 20
    with pqext.open(sink) as file:
        small = SmallLeaves(file.select(None), file.limits, file.options)
        opened = file.source.bytes_read
        next(small.iter_chunks(((group, None) for group in file.row_groups), None))
        assert file.source.bytes_read - opened == sum(sizes)


@given(st.data())
def test_selected_row_groups_are_returned_in_order(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("drawn") / "drawn.parquet"
    groups = data.draw(st.integers(1, 12))
    table = written(path, groups, rows=5)
    chosen = data.draw(st.lists(st.integers(0, groups - 1), min_size=1, max_size=20))
    columns = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    rows = pa.concat_tables([table.select(sorted(columns)).slice(5 * at, 5) for at in chosen])
    with pqext.open(path) as file:
        assert file.read(columns, row_groups=chosen).select(sorted(columns)) == rows


def test_row_groups_evicted_from_the_cache_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    table = written(path, 600, rows=2)
    with pqext.open(path) as file:
        assert file.read() == table
        assert sum(group.num_rows for group in file.row_groups) == 1200
        again = pa.concat_tables([table.slice(2 * at, 2) for at in (599, 0, 300)])
        assert file.read(row_groups=[599, 0, 300]) == again


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_skipped_corruption_of_small_chunks_matches_page_by_page_reading(
    monkeypatch: pytest.MonkeyPatch, dictionary: bool, page: str
) -> None:
    out = io.BytesIO()
    table = pa.table({
        "a": pa.array([7, None, 9, 10], pa.int64()), "s": ["x", "yy", None, "x"], "b": [True, None, False, True],
    })
    pq.write_table(
        table, out, row_group_size=2, compression="none", use_dictionary=dictionary, data_page_version=page,
        write_statistics=False,
    )  # fmt: skip
    data = bytearray(out.getvalue())
    generator = np.random.default_rng(1)
    with pqext.open(bytes(data)) as file:
        end = file.footer.offset

    def outcome(damaged: bytes) -> Any:
        with pqext.open(damaged, on_corrupt="skip") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                rows: Any = file.read().to_pydict()
            except pqext.ParquetError as error:
                rows = type(error)
            return rows, [(one.row_group, one.column, one.start, one.stop) for one in file.damage]

    damaged = [bytes(data)]
    for at in some(range(4, end), 3):
        changed = bytearray(data)
        changed[at] ^= 1 << int(generator.integers(8))
        damaged.append(bytes(changed))
    fast = [outcome(one) for one in damaged]
    assert fast[0] == (table.to_pydict(), [])
    monkeypatch.setattr("pqext.core.read.small_chunks.SmallLeaves._ranges", lambda *_: None)
    assert fast == [outcome(one) for one in damaged]


def test_small_chunks_are_decoded_in_one_call_on_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.parquet"
    table = written(path, 300, rows=2).select(["a", "b", "c"])
    monkeypatch.setattr("pqext.core.read.lenient_chunk.LenientReader.read", None)  # what reads page by page
    assert pqext.read_table(path, ["a", "b", "c"], on_corrupt="skip") == table
