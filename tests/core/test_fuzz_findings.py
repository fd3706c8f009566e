"""What the fuzzers found (fuzz/), as files that are laid out to show it."""

from __future__ import annotations

import io
import tracemalloc

import pyarrow as pa
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning
from pqext.core.footer.thrift_footer import serialise_footer


@pytest.mark.parametrize("rows", [1 << 37, 1 << 45, (1 << 63) - 1])
@pytest.mark.parametrize("column", ["flat", "list"])
def test_row_group_with_a_huge_row_count_allocates_no_memory_on_skip(
    rows: int, column: str
) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"flat": [1, None, 3], "list": [[1.5], [], None]}), out, compression="uncompressed")
    with pqext.open(out.getvalue()) as file:
        metadata, end = file.metadata, file.footer.offset
        metadata.row_groups[0].num_rows = rows
    data = out.getvalue()[:end] + serialise_footer(metadata)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.warns(CorruptDataWarning, match="rows"):
            table = pqext.read_table(data, [column], on_corrupt="skip")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert len(table) == 0
    assert pa.total_allocated_bytes() - before < 1 << 20
    with pytest.raises(pqext.ParquetError, match="rows"):
        pqext.read_table(data, [column])
