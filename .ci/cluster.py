"""Submit a job to a cluster whose driver and executors have pqext from an archive alone, as the documentation says.

    python .ci/cluster.py [environment.tar.gz]

Needs `.[spark]`, and a compiler if no archive is given: docs/how-to/spark-cluster.md describes how to make one. Spark's
`local-cluster` starts executors as processes with folders of their own. The job is this file, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MASTER = "local-cluster[2,1,1024]"
ROWS = 1000


def packed(folder: Path) -> Path:
    """The archive of an environment with pqext and without pyspark."""
    wheels, environment = folder / "wheels", folder / "packed"
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, ROOT)
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *wheels.glob("*.whl"), "pandas>=2.2,<3", "venv-pack")
    run(environment / "bin" / "venv-pack", "--quiet", "-p", environment, "-o", folder / "environment.tar.gz")
    return folder / "environment.tar.gz"


def run(*command: Any, **options: Any) -> None:
    subprocess.run([*map(str, command)], check=True, **options)


def submit(archive: Path, folder: Path) -> None:
    """Submit this file from a folder with the unpacked archive, as a driver in client mode requires."""
    import pyspark

    from pqext.spark.sources.session import java_environment

    home, here = folder / "spark", folder / "here"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():  # executors work in a folder of Spark's own
        (home / entry.name).symlink_to(entry)
    with tarfile.open(archive) as members:
        members.extractall(here / "environment", filter="fully_trusted")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    run(
        home / "bin" / "spark-submit", "--master", MASTER, "--archives", f"{archive}#environment",
        "--conf", "spark.pyspark.python=./environment/bin/python", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.log.level=ERROR", Path(__file__).resolve(), "job",
        cwd=here, env={**kept, **java_environment(folder), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip


def package_paths(batches: Iterator[Any]) -> Iterator[Any]:
    """Where the Python of an executor has pqext from."""
    import pyarrow as pa

    import pqext

    for _ in batches:
        yield pa.record_batch({"pqext": [pqext.__file__]})


def job() -> None:
    """Read JSON, ingest, shred, write and read with a filter."""
    from pyspark.sql import SparkSession

    import pqext
    from pqext.spark import functions, ingest_json, read, read_json, shred_variant, write

    spark = SparkSession.builder.getOrCreate()
    here = Path.cwd()
    assert Path(pqext.__file__).is_relative_to(here / "environment"), pqext.__file__
    found = {row[0] for row in spark.range(8, numPartitions=8).mapInArrow(package_paths, "pqext string").collect()}
    assert found, "no executor has answered"
    assert all("/work/app-" in one and "/environment/" in one for one in found), found
    lines = here / "in.json"
    lines.write_text("".join(json.dumps({"n": n, "who": f"w{n % 3}"}) + "\n" for n in range(ROWS)))
    events = read_json(spark, str(lines), column="event")
    shredded = shred_variant(events, {"event": "STRUCT<n: INT>"})
    assert write(shredded, str(here / "out")).rows == ROWS
    few = read(spark, str(here / "out"), where=pqext.col("event").variant("$.n", "int") < 10)
    numbers = few.select(functions.variant_get("event", "$.n", "int").alias("n")).collect()
    assert sorted(row.n for row in numbers) == [*range(10)]
    assert ingest_json(spark, str(lines), str(here / "ingested"), "n INT").rows == ROWS
    assert spark.read.format("pqext").load(str(here / "ingested")).count() == ROWS
    spark.stop()
    print(f"executors have pqext from {', '.join(sorted(found))}")


def main() -> None:
    if sys.argv[1:] == ["job"]:
        job()
        return
    with tempfile.TemporaryDirectory(prefix="pqext-cluster-") as name:
        submit(Path(sys.argv[1]).resolve() if sys.argv[1:] else packed(Path(name)), Path(name))


if __name__ == "__main__":
    main()
