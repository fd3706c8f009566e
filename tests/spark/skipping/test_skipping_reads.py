"""Reads of Spark leave out files that a data-skipping store refuses, and no row is lost by it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import CorruptFileError, UnsupportedError, col, geo, skipping, variant
from pqext.skipping import Box, MinMax, ValueList, VariantPaths
from pqext.spark import (
    build_skipping,
    explain_read,
    query,
    read,
    read_metrics,
    read_with_skipping,
    refresh_skipping,
    where,
)

GUST = col("report").variant("$.gust", "double")
PLACE = "OGC:CRS84"
CSV: dict[str, Any] = {"format": "csv", "schema": "id int, name string", "options": {"header": True}}


def write(folder: Path, year: int, month: int) -> Path:
    """A month of weather: 28 rows, temperatures from ten times the month, points along a meridian."""
    days = range(28)
    reports = [{"gust": year - 2000 + day / 100} | ({"alarm": True} if month == 3 else {}) for day in days]
    table = pa.table({
        "temp": [month * 10 + day / 4 for day in days],
        "place": geo.from_points([month * 20.0] * 28, [float(day) for day in days]),
        "report": variant.parse_json([json.dumps(one) for one in reports]),
    })  # fmt: skip
    path = folder / f"year={year}" / f"month-{month}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pqext.write_table(table, path, geometry={"place": PLACE}, shredding={"report": "gust DOUBLE"})
    return path


def poison(data: Path, store: Path) -> None:
    """Put bytes that are no Parquet in the place of each third month: reading them is an error.

    The times stay, and the store is as another writer leaves one: it knows files by these alone.
    """
    shutil.rmtree(store / "_pqext")
    for path in data.glob("*/month-3.parquet"):
        before = path.stat()
        path.write_bytes(b"x" * before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(scope="module")
def weather(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Nine files of weather, and a store of them that tasks of Spark have built."""
    root = tmp_path_factory.mktemp("weather")
    for year in (2022, 2023, 2024):
        for month in (1, 2, 3):
            write(root / "data", year, month)
    indexes = [MinMax("temp"), Box("place"), MinMax(GUST), VariantPaths("report")]
    done = build_skipping(spark, str(root / "data"), indexes, str(root / "store"))
    assert (done.objects, done.added, done.failed) == (9, 9, ())
    return root / "data", root / "store"


@pytest.fixture
def copied(weather: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The weather at a place of its own, with its times, and a store of it."""
    shutil.copytree(weather[0], tmp_path / "data")
    skipping.build(str(tmp_path / "data"), [MinMax("temp"), MinMax(GUST)], str(tmp_path / "store"))
    return tmp_path / "data", tmp_path / "store"


def files_read(frame: Any) -> int:
    """The files that Spark's own reader reads of a data frame, by Spark's metrics."""
    frame = frame.select("*")  # whose metrics are new
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    return sum(one.metrics().get("numFiles").get().value() for one in plans(plan) if one.metrics().contains("numFiles"))


def plans(plan: Any) -> Iterator[Any]:
    yield plan
    children = [plan.children().apply(at) for at in range(plan.children().size())]
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        children.append(plan.executedPlan())
    for child in children:
        yield from plans(child)


FILTERS = {
    "a column": (col("temp") > 35, 3),
    "a value in a VARIANT": (GUST >= 24, 3),
    "a path that is not there": (col("report").variant("$.alarm", "boolean") == True, 3),  # noqa: E712
    "both": ((col("temp") > 35) & (GUST >= 24), 1),
    "one of two": ((col("temp") < 12) | (GUST > 24.2), 5),
    "a box": (col("place").intersects((50, 0, 70, 9)), 3),
    "all": (col("temp") > 0, 9),
}


@pytest.mark.parametrize("name", FILTERS)
def test_excluded_files_are_not_opened(
    spark: Any, weather: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    data, store = map(str, weather)
    filter, kept = FILTERS[name]
    frame = read(spark, data, ["temp", "year"], filter, skipping=store, metrics_path=str(tmp_path / "metrics"))
    rows = sorted(map(tuple, frame.collect()))
    expected = pqext.scan(data, columns=["temp", "year"], filter=filter).to_table().to_pydict()
    assert rows == sorted(zip(*expected.values(), strict=True))
    assert rows
    assert read_metrics(str(tmp_path / "metrics")).files <= kept
    before, after = explain_read(data, where=filter), explain_read(data, where=filter, skipping=store)
    assert (before.files_skipped, after.files_skipped) == (0, 9 - kept)
    refused = [task.path for task in after.tasks if task.evidence == "skipping store"]
    assert [pqext.scan(path, filter=filter).count() for path in refused] == [0] * (9 - kept)
    assert (f"skips by skipping store: {9 - kept} file" in str(after)) == (kept < 9)


@pytest.mark.parametrize("engine", ["python", "native", "auto"])
def test_every_engine_omits_excluded_files(spark: Any, copied: tuple[Path, Path], engine: Any) -> None:
    data, store = copied
    poison(data, store)
    frame = read(spark, str(data), ["temp"], col("temp") < 25, skipping=str(store), engine=engine)
    assert frame.count() == 3 * (28 + 20)
    if engine != "python":
        assert files_read(frame) == 6
    with pytest.raises(Exception, match=r"month-3\.parquet"):
        read(spark, str(data), ["temp"], col("temp") < 25, engine=engine).count()


def test_queries_filters_and_options_use_the_store(spark: Any, copied: tuple[Path, Path]) -> None:
    data, store = copied
    poison(data, store)
    [row] = query(spark, str(data), {"rows": "count"}, where="temp < 20", skipping=str(store)).collect()
    assert row["rows"] == 84
    whole = read(spark, str(data), ["temp"], skipping=skipping.open_store(str(store)))
    assert where(whole, "temp < 20").count() == 84
    options = {"where": "temp < 20", "skipping": str(store), "columns": "temp"}
    assert spark.read.format("pqext").options(**options).load(str(data)).count() == 84


def test_changed_and_new_files_are_read(spark: Any, copied: tuple[Path, Path]) -> None:
    data, store = copied
    changed = data / "year=2022" / "month-1.parquet"
    shutil.copy(data / "year=2022" / "month-3.parquet", changed)
    shutil.copy(changed, data / "year=2022" / "month-9.parquet")
    wanted = col("temp") > 36
    assert read(spark, str(data), where=wanted, skipping=str(store)).count() == 5 * 3
    assert explain_read(str(data), where=wanted, skipping=str(store)).files_skipped == 5
    done = refresh_skipping(spark, str(data), str(store))
    assert (done.objects, done.added, done.kept) == (10, 2, 8)
    assert read(spark, str(data), where=col("temp") < 12, skipping=str(store)).count() == 2 * 8
    assert explain_read(str(data), where=col("temp") < 12, skipping=str(store)).files_skipped == 8
    assert refresh_skipping(spark, str(data), str(store)).added == 0


def test_columns_unknown_to_the_store_skip_nothing(spark: Any, weather: tuple[Path, Path]) -> None:
    data, store = map(str, weather)
    assert explain_read(data, where=col("report").is_not_null(), skipping=store).files_skipped == 0
    assert explain_read(data, where=col("temp") > 35, skipping=store, trust_statistics=False).files_skipped == 0


def test_stores_of_other_tables_are_rejected_or_ignored(
    spark: Any, weather: tuple[Path, Path], copied: tuple[Path, Path]
) -> None:
    other = str(copied[1])
    with pytest.raises(Exception, match="none of the files"):
        read(spark, str(weather[0]), where=col("temp") > 35, skipping=other).count()
    ignored = skipping.open_store(other, on_foreign="ignore")
    assert read(spark, str(weather[0]), ["temp"], col("temp") > 36, skipping=ignored).count() == 9
    with pytest.raises(TypeError, match="a data-skipping store or its path, not int"):
        read(spark, str(weather[0]), skipping=3)
    held = skipping.open_store(other, decryption=pqext.encryption.FileDecryption(key_retriever=lambda label: b""))
    with pytest.raises(UnsupportedError, match="open the store with decryption="):
        read(spark, str(weather[0]), skipping=held)


def test_failed_job_leaves_no_parts(spark: Any, weather: tuple[Path, Path], tmp_path: Path) -> None:
    class Broken(MinMax):
        """An index that fails on some objects."""

        name = "broken"

        def collector(self, values: pa.DataType) -> Any:
            made = super().collector(values)

            class Collector:
                def add(self, values: pa.Array) -> None:
                    if values[0].as_py() > 23.9:
                        raise RuntimeError("out of order")
                    made.add(values)

                def cell(self) -> pa.Array:
                    return made.cell()

            return Collector()

    with pytest.raises(Exception, match="out of order"):
        build_skipping(spark, str(weather[0]), [Broken(GUST)], str(tmp_path / "store"))
    assert not [*tmp_path.rglob("*.parquet")]


def test_objects_that_cannot_be_indexed_are_reported(spark: Any, copied: tuple[Path, Path], tmp_path: Path) -> None:
    data, store = copied
    (data / "year=2022" / "month-2.parquet").write_bytes(b"no Parquet")
    done = build_skipping(spark, str(data), [MinMax("temp")], str(tmp_path / "other"))
    [(path, reason)] = done.failed
    assert path.endswith("month-2.parquet")
    assert "Parquet" in reason
    with pytest.raises(FileExistsError, match="overwrite=True"):
        build_skipping(spark, str(data), [MinMax("temp")], str(store))
    with pytest.raises((ValueError, CorruptFileError), match="nowhere"):
        build_skipping(spark, str(data), [MinMax("nowhere")], str(tmp_path / "third"))
    assert not skipping.is_indexed(str(tmp_path / "third"))


@pytest.fixture
def stations(tmp_path: Path) -> Path:
    """Four files of CSV, ten rows each, with a name that URIs write otherwise."""
    folder = tmp_path / "stations #1"
    folder.mkdir()
    for number in range(4):
        lines = [f"{number * 10 + row},S{number}" for row in range(10)]
        (folder / f"part %20 {number}.csv").write_text("\n".join(["id,name", *lines]))
    return folder


def test_files_of_other_formats_are_indexed_and_skipped(spark: Any, stations: Path, tmp_path: Path) -> None:
    store, data = str(tmp_path / "store"), str(stations)
    done = build_skipping(spark, data, [MinMax("id"), ValueList("name")], store, **CSV)
    assert (done.objects, done.added, done.read) == (4, 4, 4)
    frame = read_with_skipping(spark, data, "ID > 33 or NAME = 'S1'", store, **CSV)
    assert sorted(row["id"] for row in frame.collect()) == [*range(10, 20), *range(34, 40)]
    assert files_read(frame) == 2
    assert files_read(read_with_skipping(spark, data, "name like 'S%'", store, **CSV)) == 4
    last = stations / "part %20 3.csv"
    last.write_text("id,name\n15,S9\n")
    assert read_with_skipping(spark, data, "id = 15", store, **CSV).count() == 2
    done = refresh_skipping(spark, data, store, **CSV)
    assert (done.objects, done.added, done.kept) == (4, 1, 3)
    frame = read_with_skipping(spark, data, "name = 'S9'", store, **CSV)
    assert ([tuple(row) for row in frame.collect()], files_read(frame)) == ([(15, "S9")], 1)


@pytest.mark.spec("skipping.read-as")
def test_indexes_of_other_read_options_are_not_used(spark: Any, stations: Path, tmp_path: Path) -> None:
    store, data = str(tmp_path / "store"), str(stations)
    build_skipping(spark, data, [MinMax("id"), ValueList("name")], store, **CSV)
    as_text = CSV | {"schema": "id string, name string"}
    found = read_with_skipping(spark, data, col("id") > "4", store, **as_text)
    assert (found.count(), files_read(found)) == (5 + 0, 4)  # 5 to 9, as texts
    swapped = CSV | {"options": {"header": True, "nullValue": "S3"}}
    assert files_read(read_with_skipping(spark, data, col("name") == "S3", store, **swapped)) == 4
    with pytest.raises(ValueError, match="pass the same format, schema and options"):
        refresh_skipping(spark, data, store, **swapped)
    with pytest.raises(TypeError, match="indexed in Parquet files only"):
        build_skipping(spark, data, [MinMax(GUST)], str(tmp_path / "other"), **CSV)
    with pytest.raises(ValueError, match="not supported for Parquet"):
        build_skipping(spark, data, [MinMax("id")], str(tmp_path / "other"), options={"header": True})


def test_refreshes_match_published_updates(spark: Any, xskipper: Path, tmp_path: Path) -> None:
    sets, how = xskipper / "input_datasets", {"format": "csv", "options": {"header": True, "inferSchema": True}}
    for name, expected in (("sample1", "10-23-JT"), ("sample1Na", "20-33-HT")):
        data, store = tmp_path / name, str(tmp_path / f"{name}.store")
        shutil.copytree(sets / "sample1/initial/csv", data, copy_function=shutil.copyfile)
        build_skipping(spark, str(data), [MinMax("temp")], store, **how)
        for path in sorted((sets / name / "updated/csv").iterdir()):
            shutil.copyfile(path, data / path.name)
            os.utime(data / path.name, (0, 0))
        assert refresh_skipping(spark, str(data), store, **how).added == 3
        files = sorted(map(str, data.iterdir()))
        reasons = skipping.open_store(store).prune_reasons(files, col("temp").between(0, 10))
        skipped = {Path(path).stem for path, reason in zip(files, reasons, strict=True) if reason is not None}
        frame = spark.read.format("csv").options(**how["options"]).load(str(data)).where("temp BETWEEN 0 AND 10")
        matching = {row[0] for row in frame.select("_metadata.file_name").distinct().collect()}
        assert expected in skipped
        assert not {f"{one}.csv" for one in skipped} & matching
