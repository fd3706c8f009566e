"""Columns that a schema gives a wrong type: pages that leave bytes over behind values of that type are not taken."""

from __future__ import annotations

from ipaddress import IPv6Address

import pyarrow as pa
import pytest
from recovery.cut_files import by_pyarrow, without_footer

ROWS = 2000
FLAGS = pa.table({"id": range(ROWS), "x": [row % 2 for row in range(ROWS)], "name": [f"n{row}" for row in range(ROWS)]})
ADDRESSES = pa.table({"a": pa.array([IPv6Address("::1").packed] * ROWS, pa.binary(16))})
LISTS = pa.table({"a": pa.array([[[[1, 2]]]] * 50, pa.list_(pa.list_(pa.list_(pa.int32()))))})


@pytest.mark.parametrize(
    ("table", "wrong", "right"),
    [
        (FLAGS, "id BIGINT, x STRING, name STRING", "id BIGINT, x BIGINT, name STRING"),
        (FLAGS, "id BIGINT, x DECIMAL(20,2), name STRING", "id BIGINT, x BIGINT, name STRING"),
        (pa.table({"a": [1] * ROWS}), "a STRING", "a BIGINT"),
        (ADDRESSES, "a BINARY", "a BINARY(16)"),
    ],
)
@pytest.mark.spec("recovery.types")
def test_dictionary_with_excess_bytes_has_another_type(table: pa.Table, wrong: str, right: str) -> None:
    data = by_pyarrow(table, row_group_size=500)
    report, found = without_footer(data, schema=right)
    assert found == table, report
    report, found = without_footer(data, schema=wrong)
    assert found is None, report
    assert "the schema may not match the file" in str(report)


@pytest.mark.parametrize("type", ["DECIMAL(9,2)", "DECIMAL(20,2)", "BINARY", "STRING"])
@pytest.mark.spec("recovery.types")
def test_list_levels_are_not_recovered_as_byte_arrays(type: str) -> None:
    data = by_pyarrow(LISTS, use_dictionary=False, write_batch_size=1, data_page_size=1, compression="none")
    report, found = without_footer(data, schema=f"a {type}")
    assert found is None, report
