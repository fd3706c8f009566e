"""The queries of the first data-skipping store, on its stores and on stores of ours over its data sets.

Objects that are skipped hold no row that matches, by Spark's own answer. Those that its tests expect are among them,
but for some that are listed here with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from spark.sessions import INTERPRETED
from spark.test_settings import settings

from pqext import filters
from pqext.dataset.expressions import Expression
from pqext.dataset.expressions.visitors import replace_columns
from pqext.skipping import BloomFilter, MinMax, ValueList, open_store
from pqext.skipping.format.names import split_object_names
from pqext.skipping.store.clauses import Evidence, exclusions
from pqext.skipping.store.objects import Objects
from pqext.spark import build_skipping, read_with_skipping
from reference import skipping_store

KINDS = {"minmax": MinMax, "valuelist": ValueList, "bloomfilter": BloomFilter}
CSV = {"header": True, "inferSchema": True}
OPTIONS: dict[str, dict[str, Any]] = {"csv": CSV, "json": {}, "orc": {}, "parquet": {}}

_NOT_BY_RANGE = "<> of all three values of an object is no range: the ends of 0.1 and 2.2 leave room for others"
_NULL_ENDS = "the store does not say whether ends that are null are those of no value, or are not known"
UNREACHED: Mapping[tuple[str, str], str] = {
    ("testing minmax index with inequality condition", "0-3-JTH"): _NOT_BY_RANGE,
}
"""Expected objects that are not skipped, by the test's name."""
UNREACHED_IN_THEIRS: Mapping[tuple[str, str], str] = {
    **UNREACHED,
    ("testing all Na values in minmax index", "0-3-JTH"): _NULL_ENDS,
    ("testing all Na values in minmax index - negative value", "0-3-JTH"): _NULL_ENDS,
}
"""The same, in the stores that were published."""


@dataclass(frozen=True)
class Case:
    """A query of the published tests on one data set."""

    name: str
    dataset: str
    where: str
    indexes: tuple[tuple[str, str], ...]
    expected: frozenset[str]
    versions: range = range(1, 5)
    number: int = 0

    def filter(self, columns: Sequence[str], zoned: bool) -> Expression:
        """The query's condition, with the columns' names as files have them."""
        zone = "timestamptz '{}Z'" if zoned else "timestamp '{}'"
        text = re.sub(r"to_timestamp\('(.*?)Z'\)", lambda found: zone.format(found[1]), self.where)
        text = re.sub(r"date != '", "date != date '", text)
        names = {name.lower(): name for name in columns}

        def normalise(column: Any) -> Any:
            return type(column)((names.get(column.path[0].lower(), column.path[0]),))

        found: Expression = replace_columns(filters.from_sql(text), normalise)
        return found


def stem(path: str) -> str:
    return Path(path).name.partition(".")[0]


def indexes_of(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((kind, column) for kind, column in (one.split() for one in given))


def version_cases(xskipper: Path) -> Iterator[Case]:
    for one in json.loads((xskipper / "test_config/ParquetVersionTests.json").read_text())["versionTests"]:
        about = one["testDescription"]
        versions = range(about.get("minVersion", 1), about.get("maxVersion", 4) + 1)
        yield Case(
            about["name"], about["dataSetPath"].split("/")[1], about["query"].partition("WHERE")[2],
            indexes_of(about["indexTypes"]), frozenset(map(stem, about["expectedSkippedFiles"])), versions,
            about["testId"],
        )  # fmt: skip


def api_cases(xskipper: Path) -> Iterator[Case]:
    for about in json.loads((xskipper / "test_config/APITests.json").read_text())["tests"]:
        for place in about["inputLocations"]:
            expected = frozenset(map(stem, place["expectedSkippedFiles"]))
            dataset = place["inputLocation"].split("/")[1]
            where = condition_on(about["query"], place["viewName"])
            yield Case(about["name"], dataset, where, indexes_of(place["indexTypes"]), expected)


def condition_on(query: str, view: str) -> str:
    """The condition of a query that is on a view: of its part in a union, or of those that a join names it in."""
    for part in re.split(r"UNION ALL", query):
        match = re.search(r"FROM\s+(\w+)\s+(JOIN.*?)?WHERE(.*)", part, re.IGNORECASE)
        assert match is not None
        if match[2] is not None:
            return " and ".join(re.findall(rf"{view}\.(\w+ < [\d.]+)", match[3]))
        if match[1] == view:
            return match[3]
    raise AssertionError(query)


def truth(spark: Any, xskipper: Path, cases: Sequence[Case]) -> dict[tuple[str, str], set[str]]:
    """The objects of each data set and condition that hold a row that matches, by Spark."""
    found: dict[tuple[str, str], set[str]] = {}
    for dataset in sorted({case.dataset for case in cases}):
        data = xskipper / "input_datasets" / dataset / "initial/csv"
        frame = spark.read.format("csv").options(**CSV).load(str(data))
        wheres = sorted({case.where for case in cases if case.dataset == dataset})
        told = [F.expr(f"CASE WHEN {where} THEN 1 ELSE 0 END") for where in wheres]
        matches = [F.max(one).alias(f"w{at}") for at, one in enumerate(told)]
        with settings(spark, **INTERPRETED):
            rows = frame.groupBy(F.col("_metadata.file_name").alias("file")).agg(*matches).collect()
        for at, where in enumerate(wheres):
            found[dataset, where] = {stem(row["file"]) for row in rows if row[f"w{at}"]}
    return found


@pytest.mark.spec("skipping.unknown")
def test_published_stores_skip_as_expected_without_losing_rows(spark: Any, xskipper: Path) -> None:
    cases = [*version_cases(xskipper)]
    matching = truth(spark, xskipper, cases)
    asked = 0
    unreached = set()
    for case in cases:
        for version in case.versions:
            stores = xskipper / f"parquet_version_tests/end_to_end/version={version}/testID={case.number}"
            for folder in stores.glob("*"):
                store = open_store(str(folder))
                names = pa.array(list(skipping_store.read(folder).rows))
                paths, modified = split_object_names(names)
                count = len(names)
                unknown = np.full(count, -1, np.int64)
                objects = Objects(tuple(names), paths, modified, unknown, pa.nulls(count, pa.string()))
                filter = case.filter(["temp", "address"], zoned=False)  # instants of INT96 are read without a zone
                refused = exclusions(filter, store.evidence(objects, filter), count)
                skipped = {stem(paths[int(at)].as_py()) for one in refused for at in np.flatnonzero(one.objects)}
                assert not skipped & matching[case.dataset, case.where], (case, version)
                unreached |= {(case.name, name) for name in case.expected - skipped}
                asked += 1
    assert asked == 4 * 24
    assert unreached == set(UNREACHED_IN_THEIRS)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "csv", "json", "orc"])
def test_our_stores_skip_as_expected_without_losing_rows(
    spark: Any, xskipper: Path, tmp_path: Path, format: str
) -> None:
    every = [*api_cases(xskipper)]
    cases = [case for case in every if (xskipper / "input_datasets" / case.dataset / "initial" / format).is_dir()]
    matching = truth(spark, xskipper, cases)
    unreached, options = set(), OPTIONS[format]
    for dataset in sorted({case.dataset for case in cases}):
        data, store = xskipper / "input_datasets" / dataset / "initial" / format, tmp_path / dataset
        wanted = sorted({one for case in cases if case.dataset == dataset for one in case.indexes})
        indexes = [KINDS[kind](column) for kind, column in wanted]
        done = build_skipping(spark, str(data), indexes, str(store), format=format, options=options)
        files = sorted(path for path in data.rglob("*") if path.is_file())
        assert done.objects == len(files)
        opened = open_store(str(store))
        columns = spark.read.format(format).options(**options).load(str(data)).columns
        for case in (one for one in cases if one.dataset == dataset):

            def named(one: Evidence, case: Case = case) -> bool:
                return (one.index.name, str(one.index.operand)) in case.indexes

            reasons = opened.prune_reasons([str(path) for path in files], case.filter(columns, zoned=True), named)
            skipped = {stem(path.name) for path, reason in zip(files, reasons, strict=True) if reason is not None}
            assert not skipped & matching[case.dataset, case.where], case
            unreached |= {(case.name, name) for name in case.expected - skipped}
    assert len(cases) == (42 if format == "csv" else 40)
    assert unreached == set(UNREACHED)
    last = cases[-1]
    data = xskipper / "input_datasets" / last.dataset / "initial" / format
    frame = read_with_skipping(
        spark, str(data), last.where, str(tmp_path / last.dataset), format=format, options=options
    )
    read = {stem(row[0]) for row in frame.select("_metadata.file_name").distinct().collect()}
    assert read == matching[last.dataset, last.where]
