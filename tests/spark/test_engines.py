"""Every engine gives the rows and types that ``pqext.scan`` gives; Spark's own reader is chosen only where it can."""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import re
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext import variant as variants
from pqext.spark import explain_read, read, where

ROWS = 40
SHREDDING = "event STRING, price DECIMAL(9,2), n BIGINT, user STRUCT<uid: BIGINT, vip: BOOLEAN>, gone STRING"
EVENT = col("v").variant("$.event", "string")
PRICE = col("v").variant("$.price", "double")
NUMBER = col("v").variant("$.n", "int64")
UID = col("v").variant("$.user.uid", "int64")
GONE = col("v").variant("$.gone", "string")
TAGS = col("v").variant("$.tags", "array<string>")
OTHER = col("w").variant("$.x", "int64")
PLAIN = ["u8", "u32", "u64", "wall", "day", "d9", "d38", "bytes", "flag", "text", "listed", "pairs", "s"]


def _document(row: int, is_odd: bool) -> str | None:
    """An object, with a null field; now and then a number or nothing; if odd, with a price that is a text."""
    if row % 13 == 0:
        return None
    if row % 11 == 0:
        return str(row)
    price = "free" if is_odd and row % 7 == 0 else row / 4
    event = ["click", "view", "buy"][row % 3]
    user = {"uid": row, "vip": row % 2 == 0}
    return json.dumps({"event": event, "price": price, "n": row, "user": user, "tags": ["a", row], "gone": None})


def _table(first: int, is_odd: bool) -> pa.Table:
    rows = range(first, first + ROWS)
    floats = [[1.5, math.nan], [-0.0, None], [0.25, 0.0], [math.inf, -1.5]]  # of each row group
    columns = {
        "id": pa.array(rows, pa.int64()),
        "u8": pa.array([row * 6 % 256 for row in rows], pa.uint8()),
        "u32": pa.array([row + 2**31 for row in rows], pa.uint32()),
        "u64": pa.array([2**64 - 1 - row for row in rows], pa.uint64()),
        "f": pa.array([floats[row // 10 % 4][row % 2] for row in rows]),
        "ms": pa.array([row * 1001 for row in rows], pa.timestamp("ms", "UTC")),
        "wall": pa.array(rows, pa.timestamp("us")),
        "day": pa.array([dt.date(1, 3, 1) + dt.timedelta(days=row) for row in rows]),
        "d9": pa.array([Decimal(row) / 4 for row in rows], pa.decimal128(9, 2)),
        "d38": pa.array([Decimal(row) for row in rows], pa.decimal128(38, 18)),
        "bytes": pa.array([bytes([row]) for row in rows]),
        "flag": pa.array([row % 2 == 0 for row in rows]),
        "text": pa.array([None if row % 5 == 0 else f"t{row % 9}" for row in rows]),
        "s": pa.array([{"a": row, "c": None} if row % 3 else None for row in rows]),
        "listed": pa.array([[row] * (row % 3) for row in rows]),
        "pairs": pa.array([[("k", row)] for row in rows], pa.map_(pa.string(), pa.int64())),
        "v": variants.parse_json(pa.array([_document(row, is_odd) for row in rows])),
        "w": variants.parse_json(pa.array([json.dumps({"x": row}) for row in rows])),
    }
    columns["s"] = columns["s"].cast(pa.struct([("a", pa.int32()), ("c", pa.string())]))
    marked = {name: variants.variant_field(name) for name in ("v", "w")}
    schema = pa.schema([marked.get(name, pa.field(name, array.type)) for name, array in columns.items()])
    return pa.table([*columns.values()], schema=schema)


LAYOUTS: dict[str, list[tuple[bool, str | None]]] = {
    "whole": [(False, SHREDDING), (False, SHREDDING)],
    "residuals": [(False, SHREDDING), (True, SHREDDING)],
    "unshredded": [(False, None), (False, None)],
    "mixed": [(False, SHREDDING), (False, None)],
    "lacking": [(False, SHREDDING), (False, "event STRING, n INT")],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two files for each layout of a VARIANT."""
    root = tmp_path_factory.mktemp("engines")
    for name, files in LAYOUTS.items():
        for number, (is_odd, ddl) in enumerate(files):
            target = root / name / f"part={number}" / "rows.parquet"
            target.parent.mkdir(parents=True)
            shredding = {"w": "x BIGINT"} | ({"v": ddl} if ddl is not None else {})
            pqext.write_table(_table(number * ROWS, is_odd), target, row_group_rows=10, shredding=shredding)
    return root


def _as_text(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {name: _as_text(one) for name, one in value.items()}
    return [_as_text(one) for one in value] if isinstance(value, list | tuple) else str(value)


def _spark_rows(df: Any) -> list[str]:
    plain = [f"to_json({name}) AS {name}" if name in ("v", "w") else f"`{name}`" for name in df.columns]
    rows = df.selectExpr(*plain).collect()
    return sorted(str(_as_text([*row.asDict(recursive=True).values()])) for row in rows)


def _scanned(path: Path, columns: Any, condition: Any) -> list[str]:
    """The rows of ``pqext.scan``, in the form in which Spark shows them."""
    table = pqext.scan(path, columns, condition).to_table()
    for name in {"v", "w"} & {*table.column_names}:
        place = table.column_names.index(name)
        table = table.set_column(place, name, variants.to_json(table.column(name)))
    rows = []
    for row in table.to_pylist(maps_as_pydicts="strict"):
        for name in ("ms", "wall"):
            row |= {name: row[name].replace(tzinfo=None)} if name in row else {}
        rows.append(str(_as_text([*row.values()])))
    return sorted(rows)


def _plan(df: Any) -> str:
    text: str = df._jdf.queryExecution().executedPlan().toString()
    return text


def _engine(path: Path, columns: Any, condition: Any = None, **options: Any) -> tuple[str, str]:
    plan = explain_read(str(path), columns, condition, engine="auto", **options)
    return plan.engine, "; ".join(plan.reasons)


QUESTIONS: list[tuple[str, Any, Any, set[str]]] = [
    ("leaves", ["id", EVENT, PRICE, NUMBER, UID, GONE, "part"], None, {"whole"}),
    ("a decimal as double", [PRICE.alias("p")], (EVENT == "click") & (PRICE >= 3.5), {"whole"}),
    ("a tree", ["id"], (~(UID == 5) & (NUMBER.isin([3, 5, 7, 70]))) | EVENT.is_null(), {"whole", "residuals"}),
    ("two variants", ["id", "w"], (EVENT == "buy") & (OTHER > 50), set()),
    ("a list within", ["id", TAGS.alias("tags")], NUMBER < 9, set()),
    ("a folder", ["id", EVENT], (col("part") == 1) & (col("id") >= 70), {"whole", "residuals", "lacking"}),
]


@pytest.mark.spec("spark.engines")
@pytest.mark.parametrize(
    ("layout", "questions"),
    [
        ("whole", ["leaves", "a tree"]),
        ("lacking", ["a decimal as double"]),
        *(pytest.param(layout, [*map(itemgetter(0), QUESTIONS)], marks=pytest.mark.slow) for layout in LAYOUTS),
    ],
)
def test_spark_reader_matches_a_scan(spark: Any, folder: Path, layout: str, questions: list[str]) -> None:
    path = folder / layout
    for name, columns, condition, chosen in QUESTIONS:
        if name not in questions:
            continue
        df = read(spark, str(path), columns, condition, engine="native")
        assert "FileScan parquet" in _plan(df), name
        assert "Union" not in _plan(df), name
        assert _spark_rows(df) == _scanned(path, columns, condition), name
        engine, reasons = _engine(path, columns, condition, spark=spark)
        assert engine == ("native" if layout in chosen else "python"), (name, reasons)
        assert ("Arrow" in _plan(df)) == (layout not in chosen), name


@pytest.mark.spec("spark.engines")
def test_plain_columns_have_the_types_and_values_of_a_scan(spark: Any, folder: Path) -> None:
    path = folder / "unshredded"
    between = dt.datetime(1970, 1, 1, 0, 0, 10, 10500, tzinfo=dt.UTC)  # half a millisecond behind row 10
    for columns, condition in [
        (["id", "f", "ms", *PLAIN], None),
        (["id"], (col("f") >= 0.0)),
        (["id"], (col("ms") < between)),
        ([col("s.a").alias("sa")], col("text").starts_with("t1") & (col("u64") > 2**64 - 50) & (col("d9") != 1)),
    ]:
        df = read(spark, str(path), columns, condition, engine="auto")
        assert "FileScan parquet" in _plan(df)
        assert _spark_rows(df) == _scanned(path, columns, condition), str(condition)
    given = ["id", "f", "ms", *PLAIN, EVENT, PRICE.alias("p"), "v"]
    assert read(spark, str(path), given, engine="native").schema == read(spark, str(path), given).schema


def test_spark_skips_row_groups_by_a_leaf_but_not_by_bounds_without_nan(spark: Any, folder: Path) -> None:
    path = str(folder / "whole")
    by_event = _plan(read(spark, path, ["id"], EVENT == "buy", engine="native"))
    assert "EqualTo(v.typed_value.event.typed_value,buy)" in by_event
    by_price = _plan(read(spark, path, ["id"], PRICE >= 15.2, engine="native"))
    assert "GreaterThanOrEqual(v.typed_value.price.typed_value," in by_price
    assert "price.typed_value >= 15.20" in by_price
    assert "PythonUDF" not in by_price
    floats = explain_read(path, ["f"], engine="native")
    assert floats.reasons[-1].startswith("no row groups are skipped within files")
    assert str(floats).splitlines()[1] == "  native: Spark's reader reads 2 of 2 files"
    # What is read can be filtered by Spark itself without losing a row.
    assert read(spark, path, ["f"], engine="native").where("f > 1e300").count() == 20


def test_fields_that_differ_in_case_are_distinguished(spark: Any, tmp_path: Path) -> None:
    for name in ("Event", "event"):
        schema = pa.schema([variants.variant_field("v")])
        table = pa.table([variants.parse_json([json.dumps({name: name})])], schema=schema)
        pqext.write_table(table, tmp_path / f"of-{name}.parquet", shredding={"v": f"{name} STRING"})
    assert _engine(tmp_path, [EVENT])[0] == "python"
    df = read(spark, str(tmp_path), [EVENT.alias("e")], engine="native")
    assert sorted(df.collect(), key=str) == [("event",), (None,)]


def test_spark_receives_no_files_that_cannot_match(spark: Any, folder: Path) -> None:
    df = read(spark, str(folder / "whole"), ["id"], NUMBER > 70, engine="native")
    assert "InMemoryFileIndex(1 paths)" in _plan(df)
    assert df.count() == len(_scanned(folder / "whole", ["id"], NUMBER > 70))
    none = read(spark, str(folder / "whole"), ["id", EVENT], NUMBER > 700, engine="native")
    assert (none.columns, none.count()) == (["id", "v.event"], 0)


def test_native_read_is_a_data_frame_of_the_session(spark: Any, folder: Path) -> None:
    path = str(folder / "whole")
    before = spark.conf.get("spark.sql.parquet.ignoreVariantAnnotation", "false")
    df = read(spark, path, ["id", EVENT.alias("event"), "w"], engine="native")
    assert df.sparkSession is spark
    assert spark.conf.get("spark.sql.parquet.ignoreVariantAnnotation", "false") == before
    df.createOrReplaceTempView("engines")
    found = spark.sql("SELECT event, count(*) n FROM engines GROUP BY event ORDER BY event")
    expected: dict[Any, int] = {}
    for row in pqext.scan(path, [EVENT.alias("event")]).to_table().to_pylist():
        expected[row["event"]] = expected.get(row["event"], 0) + 1
    assert {row.event: row.n for row in found.collect()} == expected
    assert where(df, col("event") == "buy").count() == expected["buy"]
    narrowed = where(df, OTHER >= 70)
    assert narrowed.count() == 10
    assert "InMemoryFileIndex(1 paths)" in _plan(narrowed)


def _refused(path: Path, columns: Any = None, condition: Any = None, **options: Any) -> str:
    with pytest.raises(pqext.UnsupportedError, match=r"Spark's own reader cannot run this read") as error:
        explain_read(str(path), columns, condition, engine="native", **options)
    assert explain_read(str(path), columns, condition, engine="auto", **options).engine == "python"
    return str(error.value)


def test_each_obstacle_to_the_native_engine_is_named(spark: Any, folder: Path, tmp_path: Path) -> None:
    path = folder / "whole"
    text = _refused(path, [(col("id") * 2).alias("twice")], schema="union")
    assert 'schema="union" is applied by pqext; column twice is computed by pqext' in text
    for options, message in (
        ({"metrics_path": str(tmp_path)}, "metrics_path"),
        ({"memory_bytes": 1 << 30}, "memory_bytes"),
        ({"include_row_numbers": "row"}, "include_row_numbers"),
    ):
        with pytest.raises(pqext.UnsupportedError, match=message):
            read(spark, str(path), engine="native", **options)
    columns = {
        "half": pa.array([1.0], pa.float16()), "ns": pa.array([1], pa.timestamp("ns")), "A": pa.array([1]),
        "a": pa.array([1]), "uuid": pa.array([bytes(16)], pa.uuid()), "split": pa.array([1.0]), "ok": pa.array([1]),
    }  # fmt: skip
    odd = tmp_path / "odd.parquet"
    pqext.write_table(pa.table(columns), odd, compression={"ok": "snappy", "split": "brotli"})
    for name, message in {
        "half": "of type FLOAT16", "ns": "a timestamp of nanoseconds", "a": "in case only", "uuid": "of type UUID",
        "split": "a codec that Spark does not include",
    }.items():  # fmt: skip
        assert re.search(message, _refused(odd, [name])), name
    assert _engine(odd, ["ok"])[0] == "native"
    assert "is in the files as well as in their folders" in _refused(_nested_folder(tmp_path), ["a"])
    odd.rename(tmp_path / "_odd.parquet")
    assert "a hidden file" in _refused(tmp_path / "_odd.parquet", ["ok"])


def _nested_folder(root: Path) -> Path:
    target = root / "inside" / "a=1" / "file.parquet"
    target.parent.mkdir(parents=True)
    pqext.write_table(pa.table({"a": [1], "b": [2]}), target)
    return root / "inside"


def test_geometries_and_spatial_conditions_use_pqext(tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    table = pa.table({"id": [1], "geom": pqext.geo.from_points([1.0], [2.0])})
    pqext.write_table(table, path, geometry={"geom": "OGC:CRS84"})
    assert "conditions on geometries" in _refused(path, ["id"], bbox=(0, 0, 5, 5))
    assert "GEOMETRY" in _refused(path, ["geom"])
    assert _engine(path, ["id"])[0] == "native"


def test_auto_explains_why_pqext_reads(folder: Path) -> None:
    for columns, condition, message in (
        (["v"], None, r"column v is read as VARIANT, and footers do not prove"),
        (["id"], PRICE > 3, r"v\[\$.price: double\] is not stored in one typed leaf alone"),
        (["id"], col("id") % 2 == 0, "is evaluated by pqext"),
        ([NUMBER.alias("n")], col("id") == UID, "is evaluated by pqext"),
    ):
        engine, reasons = _engine(folder / "residuals", columns, condition)
        assert engine == "python"
        assert re.search(message, reasons), reasons
    assert _engine(folder / "whole", [EVENT], None, trust_statistics=False)[0] == "python"


def test_choice_of_auto_is_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pqext.spark"):
        _engine(folder / "residuals", ["v"], None)
    (text,) = [record.getMessage() for record in caplog.records if record.name == "pqext.spark.reading.native"]
    assert text.startswith("engine='auto' reads with 'python': column v is read as VARIANT")


@pytest.mark.parametrize("engine", ["nativ", "spark", None])
def test_unknown_engines_are_rejected(spark: Any, folder: Path, engine: Any) -> None:
    with pytest.raises(ValueError, match="engine must be one of python, native, auto"):
        read(spark, str(folder / "whole"), engine=engine)
    with pytest.raises(ValueError, match="did you mean 'native'" if engine == "nativ" else "engine must be one of"):
        explain_read(str(folder / "whole"), engine=engine)
