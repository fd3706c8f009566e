"""Files that are damaged, hostile, encrypted or no data files: typed errors that name them, and nothing takes long."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from core import bombs
from table_metrics.tables import written, written_by_pyarrow
from table_metrics.test_variant_bounds import column as variants

import pqext
from pqext import geo, table_metrics, variant
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.format.metadata import FileMetaData
from pqext.encryption import FileDecryption, FileEncryption
from reference.effort import some

FOOTER_KEY, KEYS = b"0123456789012345", {"a": b"1234567890123450"}
BOTH = pytest.mark.parametrize("of", [table_metrics.iceberg, table_metrics.delta])
TABLE = pa.table({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"]})


@BOTH
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("cut", [0, 3, 30, -1, -9])
def test_truncated_file_is_an_error_that_names_it(of: Any, exact: bool, cut: int, tmp_path: Path) -> None:
    path = tmp_path / "short.parquet"
    path.write_bytes(written(TABLE)[:cut])
    with pytest.raises(CorruptFileError, match=r"short\.parquet"):
        of(path, exact)


@BOTH
def test_corrupt_page_is_an_error_that_names_file_and_column(of: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    raw = bytearray(written(TABLE, compression="uncompressed"))
    raw[4:8] = b"\xff\xff\xff\xff"  # the header of the first page
    path.write_bytes(raw)
    assert of(path).to_dict()
    with pytest.raises(CorruptFileError, match=r"damaged\.parquet.*column a"):
        of(path, exact=True)


@BOTH
def test_missing_file_raises_the_error_of_open(of: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        of(tmp_path / "gone.parquet")


@pytest.fixture(scope="module")
def bomb_files() -> dict[str, bytes]:
    return bombs.files()


@pytest.mark.parametrize(
    ("of", "exact"), [(table_metrics.iceberg, False), (table_metrics.delta, False), (table_metrics.delta, True)]
)
def test_small_files_with_huge_counts_are_rejected_or_summarised_quickly(
    of: Any, exact: bool, bomb_files: dict[str, bytes]
) -> None:
    refused = 0
    for name in some([*bomb_files], 2) if exact else bomb_files:
        file = bomb_files[name]
        started = time.process_time()
        try:
            of(file, exact, limits=pqext.Limits.untrusted())
        except ParquetError:
            refused += 1
        assert time.process_time() - started < 20, name
    assert refused > (5 if exact else 0)


def changed(file: bytes, change: Callable[[FileMetaData], None]) -> bytes:
    sink = io.BytesIO()
    pqext.rewrite_footer(file, change, sink)
    return sink.getvalue()


@pytest.mark.spec("metrics.footer")
def test_implausible_statistics_are_not_returned() -> None:
    def change(footer: FileMetaData) -> None:
        for chunk in footer.row_groups[0].columns:
            assert chunk.meta_data is not None
            assert chunk.meta_data.statistics is not None
            chunk.meta_data.statistics.null_count = 99
            chunk.meta_data.statistics.min_value = b"\xff" * 7
            chunk.meta_data.statistics.max_value = b"\x00"

    file = changed(written(TABLE), change)
    found = table_metrics.iceberg(file)
    assert (found.null_value_counts, found.lower_bounds, found.upper_bounds) == ({}, {}, {})
    assert table_metrics.delta(file).to_dict()["minValues"] == {}
    assert table_metrics.iceberg(file, exact=True).null_value_counts == {1: 0, 2: 0}


@pytest.mark.spec("metrics.iceberg.offsets")
def test_implausible_offsets_and_sizes_are_not_returned() -> None:
    def change(footer: FileMetaData) -> None:
        metadata = footer.row_groups[1].columns[0].meta_data
        assert metadata is not None
        metadata.data_page_offset, metadata.dictionary_page_offset, metadata.total_compressed_size = 1 << 40, None, -5

    found = table_metrics.iceberg(changed(written(TABLE, row_group_rows=2), change))
    assert (found.split_offsets, set(found.column_sizes)) == ((), {2})


@BOTH
def test_missing_rows_are_an_error(of: Any) -> None:
    def change(footer: FileMetaData) -> None:
        footer.num_rows = 1_000

    with pytest.raises(CorruptFileError, match="row groups are missing"):
        of(bombs.edited(written(TABLE), change))


@BOTH
@pytest.mark.parametrize("exact", [False, True])
def test_summary_of_other_files_is_rejected(of: Any, exact: bool, tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet"):
        pqext.write_table(TABLE, tmp_path / name)
    pqext.write_summary([tmp_path / "1.parquet", tmp_path / "2.parquet"], tmp_path)
    with pytest.raises(UnsupportedError, match="the data of this column is in another file"):
        of(tmp_path / "_metadata", exact)


@BOTH
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_column_without_its_key_has_no_bounds(of: Any, exact: bool, plaintext_footer: bool) -> None:
    encryption = FileEncryption(FOOTER_KEY, column_keys=KEYS, plaintext_footer=plaintext_footer)
    file = written(pa.table({"a": [1, 2], "b": [3, 4]}), encryption=encryption)
    whole = of(file, exact, decryption=FileDecryption(FOOTER_KEY, KEYS))
    part = of(file, exact, decryption=FileDecryption(FOOTER_KEY))
    assert set(_bounded(whole)) == {"a", "b"}
    assert _bounded(part) == {"b": _bounded(whole)["b"]}
    if isinstance(part, table_metrics.IcebergMetrics):
        # A footer in plain text tells how many values and bytes there are, and where.
        told = {1, 2} if plaintext_footer else {2}
        assert (set(part.column_sizes), set(part.value_counts), len(part.split_offsets)) == (told, told, 1)


def _bounded(found: table_metrics.IcebergMetrics | table_metrics.DeltaStatistics) -> dict[str, Any]:
    if isinstance(found, table_metrics.DeltaStatistics):
        return dict(found.min_values)
    return {found.names[id]: bound for id, bound in found.lower_bounds.items()}


@BOTH
def test_data_is_read_within_the_memory_limit(of: Any) -> None:
    rows = 1_000_000
    table = pa.table({"a": pa.array(range(rows), pa.int64()), "s": pa.array([f"text {n}" for n in range(rows)])})
    file = written_by_pyarrow(table, use_dictionary=False)
    limits = pqext.Limits(memory_bytes=8 << 20, memory_expansion=0)
    assert of(file, True, limits=limits).to_dict()
    with pytest.raises(LimitError):
        pqext.open(file, limits=limits).read()


@BOTH
@pytest.mark.parametrize("exact", [False, True])
def test_file_without_rows_or_columns_has_metrics(of: Any, exact: bool) -> None:
    for table in (TABLE.slice(0, 0), pa.table({})):
        found = of(written(table), exact).to_dict()
        assert found.get("record_count", found.get("numRecords")) == 0
        assert found.get("split_offsets", []) == []
        assert not found.get("lower_bounds", found.get("minValues"))


@BOTH
def test_invalid_variants_are_an_error_that_names_file_and_column(of: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    raw = written(variants({"a": 1}), compression="uncompressed", dictionary=False)
    good = b"\x02\x01\x00\x00\x02\x0c\x01"  # the object {"a": 1}
    assert good in raw
    path.write_bytes(raw.replace(good, b"\x02\x01\x07\x00\x02\x0c\x01"))
    assert of(path).to_dict()
    with pytest.raises(ParquetError, match=r"broken\.parquet.*column v"):
        of(path, exact=True)


@BOTH
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_changed_byte_returns_metrics_or_an_error_of_the_file(of: Any) -> None:
    documents = variants({"a": 1, "b": {"c": "x"}, "z": [1]}, None, {"a": 2, "b": {"c": "yy"}}, {"b": 7})["v"]
    table = pa.table(
        [[1, None, 3, 4], ["a", "bb", None, "c"], [1.0, math.nan, None, 2.0], documents, documents,
         geo.from_points([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]), [[1], [], None, [2, 3]]],
        schema=pa.schema([
            ("i", pa.int64()), ("s", pa.string()), ("f", pa.float64()), variant.variant_field("v"),
            variant.variant_field("w"), geo.geometry_field("g", edges="spherical"), ("l", pa.list_(pa.int64())),
        ]),
    )  # fmt: skip
    file = written(
        table, shredding={"v": "a BIGINT, b STRUCT<c: STRING>"}, compression="uncompressed", checksums=False,
        row_group_rows=2, page_index=False,
    )  # fmt: skip
    given, refused = 0, 0
    for at in range(0, len(file), 151):
        flip = (0xFF, 0x01)[at % 2]
        changed_file = file[:at] + bytes([file[at] ^ flip]) + file[at + 1 :]
        for exact in (False, True):
            try:
                assert of(changed_file, exact, limits=pqext.Limits.untrusted()).to_json()
                given += 1
            except ParquetError:
                refused += 1
    assert min(given, refused) > 12
