"""Spark's own reader passes over a jump table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext

TABLE = pa.table({f"c{i}": pa.array(range(i, i + 20), pa.int64()) for i in range(300)})


@pytest.mark.spec("extension.jump-table.ignored")
def test_spark_reads_a_file_with_a_jump_table(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "indexed.parquet"
    pqext.write_table(TABLE, path, row_group_rows=5, footer="thrift+index")
    assert list(pqext.open(path).extensions) == ["file"]
    found = sorted(tuple(row) for row in spark.read.parquet(str(path)).collect())
    assert found == sorted(zip(*TABLE.to_pydict().values(), strict=True))
