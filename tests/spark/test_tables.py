"""Tables of Spark's catalog cannot be of data source ``pqext``, and say so; temporary views can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

ADVICE = r"UnsupportedError: the path is missing.*Tables of the catalog .* not work.*TEMPORARY VIEW \.\.\. USING pqext"


@pytest.mark.slow
def test_table_statements_are_rejected_with_advice(
    spark: Any, tmp_path: Path
) -> None:
    frame, place = spark.range(3), tmp_path / "t"
    frame.coalesce(1).write.format("pqext").mode("append").save(str(place))
    before = sorted(place.rglob("*"))
    for statement in (f"CREATE TABLE t USING pqext LOCATION '{place}'", "CREATE TABLE t USING pqext AS SELECT 1 AS id"):
        with pytest.raises(AnalysisException, match=ADVICE):
            spark.sql(statement)
        assert not spark.catalog.tableExists("t")
    with pytest.raises(AnalysisException, match=ADVICE):
        frame.write.format("pqext").mode("append").saveAsTable("t")
    assert not spark.catalog.tableExists("t")
    spark.sql(f"CREATE TABLE t (id BIGINT) USING pqext LOCATION '{place}'")
    try:
        for statement in ("SELECT * FROM t", "INSERT INTO t VALUES (1)"):
            with pytest.raises(AnalysisException, match=ADVICE):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE t")
    assert sorted(place.rglob("*")) == before
    spark.sql(f"CREATE TEMPORARY VIEW t USING pqext OPTIONS (path '{place}')")
    try:
        assert sorted(row[0] for row in spark.sql("SELECT id FROM t").collect()) == [0, 1, 2]
    finally:
        spark.catalog.dropTempView("t")
