"""Of many row groups the driver knows statistics alone; tasks look at page indexes and Bloom filters themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.spark import explain_read, query, read, read_metrics
from pqext.spark.reading.planning import MAX_INDEXED_ROW_GROUPS

GROUPS, ROWS = 2 * MAX_INDEXED_ROW_GROUPS, 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Even numbers all over each row group of two files, among which 5 is once; ``n`` ascends within a row group."""
    path = tmp_path_factory.mktemp("many") / "groups"
    path.mkdir()
    total = GROUPS * ROWS
    users = [(row * 7919) % total * 2 if row % ROWS > 1 else row % ROWS * 2 * total for row in range(total)]
    users[777] = 5
    table = pa.table({"n": [row % ROWS for row in range(total)], "user": users, "row": range(total)})
    for number in range(2):
        part = table.slice(number * total // 2, total // 2)
        pqext.write_table(
            part, path / f"{number}.parquet", row_group_rows=ROWS, page_rows=5, bloom_filters={"user": True}
        )
    return str(path)


@pytest.mark.spec("querying.outlines")
def test_tasks_inspect_row_groups_deferred_by_the_driver(spark: Any, folder: str, tmp_path: Path) -> None:
    found = read(spark, folder, ["row"], where=col("user") == 5, metrics_path=str(tmp_path))
    assert [row.row for row in found.collect()] == [777]
    metrics = read_metrics(str(tmp_path))
    assert 0 < metrics.row_groups < GROUPS // 10
    assert metrics.rows_read < GROUPS * ROWS // 10
    plan = explain_read(folder, where=col("user") == 5)
    assert (plan.row_groups, plan.row_groups_deferred) == (GROUPS // 2 + 1, GROUPS // 2)
    assert f"tasks check page indexes and Bloom filters of {GROUPS // 2} row groups" in str(plan)
    every = explain_read(folder, where=col("user") == 5, all_indexes=True)
    assert (every.row_groups, every.row_groups_deferred) == (metrics.row_groups, 0)
    assert "tasks check" not in str(every) + str(explain_read(folder))


@pytest.mark.spec("querying.outlines")
def test_counting_tasks_inspect_deferred_row_groups(spark: Any, folder: str) -> None:
    agg = {"rows": "count", "last": ("max", "row")}
    (found,) = query(spark, folder, agg, where=col("n") < 5).collect()
    assert tuple(found) == (GROUPS * 5, (GROUPS - 1) * ROWS + 4)
