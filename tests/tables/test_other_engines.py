"""What other engines see of a Delta table, and which files they skip: the table of the tutorial on lake tables.

Files that must not be read are overwritten: an engine that answers has skipped them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tables.delta_logs import adds

import pqext
from pqext import col, geo, tables, variant

pytest.importorskip("deltalake")
from deltalake import DeltaTable, QueryBuilder

SCHEMA = pa.schema([("id", pa.int64()), variant.variant_field("v"), geo.geometry_field("at")])


def sql(folder: Path, query: str) -> list[dict[str, Any]]:
    """Query a table with the DataFusion that deltalake contains."""
    rows = QueryBuilder().register("t", DeltaTable(str(folder))).execute(query)
    found: list[dict[str, Any]] = pa.table(rows).to_pylist()
    return found


def by_polars(folder: Path) -> pl.LazyFrame:
    return pl.scan_delta(str(folder), use_pyarrow=True)


def files(folder: Path) -> list[str]:
    uris: list[str] = DeltaTable(str(folder)).file_uris()
    return uris


@pytest.fixture(params=[False, True], ids=["unshredded", "shredded"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A table of three files with ten rows each; only the second file is intact."""
    options: dict[str, Any] = {"shredding": {"v": "infer"}, "allow_undeclared_shredding": True} if request.param else {}
    for start in (0, 10, 20):
        numbers = range(start, start + 10)
        documents = variant.parse_json([json.dumps({"k": number}) for number in numbers])
        points = geo.from_points([float(number) for number in numbers], [0.0] * 10)
        rows = pa.table([pa.array(numbers, pa.int64()), documents, points], schema=SCHEMA)
        tables.append(f"delta:{tmp_path}", rows, geoparquet="1.1", **options)
    for path, add in adds(str(tmp_path)).items():
        if json.loads(add["stats"])["minValues"]["id"] != 10:
            (tmp_path / path).write_bytes(b"x" * add["size"])
    return tmp_path


SKIPS: dict[str, Callable[[Path], Any]] = {
    "pqext: column": lambda folder: pqext.scan(f"delta:{folder}", ["id"], "id = 13").to_table().to_pylist(),
    "pqext: path": lambda folder: pqext.scan(f"delta:{folder}", ["id"], "v:$.k::bigint = 13").to_table().to_pylist(),
    "pqext: box": lambda folder: (
        pqext.scan(f"delta:{folder}", ["id"], col("at").intersects((12.5, -1, 13.5, 1))).to_table().to_pylist()
    ),
    "deltalake: column": lambda folder: sql(folder, "SELECT id FROM t WHERE id = 13"),
    "polars: column": lambda folder: by_polars(folder).filter(pl.col("id") == 13).select("id").collect().to_dicts(),
    "pyarrow: column": lambda folder: (
        DeltaTable(str(folder)).to_pyarrow_dataset().to_table(["id"], filter=pc.field("id") == 13).to_pylist()
    ),
}
BOX = "at_bbox['xmin'] > 12.5 AND at_bbox['xmax'] < 13.5"
READS: dict[str, Callable[[Path], Any]] = {
    "deltalake: box": lambda folder: sql(folder, f"SELECT id FROM t WHERE {BOX}"),
    "polars: box": lambda folder: (
        by_polars(folder).filter(pl.col("at_bbox").struct.field("xmin") > 12.5).select("id").collect()
    ),
    "DuckDB: column": lambda folder: (
        duckdb.sql(f"SELECT id FROM read_parquet({files(folder)}) WHERE id = 13").fetchall()
    ),
    "polars without pyarrow": lambda folder: pl.scan_delta(str(folder)).select("id").collect(),
}


@pytest.mark.parametrize("case", SKIPS)
def test_engines_that_skip_files(case: str, folder: Path) -> None:
    assert SKIPS[case](folder) == [{"id": 13}]


@pytest.mark.parametrize("case", READS)
def test_engines_that_open_every_file(case: str, folder: Path) -> None:
    with pytest.raises((pa.ArrowInvalid, OSError, duckdb.Error, pl.exceptions.ComputeError)):
        READS[case](folder)


def test_values_that_engines_see(folder: Path, request: pytest.FixtureRequest) -> None:
    intact = [file for file in files(folder) if Path(file.removeprefix("file://")).read_bytes()[:4] == b"PAR1"]
    assert duckdb.sql(f"SELECT max(v.k::INT) FROM read_parquet({intact})").fetchall()[0][0] == 19
    described = duckdb.sql(f"DESCRIBE FROM read_parquet({intact})").fetchall()
    assert [row[1] for row in described[1:3]] == ["VARIANT", "GEOMETRY('OGC:CRS84')"]
    for value in (
        lambda: sql(folder, "SELECT v FROM t WHERE id = 13")[0]["v"],
        lambda: by_polars(folder).filter(pl.col("id") == 13).select("v").collect().to_dicts()[0]["v"],
    ):
        if "unshredded" in request.node.name:
            assert value().keys() == {"metadata", "value"}
        else:
            with pytest.raises(pa.ArrowInvalid):
                value()


def test_types_of_columns_are_named(folder: Path) -> None:
    columns = tables.describe(f"delta:{folder}").columns
    assert (columns["id"], columns["v"], columns["at"]) == ("int64", "VARIANT", "GEOMETRY(OGC:CRS84)")
