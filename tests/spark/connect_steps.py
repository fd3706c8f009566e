"""Shreds, explains and saves on a Spark Connect server on loopback, and prints what came of it as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pqext.spark as on_spark
from pqext import variant
from pqext.spark.columns.recorded_schema import KEY as NOTE
from pqext.spark.columns.shredding_choice import KEY, column_choices
from pqext.spark.pushdown.spark_sql import split_condition
from pqext.spark.sources.session import _default_settings, _worker_environment, java_environment


def session() -> Any:
    scratch = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    os.environ.update(_worker_environment() | java_environment(scratch))
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[1]")
    for key, value in (_default_settings(scratch) | {"spark.driver.memory": "1g"}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def failure(action: Any) -> str:
    try:
        action()
    except Exception as error:
        return str(error)
    return ""


def main() -> None:
    from pyspark.sql import functions as F

    spark, folder = session(), Path(sys.argv[1])
    found: dict[str, Any] = {"unregistered": spark.read.format("pqext_json").load(str(folder / "in.ndjson")).count()}
    on_spark.register(spark)
    df = spark.createDataFrame([(n, json.dumps({"a": n, "b": "x"})) for n in range(5)], "id int, text string")
    df = df.select("id", F.parse_json("text").alias("v"), F.array(F.parse_json("text")).alias("l")).coalesce(1)
    found["type"] = type(df).__module__
    chosen = on_spark.shred_variant(df, {"v": "a INT", "l.list.element": "infer"})
    kept = chosen.where("id >= 0").sort("id").withColumnRenamed("v", "w").join(df.select("id"), "id").union(chosen)
    found["kept"] = {path: str(one.schema) for path, one in column_choices(kept.schema).items()}
    found["lost"] = list(column_choices(chosen.groupBy("id").agg(F.first("v").alias("v")).schema))
    found["once"] = str(column_choices(on_spark.shred_variant(df, {"v": "infer"}, infer="once").schema)["v"].schema)
    found["plan"] = [str(one) for one in on_spark.explain_write(chosen).variants]
    chosen.write.format("pqext").mode("append").save(str(folder / "out"))
    (file,) = (folder / "out").glob("*.parquet")
    found["stored"] = [str(variant.schema_of_file(file, path)) for path in ("v", "l.list.element")]
    found["rows"] = [row.a for row in on_spark.read(spark, str(folder / "out")).selectExpr(
        "variant_get(v, '$.a', 'int') AS a").sort("a").collect()]  # fmt: skip
    found["count"] = on_spark.read(spark, str(folder / "out"), where=[("id", "<", 2)]).count()
    quakes = on_spark.read(spark, str(folder / "out"))
    a = "try_variant_get(v, '$.a', 'int')"
    conditions: list[Any] = [F.col("ID") > 2, F.expr("id in (1, 2)"), quakes["id"] == 4]
    conditions += [(F.try_variant_get("v", "$.a", "int") > 2) & (F.col("id") != 3)]
    conditions += [f"{a} = 1 and cast(id as string) = '1'"]
    found["where"] = [[row.id for row in on_spark.where(quakes, one).sort("id").collect()] for one in conditions]
    found["pushed"] = [str(split_condition(quakes, one).tree) for one in conditions]
    found["native"] = failure(lambda: on_spark.read(spark, str(folder / "out"), engine="native"))
    found["type error"] = failure(lambda: df.select(on_spark.functions.to_json("id")).schema)
    storage = on_spark.shred_variant(df, {"v": "a INT"}, storage=True)
    found["structs"] = [row.v.typed_value.a.typed_value for row in storage.sort("id").collect()]
    found["removed"] = list(column_choices(on_spark.unshred_variant(chosen).schema))
    bad = df.select(F.col("v").alias("v", metadata={KEY: "{"}))
    found["explained"] = failure(lambda: on_spark.explain_write(bad))
    found["saved"] = failure(lambda: bad.write.format("pqext").mode("append").save(str(folder / "bad")))
    udt = {"type": "udt", "pyClass": "no_module.Y", "serializedClass": "", "sqlType": "long"}
    types = {"n": "long", "u": udt}
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types.items()]
    note = {NOTE: json.dumps({"type": "struct", "fields": fields})}
    pq.write_table(pa.table({"n": [1, 2], "u": [3, 4]}).replace_schema_metadata(note), folder / "udt.parquet")
    frame = on_spark.read(spark, str(folder / "udt.parquet"), ["n"], "upper(string(n)) = '2'")
    found["unselected"] = [row.n for row in frame.collect()]
    found["unknown"] = failure(lambda: on_spark.where(spark.read.parquet(str(folder / "udt.parquet")), "n = 1"))
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
