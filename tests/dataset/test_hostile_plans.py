"""Plans that nobody made, and files whose counts contradict each other read in stages: refused, never fewer rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from dataset.test_stages import set_small

import pqext
from pqext.core.format import metadata
from pqext.core.format.thrift import decode, encode
from pqext.dataset.execution import stages
from pqext.dataset.expressions import Expression, col
from pqext.dataset.planning.plan import Task

ROWS, GROUP = 100, 50
TABLE = pa.table({"k": pa.array(range(ROWS), pa.int32()), "v": [f"text {n}" for n in range(ROWS)]})


def stored(data: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(data, out, row_group_rows=GROUP, page_rows=10, **options)
    return out.getvalue()


FILE = stored()


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A plan of two stages, as JSON has it."""
    set_small(monkeypatch, 7)
    (task,) = pqext.scan(FILE, None, col("k") == 33).plan(pages=True)
    tree: dict[str, Any] = json.loads(task.to_json())
    assert len(tree["row_groups"][0]["stages"]) == 2
    return tree


def run(task: Task) -> int:
    with pqext.open(FILE) as file:
        return sum(batch.num_rows for batch, _ in stages.iter_matching_batches(file, task.row_groups, (), 10))


GROUPS: dict[str, dict[str, Any]] = {
    "a place from the end": {"index": -1},
    "a flag for a place": {"index": True},
    "a broken place": {"index": 0.5},
    "no number that there is": {"num_rows": float("inf")},
    "more than 64 bits": {"num_rows": 1 << 70},
    "rows beyond the row group": {"rows": [[0, 51]]},
    "rows before it": {"rows": [[-1, 10]]},
    "rows twice": {"rows": [[0, 10], [5, 20]]},
    "rows backwards": {"rows": [[40, 50], [0, 10]]},
    "no rows": {"rows": [[10, 10]]},
    "broken rows": {"rows": [[0.5, 3.2]]},
    "no stages": {"stages": []},
    "a reason that is none": {"prune_reason": 7},
}
STAGES: dict[str, dict[str, Any]] = {
    "letters for columns": {"columns": "kv"},
    "all columns in one of two stages": {"columns": None},
    "a filter that is no text": {"filter": {}},
    "letters to keep": {"kept": "k"},
    "a leaf from the end": {"leaves": [["x", -1]]},
    "bytes before the file": {"byte_ranges": [[-1, 5]]},
    "no bytes that there are": {"byte_ranges": [[float("inf"), 5]]},
}


@pytest.mark.parametrize("name", [*GROUPS, *STAGES])
def test_invalid_plan_is_rejected(name: str, plan: dict[str, Any]) -> None:
    assert run(Task.from_json(json.dumps(plan))) == 1
    group = plan["row_groups"][0]
    (group if name in GROUPS else group["stages"][0]).update(GROUPS.get(name) or STAGES[name])
    with pytest.raises(ValueError, match="not a valid plan"):
        Task.from_json(json.dumps(plan))


FOREIGN: dict[str, tuple[int, dict[str, Any]]] = {
    "a column that is not there": (0, {"columns": ["nowhere"]}),
    "a field that is not there": (1, {"columns": ["v.nowhere"]}),
    "a column to keep that is not read": (0, {"kept": ["v"]}),
    "a column to compare that is not read": (0, {"compared": ["w"]}),
    "a computed column that nobody asked for": (1, {"leaves": [["x", 0]]}),
    "a leaf that is not there": (0, {"asked": [[0, 99]]}),
    "more than the filter asks": (0, {"asked": [[5, 0]]}),
    "no filter in the first of two stages": (0, {"filter": None}),
    "a filter on a column that is not read": (0, {"columns": ["v"], "kept": []}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_plan_of_missing_columns_is_rejected(name: str, plan: dict[str, Any]) -> None:
    stage, change = FOREIGN[name]
    plan["row_groups"][0]["stages"][stage].update(change)
    with pytest.raises(ValueError, match=r"another file|no column"):
        run(Task.from_json(json.dumps(plan)))


def test_plan_of_a_missing_row_group_is_rejected(plan: dict[str, Any]) -> None:
    plan["row_groups"][0]["index"] = 7
    with pytest.raises(ValueError, match="it reads row group 7, but the file has 2 row groups"):
        run(Task.from_json(json.dumps(plan)))


def test_row_group_is_planned_only_once(plan: dict[str, Any]) -> None:
    plan["row_groups"].append(plan["row_groups"][0])
    with pytest.raises(ValueError, match="duplicate row groups"):
        Task.from_json(json.dumps(plan))


def test_excessively_nested_plan_is_invalid() -> None:
    with pytest.raises(ValueError, match="not a valid plan"):
        Task.from_json("[" * 200_000)


@pytest.mark.parametrize("rows", [40, 60])
def test_plan_with_a_wrong_row_count_is_rejected(rows: int, plan: dict[str, Any]) -> None:
    plan["row_groups"][0].update(num_rows=rows, rows=None, prune_reason=None)
    with pytest.raises(ValueError, match=f"another file: it has {rows} rows in row group 0, the file has 50"):
        run(Task.from_json(json.dumps(plan)))


def test_stages_are_not_used_with_skipped_corruption(plan: dict[str, Any]) -> None:
    """Its rows are missing from those that come, which stages tell by their numbers."""
    task = Task.from_json(json.dumps(plan))
    with pqext.open(FILE) as file:
        start, _ = file.row_groups[0].chunk("k").byte_range
    damaged = bytearray(FILE)
    damaged[start] ^= 0xFF
    with pqext.open(bytes(damaged), on_corrupt="skip") as file:
        with pytest.warns(pqext.CorruptDataWarning):
            assert list(stages.iter_matching_batches(file, task.row_groups, (), 10)) == []
        assert file.damage


def altered(change: Callable[[metadata.RowGroup], None], **options: Any) -> bytes:
    data = stored(**options)
    size = int.from_bytes(data[-8:-4], "little")
    footer = decode(metadata.FileMetaData, data[-8 - size : -8])[0]
    change(footer.row_groups[0])
    footer.num_rows = sum(max(group.num_rows, 0) for group in footer.row_groups)
    raw = encode(footer)
    return data[: -8 - size] + raw + len(raw).to_bytes(4, "little") + b"PAR1"


@pytest.mark.filterwarnings("ignore::pqext.core.indexes.reading.DamagedIndexWarning")
@pytest.mark.parametrize("page_index", [True, False])
@pytest.mark.parametrize("question", [col("k") >= 0, col("k") == 3], ids=str)
@pytest.mark.parametrize("rows", [-5, 0, 25])
def test_row_group_with_fewer_rows_than_its_filter_column_is_rejected(
    rows: int, question: Expression, page_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stage would have refused it: no rows are left out in silence."""

    def set_rows(group: metadata.RowGroup) -> None:
        group.num_rows = rows

    data = altered(set_rows, page_index=page_index)
    for columns in (None, ["v"], ["k"]):
        for small in (False, True):
            with monkeypatch.context() as patch:
                if small:
                    set_small(patch, 7)
                with pytest.raises(pqext.CorruptFileError):
                    pqext.read_table(data, columns, question)


@pytest.mark.parametrize("question", [col("k") >= 0, col("k") == 3], ids=str)
def test_filter_chunk_with_excess_rows_is_rejected(
    question: Expression, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_rows(group: metadata.RowGroup) -> None:
        about = group.columns[0].meta_data
        assert about is not None
        about.num_values += 1

    data = altered(set_rows, page_index=False)
    set_small(monkeypatch, 7)
    with pytest.raises(pqext.CorruptFileError, match="more rows than its row group"):
        pqext.read_table(data, ["v"], question)
