"""Options of the reader, which all commands that read take from one declaration; and standard input for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.test_help import commands
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app
from pqext.cli.errors import describe
from pqext.cli.locations import store_stdin
from pqext.cli.reader_options import ReaderOptions
from pqext.core.base.errors import EncryptionError, LimitError, UnsupportedError, VariantError
from pqext.encryption import FileDecryption, FileEncryption
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_files import annotated

COMMANDS = commands(app)
OTHERS = {"demo", "skipping describe", "skipping compact", "skipping drop"}
"""Commands that read no files of the user with options of the reader."""
READERS = sorted(name for name in COMMANDS.keys() - OTHERS if not name.startswith("tables "))
KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"


def run(*arguments: object, input: bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), input=input, env={"COLUMNS": "300"})


@pytest.fixture
def unread_input() -> Iterator[None]:
    """Standard input that no command of this process has read."""
    store_stdin.cache_clear()
    yield
    store_stdin.cache_clear()


def rows_of(result: Result) -> list[Any]:
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def command(name: str) -> click.Command:
    found: Any = app
    for word in name.split():
        found = found.get_command(click.Context(found), word)
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", READERS)
def test_every_reading_command_accepts_the_reader_options(name: str) -> None:
    assert {one.name for one in fields(ReaderOptions)} <= {parameter.name for parameter in command(name).params}


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """INT96 timestamps, of which nanoseconds do not hold one."""
    path, times = tmp_path / "far.parquet", [datetime(9999, 12, 31), None, datetime(2020, 1, 1)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return path


def test_int96_beyond_nanoseconds_is_an_error_that_names_the_option(far: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    for arguments in (["query"], ["head"], ["convert", "-f"], ["repair", "-f"]):
        paths = [far] if arguments[0] in ("query", "head") else [far, out]
        result = run(*arguments, *paths)
        assert isinstance(result.exception, UnsupportedError)
        assert "pass --int96 us" in describe(result.exception)
        assert run(*arguments, *paths, "--int96", "us").exit_code == 0
    expected = pq.read_table(far, coerce_int96_timestamp_unit="us")["t"].to_pylist()
    assert pq.read_table(out)["t"].to_pylist() == expected
    found = rows_of(run("query", far, "--int96", "us", "--format", "json"))
    assert [row["t"] and datetime.fromisoformat(row["t"]) for row in found] == expected
    counted = run("count", far, "--int96", "us", "--where", "t > timestamp_ntz'2021-01-01'")
    assert counted.stdout == "1\n"
    failed = run("skipping", "build", far, "--index", "minmax:t")
    assert "pass --int96 us" in failed.stderr + describe(failed.exception or Exception())  # type: ignore[arg-type]
    assert run("skipping", "build", far, "--index", "minmax:t", "--int96", "us", "--force").exit_code == 0


def test_memory_is_bounded_by_the_option_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(100_000)}), path, compression="none", use_dictionary=False)
    limits = ["--memory-bytes", "1000"]
    small = tmp_path / "nulls.parquet"
    pq.write_table(pa.table({"a": pa.nulls(3_000_000, pa.int64())}), small)
    result = run("convert", small, tmp_path / "out.parquet", *limits)
    assert isinstance(result.exception, LimitError)
    assert "raise it with --memory-bytes" in describe(result.exception)
    for enough in (1 << 30, "1GiB", "1 gb", "1000MB"):
        assert run("convert", small, tmp_path / "out.parquet", "-f", "--memory-bytes", enough).exit_code == 0
    kilobyte = run("convert", small, tmp_path / "out.parquet", "-f", "--memory-bytes", "1KB")
    assert describe(kilobyte.exception or Exception()) == describe(result.exception)  # type: ignore[arg-type]
    for wrong in ("10XB", "-1", "0", "1e6", ""):
        failed = run("head", small, "--memory-bytes", wrong)
        assert failed.exit_code == 2
        assert "--memory-bytes" in failed.stderr
    assert rows_of(run("count", path, "--json", *limits)) == [{"rows": 100_000}]


def test_nesting_is_bounded_by_the_option_named_in_the_error(tmp_path: Path) -> None:
    path, kind = tmp_path / "deep.parquet", pa.int32()
    for _ in range(20):
        kind = pa.struct([("a", kind)])
    pq.write_table(pa.table({"a": pa.nulls(1, kind)}), path)
    result = run("head", path, "--max-depth", "10")
    assert isinstance(result.exception, LimitError)
    assert "--max-depth 10" in describe(result.exception)
    assert run("head", path, "--max-depth", "22").exit_code == 0
    documents = tmp_path / "deep.json"
    documents.write_text("[" * 50 + "]" * 50)
    convert = ["convert", documents, tmp_path / "out.parquet", "--json-layout", "lines", "--shredding", "none"]
    failed = run(*convert, "--max-depth", "49")
    assert failed.exit_code == 1
    assert "more deeply than --max-depth allows" in describe(failed.exception)  # type: ignore[arg-type]
    assert run(*convert, "--max-depth", "50").exit_code == 0


def test_strict_rejects_files_that_are_otherwise_readable(tmp_path: Path) -> None:
    path, kind = tmp_path / "v.parquet", storage_struct(shredding_schema("INT"))
    both = {"metadata": b"\x01\0\0", "value": reference.primitive("int32", 5), "typed_value": 1}
    path.write_bytes(annotated(pa.table({"v": pa.array([both], kind)})))
    assert rows_of(run("head", path, "--format", "json")) == [{"v": 1}]
    out = tmp_path / "out.parquet"
    for arguments in (["head", path], ["query", path], ["convert", path, out], ["reshred", path, out]):
        result = run(*arguments, "--strict")
        assert isinstance(result.exception, VariantError)
        assert result.exception.rule == "shredding.value.exclusive"


def test_encrypted_files_are_read_with_a_key_file(tmp_path: Path) -> None:
    path, keys, out = tmp_path / "secret.parquet", tmp_path / "keys.json", tmp_path / "out.parquet"
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    aad = {"aad_prefix": "lake", "store_aad_prefix": False}
    pqext.write_table(table, path, encryption=FileEncryption(KEY, "kf", {"b": OTHER}, encrypt_columns="all", **aad))
    assert pqext.read_table(path, decryption=FileDecryption(KEY, {"b": OTHER}, aad_prefix="lake")).equals(table)
    for stated in (
        {"footer": KEY.hex(), "columns": {"b": OTHER.hex()}, "aad_prefix": "lake"},
        {"ids": {"kf": KEY.hex()}, "columns": {"b": OTHER.hex()}, "aad_prefix": "lake"},
    ):
        keys.write_text(json.dumps(stated))
        given = ["--decryption-keys", keys]
        assert rows_of(run("query", path, "--format", "json", *given)) == table.to_pylist()
        for arguments in (["inspect"], ["schema"], ["verify"], ["metrics", "--format", "delta"], ["count"]):
            assert run(*arguments, path, *given).exit_code == 0
        assert run("convert", path, out, "-f", *given).exit_code == 0
        assert pq.read_table(out).equals(table)
    assert isinstance(run("head", path).exception, EncryptionError)
    for wrong in (f'{{"footer": "{KEY.hex()}0"}}', f'["{KEY.hex()}"]', f'{{"foot": "{KEY.hex()}"}}', '{"columns": 5}'):
        keys.write_text(wrong)
        result = run("head", path, "--decryption-keys", keys)
        assert result.exit_code == 2
        assert "keys in hexadecimal" in " ".join(result.output.split())
        assert KEY.hex() not in result.output
    missing = run("head", path, "--decryption-keys", tmp_path / "none.json")
    assert isinstance(missing.exception, FileNotFoundError)


@pytest.mark.parametrize(
    "arguments",
    [["schema", "-"], ["query", "-", "--explain"], ["inspect", "-"], ["inspect", "-", "--format", "json"],
     ["verify", "-"], ["verify", "-", "--format", "json"]],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.usefixtures("unread_input")
def test_messages_name_standard_input_instead_of_its_copy(arguments: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "in.parquet")
    data = (tmp_path / "in.parquet").read_bytes()
    for content, status in ((data, 0), (data[:-5], 1)):
        store_stdin.cache_clear()
        done = run(*arguments, input=content)
        assert done.exit_code == status
        text = done.output + (describe(done.exception) if isinstance(done.exception, Exception) else "")
        assert "standard input" in " ".join(text.split())
        assert "/pqext-" not in text


@pytest.mark.parametrize(
    "arguments",
    [["query", "-"], ["head", "-"], ["count", "-"], ["schema", "-"], ["inspect", "-"], ["verify", "-"],
     ["metrics", "-", "--format", "delta"], ["convert", "-", "OUT", "--input-format", "parquet"],
     ["reshred", "-", "OUT"], ["unshred", "-", "OUT"], ["repair", "-", "OUT"], ["recover", "-", "OUT"],
     ["rewrite-footer", "-", "-o", "OUT"], ["map", "-", "-o", "OUT.html"]],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.usefixtures("unread_input")
def test_every_command_reads_standard_input(arguments: list[str], tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    points = pqext.geo.from_points([1.0, 2.0], [3.0, 4.0])
    table = pa.table({"g": points, "v": variant.parse_json(['{"a": 1}', "2"])})
    pqext.write_table(table, path, geometry={"g": "OGC:CRS84"}, shredding={"v": "a INT"})
    piped = run(*(one.replace("OUT", str(out)) for one in arguments), input=path.read_bytes())
    assert piped.exit_code == 0, piped.exception
    if "OUT" in arguments:
        assert pqext.read_table(out).num_rows == 2
    elif arguments[0] in ("query", "head", "count", "metrics"):
        assert piped.stdout.split() == run(*[path if one == "-" else one for one in arguments]).stdout.split()


def test_process_accepts_standard_input(tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"n": [1]}), path)
    data, command = path.read_bytes(), [sys.executable, "-m", "pqext"]
    failed = subprocess.run([*command, "query", "-"], input=data[:-5], capture_output=True)
    assert failed.returncode == 1
    assert b"standard input" in failed.stderr
    assert b"/pqext-" not in failed.stderr
    subprocess.run([*command, "convert", "-", out], input=data, check=True)
    assert pqext.read_table(out).to_pylist() == [{"n": 1}]


def test_invalid_utf8_is_handled_as_the_option_specifies(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    texts = pa.array([b"a", b"b\xff"]).view(pa.string())
    pq.write_table(pa.table({"s": texts}), path)
    for arguments in (["query", path], ["convert", "-f", path, out], ["repair", "-f", path, out]):
        failed = run(*arguments)
        assert arguments[0] == "repair" or "pass --invalid-utf8 replace or binary" in describe(failed.exception)  # type: ignore[arg-type]
        assert run(*arguments, "--invalid-utf8", "replace").exit_code == 0
        assert arguments[0] == "query" or pq.read_table(out)["s"].to_pylist() == ["a", "b\ufffd"]
    assert rows_of(run("query", path, "--invalid-utf8", "replace", "--format", "json"))[1] == {"s": "b\ufffd"}
