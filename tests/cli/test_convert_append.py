"""`pqext convert --append` adds rows in the layout of the file that is there; other readers say what is in it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from cli.test_convert import documents, run

import pqext
from pqext import variant

FIRST, SECOND = '{"a": 1, "b": "x"}\n{"a": 2}\n', '{"a": 3, "c": [1.5], "x": 4, "y": 5}\n{"d": null}\n'
EXPECTED = [{"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "c": [1.5], "x": 4, "y": 5}, {"d": None}]


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    for path, text in zip(paths, (FIRST, SECOND), strict=True):
        path.write_text(text, "utf-8")
    return paths


def added(path: Path, dest: Path, *options: str) -> str:
    result = run(path, dest, "--append", *options, force=False)
    assert result.exit_code == 0, result.output
    return result.output


def reject(path: Path, dest: object, *options: str) -> str:
    before = Path(str(dest)).read_bytes() if Path(str(dest)).exists() else None
    result = run(path, dest, "--append", *options, force=False)
    assert result.exit_code == 2
    assert (Path(str(dest)).read_bytes() if before is not None else None) == before
    return " ".join(result.output.split())


@pytest.mark.parametrize("shredding", ["infer", "none", "a BIGINT, c ARRAY<DECIMAL(9,2)>"])
def test_documents_are_shredded_like_the_file(inputs: tuple[Path, Path], tmp_path: Path, shredding: str) -> None:
    dest = tmp_path / "out.parquet"
    assert run(inputs[0], dest, "--shredding", shredding, force=False).exit_code == 0
    before = pq.read_schema(dest)
    assert "2 rows added, now in 2 row groups" in added(inputs[1], dest)
    assert pq.read_schema(dest) == before
    assert documents(dest) == EXPECTED
    added(inputs[1], dest, "--shredding", shredding)
    assert pqext.verify(dest).ok


def test_documents_are_appended_to_the_only_variant_column(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    run(inputs[0], dest, "--column", "event", force=False)
    added(inputs[1], dest)
    assert documents(dest, "event") == EXPECTED
    assert "column 'event' is missing; column 'v' is not in the file" in reject(inputs[1], dest, "--column", "v")


def test_different_shredding_is_rejected(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    run(inputs[0], dest, "--shredding", "a INT", force=False)
    for schema in ("a BIGINT", "none", "value=b STRING"):
        assert "is shredded as STRUCT<a: INT> in the file" in reject(inputs[1], dest, "--shredding", schema)


def test_variants_of_parquet_files_are_shredded_like_the_file(tmp_path: Path) -> None:
    table = pa.table({"value": variant.parse_json(pa.array(SECOND.splitlines()))})
    pqext.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "first.ndjson").write_text(FIRST, "utf-8")
    dest = tmp_path / "out.parquet"
    run(tmp_path / "first.ndjson", dest, "--shredding", "b STRING", force=False)
    before = pq.read_schema(dest)
    added(tmp_path / "in.parquet", dest)
    assert pq.read_schema(dest) == before
    assert documents(dest) == EXPECTED
    assert "column 'value' is shredded as" in reject(tmp_path / "in.parquet", dest, "--shredding", "none")


def test_csv_numbers_use_the_types_of_the_file(tmp_path: Path) -> None:
    dest, first, second = (tmp_path / name for name in ("out.parquet", "first.csv", "second.csv"))
    first.write_text("zip,price\n01234,1.50\n", "utf-8")
    second.write_text("price,zip\n2,99999\n", "utf-8")
    run(first, dest, "--types", "zip STRING, price DECIMAL(9,2)", force=False)
    added(second, dest)
    assert [str(row) for row in pq.read_table(dest)["price"].to_pylist()] == ["1.50", "2.00"]
    assert pq.read_table(dest)["zip"].to_pylist() == ["01234", "99999"]


def test_geometries_use_the_crs_of_the_file(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    dest = tmp_path / "out.parquet"
    inputs[0].write_text('{"x": 1, "y": 2}\n', "utf-8")
    run(inputs[0], dest, "--geometry", "g=x,y", "--crs", "EPSG:4326", "--edges", "spherical", force=False)
    added(inputs[1], dest, "--geometry", "g=x,y")
    points = [None if one is None else shapely.from_wkb(one) for one in pq.read_table(dest)["g"].to_pylist()]
    assert points == [shapely.Point(1, 2), shapely.Point(4, 5), None]
    told = reject(inputs[1], dest, "--geometry", "g=x,y", "--crs", "EPSG:3857")
    assert "states crs EPSG:3857 for column 'g', but the file has EPSG:4326" in told


@pytest.mark.parametrize("dest", ["s3://no-such-bucket/a.parquet", "https://host.invalid/a.parquet", "gs://b/a.parquet"])
def test_files_in_object_stores_are_rejected_immediately(inputs: tuple[Path, Path], dest: str) -> None:
    told = reject(inputs[0], dest)
    assert "append needs a local file, since stores replace complete files: write the rows to another file" in told
