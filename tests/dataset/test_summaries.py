"""A summary (``_metadata``) plans many files from one footer, and never hides a file or a row from a scan."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import ChangedFileError, CorruptFileError, UnsupportedError
from pqext.core.files.summary_files import SUMMARY_RECORD, FileRecord, Summary, read_record, store_records
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.format.metadata import FileMetaData, RowGroup
from pqext.core.format.thrift import Struct, decode, encode
from pqext.core.io.source import PathSource
from pqext.core.kernels.thrift.footer_lists import count_rows, read_row_group_files

Change = Callable[[FileMetaData], None]


def rows(start: int, count: int = 10) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"a": pa.array(numbers, pa.int64()), "s": pa.array([f"v{row}" for row in numbers], pa.string())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight files of two row groups below folders of partitions, one without rows, and their summary."""
    root = tmp_path / "table"
    for number in range(8):
        place = root / f"y={number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        pqext.write_table(rows(10 * number, 0 if number == 5 else 10), place / f"{number}.parquet", row_group_rows=5)
    summarise(root)
    return root


def summarise(root: Path) -> None:
    pqext.write_summary(sorted(root.rglob("*.parquet")), root)


def changed(root: Path, change: Change) -> Path:
    path = root / "_metadata"
    with pqext.open(path) as file:
        metadata = file.metadata
    metadata.row_groups = list(metadata.row_groups)
    change(metadata)
    path.write_bytes(MAGIC + serialise_footer(metadata))
    return path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened."""
    names: list[str] = []
    before = PathSource.__init__

    def init(self: PathSource, path: str, *opened: Any) -> None:
        names.append(os.path.basename(path))
        before(self, path, *opened)

    monkeypatch.setattr(PathSource, "__init__", init)
    return names


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "all": lambda scan: scan.to_table(),
    "some": lambda scan: scan.filter(col("a") > 63).to_table(),
    "of a folder": lambda scan: scan.filter("y = 1 and a < 20").to_table(),
    "a column": lambda scan: scan.select("s").to_table(),
    "count": lambda scan: scan.count(),
    "count some": lambda scan: scan.filter(col("a") >= 7).count(),
    "least": lambda scan: scan.min("a"),
    "head": lambda scan: scan.head(3),
    "schema": lambda scan: scan.schema,
}


@pytest.mark.spec("querying.summary")
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("rule", [None, "union"])
def test_summary_does_not_change_results(folder: Path, name: str, rule: Any) -> None:
    ask = QUESTIONS[name]
    files = sorted(map(str, folder.rglob("*.parquet")))
    expected = ask(pqext.scan(files, schema=rule))
    found = ask(pqext.scan(folder, schema=rule))
    trusted = ask(pqext.scan(folder / "_metadata", schema=rule))
    if isinstance(expected, pa.Table | pa.Schema):
        assert found.equals(expected, check_metadata=True)
        if isinstance(expected, pa.Table):
            assert trusted.sort_by(trusted.schema.names[0]).equals(expected.sort_by(expected.schema.names[0]))
    else:
        assert found == trusted == expected


@pytest.mark.spec("querying.summary")
def test_folder_is_planned_from_its_summary_without_opening_files(folder: Path, opened: list[str]) -> None:
    scan = pqext.scan(folder, filter=col("a") == 72)
    assert scan.count() == 1
    assert opened == ["_metadata", "7.parquet"]
    assert (scan.metrics.files, scan.metrics.rows) == (2, 1)  # type: ignore[union-attr]
    assert scan.metrics.requests <= 5  # type: ignore[union-attr]
    opened.clear()
    assert pqext.scan(folder).count() == 70
    assert opened == ["_metadata"]
    opened.clear()
    assert f"  plans 8 files from {folder / '_metadata'}" in scan.explain().split("\n")
    assert set(opened) <= {"7.parquet"}  # its page indexes


@pytest.mark.spec("querying.summary")
def test_threads_may_load_the_summary_of_one_scan_concurrently(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan, both, stat = pqext.scan(folder), threading.Barrier(2, timeout=60), os.stat
    met: set[int] = set()

    def together(path: Any, *more: Any, **options: Any) -> os.stat_result:
        found = stat(path, *more, **options)
        if str(path).endswith("_metadata") and threading.get_ident() not in met:
            met.add(threading.get_ident())
            both.wait()
        return found

    monkeypatch.setattr(os, "stat", together)
    with ThreadPoolExecutor(2) as pool:
        counts = [pool.submit(scan.filter(col("a") >= 7).count) for _ in range(2)]
        assert [count.result() for count in counts] == [63, 63]


@pytest.mark.spec("querying.summary")
def test_new_changed_and_removed_files_are_detected(folder: Path, opened: list[str]) -> None:
    before = time.time_ns() - 10**10
    pqext.write_table(rows(100), folder / "y=0" / "8.parquet")  # new
    (folder / "y=0" / "0.parquet").unlink()
    stale = folder / "y=1" / "1.parquet"  # of an earlier time than the summary's
    pqext.write_table(rows(200, 12), stale)
    os.utime(stale, ns=(before, before))
    swapped = folder / "y=1" / "3.parquet"  # of the same size
    size = swapped.stat().st_size
    pqext.write_table(rows(30).set_column(0, "a", pa.array(range(60, 70))), swapped, row_group_rows=5)
    assert swapped.stat().st_size == size
    scan = pqext.scan(folder)
    left = [(20, 30), (40, 50), (60, 70), (60, 70), (70, 80), (100, 110), (200, 212)]
    assert sorted(scan.to_table()["a"].to_pylist()) == sorted(row for pair in left for row in range(*pair))
    assert pqext.scan(folder, filter=col("a") == 205).count() == 1
    assert pqext.scan(folder, filter="a between 60 and 69").count() == 20
    opened.clear()
    told = scan.explain()
    assert f"plans 5 files from {folder / '_metadata'}, and not 2 files changed since" in told
    assert sorted(opened) == ["1.parquet", "3.parquet", "8.parquet"]


@pytest.mark.spec("querying.summary")
def test_file_changed_after_planning_is_reported(folder: Path) -> None:
    scan = pqext.scan(folder)
    batches = scan.to_batches(5)
    next(batches)
    pqext.write_table(rows(1000), folder / "y=1" / "7.parquet")
    assert sum(batch.num_rows for batch in batches) == 65  # planned when its turn came
    assert scan.filter(col("a") == 1005).count() == 1
    summary = Summary(str(folder / "_metadata"), pqext.Limits())
    source = summary.unchanged_source("y=1/7.parquet", str(folder / "y=1" / "7.parquet"))
    assert source is None
    place = str(folder / "y=0" / "6.parquet")
    known = summary.unchanged_source("y=0/6.parquet", place)
    assert known is not None
    pqext.write_table(rows(2000, 11), place)
    with pytest.raises(ChangedFileError, match="changed while it was read"):
        pqext.open(known).read()


def test_key_value_metadata_of_each_file_is_recorded(tmp_path: Path) -> None:
    for number in range(3):
        pqext.write_table(rows(number), tmp_path / f"{number}.parquet", key_value_metadata={"k": f"ä{number}"})
    pq.write_table(rows(3), tmp_path / "3.parquet", store_schema=False)
    files = sorted(map(str, tmp_path.glob("*.parquet")))
    summarise(tmp_path)
    assert "ignores" in pqext.scan(tmp_path).explain()  # of two writers nothing is noted
    (tmp_path / "3.parquet").unlink()
    summarise(tmp_path)
    found = pqext.scan(tmp_path)
    assert "plans 3 files" in found.explain()
    assert found.schema.metadata == pqext.scan(files[:3]).schema.metadata == {b"k": "ä0".encode()}


@pytest.mark.parametrize("by", ["pyarrow", "old"])
def test_summary_without_file_records_is_ignored_in_a_folder(tmp_path: Path, by: str) -> None:
    collected: list[Any] = []
    for number in range(3):
        pq.write_table(rows(10 * number), tmp_path / f"{number}.parquet", metadata_collector=collected)
        collected[-1].set_file_path(f"{number}.parquet")
    if by == "pyarrow":
        pq.write_metadata(rows(0).schema, tmp_path / "_metadata", metadata_collector=collected)
    else:
        summarise(tmp_path)
        changed(tmp_path, lambda metadata: setattr(metadata, "unknown", ()))
    pq.write_table(rows(100), tmp_path / "1.parquet")
    scan = pqext.scan(tmp_path)
    assert scan.filter(col("a") == 105).count() == 1
    assert ": it lacks the sizes and times of its files" in scan.explain()
    with pytest.raises(ChangedFileError, match="its footer contradicts"):
        pqext.scan(tmp_path / "_metadata").count()
    pq.write_table(rows(10), tmp_path / "1.parquet", store_schema=True)
    trusted = pqext.scan(tmp_path / "_metadata")
    assert trusted.filter(col("a") == 25).count() == 1
    assert len(trusted.plan()) == 3


@pytest.mark.spec("querying.summary")
def test_named_summary_has_partition_columns(folder: Path, opened: list[str]) -> None:
    scan = pqext.scan(folder / "_metadata", filter="y = 1", include_file_paths="file", include_row_numbers="row")
    assert opened == ["_metadata"]
    found = scan.to_table()
    assert found.schema.names == ["a", "s", "y", "file", "row"]
    assert opened == ["_metadata", "1.parquet", "3.parquet", "7.parquet"]
    assert found["y"].to_pylist() == [1] * 30
    assert {os.path.basename(path) for path in found["file"].to_pylist()} == {"1.parquet", "3.parquet", "7.parquet"}
    assert found["row"].to_pylist() == [*range(10)] * 3
    assert sum(task.prune_reason is not None for task in scan.plan()) == 4
    assert pqext.scan(folder / "_metadata", partitioning=None).to_table().schema.names == ["a", "s"]


def test_named_summary_represents_its_files(folder: Path) -> None:
    pqext.write_table(rows(100), folder / "y=0" / "8.parquet")
    assert pqext.scan(folder / "_metadata").count() == 70
    (folder / "y=1" / "7.parquet").unlink()
    for ask in (lambda scan: scan.count(), lambda scan: scan.filter(col("a") == 0).to_table()):
        with pytest.raises(CorruptFileError, match=r"7\.parquet.*cannot be opened"):
            ask(pqext.scan(folder / "_metadata"))
    (folder / "y=1" / "7.parquet").mkdir()
    with pytest.raises(CorruptFileError, match=r"7\.parquet.*not a regular file"):
        pqext.scan(folder / "_metadata").count()


@pytest.mark.spec("querying.summary-checked")
def test_named_summary_is_not_used_for_files_of_another_size(folder: Path) -> None:
    path = folder / "y=1" / "7.parquet"
    os.utime(path)  # as in a copy
    assert pqext.scan(folder / "_metadata").filter(col("a") >= 70).count() == 10
    pqext.write_table(rows(1000, 25), path)
    for ask in (lambda scan: scan.count(), lambda scan: scan.filter(col("a") >= 1000).to_table()):
        with pytest.raises(ChangedFileError, match=r"but .*_metadata records \d+: .*7\.parquet"):
            ask(pqext.scan(folder / "_metadata"))


def swap(path: Path, *, is_earlier: bool = False, keeps_time: bool = False) -> None:
    """Write other numbers into a file of ten rows, which keeps its size."""
    before = path.stat()
    with pqext.open(path) as file:
        by, table = file.metadata.created_by or "", file.read()
    other = table.set_column(0, "a", pa.array(range(1060, 1070), pa.int64()))
    if by.startswith("pqext"):
        pqext.write_table(other, path, row_group_rows=5)
    else:
        pq.write_table(other, path)
    assert path.stat().st_size == before.st_size
    time_ns = before.st_mtime_ns - 10**10 * is_earlier
    if keeps_time or is_earlier:
        os.utime(path, ns=(time_ns, time_ns))


@pytest.mark.spec("querying.summary-checked")
def test_named_summary_is_not_used_for_changed_files_of_equal_size(folder: Path, opened: list[str]) -> None:
    swap(folder / "y=1" / "7.parquet")
    for ask in (
        lambda scan: scan.count(), lambda scan: scan.filter(col("a") >= 1000).to_table(), lambda scan: scan.plan(),
        lambda scan: scan.filter(col("a") < 5).to_table(),
    ):
        with pytest.raises(ChangedFileError, match=r"differs from the one that .*_metadata records: .*7\.parquet"):
            ask(pqext.scan(folder / "_metadata"))
    assert pqext.scan(folder).filter(col("a") >= 1000).count() == 10
    opened.clear()
    summarise(folder)
    opened.clear()
    os.utime(folder / "y=0" / "6.parquet")  # as in a copy, of which the end is looked at
    assert pqext.scan(folder / "_metadata").filter(col("a") >= 1000).count() == 10
    assert opened == ["_metadata", "6.parquet", "7.parquet"]


@pytest.mark.spec("querying.summary-checked")
@pytest.mark.parametrize("named", [False, True])
def test_opened_file_is_compared_with_its_record_despite_equal_size_and_time(
    folder: Path, named: bool
) -> None:
    swap(folder / "y=1" / "7.parquet", keeps_time=True)
    scan = pqext.scan(folder / "_metadata" if named else folder)
    for ask in (lambda scan: scan.to_table(), lambda scan: scan.filter(col("a") == 72).to_table()):
        with pytest.raises(ChangedFileError, match=r"differs from the one that .*_metadata records: .*7\.parquet"):
            ask(scan)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Three files and their summary, all of pyarrow's."""
    collected: list[Any] = []
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(rows(10 * number), path, metadata_collector=collected)
        collected[-1].set_file_path(path.name)
        before = time.time_ns() - 10**10
        os.utime(path, ns=(before, before))
    pq.write_metadata(rows(0).schema, tmp_path / "_metadata", metadata_collector=collected)
    return tmp_path


@pytest.mark.spec("querying.summary-checked")
def test_whole_second_times_do_not_hide_a_change(folder: Path) -> None:
    second = int(time.time()) * 10**9
    for path in folder.rglob("*.parquet"):
        os.utime(path, ns=(second, second))
    summarise(folder)
    swap(folder / "y=1" / "7.parquet", keeps_time=True)
    os.utime(folder / "_metadata", ns=(second, second))
    assert pqext.scan(folder, filter=col("a") >= 1000).to_table().num_rows == 10
    with pytest.raises(ChangedFileError):
        pqext.scan(folder / "_metadata", filter=col("a") >= 1000).to_table()


@pytest.mark.spec("querying.summary-checked")
def test_summary_without_file_records_is_compared_with_newer_files(
    foreign: Path, opened: list[str]
) -> None:
    scan = pqext.scan(foreign / "_metadata")
    assert scan.filter(col("a") == 15).to_table()["a"].to_pylist() == [15]
    assert opened == ["_metadata", "1.parquet"]
    os.utime(foreign / "2.parquet")
    opened.clear()
    assert scan.filter(col("a") == 15).count() == 1
    assert opened == ["1.parquet", "2.parquet"]
    swap(foreign / "2.parquet")
    for ask in (lambda scan: scan.count(), lambda scan: scan.filter(col("a") == 1065).to_table()):
        with pytest.raises(ChangedFileError, match=r"contradicts .*_metadata: .*2\.parquet"):
            ask(pqext.scan(foreign / "_metadata"))
    os.utime(foreign / "2.parquet", ns=(0, 0))
    for ask in (lambda scan: scan.filter(col("a") == 25).to_table(), lambda scan: scan.plan()):
        with pytest.raises(ChangedFileError, match=r"contradicts .*_metadata: .*2\.parquet"):
            ask(pqext.scan(foreign / "_metadata"))


@pytest.mark.spec("querying.summary-checked")
def test_row_groups_missing_from_an_unrecorded_summary_are_not_lost(foreign: Path) -> None:
    pq.write_table(rows(20, 20), foreign / "2.parquet", row_group_size=10)  # one more, behind that which was there
    with pytest.raises(ChangedFileError, match="its footer contradicts"):
        pqext.scan(foreign / "_metadata").count()


def test_plans_from_summaries_contain_footer_crcs(folder: Path, foreign: Path, opened: list[str]) -> None:
    expected = [task.footer_crc for task in pqext.scan([*map(str, sorted(folder.rglob("*.parquet")))]).plan()]
    opened.clear()
    assert [task.footer_crc for task in pqext.scan(folder).plan()] == expected
    assert opened == ["_metadata"]
    expected = [task.footer_crc for task in pqext.scan(foreign / "?.parquet").plan()]
    assert [task.footer_crc for task in pqext.scan(foreign / "_metadata").plan()] == expected


def _rename(name: str) -> Change:
    def change(metadata: FileMetaData) -> None:
        for chunk in metadata.row_groups[0].columns:
            chunk.file_path = name

    return change


def _duplicate_row_group(metadata: FileMetaData) -> None:
    metadata.row_groups = [*metadata.row_groups, metadata.row_groups[2]]


def _negative(metadata: FileMetaData) -> None:
    metadata.row_groups[2].num_rows = -5


def _fewer(metadata: FileMetaData) -> None:
    metadata.row_groups = list(metadata.row_groups)[1:]


CONTRADICTIONS: dict[str, tuple[Change, str]] = {
    "a row group twice": (_duplicate_row_group, "is listed twice"),
    "a negative count": (_negative, "a row group of -5 rows"),
    "missing row groups": (_fewer, "row groups are missing"),
}


@pytest.mark.spec("querying.summary")
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_inconsistent_summary_is_an_error_or_ignored(folder: Path, name: str) -> None:
    change, message = CONTRADICTIONS[name]
    changed(folder, change)
    scan = pqext.scan(folder)
    assert scan.count() == 70
    assert scan.filter(col("a") == 0).count() == 1
    assert message in scan.explain()
    for ask in (lambda scan: scan.count(), lambda scan: scan.to_table(), lambda scan: scan.plan()):
        with pytest.raises(CorruptFileError, match=message) as caught:
            ask(pqext.scan(folder / "_metadata"))
        assert caught.value.path == str(folder / "_metadata")


@pytest.mark.spec("querying.summary")
@pytest.mark.parametrize(
    "name", ["../x.parquet", "/etc/passwd", "./y=0/0.parquet", "y=0//0.parquet", "", "C:\\x", "a\0"]
)
def test_summary_of_external_files_is_rejected_or_ignored(folder: Path, name: str) -> None:
    changed(folder, _rename(name))
    scan = pqext.scan(folder)
    assert sorted(scan.to_table()["a"].to_pylist()) == [*range(50), *range(60, 80)]
    assert ": the summary refers to files outside" in scan.explain() or "span several files" in scan.explain()
    if not name.startswith("./") and "//" not in name:
        with pytest.raises((UnsupportedError, CorruptFileError)):
            pqext.scan(folder / "_metadata").to_table()


@pytest.mark.spec("querying.summary")
def test_links_do_not_lead_a_summary_outside_its_folder(folder: Path, tmp_path: Path) -> None:
    pqext.write_table(rows(0), tmp_path / "secret.parquet", row_group_rows=5)
    os.symlink(tmp_path / "secret.parquet", folder / "link.parquet")
    changed(folder, _rename("link.parquet"))
    with pytest.raises(UnsupportedError, match="a symbolic link leads out of the folder"):
        pqext.scan(folder / "_metadata").to_table()


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"no Parquet at all"])
def test_corrupt_summary_is_ignored(folder: Path, damage: bytes) -> None:
    (folder / "_metadata").write_bytes(damage)
    scan = pqext.scan(folder)
    assert scan.count() == 70
    assert ": it is damaged" in scan.explain()
    with pytest.raises(CorruptFileError):
        pqext.scan(folder / "_metadata").count()


@pytest.mark.parametrize(
    "note",
    [
        b"", b"[]", b"{", b"[" * 100_000, b'{"version":1,"files":[],"pairs":[]}', b'{"version":2}',
        b'{"version":2,"files":[["a",1,2,0]],"pairs":[null]}', b'{"version":2,"files":[["a",1,2,5,3,4]],"pairs":[]}',
        b'{"version":2,"files":[["a",1,2,-1,3,4]],"pairs":[null]}',
        b'{"version":2,"files":[["a",1.5,2,0,3,4]],"pairs":[null]}',
        b'{"version":2,"files":[["a",1,2,0,3,"4"]],"pairs":[null]}',
        b'{"version":2,"files":[[7,1,2,0,3,4]],"pairs":[null]}',
        b'{"version":2,"files":[["a",1,2,0,3,4]],"pairs":[[["k",1]]]}',
        b'{"version":2,"files":[["a",1,2,0,3,4],["a",1,2,0,3,4]],"pairs":[null]}',
        b'{"version":2,"files":[["a",1,2,0,3,4]],"pairs":[null]}',
    ],
)  # fmt: skip
def test_invalid_file_record_is_ignored(folder: Path, note: bytes) -> None:
    from pqext.core.format.extension.framing import frame
    from pqext.core.format.extension.structure import set_extension

    def change(metadata: Struct) -> None:
        set_extension(metadata, frame(note, SUMMARY_RECORD), replace=True)

    changed(folder, change)
    scan = pqext.scan(folder)
    assert scan.count() == 70
    assert "it lacks" in scan.explain()


def test_file_record_round_trips(folder: Path) -> None:
    with pqext.open(folder / "_metadata") as file:
        found = read_record(file.metadata)
    assert found is not None
    place = folder / "y=1" / "5.parquet"
    with pqext.open(place) as alone:
        pairs = alone.metadata.key_value_metadata
        length, crc = alone.footer.length, zlib.crc32(alone.footer.raw)
    stat = place.stat()
    assert found["y=1/5.parquet"] == FileRecord(stat.st_size, stat.st_mtime_ns, pairs, length, crc)
    assert len(found) == 8


@pytest.mark.parametrize(("spare", "is_recorded"), [(1 << 10, True), (-1, False)])
def test_record_of_more_than_64_mib_is_omitted(spare: int, is_recorded: bool, folder: Path) -> None:
    files = {"x" * ((64 << 20) - spare): FileRecord(1, 2, None, 3, 4)}
    with pqext.open(folder / "y=1" / "5.parquet") as file:
        metadata = file.metadata
        store_records(metadata, files)
        assert read_record(metadata) == (files if is_recorded else None)


def test_columns_in_several_files_belong_to_one_source(folder: Path) -> None:
    def change(metadata: FileMetaData) -> None:
        group: RowGroup = metadata.row_groups[0]
        group.columns[1].file_path = "y=0/2.parquet"

    changed(folder, change)
    (task,) = pqext.scan(folder / "_metadata").plan()
    assert task.total == 14
    assert "span several files" in pqext.scan(folder).explain()


def test_summary_larger_than_its_benefit_is_not_read(folder: Path, opened: list[str]) -> None:
    assert pqext.scan(folder, filter="y = 0 and a = 1", include_file_paths="file").filter(
        col("file") == str(folder / "y=0" / "0.parquet")
    ).count() == 1
    assert opened == ["0.parquet"]


def test_in_memory_summary_of_many_files_leaves_no_file_open(tmp_path: Path) -> None:
    for number in range(40):
        pqext.write_table(rows(number), tmp_path / f"{number:02}.parquet")
    summarise(tmp_path)
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("open files are counted by /proc")
    before = len(list(handles.iterdir()))
    for _ in pqext.scan(tmp_path):
        assert len(list(handles.iterdir())) <= before + 3
    assert len(list(handles.iterdir())) == before


@pytest.mark.parametrize("counts", [[], [0], [3, 5], [-1, 5], [1 << 62, 1 << 62], [(1 << 63) - 1]])
def test_row_group_counts_match_the_structures(counts: list[int]) -> None:
    groups = [RowGroup(columns=[], total_byte_size=0, num_rows=rows, ordinal=7) for rows in counts]
    metadata = FileMetaData(version=2, schema=[], num_rows=0, row_groups=groups)
    stored, _ = decode(FileMetaData, encode(metadata))
    index = getattr(stored.row_groups, "undecoded_index", None)
    assert index is not None
    is_plain = all(rows >= 0 for rows in counts) and sum(counts) < 1 << 63
    assert count_rows(index) == (sum(group.num_rows for group in stored.row_groups) if is_plain else None)


def test_row_group_files_match_their_chunks(folder: Path) -> None:
    with pqext.open(folder / "_metadata") as file:
        index = getattr(file.metadata.row_groups, "undecoded_index", None)
        assert index is not None
        found = read_row_group_files(index)
        assert found is not None
        names, counts, starts = found
        chunks = [group.columns[0] for group in file.metadata.row_groups]
        assert [name.decode() for name in names] == [chunk.file_path for chunk in chunks]
        assert counts == [group.num_rows for group in file.metadata.row_groups]
        assert starts == [chunk.meta_data.data_page_offset for chunk in chunks if chunk.meta_data]
    with pqext.open(folder / "y=0" / "0.parquet") as file:
        index = getattr(file.metadata.row_groups, "undecoded_index", None)
        assert index is not None
        assert read_row_group_files(index) is None


@pytest.mark.parametrize("step", range(1, 60, 7))
def test_summary_with_a_corrupt_byte_raises_or_returns_the_folder_rows(folder: Path, step: int) -> None:
    path = folder / "_metadata"
    data = bytearray(path.read_bytes())
    with pqext.open(path) as file:
        start = file.footer.offset
    data[start + step * 11 % (len(data) - start - 8)] ^= 0x41
    path.write_bytes(data)
    expected = sorted(map(str, folder.rglob("*.parquet")))
    try:
        found = pqext.scan(path).count()
    except (pqext.ParquetError, ValueError):
        found = 70
    assert found >= 0
    try:
        rows_found = pqext.scan(folder).to_table()
    except (pqext.ParquetError, ValueError, KeyError):
        return  # what the summary says of the columns of an unchanged file is believed
    assert rows_found.num_rows == pqext.scan(expected).count()


def test_folder_with_a_flatbuffers_footer_is_summarised(tmp_path: Path) -> None:
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for path, form in zip(paths, ("thrift", "flatbuffers"), strict=True):
        pqext.write_table(pa.table({"a": [1, 2]}), path, footer=form)  # type: ignore[arg-type]
    pqext.write_summary(paths, tmp_path)
    assert pqext.scan(tmp_path).to_table()["a"].to_pylist() == [1, 2, 1, 2]
    assert pqext.scan(tmp_path / "_metadata").to_table()["a"].to_pylist() == [1, 2, 1, 2]


def test_file_changed_while_read_by_its_summary_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(pa.table({"a": range(300_000)}), path, row_group_rows=1000, dictionary=False)
    pqext.write_summary([path], tmp_path)
    batches = pqext.scan(tmp_path, threads=1).to_batches()  # which reads nothing ahead
    next(batches)
    with path.open("r+b") as file:  # in place, where the layout stays
        file.write(path.read_bytes())
    os.utime(path, ns=(1, 1))
    with pytest.raises(ChangedFileError, match="changed while it was read"):
        list(batches)
