"""``pqext tables``: Delta tables written, described and maintained; query, head, count and schema of tables."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app

pytest.importorskip("deltalake")
from deltalake import DeltaTable, write_deltalake


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "300"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def table(tmp_path: Path) -> str:
    for number in range(3):
        event = variant.parse_json([json.dumps({"mag": number}), json.dumps({"mag": number + 10})])
        rows = pa.table(
            [pa.array([number, number + 10]), pa.array(["a", "b"]), event],
            schema=pa.schema([("id", pa.int64()), ("p", pa.string()), variant.variant_field("event")]),
        )
        pqext.write_table(rows, tmp_path / f"{number}.parquet")
        name = f"delta:{tmp_path / 'table'}"
        result = run("tables", "append", name, tmp_path / f"{number}.parquet", "--partition-by", "p")
        assert f"version {number}: 2 rows" in result.output
    return name


def test_commands_that_read_files_read_tables(table: str, tmp_path: Path) -> None:
    assert run("count", table).output == "6\n"
    assert run("count", table, "--where", "event:$.mag::int >= 11").output == "2\n"
    assert run("count", table, "--table-version", "1").output == "4\n"
    lines = run("query", table, "--where", "p = 'a'", "--order-by", "id", "--json").output.splitlines()
    assert [json.loads(line) for line in lines] == [{"id": n, "p": "a", "event": {"mag": n}} for n in range(3)]
    assert "skips by partition" in run("query", table, "--where", "p = 'a'", "--explain").output
    assert "mag" in run("head", table, "-n", "1").output
    assert json.loads(run("schema", table, "--json").output) == [
        {"name": "id", "type": "int64", "nullable": True}, {"name": "p", "type": "string", "nullable": True},
        {"name": "event", "type": "VARIANT", "nullable": True},
    ]
    assert run("schema", table, "--format", "ddl").output == "id BIGINT,\np STRING,\nevent VARIANT\n"
    assert "event: VARIANT" in run("schema", table).output
    assert "cannot be combined with other sources" in run("count", table, tmp_path / "0.parquet", code=2).output


def test_maintenance_commands(table: str) -> None:
    path = Path(table.removeprefix("delta:"))
    assert "6 files" in run("tables", "compact", table, "--dry-run").output
    assert DeltaTable(path).version() == 2
    assert "version 3: 3 files" in run("tables", "compact", table, "--where", "p = 'a'").output
    clustered = run("tables", "recluster", table, "--by", "event:$.mag::bigint").output
    assert "version 4: 4 files" in clustered
    assert "; files that a lookup reads: event:$.mag::bigint 25% -> 50%" in " ".join(clustered.split())
    failed = run("tables", "reshred", table, "--shredding", "event=mag BIGINT", code=1)
    assert "variantShredding" in str(failed.exception)
    shred = ("--shredding", "mag BIGINT", "--allow-undeclared-shredding")
    assert "version 5: 2 files" in run("tables", "reshred", table, *shred).output
    assert run("count", table, "--where", "event:$.mag::int = 11").output == "1\n"


def test_describe_and_clean(table: str) -> None:
    path = Path(table.removeprefix("delta:"))
    (path / "part-x.parquet").write_bytes(b"xyz")
    old = time.time() - 3600
    os.utime(path / "part-x.parquet", (old, old))
    assert json.loads(run("tables", "describe", table, "--json").output)["leftovers"] == []
    described = json.loads(run("tables", "describe", table, "--older-than", "30m", "--json").output)
    assert (described["version"], described["rows"], described["leftovers"]) == (2, 6, ["part-x.parquet"])
    assert "leftovers: part-x.parquet" in run("tables", "describe", table, "--older-than", "30m").output
    assert "can be removed" in run("tables", "clean", table, "--older-than", "30m").output
    assert (path / "part-x.parquet").exists()
    run("tables", "clean", table, "--older-than", "30m", "--remove")
    assert not (path / "part-x.parquet").exists()
    assert "is not a duration" in run("tables", "clean", table, "--older-than", "soon", code=2).output
    (path / "part-y.parquet").write_bytes(b"xyz")
    run("tables", "clean", table, "--older-than", "0", "--remove")
    assert not (path / "part-y.parquet").exists()


def test_overwrite_sort_and_select(table: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "plain", pa.table({"id": [5]}))
    source = f"delta:{tmp_path / 'plain'}"
    run("tables", "overwrite", source, table, "--select", "id", "--where", "id < 5", "--sort-by", "id")
    assert pqext.scan(source).to_table()["id"].to_pylist() == [0, 1, 2]


def test_overwrite_replaces_partitions(table: str, tmp_path: Path) -> None:
    path = Path(table.removeprefix("delta:"))
    source = tmp_path / "1.parquet"
    condition = ("--replace-where", "p = 'b'")
    outside = run("tables", "overwrite", table, source, *condition, code=1)
    assert "partition p=a, which filter= does not select" in str(outside.exception)
    assert DeltaTable(path).version() == 2
    assert "version 3: 1 row" in run("tables", "overwrite", table, source, *condition, "--where", "p = 'b'").output
    rows = pqext.scan(table, ["id", "p"]).to_table().to_pylist()
    assert sorted((row["p"], row["id"]) for row in rows) == [("a", 0), ("a", 1), ("a", 2), ("b", 11)]
    assert "id" in str(run("tables", "overwrite", table, source, "--replace-where", "id = 7", code=1).exception)
    run("tables", "overwrite", f"delta:{tmp_path / 'new'}", source, "--partition-by", "p", "--select", "id, p")
    assert DeltaTable(tmp_path / "new").metadata().partition_columns == ["p"]
