"""Summary files name the files that their column chunks lie in; those files are opened, but only in their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.files.summary_files import read_record
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import ColumnOrder, EncryptionWithFooterKey, FileMetaData, IEEE754TotalOrder

REST = pqext.ReadOptions


def part(start: int, rows: int = 50) -> pa.Table:
    return pa.table({"i": pa.array(range(start, start + rows)), "s": [f"v{i % 7}" for i in range(rows)]})


WHOLE = pa.concat_tables([part(0), part(50), part(100)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, two of them a level below, and a summary of all."""
    root = tmp_path / "table"
    (root / "day=1").mkdir(parents=True)
    for index, name in enumerate(("a.parquet", "day=1/b.parquet", "day=1/c.parquet")):
        pqext.write_table(
            part(50 * index), root / name, row_group_rows=20, page_rows=5, bloom_filters=True,
            key_value_metadata={f"k{index}": "v"},
        )
    pqext.write_summary([root / "a.parquet", root / "day=1/b.parquet", root / "day=1/c.parquet"], root)
    return root


def with_path(folder: Path, file_path: str | None, *, only: int | None = None) -> Path:
    """The summary with another name in its chunks, or in the one column's chunks."""

    def change(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for index, chunk in enumerate(group.columns):
                if only in (None, index):
                    chunk.file_path = file_path

    pqext.rewrite_footer(folder / "_metadata", change)
    return folder / "_metadata"


@pytest.mark.spec("layout.summary", "layout.separate-metadata")
def test_summary_is_read_like_the_files_that_it_names(folder: Path) -> None:
    with pqext.open(folder / "_metadata") as file:
        assert file.num_rows == 150
        assert [chunk.structure.file_path for chunk in file.row_groups[3].chunks()] == ["day=1/b.parquet"] * 2
        assert file.read().equals(WHOLE)
        assert file.read(["s"], row_groups=[8, 0])["s"].to_pylist() == [
            *WHOLE["s"].to_pylist()[140:], *WHOLE["s"].to_pylist()[:20],
        ]
        assert sum(len(batch) for batch in file.iter_batches(7)) == 150
        assert file.read().schema.metadata == {b"k0": b"v", b"k1": b"v", b"k2": b"v"}
    found = pqext.read_table(folder / "_metadata", filter=pqext.col("i") == 77)
    assert found.to_pylist() == [{"i": 77, "s": "v6", "day": 1}]


@pytest.mark.spec("layout.summary")
def test_summaries_are_exchanged_with_pyarrow(folder: Path, tmp_path: Path) -> None:
    assert ds.parquet_dataset(str(folder / "_metadata")).to_table().equals(WHOLE.cast(WHOLE.schema))
    assert pq.read_schema(folder / "_common_metadata").names == ["i", "s"]
    assert pqext.open(folder / "_common_metadata").num_rows == 0
    theirs = tmp_path / "theirs"
    collected: list[Any] = []
    for index in range(3):
        pq.write_to_dataset(
            part(50 * index), theirs, metadata_collector=collected, write_page_index=True, store_schema=False
        )
    pq.write_metadata(part(0).schema, theirs / "_metadata", metadata_collector=collected)
    with pqext.open(theirs / "_metadata") as file:
        assert file.read().sort_by("i").equals(WHOLE)


@pytest.mark.spec("layout.summary")
def test_indexes_and_filters_are_read_from_external_files(folder: Path) -> None:
    with pqext.open(folder / "_metadata") as file, pqext.open(folder / "day=1" / "b.parquet") as alone:
        for mine, theirs in zip(file.row_groups[3:6], alone.row_groups, strict=True):
            for leaf in (0, 1):
                assert mine.chunk(leaf).column_index == theirs.chunk(leaf).column_index
                assert mine.chunk(leaf).offset_index == theirs.chunk(leaf).offset_index
                assert mine.chunk(leaf).bloom_filter is not None
                assert mine.chunk(leaf).bounds() == theirs.chunk(leaf).bounds()


@pytest.mark.spec("layout.separate-metadata")
def test_columns_of_a_row_group_may_be_in_several_files(tmp_path: Path) -> None:
    pqext.write_table(part(0), tmp_path / "a.parquet")
    os.mkdir(tmp_path / "s")
    pqext.write_table(part(0), tmp_path / "s" / "b.parquet")
    pqext.write_summary([tmp_path / "a.parquet"], tmp_path)
    with pqext.open(with_path(tmp_path, "s/b.parquet", only=1)) as file:
        os.truncate(tmp_path / "s" / "b.parquet", 4)
        assert file.read(["i"])["i"].to_pylist() == list(range(50))
        with pytest.raises(pqext.CorruptFileError, match=r"the file is truncated or its metadata.*b\.parquet"):
            file.read(["s"])
    pqext.write_table(part(0), tmp_path / "s" / "b.parquet")
    with pqext.open(tmp_path / "_metadata") as file:
        assert file.read().equals(part(0))


@pytest.mark.parametrize(
    ("file_path", "reason"),
    [
        ("/etc/passwd", "the path is not relative"),
        ("\\\\server\\share", "the path is not relative"),
        ("C:\\file.parquet", "the path is not relative"),
        ("s3://bucket/file.parquet", "the path is not relative"),
        ("../table/a.parquet", "the path contains '..'"),
        ("day=1/../../x", "the path contains '..'"),
        ("day=1\\..\\..\\x", "the path contains '..'"),
        ("..", "the path contains '..'"),
        ("outside/secret.parquet", "a symbolic link leads out of the folder"),
        ("secret.parquet", "a symbolic link leads out of the folder"),
    ],
)
@pytest.mark.spec("layout.summary-confined")
def test_files_outside_the_folder_are_not_opened_unless_allowed(folder: Path, file_path: str, reason: str) -> None:
    outside = folder.parent / "elsewhere"
    outside.mkdir()
    pqext.write_table(part(0), outside / "secret.parquet")
    os.symlink(outside, folder / "outside")
    os.symlink(outside / "secret.parquet", folder / "secret.parquet")
    with pqext.open(with_path(folder, file_path)) as file:
        assert file.num_rows == 150
        assert file.row_groups[0].chunk(0).bounds().minimum == 0
        with pytest.raises(pqext.UnsupportedError, match=f"{reason}.*external_files=\"any\"") as caught:
            file.read()
    assert caught.value.feature == "external files"
    assert caught.value.path == str(folder / "_metadata")


@pytest.mark.spec("layout.summary-confined")
def test_option_allows_external_files_anywhere_or_nowhere(folder: Path) -> None:
    summary = with_path(folder, str(folder / "a.parquet"))
    first = pqext.open(summary, REST(external_files="any"))
    assert first.read(row_groups=[0]).equals(WHOLE.slice(0, 20))
    with_path(folder, "../table/a.parquet")
    assert pqext.open(summary, REST(external_files="any")).read(row_groups=[1]).equals(WHOLE.slice(20, 20))
    with_path(folder, "a.parquet")
    with pytest.raises(pqext.UnsupportedError, match='external_files is "reject"'):
        pqext.open(summary, REST(external_files="reject")).read()
    with pytest.raises(pqext.UnsupportedError, match="not opened from a path"):
        pqext.open(summary.read_bytes()).read()
    with pytest.raises(ValueError, match="external_files must be"):
        REST(external_files="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("file_path", ["missing.parquet", "day=1", "a\0b", "a.parquet/below"])
def test_file_that_cannot_be_opened_is_named(folder: Path, file_path: str) -> None:
    with pqext.open(with_path(folder, file_path)) as file, pytest.raises(pqext.CorruptFileError) as caught:
        file.read()
    assert repr(file_path) in str(caught.value)


def test_empty_file_name_refers_to_the_file_itself(folder: Path) -> None:
    path = folder / "a.parquet"

    def change(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                chunk.file_path = ""

    pqext.rewrite_footer(path, change)
    assert pqext.open(path).read().equals(part(0))


def test_links_within_the_folder_are_followed(folder: Path) -> None:
    os.symlink(folder / "a.parquet", folder / "day=1" / "link.parquet")
    with pqext.open(with_path(folder, "day=1/link.parquet")) as file:
        assert file.read(row_groups=[0]).equals(WHOLE.slice(0, 20))


def test_external_files_are_closed(tmp_path: Path) -> None:
    for index in range(10):
        pqext.write_table(part(50 * index), tmp_path / f"{index}.parquet")
    pqext.write_summary([tmp_path / f"{index}.parquet" for index in range(10)], tmp_path)
    with pqext.open(tmp_path / "_metadata") as file:
        before = len(os.listdir("/proc/self/fd"))
        assert file.read()["i"].to_pylist() == list(range(500))
        assert len(os.listdir("/proc/self/fd")) <= before


def test_encrypted_chunks_in_other_files_are_rejected(folder: Path) -> None:
    path = folder / "_metadata"
    with pqext.open(path) as file:
        metadata = file.metadata
        metadata.row_groups = list(metadata.row_groups)
        for group in metadata.row_groups:
            group.columns = list(group.columns)
            group.columns[0].crypto_metadata = pqext.core.format.metadata.ColumnCryptoMetaData(
                ENCRYPTION_WITH_FOOTER_KEY=EncryptionWithFooterKey()
            )
        path.write_bytes(b"PAR1" + serialise_footer(metadata))
    with pqext.open(path) as file:
        assert file.read(["s"]).equals(WHOLE.select(["s"]))
        with pytest.raises(pqext.UnsupportedError, match=r"and is encrypted \[.*\]; read that file"):
            file.read(["i"])


def test_files_below_a_folder_with_leading_dots_are_summarised(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    pqext.write_table(part(0), tmp_path / "..data" / "a.parquet")
    summary, _ = pqext.write_summary([tmp_path / "..data" / "a.parquet"], tmp_path)
    assert pqext.read_table(summary).equals(part(0))


def test_unsupported_files_are_not_summarised(folder: Path, tmp_path: Path) -> None:
    before = (folder / "_metadata").read_bytes()
    pqext.write_table(pa.table({"x": [1]}), folder / "other.parquet")
    pqext.write_table(part(0), tmp_path / "outside.parquet")
    cases: list[tuple[Any, type[Exception], str]] = [
        ([folder / "a.parquet", folder / "other.parquet"], ValueError, "the schema of .*other.parquet differs"),
        ([tmp_path / "outside.parquet"], ValueError, "is not below"),
        ([folder / "_metadata"], pqext.UnsupportedError, "is in another file"),
        ([], ValueError, "no files to merge"),
        (str(folder / "a.parquet"), TypeError, "paths must be a list"),
    ]
    for paths, error, message in cases:
        with pytest.raises(error, match=message):
            pqext.write_summary(paths, folder)
    assert (folder / "_metadata").read_bytes() == before


def test_corruption_in_an_external_file_names_it(folder: Path) -> None:
    path = folder / "a.parquet"
    data = bytearray(path.read_bytes())
    with pqext.open(path) as alone:
        start, length = alone.row_groups[0].chunk(0).byte_range
    data[start + length - 1] ^= 0xFF
    path.write_bytes(data)
    with pqext.open(folder / "_metadata") as file, pytest.raises(pqext.CorruptFileError, match=r"a\.parquet") as caught:
        file.read()
    assert (caught.value.row_group, caught.value.column) == (0, "i")


def _write_as(path: Path, *, creator: str = "one", order: ColumnOrder | None = None, **options: Any) -> Path:
    """Write a file of a writer with this name, whose bounds have this order."""
    pqext.write_table(pa.table({"f": [1.5, 2.5]}), path, **options)

    def change(metadata: FileMetaData) -> None:
        metadata.created_by = creator
        if order is not None:
            metadata.column_orders = [order]

    if not options:
        pqext.rewrite_footer(path, change)
    return path


TOTAL = ColumnOrder(IEEE_754_TOTAL_ORDER=IEEE754TotalOrder())
MERGED: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "one file": ([{}], True),
    "files of one writer": ([{}, {}], True),
    "a second writer": ([{}, {"creator": "two"}], False),
    "a second writer in the middle": ([{}, {"creator": "two"}, {}], False),
    "bounds of another order": ([{}, {"order": TOTAL}], False),
    "bounds of another order in the middle": ([{}, {"order": TOTAL}, {}], False),
    "a FlatBuffers footer": ([{"footer": "flatbuffers"}], False),
    "FlatBuffers footers": ([{"footer": "flatbuffers"}] * 2, False),
    "a FlatBuffers footer before others": ([{"footer": "flatbuffers"}, {"footer": "thrift"}], False),
    "a FlatBuffers footer after others": ([{"footer": "thrift"}, {"footer": "flatbuffers"}], False),
}


@pytest.mark.parametrize("name", MERGED)
def test_files_are_recorded_if_their_footers_can_be_restored(name: str, tmp_path: Path) -> None:
    files, is_recorded = MERGED[name]
    paths = [_write_as(tmp_path / f"{at}.parquet", **file) for at, file in enumerate(files)]
    pqext.write_summary(paths, tmp_path)
    with pqext.open(tmp_path / "_metadata") as summary:
        record = read_record(summary.metadata)
    assert (set() if record is None else set(record)) == ({path.name for path in paths} if is_recorded else set())


def test_file_listed_twice_is_not_recorded(tmp_path: Path) -> None:
    path = _write_as(tmp_path / "a.parquet")
    pqext.write_summary([path, path], tmp_path)
    with pqext.open(tmp_path / "_metadata") as summary:
        assert read_record(summary.metadata) is None
        assert summary.read().equals(pa.concat_tables([pq.read_table(path)] * 2))
