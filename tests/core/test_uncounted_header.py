"""parquet-mr before 1.2.9 left a dictionary page's header out of the sizes in the footer (PARQUET-816)."""

from __future__ import annotations

import io
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.created_by import counts_dictionary_header
from pqext.core.format.metadata import PageHeader
from pqext.core.format.thrift import decode
from pqext.core.io.source import MemorySource

TABLE = pa.table({
    "a": [f"k{row % 7}" for row in range(600)], "b": [row % 5 for row in range(600)],
    "c": [None if row % 3 else float(row % 4) for row in range(600)], "plain": range(600),
    "d": [f"d{row % 100}" for row in range(600)],
})  # fmt: skip
OLD = "parquet-mr version 1.2.8"


def shortened(writer: str | None, missing: int = 0, pages: int = 20_000) -> bytes:
    """A file whose chunks do not count the headers of their dictionary pages, nor ``missing`` bytes more."""
    sink = io.BytesIO()
    pq.write_table(
        TABLE, sink, row_group_size=200, data_page_size=pages, write_batch_size=50, use_dictionary=["a", "b", "c", "d"]
    )
    data = sink.getvalue()
    footer = read_footer(MemorySource(data))
    footer.metadata.created_by = writer
    for group in footer.metadata.row_groups:
        for chunk in group.columns:
            about = chunk.meta_data
            assert about is not None
            if about.dictionary_page_offset is not None:
                _, length = decode(PageHeader, memoryview(data)[about.dictionary_page_offset :])
                about.total_compressed_size -= length + missing
                about.total_uncompressed_size -= length
    return data[: footer.offset] + serialise_footer(footer.metadata)


@pytest.mark.spec("layout.uncounted-header")
@pytest.mark.parametrize("pages", [1, 20_000])
def test_chunks_without_header_bytes_end_like_in_arrow_and_duckdb(pages: int, tmp_path: Path) -> None:
    data = shortened(OLD, pages=pages)
    path = tmp_path / "old.parquet"
    path.write_bytes(data)
    for read in (pq.read_table(path), duckdb.read_parquet(str(path)).to_arrow_table(), pqext.read_table(path)):
        assert read.to_pydict() == TABLE.to_pydict()
    with pqext.open(path) as file:
        assert pa.Table.from_batches(file.iter_batches(70)).to_pydict() == TABLE.to_pydict()
        assert file.read(["b"], rows={1: [range(150, 160)]}).to_pydict() == {"b": TABLE["b"].to_pylist()[350:360]}
    skipping = pqext.read_table(path, on_corrupt="skip")
    assert skipping.to_pydict() == TABLE.to_pydict()
    assert pqext.verify(path).ok
    narrowed = pqext.read_table(path, ["plain"], pqext.col("a") == "k3")
    assert narrowed.to_pydict() == {"plain": [row for row in range(600) if row % 7 == 3]}


@pytest.mark.spec("layout.uncounted-header")
@pytest.mark.parametrize("writer", [None, "parquet-mr version 1.2.9", "parquet-cpp-arrow version 1.0.0"])
def test_chunks_of_other_writers_have_the_size_stated_in_the_footer(writer: str | None) -> None:
    with pytest.raises(CorruptFileError, match="extends beyond its column chunk"):
        pqext.read_table(shortened(writer))


def test_only_a_missing_header_size_is_tolerated() -> None:
    with pytest.raises(CorruptFileError, match=r"extends beyond its column chunk|are missing from its pages|file ends"):
        pqext.read_table(shortened(OLD, missing=110))


@pytest.mark.parametrize(
    ("writer", "counts"),
    [
        ("parquet-mr version 1.2.8", False), ("parquet-mr version 1.0.0-t10 (build x)", False), ("parquet-mr", False),
        ("Parquet-MR version 1.2.8-cdh4", False), ("parquet-mr version 1.2.9", True),
        ("parquet-mr version 1.10.0", True),
        ("parquet-mr version 2.0.0", True), ("parquet-mrs version 1.0.0", True), ("impala version 1.2.0", True),
        ("parquet-mr version 1.13.0-SNAPSHOT (build x)", True),
        ("pqext version 0.1.0", True), ("", True), (None, True),
    ],
)  # fmt: skip
def test_rule_depends_on_writer_name_and_version(writer: str | None, counts: bool) -> None:
    assert counts_dictionary_header(writer) is counts


def test_affected_files_concatenate_only_with_the_same_version(tmp_path: Path) -> None:
    from pqext.core.files.concatenate import concatenate

    for name, writer in (("a", OLD), ("b", OLD), ("c", "parquet-mr version 1.12.0")):
        (tmp_path / name).write_bytes(shortened(writer))
    joined = io.BytesIO()
    concatenate([tmp_path / "a", tmp_path / "b"], joined)
    assert pqext.read_table(joined.getvalue()).to_pydict() == pa.concat_tables([TABLE, TABLE]).to_pydict()
    with pytest.raises(UnsupportedError, match="can only be merged with files of that version"):
        concatenate([tmp_path / "a", tmp_path / "c"], io.BytesIO())
