"""Scans are pickled before, while and after they are used; pyarrow reads the expected rows."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pytest

import pqext
from pqext import col

USES: dict[str, Callable[[pqext.Scan], Any]] = {
    "unused": lambda scan: None,
    "schema": lambda scan: scan.schema,
    "count": lambda scan: scan.count(),
    "table": lambda scan: scan.to_table(),
    "explain": lambda scan: scan.explain(),
    "html": lambda scan: scan._repr_html_(),
    "minimum": lambda scan: scan.min("id"),
    "dataset": lambda scan: scan.to_dataset().count_rows(),
    "first batch": lambda scan: next(iter(scan)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        table = pa.table({"id": range(day * 100, day * 100 + 50), "text": [f"t{i}" for i in range(50)]})
        pqext.write_table(table, tmp_path / f"day={day}/a.parquet", row_group_rows=10)
    return tmp_path


def rows_of(path: Path) -> list[int]:
    """The ids of the rows that the filter of these tests leaves, as pyarrow reads them."""
    wanted = pyarrow.dataset.field("id") >= 140
    found: list[int] = pyarrow.dataset.dataset(path).to_table(filter=wanted)["id"].to_pylist()
    return sorted(found)


def ids(scan: pqext.Scan) -> list[int]:
    return sorted(scan.to_table()["id"].to_pylist())


def narrowed(source: Any, **options: Any) -> pqext.Scan:
    return pqext.scan(source, **options).filter(col("id") >= 140).select("id")


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("library", ["pickle", "cloudpickle"])
@pytest.mark.parametrize("schema", [None, "union"])
def test_scan_is_pickled_after_any_use(folder: Path, use: str, library: str, schema: Any) -> None:
    dumps = pytest.importorskip(library, reason=f"{library} is not installed").dumps
    scan = narrowed(folder, schema=schema)
    USES[use](scan)
    copy = pickle.loads(dumps(scan))
    assert copy.metrics is None
    assert ids(copy) == rows_of(folder) == ids(scan)


def test_scan_is_pickled_while_iterating(folder: Path) -> None:
    scan = narrowed(folder)
    batches = scan.to_batches(7)
    first = next(batches)
    copy = pickle.loads(pickle.dumps(scan))
    rest = [row for batch in batches for row in batch["id"].to_pylist()]
    assert sorted(first["id"].to_pylist() + rest) == ids(copy) == rows_of(folder)


def test_scan_with_a_summary_is_pickled_after_use(folder: Path) -> None:
    expected = rows_of(folder)
    pqext.write_summary(sorted(folder.glob("*/*.parquet")), folder)
    for source in (folder, folder / "_metadata"):
        scan = narrowed(source)
        scan.count()
        assert ids(pickle.loads(pickle.dumps(scan))) == expected


def test_scan_with_a_skipping_store_is_pickled_after_use(folder: Path, tmp_path_factory: Any) -> None:
    from pqext.skipping import MinMax, build

    place = tmp_path_factory.mktemp("store") / "index"
    build(folder, [MinMax("id")], place)
    scan = narrowed(folder, skipping=place)
    scan.count()
    assert ids(pickle.loads(pickle.dumps(scan))) == rows_of(folder)


def test_scan_of_a_file_system_is_pickled_after_use(folder: Path) -> None:
    local = pyarrow.fs.LocalFileSystem()
    scan = narrowed("day=1/a.parquet", filesystem=pyarrow.fs.SubTreeFileSystem(folder.as_posix(), local))
    scan.count()
    assert ids(pickle.loads(pickle.dumps(scan))) == rows_of(folder / "day=1")


def test_scan_of_an_fsspec_file_system_is_pickled_after_use(folder: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    scan = narrowed("day=1", filesystem=DirFileSystem(folder.as_posix(), LocalFileSystem()))
    scan.count()
    assert ids(pickle.loads(pickle.dumps(scan))) == rows_of(folder / "day=1")


def test_location_over_http_is_pickled() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    from pqext.core.io.sources.locations import locate

    place = locate("https://example.org/a.parquet", storage_options={"timeout": "5s"})
    copy = pickle.loads(pickle.dumps(place))
    assert (copy.key, copy.path, copy.store.name(copy.key)) == (place.key, place.path, place.store.name(place.key))
    assert pickle.loads(pickle.dumps(place)).store is copy.store  # with its connections


def test_used_scan_runs_in_another_process(folder: Path) -> None:
    scan = narrowed(folder)
    scan.count()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(pqext.Scan.count, (scan,)) == len(rows_of(folder))


def test_used_scan_runs_in_joblib(folder: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    scan = narrowed(folder)
    scan.count()
    assert joblib.Parallel(n_jobs=2)([joblib.delayed(pqext.Scan.count)(scan)] * 2) == [len(rows_of(folder))] * 2


def test_used_scan_runs_in_dask(folder: Path) -> None:
    dask = pytest.importorskip("dask", reason="dask is not installed")
    scan = narrowed(folder)
    scan.count()
    found = dask.compute(dask.delayed(pqext.Scan.count)(scan), scheduler="processes", num_workers=1)
    assert found == (len(rows_of(folder)),)
