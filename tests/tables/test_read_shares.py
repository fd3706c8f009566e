"""The share of files that a lookup reads, as rewrites report it: compared with the files that scans read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import col, tables, variant
from pqext.core.format.predicate import Bounds
from pqext.dataset.expressions import Expression
from pqext.tables.read_shares import read_share

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from tests.tables.iceberg_tables import new_catalog


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of four files, whose rows overlap in ``n`` and not in ``id``."""
    target: Any = f"delta:{tmp_path / 't'}"
    if request.param == "iceberg":
        target = new_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    for file in range(4):
        tables.append(target, pa.table({"id": range(10 * file, 10 * file + 10), "n": range(file, 40, 4)}))
    return target


def files_read(table: Any, filter: Expression) -> int:
    snapshot = tables.open_table(table)
    assert snapshot.statistics is not None
    return snapshot.statistics.prune_reasons(snapshot.files, filter).count(None)


def test_recluster_reports_the_files_that_lookups_read(table: Any) -> None:
    plan = tables.recluster(table, "n", target_file_bytes=1, dry_run=True)
    assert (plan.read_after, plan.bytes_after) == (None, None)
    result = tables.recluster(table, "n", target_file_bytes=1 << 30)
    values = [*range(4), *range(36, 40)]
    assert plan.read_before == result.read_before
    assert result.read_before["n"] == pytest.approx(sum(min(v + 1, 40 - v, 4) for v in values) / 32)
    assert result.read_after == {"n": 1.0}
    assert str(result).endswith("; files that a lookup reads: n 62% -> 100%")
    assert result.bytes_before > result.bytes_after > 0  # type: ignore[operator]


def test_compaction_reports_columns(table: Any) -> None:
    assert files_read(table, col("id") == 13) == 1
    result = tables.compact(table)
    assert result.read_before == {"id": 0.25, "n": pytest.approx(0.625)}
    assert result.read_after == {"id": 1.0, "n": 1.0}
    assert "id 25% -> 100%" in str(result)


def test_recluster_by_variant_path_reads_fewer_files(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), variant.variant_field("v")])
    for start in range(4):
        numbers = [*range(start, 40_000, 4)]
        documents = variant.parse_json([f'{{"n": {number}, "t": "{number * 7919:030}"}}' for number in numbers])
        tables.append(f"delta:{tmp_path}", pa.table([pa.array(numbers), documents], schema=schema))
    result = tables.recluster(f"delta:{tmp_path}", "v:$.n::bigint", target_file_bytes=300_000)
    assert result.read_before["v:$.n::bigint"] > 0.6
    assert result.read_after is not None
    assert result.read_after["v:$.n::bigint"] == pytest.approx(1 / result.files_after)
    assert files_read(f"delta:{tmp_path}", col("v").variant("$.n", "int64") == 20_000) == 1


RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted), min_size=1, max_size=8)


@given(ranges=RANGES, unknown=st.integers(0, 3), null=st.integers(0, 3))
def test_share_is_the_mean_over_minima_and_maxima(ranges: list[list[int]], unknown: int, null: int) -> None:
    bounds = [Bounds(low, high) for low, high in ranges]
    bounds += [Bounds()] * unknown + [Bounds(null_count=5, num_values=5)] * null
    values = [value for each in ranges for value in each]
    reads = [sum(low <= value <= high for low, high in ranges) + unknown for value in values]
    assert read_share(bounds) == pytest.approx(sum(reads) / len(values) / len(bounds))


def test_share_without_comparable_bounds_is_unknown() -> None:
    assert read_share([Bounds()]) is None
    assert read_share([Bounds(1, 2), Bounds(b"a", b"b")]) is None
