"""Row groups that all name one chunk: few bytes that state any number of rows are bounded over all of them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.thrift import encode


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


@pytest.mark.parametrize("read", [
    lambda data: sum(batch.num_rows for batch in pqext.open(data, limits=LIMITS).iter_batches()),
    lambda data: pqext.scan(data, filter=col("v") == 1, limits=LIMITS, trust_statistics=False).count(),
    lambda data: sum(batch.num_rows for batch in pqext.scan(data, limits=LIMITS).to_batches()),
])  # fmt: skip
def test_row_groups_that_share_a_bomb_of_nulls_are_rejected(read: Callable[[bytes], int]) -> None:
    with pytest.raises(pqext.LimitError, match="share one column chunk"):
        read(shared(1_000_000, 60))


def test_ordinary_row_groups_that_share_a_chunk_are_read_as_pyarrow_reads_them() -> None:
    data = shared(1_000, 50)
    assert pqext.read_table(data, limits=LIMITS).equals(pq.read_table(io.BytesIO(data)))
