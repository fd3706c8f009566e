"""No file of some kilobytes takes much more than the budget, ten seconds, or the process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from core import bombs
from core.raw_files import Column, leaf, write

import pqext
from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.limits import Limits
from pqext.core.format.enums import EdgeInterpolationAlgorithm
from pqext.core.format.metadata import GeographyType, GeometryType
from reference.pace import FEW_THREADS, SANITIZED, SLOWER

LIMITS = Limits.untrusted()
OVERHEAD = 96 << 20
"""What the interpreter, the codecs and one batch under way in a scan take beside the budget."""
MEMORY = 3_000_000_000


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], tuple[str, float, int]]:
    tests = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "core.measure_bombs", str(MEMORY), "untrusted"], cwd=tests,
        env={**os.environ, **FEW_THREADS, "PYTHONPATH": str(tests.parent)}, capture_output=True, text=True, check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    return {(file, way): (outcome, seconds, taken) for file, _, way, outcome, seconds, taken in rows}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the measurements are those of /proc")
@pytest.mark.skipif(SANITIZED, reason="sanitizers take memory of their own")
def test_small_file_stays_within_memory_budget_and_ten_seconds(
    measured: dict[tuple[str, str], tuple[str, float, int]],
) -> None:
    assert len(measured) == len(bombs.files()) * 6
    allowed = {"MemoryLimitError", "LimitError", "CorruptFileError", "VariantError"}
    for case, (outcome, seconds, taken) in measured.items():
        assert outcome == "read" or outcome.split(":")[0] in allowed, (case, outcome)
        assert seconds < 10 * SLOWER, (case, seconds)
        assert taken < 2 * LIMITS.memory_bytes + OVERHEAD, (case, taken)  # a scan counts its table beside its batches


def test_run_of_gigabytes_is_read_in_batches() -> None:
    count = 1 << 25
    sevens = int.from_bytes(b"7" * 8, "little")
    for data, value in (
        (bombs.nulls(bombs.Type.INT64, count), None), (bombs.looked_up(bombs.Type.INT64, b"7" * 8, count), sevens)
    ):  # fmt: skip
        batches = pqext.open(data, limits=LIMITS).iter_batches()
        rows = 0
        for batch in batches:
            assert batch.num_rows <= 65_536
            rows += batch.num_rows
        assert rows == count
        assert batch.column(0)[0].as_py() == value
        with pytest.raises(MemoryLimitError, match="memory_bytes=104857600"):
            pqext.open(data, limits=LIMITS).read()


@pytest.mark.parametrize("batch_rows", [1000, 40_000, 100_001])
@pytest.mark.parametrize("codec", [0, 6])
def test_page_split_within_a_run_returns_the_same_values(batch_rows: int, codec: int) -> None:
    runs = bombs.run(70_000, 1) + bombs.run(40_000, 0) + bytes([0b11, 0b10110101]) + bombs.run(90_000, 1)
    entries = 200_008
    present = np.concatenate([np.ones(70_000), np.zeros(40_000), [1, 0, 1, 0, 1, 1, 0, 1], np.ones(90_000)]) == 1
    values = bombs.run(100_000, 1) + bytes([0b11, 0b01011010]) + bombs.run(59_997, 0)
    flags = np.concatenate([np.ones(100_000), [0, 1, 0, 1, 1, 0, 1, 0], np.zeros(59_997)]) == 1
    expected = np.full(entries, None, object)
    expected[present] = flags.tolist()
    column = Column(bombs.prefixed(runs) + bombs.prefixed(values), entries, encoding=bombs.Encoding.RLE, codec=codec)
    if codec:
        column.stored = bombs.compress(codec, column.values).tobytes()
    data = write([leaf("a", bombs.OPTIONAL, bombs.Type.BOOLEAN)], [column], entries)
    whole = pqext.open(data).read()["a"]
    assert whole.to_pylist() == expected.tolist()
    cut = pa.chunked_array([batch.column(0) for batch in pqext.open(data).iter_batches(batch_rows)])
    assert cut.num_chunks == -(-entries // batch_rows)
    assert cut.to_pylist() == expected.tolist()


def test_batches_of_large_rows_are_smaller() -> None:
    table = pa.table({"s": [bytes([65 + i % 26]) * 20_000 for i in range(2000)], "i": range(2000)})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=20, compression="zstd")
    limits = Limits(memory_bytes=8 << 20, memory_expansion=0)
    with pqext.open(out.getvalue(), limits=limits) as file:
        batches = list(file.iter_batches())
        assert max(batch.nbytes for batch in batches) < 6 << 20
        assert pa.Table.from_batches(batches).equals(table)
        with pytest.raises(MemoryLimitError, match="iter_batches"):
            file.read()
    with pytest.raises(MemoryLimitError):
        pqext.read_table(out.getvalue(), limits=limits)
    kept = pqext.read_table(out.getvalue(), filter=pqext.col("i") < 3, limits=limits)
    assert kept.equals(table.slice(0, 3))


def test_computed_columns_align_with_rows_of_split_batches() -> None:
    rows = 3000
    texts = [json.dumps({"n": i, "text": "x" * 9000}) for i in range(rows)]
    events = pqext.variant.parse_json(pa.array(texts))
    table = pa.table({"id": range(rows), "fill": ["y" * (20_000 if i % 2 else 1) for i in range(rows)], "e": events})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=20, shredding={"e": "STRUCT<n BIGINT, text STRING>"})
    limits = Limits(memory_bytes=24 << 20, memory_expansion=0)
    wanted = ["id", "fill", pqext.col("e").variant("$.n", "int64")]
    found = list(pqext.scan(out.getvalue(), wanted, limits=limits).to_batches())
    assert len(found) > 1
    whole = pa.Table.from_batches(found)
    assert whole["id"].to_pylist() == whole["e.n"].to_pylist() == list(range(rows))


@pytest.mark.parametrize("logical", [
    bombs.LogicalType(GEOMETRY=GeometryType()),
    bombs.LogicalType(GEOGRAPHY=GeographyType()),
    bombs.LogicalType(GEOGRAPHY=GeographyType(algorithm=EdgeInterpolationAlgorithm.KARNEY)),
])  # fmt: skip
def test_repeated_geometry_is_evaluated_once(logical: bombs.LogicalType) -> None:
    rows = 4096
    data = bombs.geometries(logical, [(i % 7, i % 5) for i in range(500)], rows)
    assert len(data) < 10_000
    g, box = pqext.col("a"), (0, 0, 1, 2)
    begin = time.process_time()
    for question, found in (
        (g.intersects(box), rows),
        (g.covered_by((-1, -1, 7, 5)), rows),
        (g.dwithin(shapely.Point(7, 2), 1.5 if logical.GEOMETRY else 150_000), rows),
        (g.dwithin(shapely.Point(7, 2), 0.5 if logical.GEOMETRY else 50_000), 0),
    ):
        assert pqext.scan(data, filter=question).count() == found, question
    assert time.process_time() - begin < 10 * SLOWER


def test_small_file_cannot_decode_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.core.base.limits._DECODED_BYTES", 1)
    rows = 1 << 17
    data = bombs.looked_up(bombs.Type.BYTE_ARRAY, bombs.prefixed(b"x" * 4096), rows)  # 512 MiB of text
    low, high = (Limits(memory_bytes=size << 20, memory_expansion=0) for size in (4, 32))
    for read in (
        lambda limits: sum(map(len, pqext.open(data, limits=limits).iter_batches())),
        lambda limits: pqext.repair(data, io.BytesIO(), limits=limits).rows,
    ):
        assert read(high) == rows
        with pytest.raises(MemoryLimitError, match=r"more than a file of .* raise the limit with limits=") as caught:
            read(low)
        assert caught.value.is_final
    sink = io.BytesIO()
    pqext.concatenate([bombs.looked_up(bombs.Type.INT64, bytes(8), 1 << 20)] * 8, sink)
    numbers = sink.getvalue()
    low, high = (Limits(memory_bytes=size << 20, memory_expansion=0) for size in (2, 4))
    assert pqext.table_metrics.delta(numbers, exact=True, limits=high).num_records == 8 << 20
    with pytest.raises(MemoryLimitError, match="decoding would produce"):
        pqext.table_metrics.delta(numbers, exact=True, limits=low)
    large = Limits(memory_bytes=1, memory_expansion=0)
    assert large.max_decoded_bytes(1 << 40) == 1 << 50


def test_limits_for_untrusted_files_can_be_overridden() -> None:
    assert Limits.untrusted().max_memory_bytes(1000) == 100 << 20
    assert Limits.untrusted().max_memory_bytes(1 << 30) == 16 << 30
    assert Limits.untrusted(memory_expansion=0, memory_bytes=5).max_memory_bytes(1 << 30) == 5
    assert Limits.untrusted(memory_bytes=5).max_memory_bytes(1 << 30) == 5
    assert Limits.untrusted(memory_bytes=5, memory_expansion=2).max_memory_bytes(1 << 30) == 2 << 30
    with pytest.raises(TypeError):
        Limits.untrusted(pages=3)
