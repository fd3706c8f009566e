"""What newcomers try: names of other libraries, wrong kinds of arguments. Each error says what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pqext
from pqext import col, geo, variant


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("mistakes") / "stations.parquet"
    table = pa.table(
        {
            "station": variant.parse_json(['{"bikes": 3}', '{"bikes": "broken"}']),
            "at": geo.from_points([2.5, 2.4], [48.5, 48.6]),
            "user": [{"name": "Ann"}, {"name": "Bo"}],
        }
    )
    pqext.write_table(table, path, geometry={"at": "OGC:CRS84"})
    return str(path)


NAMES: list[tuple[Any, str, str]] = [
    (pqext, "read_parquet", "pqext.read_table"),
    (pqext, "write_parquet", "use pqext.write_table"),
    (pqext, "scan_parquet", "use pqext.scan"),
    (pqext, "read_parquet_schema", "did you mean 'read_schema'"),
    (pqext, "concatenat", "did you mean 'concatenate'"),
    (geo, "from_point", "did you mean 'from_points'"),
    (variant, "parse_jsn", "did you mean 'parse_json'"),
    (geo, "points_from_xy", "use from_points"),
    (variant, "variant_get", "strict=True"),
    (variant, "from_json", "use parse_json"),
]


@pytest.mark.parametrize(("owner", "name", "hint"), NAMES, ids=[name for _, name, _ in NAMES])
def test_name_from_another_library_suggests_ours(owner: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; .*{hint}"):
        getattr(owner, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("schema_arrow", "use arrow_schema"),
        ("num_row_groups", "len"),
        ("read_row_group", "row_groups="),
        ("nm_rows", "num_rows"),
    ],
)
def test_file_suggests_replacements_for_pyarrow_members(path: str, name: str, hint: str) -> None:
    with pqext.open(path) as file, pytest.raises(AttributeError, match=f"'ParquetFile' object .*'{name}'; .*{hint}"):
        getattr(file, name)


def test_scan_and_writer_suggest_members_of_other_libraries(path: str, tmp_path: Path) -> None:
    name = "collect"
    with pytest.raises(AttributeError, match="'Scan' object has no attribute 'collect'; use to_table"):
        getattr(pqext.scan(path), name)
    name, table = "write", pa.table({"a": [1]})
    with pqext.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        with pytest.raises(AttributeError, match="'ParquetWriter' object has no attribute 'write'; use write_table"):
            getattr(writer, name)
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("num_rows", r"count\(\)"), ("to_arrow", "use to_table"), ("sort", "order_by"), ("shape", "count"),
     ("columns", "schema.names"), ("group_by", "to_polars"), ("to_pylist", r"to_table\(\).to_pylist\(\)"),
     ("files", r"scan.plan\(\)"), ("sink_parquet", r"pqext.write_table\(scan, path\)")],
)  # fmt: skip
def test_scan_suggests_replacements_for_table_and_frame_members(path: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"'Scan' object has no attribute '{name}'; .*{hint}"):
        getattr(pqext.scan(path), name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("is_in", "did you mean 'isin'"), ("startswith", "'starts_with'"), ("isNotNull", "'is_not_null'"),
     ("getItem", "variant"), ("desc", "descending=True"), ("is_valid", "use is_not_null"), ("str", "starts_with")],
)  # fmt: skip
def test_column_suggests_replacements_for_other_expression_members(name: str, hint: str) -> None:
    for value, kind in ((col("a"), "Column"), (col("a") + 1, "Arithmetic")):
        with pytest.raises(AttributeError, match=f"'{kind}' object has no attribute '{name}'; .*{hint}"):
            getattr(value, name)


def test_scan_is_not_mistaken_for_a_list_of_batches(path: str) -> None:
    scan: Any = pqext.scan(path)
    for frame in (lambda: pandas.DataFrame(scan), lambda: pandas.Series(scan), lambda: np.asarray(scan)):
        with pytest.raises(TypeError, match=r"a scan .*scan.to_pandas\(\)"):
            frame()
    with pytest.raises(TypeError, match=r"a scan has no length; call scan.count\(\)"):
        len(scan)
    for key, advice in (("at", r"select\('at'\)"), (["at"], "select"), (0, "limit"), (slice(2), "head")):
        with pytest.raises(TypeError, match=f"a scan has no items: .*{advice}"):
            scan[key]
    assert bool(scan)
    assert sum(batch.num_rows for batch in list(scan)) == 2
    assert pa.table(scan.select("user")).num_rows == 2
    assert polars.DataFrame(scan.select("user")).height == 2


@pytest.mark.parametrize(
    ("write", "option", "hint"),
    [(pqext.write_table, "partition_by", "use pqext.write_dataset"),
     (pqext.write_table, "partition_cols", "use pqext.write_dataset"),
     (pqext.write_table, "column_encoding", "use encodings"),
     (pqext.write_table, "sort_by", "use sorting for rows that are sorted already"),
     (pqext.write_dataset, "partitioning", "did you mean 'partition_by'"),
     (pqext.write_dataset, "existing_data_behavior", "use mode"),
     (pqext.write_dataset, "format", "not needed")],
)  # fmt: skip
def test_writers_suggest_replacements_for_options_of_datasets(
    tmp_path: Path, write: Callable[..., Any], option: str, hint: str
) -> None:
    with pytest.raises(TypeError, match=f"unknown option '{option}'; {hint}"):
        write(pa.table({"a": [1]}), tmp_path / "out", **{option: "a"})
    assert not (tmp_path / "out").exists()


def test_write_table_to_a_folder_suggests_write_dataset(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="write_dataset to write into a folder"):
        pqext.write_table(pa.table({"a": [1]}), tmp_path)


def test_order_by_suggests_descending_for_ascending(path: str) -> None:
    ascending: dict[str, Any] = {"ascending": False}
    with pytest.raises(TypeError, match="no argument 'ascending'; did you mean 'descending'"):
        pqext.scan(path).order_by("user.name", **ascending)


@pytest.mark.parametrize(
    ("package", "read"),
    [("pandas", lambda scan: scan.to_pandas()),
     ("polars", lambda scan: scan.to_polars()),
     ("polars", lambda scan: scan.to_polars(lazy=True))],
)  # fmt: skip
def test_frames_name_a_missing_package(
    path: str, monkeypatch: pytest.MonkeyPatch, package: str, read: Callable[[pqext.Scan], Any]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"{package} is needed: pip install {package}"):
        read(pqext.scan(path).select("user"))


def test_names_probed_by_tools_get_no_hint(path: str) -> None:
    assert not hasattr(pqext, "__wrapped__")
    assert not hasattr(pqext.scan(path), "__dataframe__")
    name = "_ope"
    with pytest.raises(AttributeError, match=r"^module 'pqext' has no attribute '_ope'$"):
        getattr(pqext, name)


READS: list[tuple[str, Callable[[str], Any], str]] = [
    ("one name", lambda path: pqext.read_table(path, "station"), r"columns=\['station'\]"),
    ("one name of a file", lambda path: pqext.open(path).read("station"), r"columns=\['station'\]"),
    ("names in one text", lambda path: pqext.read_table(path, "at, user"), r"columns=\['at', 'user'\]"),
    ("a star", lambda path: pqext.read_table(path, "*"), "omit it to read all columns"),
    ("Spark's pattern", lambda path: pqext.read_table(path, pathGlobFilter="*.parquet"), "the pattern into the path"),
    ("DuckDB's union", lambda path: pqext.scan(path, union_by_name=True), 'use schema="union"'),
    ("a cast of a variant", lambda path: pqext.read_table(path, filter="station::int = 3"), r"station:\$::int"),
    ("a path without $", lambda _: col("station").variant("bikes", "int"), r"starts with \$, as in \$.name"),
    (
        "a path as a column",
        lambda path: pqext.read_table(path, ["station.bikes"]),
        r"no column 'station.bikes'; .* col\('station'\).variant\('\$.bikes'",
    ),
    ("SQL's order", lambda path: pqext.scan(path).order_by("at desc").to_table(), r"order_by\('at', descending=True\)"),
    ("SQL's usual order", lambda path: pqext.scan(path).order_by("at ASC").to_table(), r"write order_by\('at'\)$"),
    ("Django's order", lambda path: pqext.scan(path).order_by("-at").to_table(), r"order_by\('at', descending=True\)"),
    (
        "a path in a tuple",
        lambda path: pqext.read_table(path, filter=[("station.bikes", ">", 3)]),
        r"inside the VARIANT column 'station'; .* col\('station'\).variant\('\$.bikes'",
    ),
    ("a field that a struct lacks", lambda path: pqext.read_table(path, ["user.nam"]), "did you mean 'user.name'"),
    (
        "a whole variant",
        lambda path: pqext.read_table(path, filter=col("station") > 3),
        r"can only be compared with null.* col\('station'\).variant\('\$.name'",
    ),
    (
        "a whole struct",
        lambda path: pqext.read_table(path, filter=col("user") == "Ann"),
        r"can only be compared with null.* col\('user.name'\)",
    ),
    ("pyarrow's", lambda path: pqext.read_table(path, filter=pc.field("a") > 3), r"pqext.col.* not pyarrow\."),
    ("a point", lambda _: col("at").dwithin((2.3, 48.8), 100), r"a point is shapely.Point\(x, y\)"),
    ("three bounds", lambda _: col("at").intersects((2, 48, 3)), "not tuple of 3 numbers"),
    (
        "JSON text", lambda _: variant.get(pa.array(['{"a": 1}']), "$.a"),
        "not string; parse JSON with variant.parse_json",
    ),
    ("a table of variants", lambda path: variant.to_python(pqext.read_table(path)), "pass its column 'station'"),
    (
        "one scalar",
        lambda path: variant.to_python(pqext.read_table(path)["station"][0]),
        "pass a slice",
    ),
    (
        "a mapping as a schema",
        lambda path: variant.to_table(pqext.read_table(path)["station"], {"bikes": "int"}),
        "unknown shredding option 'bikes'; a schema is DDL text, as in a INT; the options are schema",
    ),
    (
        "a cast without a name",
        lambda path: pqext.read_table(path, [(col("a.b") * -2).cast("string")]),
        r": \(col\('a.b'\) \* -2\).cast\('string'\).alias\('name'\)$",
    ),
    (
        "brackets",
        lambda _: cast(Any, col("user"))["name"],
        r"col\('user'\).field\('name'\), .* col\('user'\).variant\('\$.name', 'string'\)",
    ),
    ("an element", lambda _: cast(Any, col("station"))[3], r"col\('station'\).variant\('\$\[3\]', 'string'\)"),
    ("a loop over a column", lambda _: list(cast(Any, col("station"))), "not iterable"),
    ("a schema of a file", lambda path: cast(Any, pqext.open)(path, schema="union"), "pqext.scan .* take a schema"),
    (
        "& in text", lambda path: pqext.read_table(path, filter="a > 28 & b > 3"),
        "at character 5: join conditions with 'and' and 'or', not with & and",
    ),
    ("a name in text", lambda path: pqext.read_table(path, filter="usr.name = 'x'"), "'user'.*\\n.*\\n +\\^"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in READS], ids=[case[0] for case in READS])
def test_error_states_the_replacement(path: str, make: Callable[[str], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(path)


def test_reports_and_schemas_print_readably(path: str) -> None:
    with pqext.open(path) as file:
        shown: list[object] = [pqext.verify(path), pqext.inspect(path), file.schema]
    for one in shown:
        text = str(one)
        assert repr(one) == text
        assert text
        assert text == text.rstrip()
        assert all(line == line.rstrip() for line in text.splitlines())


def test_missing_and_misplaced_arguments_are_reported_immediately(path: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nofile\.ndjson"):
        variant.read_json(tmp_path / "nofile.ndjson")
    nothing: Any = None
    with pytest.raises(TypeError, match='compression must not be None; pass "uncompressed"'):
        pqext.WriteOptions(compression=nothing)
    keywords: dict[str, Any] = {"where": "a > 0"}
    with pytest.raises(TypeError, match=r"unknown option 'where'; use filter"):
        pqext.read_table(path, **keywords)
    with pytest.raises(TypeError, match=r"unknown option 'zzqq'; the options are columns, filter, .*shredded"):
        pqext.read_table(path, zzqq=nothing)
    assert geo.from_wkt(["POINT (1 2)", None]).equals(geo.from_wkt(pa.array(["POINT (1 2)", None])))
    assert variant.schema_of_file(path) == variant.schema_of_file(path, "station")


def test_dots_in_column_names_are_distinguished_from_fields(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"a.b": [1, 2]}), tmp_path / "a.parquet")
    for filter in (col(["a.b"]) > 1, col("a.b") > 1, "a.b > 1"):
        assert pqext.read_table(tmp_path / "a.parquet", filter=filter).num_rows == 1
    for filter, written in ((col(["a", "b"]) > 1, r"col\(\['a\.b'\]\)"), ('"a"."b" > 1', r'"a\.b"')):
        with pytest.raises(ValueError, match=f"write {written} for the column 'a.b'"):
            pqext.read_table(tmp_path / "a.parquet", filter=filter)


def test_mismatched_files_are_reported_by_column(tmp_path: Path) -> None:
    for name, table in (("a", {"x": [1]}), ("b", {"y": [1]}), ("c", {"x": ["1"]})):
        pqext.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    for other, told in (("b", "'x' is missing; column 'y' is not in"), ("c", "'x' has type string instead of int64")):
        with pytest.raises(ValueError, match=told):
            pqext.concatenate([tmp_path / "a.parquet", tmp_path / f"{other}.parquet"], tmp_path / "d.parquet")
