"""Explain plans: format them as text and JSON values, and detect likely mistakes in a query.

Likely mistakes are paths similar to shredded paths, and boxes outside the range of longitudes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text, with_noun
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.expressions import Column, Expression, Spatial, VariantField, bases
from pqext.dataset.expressions.spatial import geometry_text
from pqext.dataset.expressions.visitors import leaves, operands
from pqext.dataset.planning.plan import LIMIT, REACHED, RowGroupPlan, Stage, Task
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.pruning.binding import find
from pqext.geo.types import type_of
from pqext.variant.access.path import as_path

SHOWN = 20
"""Maximum number of files, and of row groups of a file, that are listed individually."""
_SHOWN_RANGES = 3
_SHOWN_COLUMNS = 5
_NOUNS = {"files": "file", "row_groups": "row group", "rows": "row", "pages": "page"}


def format_summary(tasks: Sequence[Task]) -> str:
    """Summarise the amount of data read, in one line."""
    retained, total = sum(len(task.kept_row_groups) for task in tasks), sum(task.total for task in tasks)
    rows_kept, rows_total = sum(task.rows_kept for task in tasks), sum(task.rows_total for task in tasks)
    bytes_kept, bytes_total = sum(task.bytes_kept for task in tasks), sum(task.bytes_total for task in tasks)
    opened = sum(task.prune_reason is None for task in tasks)
    files = f"{opened} of {with_noun(len(tasks), 'file')}, " if opened < len(tasks) else ""
    return (
        f"{files}{retained} of {with_noun(total, 'row group')}, {rows_kept:,} of {with_noun(rows_total, 'row')}, "
        f"{bytes_kept:,} of {with_noun(bytes_total, 'byte')}"
    )


def count_skipped(tasks: Iterable[Task]) -> dict[str, dict[str, int]]:
    """Count skipped files, row groups, rows, pages and bytes by the evidence for skipping, such as ``statistics``."""
    result: dict[str, dict[str, int]] = {}

    def add(evidence: str, **numbers: int) -> None:
        known = result.setdefault(evidence, {})
        for name, number in numbers.items():
            known[name] = known.get(name, 0) + number

    for task in tasks:
        if task.prune_reason is not None:
            add(LIMIT if task.prune_reason == REACHED else task.evidence or "schema", files=1)
            continue
        for plan in task.row_groups:
            if plan.prune_reason is not None:
                evidence = " and ".join(plan.evidence) or "statistics"
                add(evidence, row_groups=1, rows=plan.num_rows, bytes=plan.num_bytes)
            elif plan.rows is not None and plan.rows_read < plan.num_rows:
                retained, pages = plan.pages or (0, 0)
                left_out = plan.num_rows - plan.rows_read
                why = LIMIT if LIMIT in plan.evidence else "page bounds"
                add(why, rows=left_out, pages=pages - retained, bytes=plan.num_bytes - plan.bytes_read)
    return result


def format_skipping(tasks: Sequence[Task]) -> list[str]:
    """Return a line for each type of evidence, with the amount of data skipped by this evidence."""
    lines = []
    for evidence, numbers in count_skipped(tasks).items():
        parts = [with_noun(numbers[name], noun) for name, noun in _NOUNS.items() if numbers.get(name)]
        lines.append(f"  skips by {evidence}: {', '.join(parts)}")
    return lines


def format_plan(
    tasks: Sequence[Task], messages: Iterable[str] = (), max_entries: int | None = SHOWN, *, is_limited: bool = False
) -> list[str]:
    """Return lines with the amount of data to read, ``messages``, the skipped data by evidence, and the files.

    A plan with a limit (``is_limited``) reads at most this amount.
    """
    return [
        "  reads " + format_summary(tasks) + (" at most" if is_limited else ""),
        *(f"  {line}" for line in messages),
        *format_skipping(tasks),
        *format_explanation(tasks, max_entries),
    ]


def format_explanation(tasks: Sequence[Task], max_entries: int | None = SHOWN) -> list[str]:
    """Return lines that describe the data read from each file, its stages, and the reasons for skipping other data.

    At most ``max_entries`` files, and row groups of each file, are listed. The remaining files are summarised together,
    and the remaining row groups are counted. There are no lines if ``max_entries`` is 0.
    """
    lines: list[str] = []
    if max_entries == 0:
        return lines
    for task in tasks[:max_entries]:
        if task.prune_reason is not None:
            lines.append(f"{escape_text(task.path)} skipped: {task.prune_reason}")
            continue
        lines.append(f"{escape_text(task.path)}: " + format_summary([task]))
        texts = [line for line in map(_group_lines, task.row_groups) if line]
        lines += [line for group in texts[:max_entries] for line in group]
        if max_entries is not None and len(texts) > max_entries:
            lines.append(f"  and {with_noun(len(texts) - max_entries, 'more row group')}")
    if max_entries is not None and len(tasks) > max_entries:
        rest = tasks[max_entries:]
        lines.append(f"and {with_noun(len(rest), 'more file')}: {format_summary(rest)}")
    return lines


def to_data(facts: Mapping[str, Any], tasks: Sequence[Task], max_entries: int | None) -> dict[str, Any]:
    """Convert an explanation to JSON values: the ``facts`` of the scan, followed by its tasks."""
    read = [task for task in tasks if task.prune_reason is None]
    totals = {
        "files": (len(read), len(tasks)),
        "row_groups": (sum(len(task.kept_row_groups) for task in tasks), sum(task.total for task in tasks)),
        "rows": (sum(task.rows_kept for task in tasks), sum(task.rows_total for task in tasks)),
        "bytes": (sum(task.bytes_kept for task in tasks), sum(task.bytes_total for task in tasks)),
    }
    return {
        **facts,
        "reads": {name: {"kept": retained, "of": total} for name, (retained, total) in totals.items()},
        "skips": count_skipped(tasks),
        "files": [_task_data(task, max_entries) for task in tasks[:max_entries]],
        "files_not_shown": len(tasks[max_entries:]) if max_entries is not None else 0,
    }


def _task_data(task: Task, max_entries: int | None) -> dict[str, Any]:
    groups = task.row_groups[:max_entries]
    return {
        "path": task.path,
        "skipped": task.prune_reason,
        "row_groups": [_group_data(plan) for plan in groups],
        "row_groups_not_shown": task.total - len(groups),
    }


def _group_data(plan: RowGroupPlan) -> dict[str, Any]:
    retained, pages = plan.pages or (None, None)
    return {
        "index": plan.index,
        "skipped": plan.prune_reason,
        "evidence": list(plan.evidence),
        "rows": {"kept": plan.rows_read, "of": plan.num_rows},
        "pages": None if pages is None else {"kept": retained, "of": pages},
        "bytes": {"kept": plan.bytes_read, "of": plan.num_bytes},
        "stages": [
            {
                "columns": None if stage.columns is None else stage_columns(stage),
                "filter": None if stage.filter is None else str(stage.filter),
                "bytes": stage.num_bytes,
            }
            for stage in plan.stages
        ],
    }


def _group_lines(plan: RowGroupPlan) -> list[str]:
    if plan.prune_reason is not None:
        return [f"  row group {plan.index} skipped: {plan.prune_reason}"]
    lines = []
    if plan.rows is not None:
        lines.append(f"  row group {plan.index}: {_rows_text(plan)}")
    if len(plan.stages) > 1 and plan.rows != []:
        head = f"  row group {plan.index}: " if plan.rows is None else "    "
        lines.append(head + "; ".join(map(_stage_text, range(len(plan.stages)), plan.stages)))
    return lines


def _rows_text(plan: RowGroupPlan) -> str:
    """Format the number of rows that remain after page pruning, and the first ranges of these rows."""
    rows = plan.rows or []
    held = sum(map(len, rows))
    spans = ", ".join(f"{item.start:,} to {item.stop - 1:,}" for item in rows[:_SHOWN_RANGES])
    spans += f" and {len(rows) - _SHOWN_RANGES} more ranges" if len(rows) > _SHOWN_RANGES else ""
    pages = f" ({plan.pages[0]:,} of {with_noun(plan.pages[1], 'page')})" if plan.pages is not None else ""
    spans = f": {spans}" if spans else ""
    why = "are within the limit" if LIMIT in plan.evidence else "may match by their pages"
    return f"{held:,} of {with_noun(plan.num_rows, 'row')} {why}{pages}{spans}"


def stage_columns(stage: Stage) -> list[str]:
    """Return the names of the columns and VARIANT fields that a stage reads."""
    names = [*(stage.columns or ()), *(name for name, _ in stage.leaves)]
    if stage.filter is not None and stage.asked:
        fields = operands(stage.filter)
        names += dict.fromkeys(str(fields[place]) for place, _ in stage.asked)
    return names


def _stage_text(number: int, stage: Stage) -> str:
    names = stage_columns(stage)
    shown = ", ".join(map(escape_text, names[:_SHOWN_COLUMNS]))
    shown += f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    size = with_noun(stage.num_bytes, "byte")
    if number == 0:
        return f"reads {shown} ({size}) for {stage.filter}"
    if stage.filter is not None:
        return f"then {shown} (at most {size}) for {stage.filter}"
    return f"then, of rows that match, {shown} (at most {size})" if names else "then no more"


def checkable_parts(condition: Expression | None, result: Iterable[object]) -> tuple[list[VariantField], list[Spatial]]:
    """Return the parts of a query that can be checked for mistakes: VARIANT fields and spatial conditions."""
    requested = [] if condition is None else operands(condition)
    requested += [base for element in result if isinstance(element, ComputedColumn) for base in bases(element.field)]
    spatial = [] if condition is None else [leaf for leaf in leaves(condition) if isinstance(leaf, Spatial)]
    return [item for item in requested if isinstance(item, VariantField)], spatial


def mistake_warnings(fields: list[VariantField], conditions: list[Spatial], file: ParquetFile) -> list[str]:
    """Return warnings about ``fields`` and spatial ``conditions`` for a file."""
    with suppress(TypeError, ValueError):  # the error is raised again when the scan runs
        return path_warnings(fields, file.schema) + box_warnings(conditions, file.arrow_schema)
    return []


def box_warnings(conditions: Iterable[Spatial], schema: pa.Schema) -> list[str]:
    """Return warnings about spatial conditions with boxes or distances that are implausible in the column's CRS.

    These are boxes of GEOMETRY columns outside the longitudes of a geographic CRS or, in another CRS, with
    ``xmin > xmax``, and distances of more degrees than a circle has. On the globe, longitudes wrap.
    """
    result = (_box_warning(condition, schema) for condition in conditions)
    return list(dict.fromkeys(line for line in result if line))


def _box_warning(condition: Spatial, schema: pa.Schema) -> str:
    field = _field(schema, condition.operand.path) if isinstance(condition.operand, Column) else None
    kind = None if field is None else type_of(field)
    if kind is None:
        return ""
    if kind.geographic and kind.planar and condition.distance is not None and condition.distance > 360:
        return escape_text(
            f"{condition.operand} is compared with distance {condition.distance!r} in the units of its CRS, degrees; "
            "only distances of GEOGRAPHY columns are in metres"
        )
    if isinstance(condition.geometry, bytes):
        import shapely

        xmin, ymin, xmax, ymax = shapely.from_wkb(condition.geometry).bounds
    else:
        xmin, ymin, xmax, ymax = condition.geometry
    shown = f"{condition.operand} is compared with {geometry_text(condition.geometry)}"
    if xmin > xmax and not kind.geographic:
        return escape_text(f"{shown}, which is empty: xmin is beyond xmax, and only boxes of geographic columns wrap")
    if kind.geographic and kind.planar and xmin <= xmax and (xmin < -180 or xmax > 180) and xmax - xmin < 360:
        west, east = ((x + 180) % 360 - 180 for x in (xmin, xmax))
        box = f"({west:.10g}, {ymin:.10g}, {east:.10g}, {ymax:.10g})"
        return escape_text(
            f"{shown}, which is beyond longitudes -180 to 180 and does not wrap on a plane: the same area is box {box}"
        )
    return ""


def _field(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field | None:
    """Return the field at ``path``; None if the field does not exist or is inside a list."""
    inner: pa.Schema | pa.DataType = schema
    result: pa.Field | None = None
    for name in path:
        if isinstance(inner, pa.DataType) and not pa.types.is_struct(inner):
            return None
        at = inner.get_field_index(name)
        if at < 0:
            return None
        result = inner.field(at)
        inner = result.type
    return result


def path_warnings(fields: Iterable[VariantField], schema: Schema) -> list[str]:
    """Return a warning for each field whose path is not shredded but similar to a shredded path."""
    result = (_path_warning(field, find(schema, field.column)) for field in fields)
    return list(dict.fromkeys(line for line in result if line))


def _path_warning(field: VariantField, node: SchemaNode) -> str:
    for step in as_path(field.path):
        typed = node.child("typed_value")
        if not isinstance(step, str) or typed is None or typed.is_leaf or typed.logical_name:
            return ""
        member = typed.child(step)
        if member is None:
            near = did_you_mean(step, [child.name for child in typed.children])
            return near and escape_text(f"{field.column} has no shredded {step!r}, which {field.path} needs{near}")
        node = member
    return ""
