"""Check that the plan of a row group matches its file, because plans are sent between processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pqext.core.base.text import escape_text
from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.planning.plan import RowGroupPlan, Stage
from pqext.dataset.planning.projection import ComputedColumn


def check_batches(
    plans: Iterable[RowGroupPlan], file: ParquetFile, computed_columns: Sequence[ComputedColumn]
) -> Iterator[RowGroupPlan]:
    """Yield the ``plans``, each after a check that its row group, columns and leaves exist in ``file``.

    Raises ``ValueError`` if a plan belongs to another file.
    """
    seen: set[tuple[Stage, ...]] = set()
    for plan in plans:
        check_numbers([plan.index], file)
        if plan.prune_reason is None and not plan.stages:
            raise ValueError(f"no stage reads row group {plan.index}: the plan is an outline; complete it first")
        if plan.stages not in seen:
            for number, stage in enumerate(plan.stages):
                _check(stage, file, computed_columns, is_last=number == len(plan.stages) - 1)
            seen.add(plan.stages)
        yield plan


def check_numbers(row_groups: Iterable[int], file: ParquetFile) -> None:
    """Raise ``ValueError`` if a row group does not exist in ``file``."""
    for index in row_groups:
        if not 0 <= index < len(file.row_groups):
            raise _other_file_error(f"it has a row group {index}, the file {len(file.row_groups)} row groups")


def _check(stage: Stage, file: ParquetFile, computed_columns: Sequence[ComputedColumn], *, is_last: bool) -> None:
    results = [file.schema.find(name) for name in stage.columns or ()]
    for name, node in zip(stage.columns or (), results, strict=True):
        if node is None:
            raise _other_file_error(f"it reads a column {escape_text(name)!r}, which the file does not have")
    tops = None if stage.columns is None else {node.path[0] for node in results if node is not None}
    for name in (*stage.kept, *stage.compared):
        if file.schema.root.position(name) is None if tops is None else name not in tops:
            raise _other_file_error(f"a stage keeps or compares column {escape_text(name)!r} without reading it")
    for name, _ in stage.leaves:
        if all(column.name != name for column in computed_columns):
            raise _other_file_error(f"it computes a column {escape_text(name)!r}, which is not requested")
    requested = () if stage.filter is None else operands(stage.filter)
    if any(place >= len(requested) for place, _ in stage.asked):
        raise _other_file_error("a stage reads more for its filter than the filter needs")
    for _, leaf in (*stage.leaves, *stage.asked):
        if leaf >= len(file.schema.leaves):
            raise _other_file_error(f"it reads leaf {leaf}, but the file has {len(file.schema.leaves)}")
    if stage.filter is None and not is_last:
        raise _other_file_error("a stage before the last has no filter")


def _other_file_error(reason: str) -> ValueError:
    return ValueError(f"the plan belongs to another file: {reason}")
