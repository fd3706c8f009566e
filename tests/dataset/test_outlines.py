"""Plans of many row groups look at few page indexes and Bloom filters, and whoever reads looks at the rest."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError
from pqext.core.indexes.reading import IndexReader
from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import Expression, col
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.plan import Task
from pqext.dataset.scan_executor import ScanExecutor
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest

GROUPS, ROWS, FILES = 10, 100, 6
SPREAD = 1_000_000

QUESTIONS: dict[str, tuple[Expression, Any]] = {
    "pages": (col("n") == 4, pc.field("n") == 4),  # each row group has it, on one page
    "a Bloom filter": (col("u") == 7, pc.field("u") == 7),
    "both": ((col("n") < 3) | (col("u") == 7), (pc.field("n") < 3) | (pc.field("u") == 7)),
    "statistics": (col("id") < 150, pc.field("id") < 150),
    "nothing": (col("s") != "x", pc.field("s") != "x"),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """In each row group ``n`` goes through all its values in order, ``u`` lies anywhere, and 7 is there once."""
    chance = random.Random(5)
    total = GROUPS * ROWS * FILES
    users = [chance.randrange(8, SPREAD) if row % 50 else (row // 50) % 2 * SPREAD for row in range(total)]
    users[3217] = 7
    ids = range(total)
    return pa.table({"id": ids, "n": [row % ROWS // 2 for row in ids], "u": users, "s": [str(row) for row in ids]})


@pytest.fixture(scope="module")
def sources(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The table in files with page indexes and Bloom filters."""
    folder = tmp_path_factory.mktemp("many")
    paths = tuple(str(folder / f"{number}.parquet") for number in range(FILES))
    for number, path in enumerate(paths):
        part = table.slice(number * GROUPS * ROWS, GROUPS * ROWS)
        pqext.write_table(part, path, row_group_rows=ROWS, page_rows=10, bloom_filters={"u": True})
    return paths


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read of page indexes and Bloom filters."""
    found: list[str] = []
    pages, filters = IndexReader._read_pages, IndexReader.bloom_filter

    def cached_pages(reader: IndexReader, chunk: Any, kinds: Any) -> Any:
        found.append("pages")
        return pages(reader, chunk, kinds)

    def filter(reader: IndexReader, chunk: Any) -> Any:
        if chunk.has_bloom_filter:
            found.append("filter")
        return filters(reader, chunk)

    monkeypatch.setattr(IndexReader, "_read_pages", cached_pages)
    monkeypatch.setattr(IndexReader, "bloom_filter", filter)
    return found


def planner(sources: tuple[str, ...], filter: Expression) -> ScanPlanner:
    """Of all columns of the rows that match."""
    return ScanPlanner(ScanRequest(FileSet(sources), None, filter))


def read(one: ScanPlanner, task: Task, file: ParquetFile) -> list[pa.RecordBatch]:
    """The rows that match in the file of a task."""
    return [*ScanExecutor(one).planned_batches(one.complete(task, file).row_groups, file, ROWS)]


def rows(tasks: list[Task], filter: Expression) -> Iterator[pa.RecordBatch]:
    """What the tasks of a plan give, each in its own way as tasks of Spark run."""
    for task in tasks:
        with pqext.open(task.path) as file:
            one = planner((task.path,), filter)
            yield from read(one, Task.from_json(task.to_json()), file)


@pytest.mark.spec("querying.outlines")
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("most", [0, 15, 1000])
def test_outlines_return_the_matching_rows(name: str, most: int, table: pa.Table, sources: tuple[str, ...]) -> None:
    filter, oracle = QUESTIONS[name]
    tasks = planner(sources, filter).plan(True, most)
    expected = table.filter(oracle)
    assert expected.num_rows > 0
    assert pa.Table.from_batches(rows(tasks, filter), table.schema).sort_by("id").equals(expected)
    every = planner(sources, filter).plan(True)
    assert [(task.bytes_total, task.total) for task in tasks] == [(task.bytes_total, task.total) for task in every]
    if most == 1000:
        assert tasks == every


@pytest.mark.spec("querying.outlines")
@pytest.mark.parametrize(("name", "each"), [("pages", GROUPS), ("a Bloom filter", GROUPS), ("statistics", 0)])
def test_inspection_stays_within_its_budget(
    name: str, each: int, sources: tuple[str, ...], reads: list[str]
) -> None:
    filter, _ = QUESTIONS[name]
    outlines = planner(sources, filter).plan(True, 0)
    assert not reads
    assert [task.is_outline for task in outlines] == [True] * FILES
    some = planner(sources, filter).plan(True, 2 * GROUPS)
    assert [task.is_outline for task in some] == [each > 0 and number > 1 for number in range(FILES)]
    assert reads.count("filter") == (2 * GROUPS if name == "a Bloom filter" else 0)


@pytest.mark.spec("querying.outlines")
def test_reader_of_an_outline_inspects_the_deferred_row_groups(sources: tuple[str, ...], reads: list[str]) -> None:
    filter, _ = QUESTIONS["both"]
    (outline,) = planner(sources[:1], filter).plan(True, 0)
    assert outline.kept_row_groups == tuple(range(GROUPS))
    assert not any(plan.stages for plan in outline.row_groups)
    with pqext.open(sources[0]) as file:
        detailed = planner(sources[:1], filter).complete(outline, file)
        assert {"pages", "filter"} == set(reads)
        assert {plan.rows_read for plan in detailed.row_groups} == {10}
        part = Task(outline.path, outline.row_groups[2:4], None, outline.footer_crc, True)
        assert planner(sources[:1], filter).complete(part, file).kept_row_groups == (2, 3)
        assert planner(sources[:1], filter).complete(detailed, file) is detailed


def test_outline_that_is_executed_or_of_another_file_is_rejected(sources: tuple[str, ...]) -> None:
    filter, _ = QUESTIONS["pages"]
    one = planner(sources[:1], filter)
    (outline,) = one.plan(True, 0)
    with pqext.open(sources[0]) as file:
        with pytest.raises(ValueError, match="row group 0 is an outline without stages"):
            list(ScanExecutor(one).planned_batches(outline.row_groups, file, 100))
        group = replace(outline.row_groups[0], index=GROUPS)
        with pytest.raises(ValueError, match=f"it reads row group {GROUPS}, but the file has {GROUPS} row"):
            one.complete(replace(outline, row_groups=(group,)), file)


def test_outlines_skip_corrupt_row_groups_on_request(tmp_path: Path) -> None:
    """The footer calls a row group's column otherwise: the plan is made all the same."""
    path = tmp_path / "damaged.parquet"
    pqext.write_table(pa.table({"number": range(3 * ROWS)}), path, row_group_rows=ROWS)
    name = b"\x18\x06number"  # in a list of one name
    first, second, third = path.read_bytes().rsplit(name, 3)[-3:]
    start = path.read_bytes()[: -len(first + second + third) - 3 * len(name)]
    path.write_bytes(start + name + first + b"\x18\x06numbeX" + second + name + third)
    for filter in (None, col("number") >= 0):
        lenient = pqext.scan(path, filter=filter, on_corrupt="skip")._planner
        for looks in (0, 1, 256):
            (task,) = lenient.plan(True, looks)
            assert task.kept_row_groups == (0, 1, 2)
            with pqext.open(path, on_corrupt="skip") as file, pytest.warns(CorruptDataWarning, match="are skipped"):
                found = read(lenient, task, file)
            assert pa.Table.from_batches(found)["number"].to_pylist() == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]
    with pytest.raises(CorruptFileError, match="row group 1"):
        pqext.scan(path)._planner.plan(True, 0)
