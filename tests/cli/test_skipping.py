"""``pqext skipping``: stores built, refreshed, described, checked, merged and dropped; ``--skipping`` of queries."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app
from pqext.skipping import open_store

KEYS = {"k1": "30" * 16, "k2": "31" * 16}


def run(*arguments: object, code: int = 0) -> Result:
    found = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "300"})
    assert found.exit_code == code, (found.output, found.exception)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for number in range(4):
        event = variant.parse_json([json.dumps({"mag": number, "place": "abcd"[number]})])
        pqext.write_table(pa.table({"x": [number], "event": event}), tmp_path / "t" / f"{number}.parquet")
    return tmp_path / "t"


def test_store_commands_cover_the_life_cycle(table: Path) -> None:
    store = table / "_skipping"
    told = run("skipping", "build", table, "-i", "minmax:x", "-i", "minmax:event:$.mag::bigint", "-i", "paths:event")
    assert "4 objects: 4 indexed" in told.output
    asked = ("--where", "event:$.mag::bigint >= 3", "--skipping", store)
    assert run("count", table, *asked).output == "1\n"
    explained = run("query", table, *asked, "--explain").output
    assert "skips by skipping store: 3 files" in explained
    assert "reads 1 of 4 files" in explained
    assert json.loads(run("query", table, *asked, "--select", "x", "--json").output) == {"x": 3}
    assert "3" in run("head", table, *asked, "--select", "x").output

    pqext.write_table(pa.table({"x": [50], "event": variant.parse_json(['{"mag": 50}'])}), table / "0.parquet")
    assert "3 files up to date, 1 to refresh, 1 row out of date" in run("skipping", "check", table, code=1).output
    assert run("count", table, "--where", "x = 50", "--skipping", store).output == "1\n"
    assert "1 indexed" in run("skipping", "refresh", table).output
    assert "4 files up to date, 0 to refresh" in run("skipping", "check", table).output
    assert "1 row dropped" in run("skipping", "compact", store, "--source", table).output
    found = json.loads(run("skipping", "describe", store, "--source", table, "--json").output)
    assert (found["objects"], found["rows"], found["fresh"], found["stale"]) == (4, 4, 4, 0)
    assert [one["name"] for one in found["indexes"]] == ["minmax", "variant_minmax", "paths"]
    assert f"{store}: version 4" in run("skipping", "describe", table, "--all").output
    run("skipping", "drop", store, "-i", "minmax:x")
    assert "minmax of x" not in run("skipping", "describe", store).output
    run("skipping", "drop", store)
    assert "no data-skipping store" in str(run("skipping", "drop", store, code=1).exception)


def test_partition_paths_are_inferred_and_only_footers_are_read(table: Path, tmp_path: Path) -> None:
    run("skipping", "build", table, "-i", "infer:event", "--store", tmp_path / "store")
    names = [str(one) for one in open_store(tmp_path / "store").indexes]
    assert names == ["minmax of event[$.mag: BIGINT]", "minmax of event[$.place: STRING]"]
    told = run("skipping", "build", table, "-i", "minmax:x", "--store", tmp_path / "store", "--force", "--footers-only")
    assert "0 by reading rows" in told.output
    assert run("count", table, "--where", "x > 2", "--skipping", tmp_path / "store").output == "1\n"


def test_encrypted_store_reads_its_keys_from_a_file(table: Path, tmp_path: Path) -> None:
    keys, store = tmp_path / "keys.json", tmp_path / "store"
    keys.write_text(json.dumps(KEYS))
    run(
        "skipping", "build", table, "-i", "minmax:x", "--store", store, "--keys", keys, "--footer-key", "k1",
        "--column-key", "x=k2",
    )  # fmt: skip
    (part,) = store.glob("*.parquet")
    assert part.read_bytes()[-4:] == b"PARE"
    assert "key k2" in run("skipping", "describe", store, "--keys", keys).output
    refused = run("skipping", "describe", store, code=1)
    assert isinstance(refused.exception, ValueError)
    keys.write_text('{"k1": "not hexadecimal, but secret"}')
    wrong = run("skipping", "refresh", table, "--store", store, "--keys", keys, code=2).output
    assert "must be a JSON object that maps key ids to hexadecimal keys" in wrong
    assert "secret" not in wrong


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-i", "minmax"], "expected TYPE:COLUMN"),
        (["-i", "minmaxx:x"], "did you mean 'minmax'"),
        (["-i", "minmax:event:$.mag"], "the type of the value is missing"),
        (["-i", "minmax:x", "--footer-key", "k1"], "--footer-key requires --keys"),
        (["-i", "minmax:x", "--column-key", "x=k1"], "--column-key requires --footer-key"),
        ([], "Missing option"),
    ],
)
def test_invalid_arguments_of_build_are_reported(table: Path, arguments: list[str], told: str) -> None:
    assert told in run("skipping", "build", table, *arguments, code=2).output


def test_unknown_store_command_is_reported() -> None:
    assert "No such command 'refres'. Did you mean 'refresh'?" in run("skipping", "refres", code=2).output
    assert "skipping" in run("--help").output
