"""Every readable file of parquet-testing gives the values that a trusted reader or the file's own expectation gives."""

from __future__ import annotations

import os
from pathlib import Path

import conformance
import conformance_table
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance_files import CORRUPT_CHECKSUMS, DIFFERENCES, LARGE, READABLE

import pqext
from pqext.core.base.errors import CorruptFileError, EncryptionError, ParquetError, UnsupportedError

ROOT = Path(os.environ.get("PARQUET_TEST_DATA", ""))
FILES = conformance.files_of(ROOT) if os.environ.get("PARQUET_TEST_DATA") else []
LISTED = [name for name in FILES if conformance.is_listed(ROOT, name)]
pytestmark = pytest.mark.skipif(not FILES, reason="PARQUET_TEST_DATA does not name a copy of apache/parquet-testing")


@pytest.mark.parametrize("name", [name for name in FILES if name not in LISTED])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_unlisted_file_matches_a_reference_reader_or_is_unreadable_by_all(name: str) -> None:
    try:
        verdict = conformance.compare(ROOT, name)
    except (UnsupportedError, EncryptionError):
        return  # of a later version of the format, or with keys that its description tells
    except ParquetError:
        with pytest.raises((pa.ArrowException, OSError)):
            pq.read_table(ROOT / name)
        return
    assert verdict.agree or not verdict.differ, f"no judge agrees: {verdict}"


@pytest.mark.parametrize("name", [name for name in LISTED if name not in LARGE])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_file_has_the_values_of_its_reference_readers(name: str) -> None:
    verdict = conformance.compare(ROOT, name)
    assert verdict.agree, f"no judge agrees: {verdict}"
    assert verdict.unexplained == [], "a judge differs: find out who is right, fix it or say why in DIFFERENCES"


@pytest.mark.parametrize("name", sorted(CORRUPT_CHECKSUMS & set(FILES)))
def test_file_with_a_checksum_mismatch_is_rejected_by_default(name: str) -> None:
    with pytest.raises(CorruptFileError, match="do not match its checksum"):
        pqext.read_table(ROOT / name)


@pytest.mark.skipif(not os.environ.get("PQEXT_LARGE_FILES"), reason="PQEXT_LARGE_FILES is not set: 4 GB of memory")
@pytest.mark.parametrize("name", sorted(LARGE & set(FILES)))
def test_column_chunk_over_2_gb_is_read_row_by_row(name: str) -> None:
    rows = 0
    with pqext.open(ROOT / name) as file:
        for batch in file.iter_batches(1):
            ((key, value),) = batch.column(0)[0].as_py()
            assert len(key) == key.count("a") == 1 << 30
            assert value == 1
            rows += 1
    assert rows == 2


def test_conformance_table_lists_all_compared_files() -> None:
    table = conformance_table.TABLE.read_text("utf-8")
    missing = [name for name in LISTED if name in READABLE and f"`{name}`" not in table]
    assert missing == [], "run: python tests/conformance_table.py"


def test_recorded_differences_refer_to_listed_files() -> None:
    assert {name for name, _ in DIFFERENCES} <= set(READABLE)


def test_comparison_distinguishes_values() -> None:
    def columns(*found: pa.Array) -> conformance.Columns:
        return conformance.values.columns(pa.table(list(found), [f"c{at}" for at in range(len(found))]))

    def equal(first: pa.Array, second: pa.Array) -> bool:
        return conformance._equal_columns(columns(first), columns(second))

    assert equal(pa.array(["a", None]), pa.array([b"a", None], pa.large_binary()))
    assert equal(pa.array([1_000, None], pa.timestamp("ms")), pa.array([1_000_000, None], pa.timestamp("us", "UTC")))
    assert equal(pa.array([float("nan")], pa.float32()), pa.array([-float("nan")]))
    assert equal(pa.array(["x", None, "x"]).dictionary_encode(), pa.array(["x", None, "x"]))
    assert equal(pa.array([[1], None, []]), pa.array([[1], None, []], pa.large_list(pa.int8())).slice(0))
    assert equal(pa.array([[0], [1], None], pa.list_(pa.int64())).slice(1), pa.array([[1], None]))
    assert not equal(pa.array([0.0]), pa.array([-0.0]))
    assert not equal(pa.array([1, None]), pa.array([1, 0]))
    assert not equal(pa.array([[None]], pa.list_(pa.int8())), pa.array([None], pa.list_(pa.int8())))
    assert not equal(pa.array([{"a": None}]), pa.array([None], pa.struct([("a", pa.null())])))
    assert not conformance._equal_columns(columns(pa.array([1])), columns(pa.array([1]), pa.array([1])))
