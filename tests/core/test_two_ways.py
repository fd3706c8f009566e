"""Chunks are decoded by a page table or page by page: the rows are the same, and so are errors and their places."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from core import strategies
from core.damaged_bytes import FILES, damaged, written
from core.test_any_table import SLOW_TO_DRAW
from core.test_any_table import written as write
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import PageHeader
from pqext.core.format.thrift import decode, encode
from pqext.core.read import column
from pqext.core.read.pages.page_decoder import PageDecoder
from pqext.core.read.small_chunks import SmallLeaves
from reference.effort import share, some

ROOT = Path(os.environ.get("PARQUET_TEST_DATA", ""))
CORPUS = sorted(ROOT.glob("*data/*.parquet")) if os.environ.get("PARQUET_TEST_DATA") else []
STRIDE = 1 if os.environ.get("PQEXT_EVERY_BYTE") else 7


@contextmanager
def by_page() -> Iterator[None]:
    """Every chunk goes the slowest way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column, "is_ordinary", lambda *_: False)
        patch.setattr(SmallLeaves, "read", lambda *_: {})
        yield


@contextmanager
def without_small() -> Iterator[None]:
    """No chunk is decoded whole in one call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SmallLeaves, "read", lambda *_: {})
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many chunks go the slower way, in a list of one number."""
    found = [0]

    class Counted(PageDecoder):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            found[0] += 1
            super().__init__(*arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column, "PageDecoder", Counted)
        yield found


def outcome(source: Any, rows: dict[int, list[range]] | None, batch_rows: int | None) -> Any:
    """The table, or what is raised and where."""
    try:
        with warnings.catch_warnings(), pqext.open(source, threads=1) as file:
            warnings.simplefilter("ignore")
            if batch_rows is None:
                return file.read(rows=rows)
            return pa.Table.from_batches(list(file.iter_batches(batch_rows, rows=rows)), file.arrow_schema)
    except ParquetError as error:
        return type(error), error.message, error.column, error.row_group, error.offset


def compare(source: Any, rows: dict[int, list[range]] | None = None, batch_rows: int | None = None) -> None:
    found = outcome(source, rows, batch_rows)
    with by_page():
        expected = outcome(source, rows, batch_rows)
    if isinstance(found, pa.Table) and isinstance(expected, pa.Table):
        assert found.schema.equals(expected.schema, check_metadata=True)
        found.validate(full=True)
        # NaN differs from itself.
        assert found.equals(expected) or found.to_pylist().__repr__() == expected.to_pylist().__repr__()
    else:
        assert found == expected


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_both_paths_match_on_files_of_other_writers(path: Path) -> None:
    compare(path)
    compare(path, batch_rows=100)
    with without_small():
        compare(path)


@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.1))
@given(st.data())
def test_both_paths_match_on_generated_tables(data: st.DataObject) -> None:
    table = data.draw(strategies.tables())
    options = data.draw(strategies.options(table.schema))
    options.pop("encryption", None)
    file_bytes = write(table, options)
    compare(file_bytes)
    with without_small():
        compare(file_bytes, batch_rows=data.draw(st.none() | st.integers(1, 50)))
    with pqext.open(file_bytes) as file:
        groups = [group.num_rows for group in file.row_groups]
    rows = {}
    for index, count in enumerate(groups):
        first, last = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
        rows[index] = [range(first, last)]
    compare(file_bytes, rows, data.draw(st.none() | st.integers(1, 50)))


@pytest.mark.parametrize("mode", [pytest.param("cut", marks=pytest.mark.slow), "flip"])
@pytest.mark.parametrize("name", [name for name in FILES if "encrypted" not in name])
def test_both_paths_match_on_corrupt_files(name: str, mode: str) -> None:
    data = written(name)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    # Cut, a file has no footer; a copy whose pages are shifted has one.
    for at in some(range(4, len(data) - footer, STRIDE), 3):
        bad = damaged(data, mode, at) if mode == "flip" else data[:at] + data[at + 1 :]
        compare(bad)
        with without_small():
            compare(bad)
    for at in some(range(5, len(data) - footer, 3 * STRIDE), 3):
        compare(damaged(data, "flip", at), {0: [range(1, 2), range(3, 4)]})
        compare(damaged(data, "flip", at), batch_rows=3)


@pytest.mark.parametrize("name", [name for name in FILES if "encrypted" not in name])
def test_ordinary_files_do_not_use_the_slow_path(name: str) -> None:
    with counted() as found:
        outcome(written(name), None, None)
        outcome(written(name), {0: [range(1, 2), range(3, 4)]}, None)
        outcome(written(name), None, 2)
    assert found == [0]


def test_slow_path_continues_from_a_corrupt_page() -> None:
    data = written("plain")
    with counted() as found:
        assert outcome(damaged(data, "flip", 60), None, None)[0] is pqext.CorruptFileError
    assert found == [1]


def test_corrupt_dictionary_is_counted_once() -> None:
    """It is damage, and no matter of memory, where there is room for what it says that it holds."""
    data = write(pa.table({"s": [f"{n:0200d}" for n in range(500)] * 4}), {"checksums": False, "compression": "zstd"})
    with pqext.open(data) as file:
        start, length = file.row_groups[0].chunk("s").byte_range
    header, size = decode(PageHeader, data[start : start + length])[:2]
    assert header.dictionary_page_header is not None
    header.dictionary_page_header.num_values += 1
    bad = data[:start] + encode(header) + data[start + size :]
    assert len(bad) == len(data)
    limits = pqext.Limits(memory_bytes=5 * header.uncompressed_page_size // 2, memory_expansion=1)
    with pqext.open(bad, limits=limits) as file, pytest.raises(pqext.CorruptFileError, match="byte array data ends"):
        file.read()
