"""Spark's own reader passes over a jump table, a second footer, checkpoints and footers that an append left inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext.core.options.layout import FooterFormat

TABLE = pa.table({f"c{i}": pa.array(range(i, i + 20), pa.int64()) for i in range(300)})


@pytest.mark.spec("extension.jump-table.ignored")
@pytest.mark.spec("extension.flatbuffers.ignored")
@pytest.mark.parametrize("form", ["thrift+index", "thrift+flatbuffers"])
def test_spark_reads_a_file_with_footer_extensions(form: FooterFormat, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "more.parquet"
    pqext.write_table(TABLE, path, row_group_rows=5, footer=form)
    assert list(pqext.open(path).extensions) == ["file"]
    found = sorted(tuple(row) for row in spark.read.parquet(str(path)).collect())
    assert found == sorted(zip(*TABLE.to_pydict().values(), strict=True))


@pytest.mark.spec("recovery.checkpoint.ordinary")
@pytest.mark.spec("recovery.append")
def test_spark_reads_an_appended_file_with_checkpoints(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "appended.parquet"
    first, second = TABLE.slice(0, 12), TABLE.slice(12)
    pqext.write_table(first, path, row_group_rows=2, checkpoint=2)
    pqext.write_table(second, path, row_group_rows=5, append=True)
    found = sorted(tuple(row) for row in spark.read.parquet(str(path)).collect())
    assert found == sorted(zip(*TABLE.to_pydict().values(), strict=True))
    spark.createDataFrame([(1,)], "a int").coalesce(1).write.mode("overwrite").parquet(str(tmp_path / "spark"))
    part = next((tmp_path / "spark").glob("*.parquet"))
    pqext.write_table(pa.table({"a": pa.array([2], pa.int32())}), part, append=True)
    assert sorted(row.a for row in spark.read.parquet(str(part)).collect()) == [1, 2]
