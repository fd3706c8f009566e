"""A folder that Spark streams into holds what its log says, as Spark's own reader sees it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import pqext
from pqext.spark import read

pytestmark = pytest.mark.slow

BATCHES = 12
"""Enough for the log to be put together in one file, and two batches after it."""


@pytest.fixture(scope="module")
def streamed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row a batch, and files of a batch that failed before it was logged."""
    root = tmp_path_factory.mktemp("streamed")
    (root / "in").mkdir()
    for batch in range(BATCHES):
        (root / "in" / f"{batch}.csv").write_text(f"{batch}\n")
    stream = spark.readStream.schema("id int").option("maxFilesPerTrigger", 1).csv(str(root / "in"))
    stream = stream.selectExpr("id", "concat('a b/', id % 2) AS part")
    writer = stream.writeStream.format("parquet").partitionBy("part").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(root / "checkpoint")).start(str(root / "out x"))
    query.awaitTermination()
    for file in sorted((root / "out x").rglob("*.parquet")):
        shutil.copy(file, file.with_name(f"again-{file.name}"))
    return root / "out x"


def test_rows_of_failed_batches_are_not_read(spark: Any, streamed: Path) -> None:
    assert any(path.name.endswith(".compact") for path in (streamed / "_spark_metadata").iterdir())
    expected = sorted(row[0] for row in spark.read.parquet(str(streamed)).select("id").collect())
    assert expected == list(range(BATCHES))
    assert sorted(row[0] for row in read(spark, str(streamed)).select("id").collect()) == expected
    assert sorted(pqext.read_table(str(streamed)).column("id").to_pylist()) == expected


def test_save_below_a_streaming_log_is_rejected(spark: Any, streamed: Path) -> None:
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="a streaming sink of Spark"):
            spark.range(1).write.format("pqext").mode(mode).save(str(streamed))
    assert read(spark, str(streamed)).count() == BATCHES
