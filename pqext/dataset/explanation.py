"""Plans for people to read."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.text import visible
from pqext.dataset.plan import RowGroupPlan, Stage, Task
from pqext.dataset.visitors import operands

_SHOWN_RANGES = 3
_SHOWN_COLUMNS = 5


def summary(tasks: Sequence[Task]) -> str:
    """How much of everything is read, in one line."""
    kept, total = sum(len(task.kept) for task in tasks), sum(task.total for task in tasks)
    rows_kept, rows_total = sum(task.rows_kept for task in tasks), sum(task.rows_total for task in tasks)
    bytes_kept, bytes_total = sum(task.bytes_kept for task in tasks), sum(task.bytes_total for task in tasks)
    opened = sum(task.refusal is None for task in tasks)
    files = f"{opened} of {count(len(tasks), 'file')}, " if opened < len(tasks) else ""
    return (
        f"{files}{kept} of {count(total, 'row group')}, {rows_kept:,} of {count(rows_total, 'row')}, "
        f"{bytes_kept:,} of {count(bytes_total, 'byte')}"
    )


def count(number: int, noun: str) -> str:
    """``number`` with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def explanation(tasks: Sequence[Task]) -> list[str]:
    """File by file and row group by row group what is read, in which stages, and why not the rest."""
    lines = []
    for task in tasks:
        if task.refusal is not None:
            lines.append(f"{visible(task.path)} skipped: {task.refusal}")
            continue
        lines.append(f"{visible(task.path)}: " + summary([task]))
        for plan in task.row_groups:
            if plan.refusal is not None:
                lines.append(f"  row group {plan.index} skipped: {plan.refusal}")
                continue
            if plan.rows is not None:
                lines.append(f"  row group {plan.index}: {_rows_text(plan)}")
            if len(plan.stages) > 1 and plan.rows != []:
                head = f"  row group {plan.index}: " if plan.rows is None else "    "
                lines.append(head + "; ".join(map(_stage_text, range(len(plan.stages)), plan.stages)))
    return lines


def _rows_text(plan: RowGroupPlan) -> str:
    """The rows that pages leave, the first few ranges of them."""
    rows = plan.rows or []
    held = sum(map(len, rows))
    places = ", ".join(f"{one.start:,} to {one.stop - 1:,}" for one in rows[:_SHOWN_RANGES])
    places += f" and {len(rows) - _SHOWN_RANGES} more ranges" if len(rows) > _SHOWN_RANGES else ""
    return f"{held:,} of {count(plan.num_rows, 'row')} may match by their pages" + (f": {places}" if places else "")


def _stage_text(number: int, stage: Stage) -> str:
    names = [*(stage.columns or ()), *(name for name, _ in stage.leaves)]
    if stage.filter is not None and stage.asked:
        fields = operands(stage.filter)
        names += dict.fromkeys(str(fields[place]) for place, _ in stage.asked)
    shown = ", ".join(map(visible, names[:_SHOWN_COLUMNS]))
    shown += f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    size = count(stage.num_bytes, "byte")
    if number == 0:
        return f"reads {shown} ({size}) for {stage.filter}"
    if stage.filter is not None:
        return f"then {shown} (at most {size}) for {stage.filter}"
    return f"then, of rows that match, {shown} (at most {size})" if names else "then no more"
