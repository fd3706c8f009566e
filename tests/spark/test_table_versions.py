"""Read Delta and Iceberg tables in Spark: planned once from the log, without deleted rows, in any version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from tables.delta_logs import adds, delete_rows
from tables.iceberg_tables import local, new_catalog
from tables.test_delta_scan import overwrite_files, variant_table

import pqext
from pqext import col
from pqext.spark import explain_read, read, where


def ids(df: Any) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of two partitions, in whose second version rows are deleted."""
    folder = str(tmp_path_factory.mktemp("delta") / "t")
    table = pa.table({"id": range(2000), "p": ["a", "b"] * 1000, "x": [row / 4 for row in range(2000)]})
    write_deltalake(folder, table, partition_by=["p"], configuration={"delta.enableDeletionVectors": "true"})
    for path in adds(folder):
        delete_rows(folder, path, range(0, 1000, 3))
    return folder


def test_rows_equal_those_of_a_scan(spark: Any, folder: str) -> None:
    scan = pqext.scan(f"delta:{folder}")
    df = read(spark, f"delta:{folder}")
    assert df.schema.simpleString() == "struct<id:bigint,p:string,x:double>"
    assert ids(df) == sorted(scan.to_table()["id"].to_pylist())
    assert df.count() == scan.count() == 1332
    expected = sorted(scan.filter("p = 'a' and x < 40").to_table()["id"].to_pylist())
    assert ids(where(df, "p = 'a' and x < 40")) == expected
    assert ids(read(spark, f"delta:{folder}", where="p = 'a' and x < 40")) == expected
    assert read(spark, f"delta:{folder}", version=0).count() == 2000
    source = spark.read.format("pqext").option("version", 1).load(f"delta:{folder}")
    assert ids(source) == sorted(pqext.scan(f"delta:{folder}", version=1).to_table()["id"].to_pylist())
    numbered = read(spark, f"delta:{folder}", ["id", "row"], include_row_numbers="row").collect()
    assert sorted(row["id"] // 2 for row in numbered) == sorted(row["row"] for row in numbered)


def test_options_of_files_are_rejected(spark: Any, folder: str, tmp_path: Path) -> None:
    table = f"delta:{folder}"
    pqext.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    options: list[tuple[Any, dict[str, Any], str]] = [
        ([table, str(tmp_path)], {}, "a table cannot be read together with other paths"),
        (table, {"path_glob_filter": "*"}, "option path_glob_filter is for files"),
        (table, {"modified_after": "2100-01-01T00:00:00Z"}, "option modified_after is for files"),
        (str(tmp_path), {"version": 1}, "version and timestamp are for Delta and Iceberg tables"),
    ]
    for source, arguments, message in options:
        with pytest.raises((ValueError, PySparkException), match=message):
            read(spark, source, **arguments).count()


def test_table_without_files(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    write_deltalake(str(tmp_path / "t"), schema.empty_table())
    table = f"delta:{tmp_path / 't'}"
    assert read(spark, table).collect() == []
    assert read(spark, table, where="id = 1 and at < timestamp '2026-01-01'").collect() == []
    assert read(spark, table, [(col("id") * 2).alias("twice")]).collect() == []


def scan_plan(table: str, condition: Any) -> list[str]:
    """Lines of the plan of a scan, after those with its columns and filter."""
    return pqext.scan(table).filter(condition).explain().splitlines()[3:]


def test_files_are_pruned_by_the_log(spark: Any, tmp_path: Path) -> None:
    parts = [[json.dumps({"n": 10 * part + at}) for at in range(5)] for part in range(4)]
    table = variant_table(tmp_path / "t", parts, "infer")
    condition = col("v").variant("$.n", "int64") == 22
    plan = explain_read(table, where=condition)
    assert [task.evidence for task in plan.tasks].count("table log") == 3
    assert (plan.files, plan.files_skipped) == (1, 3)
    assert str(plan).splitlines() == [line.strip() if "reads" in line else line for line in scan_plan(table, condition)]
    assert str(plan).splitlines()[1] == "  skips by table log: 3 files"
    assert read(spark, table, where=condition).count() == 1
    overwrite_files(tmp_path / "t", ["0.parquet", "1.parquet", "3.parquet"])
    rows = read(spark, table, [("n", col("v").variant("$.n", "int64"))], where=condition).collect()
    assert [row["n"] for row in rows] == [22]


def test_errors(spark: Any, folder: str, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="is not a Delta table"):
        read(spark, f"delta:{tmp_path}")
    with pytest.raises(pqext.UnsupportedError, match="the files belong to a table"):
        read(spark, f"delta:{folder}", engine="native")
    assert explain_read(f"delta:{folder}", engine="auto", spark=spark).engine == "python"


def test_iceberg_tables_are_read(spark: Any, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.events", pa.schema([("id", pa.int64()), ("day", pa.string())]))
    table.append(pa.table({"id": [1, 2], "day": ["mon", "tue"]}))
    table.append(pa.table({"id": [30, 40], "day": ["mon", None]}))
    with table.update_schema() as update:
        update.rename_column("day", "weekday")
    name = f"iceberg:{local(table.location())}"
    assert ids(read(spark, name)) == [1, 2, 30, 40]
    plan = explain_read(name, where="id > 20 and weekday = 'mon'")
    assert [task.evidence for task in plan.tasks].count("table log") == 1
    assert ids(read(spark, name, where="id > 20 and weekday = 'mon'")) == [30]
    first = table.snapshots()[0].snapshot_id
    assert ids(read(spark, name, version=first)) == [1, 2]
