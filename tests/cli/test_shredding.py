"""`pqext reshred` and `pqext unshred` rewrite files, and say what they did in a few lines."""

from __future__ import annotations

from io import BytesIO
from json import loads
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import variant
from pqext.cli import app
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_files import annotated


def run(*arguments: object) -> Result:
    """The command, which may replace a file that is there."""
    forced = [*map(str, arguments), "--force"]
    return CliRunner().invoke(app, forced, env={"COLUMNS": "500"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    parsed = variant.parse_json(pa.array(['{"a": 1, "b": "x"}', '{"a": 2}', None]))
    path = tmp_path / "in.parquet"
    schema = pa.schema([variant.variant_field("v"), variant.variant_field("w")])
    pqext.write_table(pa.table([parsed, parsed], schema=schema), path)
    return path


def typed(path: Path, column: str) -> list[str]:
    kind = pq.read_schema(path).field(column).type
    return [child.name for child in kind.field("typed_value").type] if kind.get_field_index("typed_value") >= 0 else []


def test_schema_applies_to_all_columns_or_to_named_ones(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    result = run("reshred", source, dest, "--shredding", "a INT, b STRING")
    assert result.exit_code == 0
    assert "3 rows in 1 row group" in result.output
    assert "v: STRUCT<a: INT, b: STRING>" in result.output
    assert typed(dest, "v") == typed(dest, "w") == ["a", "b"]
    run("reshred", source, dest, "--shredding", "v=b STRING", "--shredding", "w=infer")
    assert (typed(dest, "v"), typed(dest, "w")) == (["b"], ["a", "b"])
    run("reshred", source, dest)
    assert typed(dest, "v") == ["a", "b"]
    result = run("unshred", dest, dest)
    assert result.exit_code == 0
    assert typed(dest, "v") == []
    texts = [variant.to_json(pqext.read_table(path)["w"]).to_pylist() for path in (source, dest)]
    assert [text and loads(text) for text in texts[0]] == [text and loads(text) for text in texts[1]]


def test_inference_and_coercion_options_match_the_writer(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    how = '{"schema": "infer", "max_fields": 1, "integers": "narrowest"}'
    result = run("reshred", source, dest, "--shredding", how)
    assert result.exit_code == 0
    assert "v: STRUCT<a: TINYINT>" in result.output
    exact = 'v={"schema": "a BIGINT", "coerce": "exact"}'
    run("reshred", source, dest, "--shredding", exact, "--shredding", "w=a BIGINT")
    columns = pqext.read_table(dest, shredded=True)
    values = [columns[name].combine_chunks().field("typed_value").field("a").field("typed_value") for name in "vw"]
    assert [array.to_pylist() for array in values] == [[None, None, None], [1, 2, None]]
    variant.reshred_file(source, dest, {"v": {"schema": "a BIGINT", "coerce": "equivalent"}}, coerce="exact")
    (array,) = pqext.read_table(dest, shredded=True)["v"].chunks
    assert array.field("typed_value").field("a").field("typed_value").to_pylist() == [1, 2, None]
    result = run("reshred", source, dest, "--shredding", '{"shema": "a INT"}')
    assert result.exit_code == 2
    assert "unknown shredding option" in result.output


def test_invalid_schemas_are_reported_before_any_work(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    for wrong in (["v=a NUMBER"], ["a INT", "v=a INT"], ["v=a INT", "v=b INT"]):
        options = [part for schema in wrong for part in ("--shredding", schema)]
        assert run("reshred", source, dest, *options).exit_code == 2
    result = run("reshred", source, dest, "--shredding", "x=a INT")
    assert isinstance(result.exception, ValueError)
    assert not dest.exists()


def test_invalid_values_abort_or_become_null(tmp_path: Path) -> None:
    rows = [
        {"metadata": reference.encode_metadata([]), "value": value, "typed_value": None} for value in (b"\0", b"\x0c")
    ]
    path, dest = tmp_path / "in.parquet", tmp_path / "out.parquet"
    column = pa.array(rows, storage_struct(shredding_schema("INT")))
    path.write_bytes(annotated(pa.table({"v": column})))
    result = run("reshred", path, dest)
    assert result.exit_code == 1
    assert "row 1" in str(result.exception)
    assert "variant.value.layout" in str(result.exception)
    assert not dest.exists()
    result = run("reshred", path, dest, "--invalid-values", "null")
    assert result.exit_code == 0
    assert "1 value could not be read and became null" in result.output
    assert pqext.verify(dest).ok


def test_rows_lost_to_corruption_are_reported(source: Path, tmp_path: Path) -> None:
    bad, mended = tmp_path / "bad.parquet", tmp_path / "mended.parquet"
    pqext.write_table(pqext.read_table(source), source, append=True)  # a row group that is not damaged
    data = bytearray(source.read_bytes())
    data[60] ^= 255
    bad.write_bytes(data)
    for arguments in (("repair", bad, mended), ("unshred", bad, mended, "--on-corrupt", "skip", "--force")):
        done = run(*arguments)
        assert done.exit_code == 0
        assert "rows lost to 1 corrupt range" in done.output
        assert "rows 0 to" in done.output
    assert run("unshred", bad, mended, "--force").exit_code == 1
    for command in (["repair"], ["unshred", "--on-corrupt", "skip"], ["reshred", "--on-corrupt", "skip"]):
        kept = CliRunner().invoke(app, [*command, str(bad), str(bad)])
        assert kept.exit_code == 1
        assert "pass --force to accept the loss" in str(kept.exception)
        assert bad.read_bytes() == data
    assert run("repair", bad, bad, "--force").exit_code == 0
    assert pqext.verify(bad).ok


def test_unreadable_file_is_not_replaced_by_an_empty_one(source: Path, tmp_path: Path) -> None:
    data = bytearray(source.read_bytes())
    data[60] ^= 255
    source.write_bytes(data)
    for command in (["repair"], ["unshred", "--on-corrupt", "skip"], ["reshred", "--on-corrupt", "skip"]):
        for dest in (source, tmp_path / "out.parquet"):
            done = CliRunner().invoke(app, [*command, str(source), str(dest), "--force"])
            assert done.exit_code == 1
            assert "none of the 3 rows can be read at the offsets in the footer: " in str(done.exception)
            assert "`pqext recover` finds pages by their headers" in str(done.exception)
            assert source.read_bytes() == data
            assert [one.name for one in tmp_path.iterdir()] == [source.name]


def test_urls_are_supported_and_existing_files_are_preserved(source: Path, tmp_path: Path) -> None:
    """A ``file://`` URL is the path it names; IN itself may be replaced, another file only with ``--force``."""
    url = source.as_uri()
    there = "memory://reshred/there.parquet"
    for command, old, new in [
        ("reshred", url, "memory://reshred/new.parquet"),
        ("unshred", "memory://reshred/new.parquet", "memory://reshred/new.parquet"),
        ("repair", "memory://reshred/new.parquet", there),
        ("unshred", url, source),
    ]:
        result = CliRunner().invoke(app, [command, old, str(new)])
        assert result.exit_code == 0, result.output
        assert pqext.read_table(str(new)).num_rows == 3
    other = tmp_path / "other.parquet"
    pqext.write_table(pa.table({"n": [1]}), other)
    for refused in (other.as_uri(), there):
        for asked in (["reshred", url], ["query", url, "-o"], ["convert", url]):
            result = CliRunner().invoke(app, [*asked, refused])
            assert (result.exit_code, "already exists" in result.output) == (2, True)
    assert pqext.read_table(other).to_pylist() == [{"n": 1}]
    notes = tmp_path / "notes.json"
    notes.write_text("{}")
    result = CliRunner().invoke(app, ["convert", url, notes.as_uri(), "--force"])
    assert (result.exit_code, notes.read_text()) == (2, "{}")


def test_result_is_also_reported_as_json(tmp_path: Path) -> None:
    data = bytearray(stored(pa.table({"id": range(100)})))
    data[60] ^= 1
    (tmp_path / "in.parquet").write_bytes(data)
    result = run("repair", tmp_path / "in.parquet", tmp_path / "out.parquet", "--format", "json")
    told = loads(result.stdout)
    assert {name: told[name] for name in ("rows", "row_groups", "invalid", "schemas")} == {
        "rows": 50, "row_groups": 1, "invalid": 0, "schemas": {}
    }
    (lost,) = told["damage"]
    assert lost.pop("reason")
    assert lost == {"row_group": 0, "column": "id", "start": 0, "stop": 50}


def test_shredding_is_also_reported_as_json(source: Path, tmp_path: Path) -> None:
    for command, schema in (("reshred", "STRUCT<a: INT, b: STRING>"), ("unshred", "VARIANT")):
        options = ["--shredding", "a INT, b STRING"] if command == "reshred" else []
        told = loads(run(command, source, tmp_path / "out.parquet", "--format", "json", *options).stdout)
        assert told == {"rows": 3, "row_groups": 1, "invalid": 0, "schemas": {"v": schema, "w": schema}, "damage": []}


def stored(table: pa.Table) -> bytes:
    made = BytesIO()
    pqext.write_table(table, made, row_group_rows=50, compression="zstd")
    return made.getvalue()
