"""Row groups that are appended are written like those of the file; pyarrow says how each is written."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.format.metadata import PageType

ROWS = pa.table(
    {"a": list(range(100)), "s": [f"x{i % 7}" for i in range(100)], "f": [i / 3 for i in range(100)]}
)
WRITTEN: dict[str, Any] = {
    "compression": {"a": "zstd", "s": "gzip", "f": "none"}, "use_dictionary": ["s"], "write_statistics": ["a"],
    "column_encoding": {"a": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of pyarrow in which every column is written otherwise."""
    pq.write_table(ROWS, tmp_path / "t.parquet", **WRITTEN)
    return tmp_path / "t.parquet"


def chunk_options(path: Path, row_group: int) -> dict[str, tuple[Any, ...]]:
    """Of each column codec, encodings, and whether there are a dictionary, statistics, page indexes and a filter."""
    with pq.ParquetFile(path) as file:
        columns = [file.metadata.row_group(row_group).column(at) for at in range(3)]
    with pqext.open(path) as file:
        filters = [chunk.metadata.bloom_filter_offset is not None for chunk in file.row_groups[row_group].chunks()]
    return {
        one.path_in_schema: (
            one.compression, {*one.encodings}, one.has_dictionary_page, one.is_stats_set, one.has_offset_index, filtered
        )
        for one, filtered in zip(columns, filters, strict=True)
    }


def appended(path: Path, *options: pqext.WriteOptions, **keywords: Any) -> dict[str, tuple[Any, ...]]:
    """What is told of the row group that these options append."""
    pqext.write_table(ROWS, path, *options, append=True, **keywords)
    found = pqext.open(path)
    with found:
        last = len(found.row_groups) - 1
    assert pq.read_table(path).equals(pa.concat_tables([ROWS] * (last + 1)))
    return chunk_options(path, last)


def test_appended_row_groups_use_the_options_of_the_first_row_group(path: Path) -> None:
    assert appended(path) == chunk_options(path, 0)


def test_page_indexes_filters_and_page_version_are_preserved(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(ROWS, path, bloom_filters={"s": True}, page_version=2)
    first = chunk_options(path, 0)
    assert [one[-2:] for one in first.values()] == [(True, False), (True, True), (True, False)]
    assert appended(path) == first
    with pqext.open(path) as file:
        stats = [one.page_type for chunk in file.row_groups[1].chunks() for one in chunk.metadata.encoding_stats]
    assert {*stats} == {PageType.DATA_PAGE_V2, PageType.DICTIONARY_PAGE}


def test_explicit_options_override_those_of_the_file(path: Path) -> None:
    first = chunk_options(path, 0)
    asked = appended(path, compression="snappy", encodings={"a": "plain"}, bloom_filters={"s": True})
    assert [one[0] for one in asked.values()] == ["SNAPPY"] * 3
    assert asked["a"][1] == {"RLE", "PLAIN"}
    assert asked["f"][1] == first["f"][1]
    assert [one[-1] for one in asked.values()] == [False, True, False]


def test_option_mapping_applies_to_its_columns_only(path: Path) -> None:
    asked = appended(path, compression={"s": "snappy"}, dictionary={"f": True})
    assert {name: one[0] for name, one in asked.items()} == {"a": "ZSTD", "s": "SNAPPY", "f": "UNCOMPRESSED"}
    assert not asked["a"][2]
    assert asked["s"][2]
    assert "BYTE_STREAM_SPLIT" not in asked["f"][1]


def test_file_encodings_are_preserved_if_dictionaries_are_disabled(path: Path) -> None:
    assert {name: one[1] for name, one in appended(path, dictionary=False).items()} == {
        "a": {"DELTA_BINARY_PACKED", "RLE"}, "s": {"PLAIN", "RLE"}, "f": {"BYTE_STREAM_SPLIT", "RLE"}
    }
    assert "DELTA_BINARY_PACKED" not in appended(path, dictionary=True)["a"][1]


def test_repeated_values_use_dictionaries_even_if_the_first_group_did_not(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = [f"{row:05}" for row in range(2_000)]
    pqext.write_table(pa.table({"s": texts}), path)
    pqext.write_table(pa.table({"s": ["a", "b", "c"] * 1_000}), path, append=True)
    with pq.ParquetFile(path) as file:
        assert [file.metadata.row_group(at).column(0).has_dictionary_page for at in range(2)] == [False, True]


def test_repeated_integers_use_dictionaries_even_if_the_first_group_has_packed_deltas(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    ascending, repeated = pa.table({"n": range(20_000)}), pa.table({"n": [1 << 60, 7, -(1 << 50)] * 7_000})
    pqext.write_table(ascending, path)
    pqext.write_table(repeated, path, append=True)
    pqext.write_table(ascending, path, append=True)
    with pq.ParquetFile(path) as file:
        encodings = [{*file.metadata.row_group(at).column(0).encodings} for at in range(3)]
        assert encodings[0] == encodings[2] == {"RLE", "DELTA_BINARY_PACKED"}
        assert "RLE_DICTIONARY" in encodings[1]
        assert file.read().equals(pa.concat_tables([ascending, repeated, ascending]))


def test_empty_row_group_does_not_determine_options(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ROWS.slice(0, 0), path)
    pqext.write_table(ROWS, path, append=True)
    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(file.metadata.num_row_groups - 1).column(0)
        assert column.is_stats_set
        assert column.has_offset_index


def test_compression_level_applies_to_the_codec_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(ROWS, path, compression="zstd", append=True, compression_level=19)
    assert {one[0] for one in appended(path, compression_level=19).values()} == {"ZSTD"}
    with pytest.raises(ValueError, match="has levels"):
        appended(path, compression_level=1_000)
    with pytest.raises(ValueError, match="has no levels"):
        pqext.write_table(ROWS, tmp_path / "new.parquet", append=True, compression_level=19)


def test_dictionaries_and_encodings_are_overridden_together(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(ROWS, path)
    assert chunk_options(path, 0)["s"][2]
    assert appended(path, encodings={"s": "delta_byte_array"})["s"][1:3] == ({"DELTA_BYTE_ARRAY", "RLE"}, False)
    assert appended(path, dictionary=False)["s"][1:3] == ({"PLAIN", "RLE"}, False)


def test_complete_options_object_overrides_all_file_options(path: Path) -> None:
    asked = appended(path, pqext.WriteOptions())
    assert {one[0] for one in asked.values()} == {"SNAPPY"}
    assert all(one[3] and one[4] for one in asked.values())


def test_options_unsupported_by_spark_are_dropped_for_its_profile(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ROWS, path, **WRITTEN | {"compression": {"a": "brotli", "s": "gzip", "f": "none"}})
    asked = appended(path, profile="spark")
    assert [one[0] for one in asked.values()] == ["SNAPPY", "GZIP", "UNCOMPRESSED"]
    assert asked["f"][1] == {"PLAIN", "RLE"}
    assert asked["a"][1] == {"DELTA_BINARY_PACKED", "RLE"}


def test_appended_rows_need_not_follow_the_sort_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(ROWS, path, sorting=["a"])
    pqext.write_table(ROWS.sort_by([("a", "descending")]), path, append=True)
    assert pq.read_metadata(path).row_group(1).sorting_columns == ()
