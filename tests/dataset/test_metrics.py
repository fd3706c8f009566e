"""What a run took is counted where it happens: requests and bytes by the source, pages and rows by an own count."""

from __future__ import annotations

import io
import re
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base import usage
from pqext.core.format import compression
from pqext.core.io import source
from pqext.core.io.source import MemorySource
from pqext.core.read import row_group_reader
from pqext.core.read.leaf_column import LeafColumnBuilder
from pqext.dataset import scan_planner
from pqext.dataset.execution import metrics, stages
from pqext.dataset.files import file_set
from pqext.dataset.planning import planner

PAGE, GROUP, ROWS = 100, 1000, 4000
TABLE = pa.table({"a": range(ROWS), "b": [n % 10 for n in range(ROWS)], "s": [f"text {n}" for n in range(ROWS)]})


class Counted(MemorySource):
    """A file in memory that counts what is asked of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.fetched: list[int] = []

    def _fetch(self, offset: int, length: int) -> Any:
        self.fetched.append(length)
        return super()._fetch(offset, length)


def _file() -> bytes:
    sink = io.BytesIO()
    pqext.write_table(TABLE, sink, row_group_rows=GROUP, page_rows=PAGE, dictionary=False, compression="uncompressed")
    return sink.getvalue()


FILE = _file()


def test_metrics_are_empty_before_a_run() -> None:
    scan = pqext.scan(FILE)
    assert scan.metrics is None
    assert scan.schema.names == ["a", "b", "s"]
    assert scan.plan(pages=True)
    assert scan.metrics is None


def test_run_without_a_filter_reads_every_page_and_evaluates_none() -> None:
    source = Counted(FILE)
    scan = pqext.scan(source)
    scan.to_table()
    found = scan.metrics
    assert found is not None
    assert (found.requests, found.bytes) == (len(source.fetched), sum(source.fetched))
    assert (found.files, found.row_groups, found.rows) == (1, 4, ROWS)
    assert (found.pages, found.rows_evaluated) == (3 * ROWS // PAGE, 0)


def test_filter_on_sorted_values_decodes_only_pages_that_may_match() -> None:
    source = Counted(FILE)
    scan = pqext.scan(source, ["a"]).filter((col("a") >= 1250) & (col("a") < 1350))
    assert scan.to_table()["a"].to_pylist() == [*range(1250, 1350)]
    found = scan.metrics
    assert found is not None
    assert (found.row_groups, found.pages, found.rows_evaluated, found.rows) == (1, 2, 2 * PAGE, 100)
    assert (found.requests, found.bytes) == (len(source.fetched), sum(source.fetched))


def test_stages_evaluate_each_row_once() -> None:
    scan = pqext.scan(FILE).filter((col("a") < 2000) & (col("b") == 3) & (col("s") != "text 3"))
    assert scan.to_table().num_rows == 199
    assert scan.metrics is not None
    assert scan.metrics.rows_evaluated == 2000


def test_counting_records_metrics(tmp_path: Path) -> None:
    scan = pqext.scan(FILE)
    assert scan.count() == ROWS
    assert scan.metrics is not None
    assert (scan.metrics.rows, scan.metrics.pages, scan.metrics.row_groups) == (ROWS, 0, 0)
    few = scan.filter(col("b") == 1).limit(10)
    assert few.count() == 10
    assert few.metrics is not None
    assert few.metrics.rows == 10
    assert few.metrics.row_groups == 1


def test_each_run_is_counted_separately_even_on_an_open_source() -> None:
    source = Counted(FILE)
    scan = pqext.scan(source, ["b"])
    scan.to_table()
    first = scan.metrics
    scan.to_table()
    second = scan.metrics
    assert first is not None
    assert second is not None
    assert (first.requests, first.bytes, first.pages) == (second.requests, second.bytes, second.pages)
    assert first.requests + second.requests == len(source.fetched)
    narrowed = scan.limit(5)
    assert narrowed.metrics is None
    assert scan.metrics == second


def test_run_reports_progress_while_active() -> None:
    scan = pqext.scan(FILE)
    batches = scan.to_batches(500)
    next(batches)
    assert scan.metrics is not None
    assert scan.metrics.rows == 500
    assert scan.metrics.row_groups >= 1
    del batches
    assert scan.metrics.rows == 500


def test_times_add_up_to_the_total_without_the_consumer() -> None:
    scan = pqext.scan(FILE).filter(col("b") < 5)
    for _ in scan.to_batches(300):
        sum(range(100_000))
    found = scan.metrics
    assert found is not None
    phases = [value for name, value in found.to_dict().items() if name.endswith("_seconds")]
    assert len(phases) == 7
    assert min(phases) > 0
    assert sum(phases) >= 0.99 * found.seconds  # more where threads worked side by side


def test_files_of_other_writers_and_code_paths_are_counted(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"{number}.parquet")
        pq.write_table(TABLE.slice(1000 * number, 1000), paths[-1], row_group_size=500)
    scan = pqext.scan(tmp_path).filter(col("a") >= 1500)
    assert scan.count() == 1500
    assert scan.metrics is not None
    assert (scan.metrics.files, scan.metrics.row_groups) == (3, 3)


def test_metrics_have_a_repr_and_are_immutable() -> None:
    scan = pqext.scan(FILE, ["a"])
    scan.to_table()
    found = scan.metrics
    assert found is not None
    assert repr(found).startswith("<pqext.Metrics files: 1; row groups: 4; requests: ")
    assert " ms; in all: " in repr(found)
    assert re.search(r">pages</th><td[^>]*>40</td>", found._repr_html_())
    assert found.to_dict()["pages"] == 40
    with pytest.raises(FrozenInstanceError):
        found.pages = 3  # type: ignore[misc]


@pytest.mark.parametrize(("phase", "owner", "name"), [
    ("open", file_set.FileSet, "_try_open"), ("decompress", compression, "_zstd_frames"),
    ("assemble", row_group_reader, "assemble"), ("filter", stages, "evaluate"),
    ("plan", planner.FilePlanner, "_plan_group"), ("fetch", MemorySource, "_fetch"),
    ("decode", LeafColumnBuilder, "finish"),
])  # fmt: skip
def test_time_is_counted_in_its_phase(phase: str, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO()
    pqext.write_table(TABLE, data, compression="zstd", dictionary=False)
    now, function = [0], getattr(owner, name)

    def one_second(*arguments: Any, **keywords: Any) -> Any:
        now[0] += 1
        return function(*arguments, **keywords)

    for module in (source, usage, metrics, row_group_reader, scan_planner):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(owner, name, one_second)
    scan = pqext.scan(data.getvalue(), threads=1).filter(col("b") < 5)
    scan.to_table()
    assert scan.metrics is not None
    times = {key: value for key, value in scan.metrics.to_dict().items() if key.endswith("_seconds") and value}
    assert times == {f"{phase}_seconds": now[0]}
    assert scan.metrics.seconds == now[0] > 0
