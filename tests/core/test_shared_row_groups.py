"""Row groups that all name one chunk: few bytes that state any number of rows are bounded over all of them."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import bombs

import pqext
from pqext import col, table_metrics, variant
from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.usage import Usage
from pqext.core.format.metadata import Type
from pqext.core.format.thrift import encode
from pqext.variant.types import variant_field
from reference.pace import SLOWER


def shared(rows: int, groups: int) -> bytes:
    """A file of one chunk of nulls that ``groups`` row groups name."""
    out = io.BytesIO()
    pq.write_table(pa.table({"v": pa.nulls(rows, pa.int64())}), out, store_schema=False, row_group_size=rows)
    data = out.getvalue()
    with pqext.open(data) as file:
        metadata, end = file.metadata, file.footer.offset
        metadata.row_groups = [next(iter(metadata.row_groups))] * groups
        metadata.num_rows = rows * groups
        footer = encode(metadata)
    return data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


LIMITS = pqext.Limits(memory_bytes=16 << 20, memory_expansion=0)
UNTRUSTED = pqext.Limits.untrusted()
SCHEMA = pa.schema([("a", pa.int64()), variant_field("v")])


@pytest.mark.parametrize("read", [
    lambda data: sum(batch.num_rows for batch in pqext.open(data, limits=LIMITS).iter_batches()),
    lambda data: pqext.scan(data, filter=col("v") == 1, limits=LIMITS, trust_statistics=False).count(),
    lambda data: sum(batch.num_rows for batch in pqext.scan(data, limits=LIMITS).to_batches()),
])  # fmt: skip
def test_row_groups_that_share_a_bomb_of_nulls_are_rejected(read: Callable[[bytes], int]) -> None:
    with pytest.raises(pqext.LimitError, match="share one column chunk"):
        read(shared(1_000_000, 60))


def test_batches_of_a_bomb_are_rejected_before_decoding() -> None:
    data = shared(1_000_000, 60)
    with pqext.open(data, limits=LIMITS) as file:
        with pytest.raises(MemoryLimitError, match="share one column chunk"):
            next(file.iter_batches())
        assert file.source.usage.pages == 0
    with pqext.open(data, limits=LIMITS) as file:  # fewer rows than bytes
        rows = sum(batch.num_rows for batch in file.iter_batches(row_groups=[0, 59]))
    assert rows == pq.ParquetFile(io.BytesIO(data)).read_row_groups([0, 59]).num_rows


def test_ordinary_row_groups_that_share_a_chunk_match_pyarrow() -> None:
    data = shared(1_000, 50)
    assert pqext.read_table(data, limits=LIMITS).equals(pq.read_table(io.BytesIO(data)))


def repeated(data: bytes) -> bytes:
    """The file with 3,500 row groups that share the chunks of one."""
    with pqext.open(data) as file:
        metadata, end = file.metadata, file.footer.offset
        metadata.row_groups = [next(iter(metadata.row_groups))] * 3_500
        metadata.num_rows = 3_500
        footer = encode(metadata)
    return data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("read", [
    lambda data: pqext.read_table(data, limits=UNTRUSTED),
    lambda data: pqext.scan(data, limits=UNTRUSTED).order_by("a").head(3),
    lambda data: pqext.scan(data, filter=col("a") == 1, limits=UNTRUSTED, trust_statistics=False).count(),
    lambda data: next(pqext.open(data, limits=UNTRUSTED).iter_batches()),
    lambda data: pqext.repair(data, io.BytesIO(), limits=UNTRUSTED),
    lambda data: variant.unshred_file(data, io.BytesIO(), limits=UNTRUSTED),
    lambda data: table_metrics.delta(data, True, limits=UNTRUSTED),
])  # fmt: skip
def test_many_small_shared_row_groups_are_rejected_before_decoding(
    read: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"a": [1], "v": variant.parse_json(pa.array(["[1, 2]"]))}, schema=SCHEMA), out)
    data = repeated(out.getvalue())
    usages: list[Usage] = []
    initialize = Usage.__init__
    monkeypatch.setattr(Usage, "__init__", lambda usage: initialize(usage) or usages.append(usage))
    with pytest.raises(MemoryLimitError, match="repeated chunks"):
        read(data)
    assert usages
    assert sum(usage.pages for usage in usages) == 0


def test_row_groups_read_one_by_one_count_their_repeated_chunks_once() -> None:
    with pqext.open(shared(2000, 600), limits=LIMITS) as file:
        for _ in range(2):
            for group in range(500):
                assert file.read(row_groups=[group]).num_rows == 2000
        with pytest.raises(MemoryLimitError, match="513 repeated chunks"):
            file.read(row_groups=range(500, 600))


@pytest.mark.parametrize(("rows", "groups"), [(1_000_000, 10_000), (10, 20_000)])
def test_verify_reports_shared_row_groups_once_and_quickly(rows: int, groups: int) -> None:
    data, begun = shared(rows, groups), time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - begun < 5 * SLOWER
    assert [(fault.rule, fault.row_group) for fault in report.faults] == [("layout.chunks-apart", 0)]
    assert f"{groups - 1} more row groups" in report.faults[0].message
    assert report.num_rows == rows * groups == pq.read_metadata(io.BytesIO(data)).num_rows


def test_recovery_of_many_shared_row_groups_is_quick() -> None:
    data, out, begun = shared(1_000_000, 10_000), io.BytesIO(), time.process_time()
    report = pqext.recover(data, out)
    assert time.process_time() - begun < 5 * SLOWER
    assert pq.read_metadata(out).num_rows == report.rows == 1_000_000
    assert [loss.rows for loss in report.losses] == [1_000_000 * 9_999]


def test_verify_limits_null_row_groups_without_shared_bytes() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"v": pa.nulls(8_000_000, pa.int64())}), out, row_group_size=200_000)
    with_few = pqext.Limits.untrusted(memory_bytes=4 << 20, memory_expansion=0)
    report = pqext.verify(out.getvalue(), checks=["chunks"], limits=with_few)
    assert not report.faults
    assert ["memory_bytes" in column.reason for column in report.unchecked] == [True]
    assert pqext.verify(out.getvalue(), checks=["chunks"]).ok


def test_chunks_at_one_offset_of_different_files_are_not_shared(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.parquet" for number in range(16)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"a": pa.array([number] * 70_000, pa.int32())}), path)
    summary, _ = pqext.write_summary(paths, tmp_path)
    with pqext.open(summary, limits=pqext.Limits(memory_bytes=1 << 20, memory_expansion=1)) as file:
        assert sum(batch.num_rows for batch in file.iter_batches(10_000)) == 16 * 70_000


@pytest.mark.parametrize(("rows", "groups"), [(1_000_000, 1_000), (60_000, 5_000)])
def test_repair_rejects_a_bomb_of_shared_row_groups_before_decoding(rows: int, groups: int) -> None:
    data, out, begun = shared(rows, groups), io.BytesIO(), time.process_time()
    with pytest.raises(pqext.LimitError, match="share one column chunk"):
        pqext.repair(data, out, limits=pqext.Limits.untrusted())
    assert time.process_time() - begun < 2 * SLOWER
    assert not out.getvalue()


def test_repair_of_shared_row_groups_takes_linear_time() -> None:
    seconds = []
    for groups in (250, 1_000):
        data, out, begun = shared(10, groups), io.BytesIO(), time.process_time()
        assert pqext.repair(data, out, limits=pqext.Limits.untrusted()).rows == 10 * groups
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 8 * seconds[0] + 0.5  # 16 times as long if each row group took time for all of them
    assert pq.read_table(out).equals(pq.read_table(io.BytesIO(data)))


CLAIMING = bombs.nulls(Type.INT64, (1 << 31) - 1)


@pytest.mark.parametrize("read", [
    lambda: pqext.read_table(CLAIMING, limits=UNTRUSTED),
    lambda: pqext.scan(CLAIMING, filter=col("a").is_null(), limits=UNTRUSTED, trust_statistics=False).count(),
    lambda: pqext.scan(CLAIMING, limits=UNTRUSTED).order_by("a").head(3),
    lambda: next(pqext.open(CLAIMING, limits=UNTRUSTED).iter_batches()),
    lambda: pqext.recover(CLAIMING, io.BytesIO(), limits=UNTRUSTED),
])  # fmt: skip
def test_small_untrusted_files_cannot_claim_billions_of_rows(read: Callable[[], object]) -> None:
    begun = time.process_time()
    with pytest.raises(pqext.LimitError, match=r"2,147,483,647 rows in \d+ bytes are more than rows=134217728"):
        read()
    assert time.process_time() - begun < SLOWER
