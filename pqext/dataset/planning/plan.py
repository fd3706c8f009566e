"""Plans of a query: row groups, rows and byte ranges to read, stages, and reasons for skipping other row groups.

A plan is immutable data. :mod:`pqext.dataset.planning.planner` creates it from the metadata of files, it is sent as
JSON to the process that executes it (:mod:`pqext.dataset.execution.stages`), where :func:`check_plans` checks that it
matches the file, and :mod:`pqext.dataset.planning.explanation` formats it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.text import escape_text
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.row_ranges import RowRanges, merge_ranges
from pqext.dataset.expressions import Expression, all_of
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.notations.json_text import from_json, to_json
from pqext.dataset.planning.projection import ComputedColumn

LIMIT = "limit"
REACHED = "the preceding rows fill the limit"

ByteRange = tuple[int, int]
"""(offset, length) in a file."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Columns of a row group that are read together, for the rows that the preceding stages selected."""

    columns: tuple[str, ...] | None
    """Columns requested from the reader: names and dotted paths, all columns if None."""
    filter: Expression | None = None
    """Condition evaluated on these columns. Only matching rows reach the next stage."""
    kept: tuple[str, ...] = ()
    """Top-level columns that are read in this stage, not the last one, and are part of the result."""
    leaves: tuple[tuple[str, int], ...] = ()
    """Computed columns of the result that are read from separate leaves, each with the index of its leaf."""
    asked: tuple[tuple[int, int], ...] = ()
    """Fields of VARIANT columns that the filter uses and that are read from shredded leaves: the position of each among
    the filter's operands, and its column index."""
    compared: tuple[str, ...] = ()
    """Top-level columns that the filter compares. Strings arrive as dictionaries if they are stored so, and each
    distinct value is compared once. The columns are part of the result if ``kept`` is true."""
    byte_ranges: tuple[ByteRange, ...] = ()
    """Byte ranges of the pages of the row group's rows, merged if adjacent. The first stage fetches all of them, later
    stages at most these. Empty if byte ranges were not requested."""

    @property
    def num_bytes(self) -> int:
        """Total length of the ``byte_ranges``."""
        return sum(length for _, length in self.byte_ranges)


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """Plan of one row group. ``num_bytes`` is the total stored size of the columns to read."""

    index: int
    num_rows: int
    num_bytes: int
    prune_reason: str | None
    """The proof that no row can match, if the row group is skipped."""
    rows: RowRanges | None = None
    """Rows of pages that may contain a match, if page indexes prune any, or within the limit."""
    stages: tuple[Stage, ...] = ()
    """Stages in reading order; the last stage produces the result's columns."""
    evidence: tuple[str, ...] = ()
    """Evidence for pruning: ``statistics``, ``Bloom filter``, ``box``, ``variant leaf``; or ``limit``, which also
    prunes rows beyond the limit."""
    pages: tuple[int, int] | None = None
    """If ``rows`` is set: the number of pages of the needed columns that contain any of them, and of all pages."""

    @property
    def rows_read(self) -> int:
        """Number of selected rows. Other rows on the same pages are not counted."""
        if self.prune_reason is not None:
            return 0
        return self.num_rows if self.rows is None else sum(map(len, self.rows))

    @property
    def bytes_read(self) -> int:
        """Maximum number of stored bytes to read from the needed columns. Overlapping ranges are counted once."""
        if self.prune_reason is not None:
            return 0
        if self.rows is None or not self.stages:
            return self.num_bytes
        return sum(
            length for _, length in merge_byte_ranges(place for stage in self.stages for place in stage.byte_ranges)
        )


@dataclass(frozen=True, slots=True)
class Task:
    """Plan of one file."""

    path: str
    row_groups: tuple[RowGroupPlan, ...]
    prune_reason: str | None = None
    """The proof that no row can match, if the file is skipped by its path; its row groups are not planned then."""
    footer_crc: int | None = None
    """CRC-32 of the footer that the plan is based on, used to detect replaced files."""
    is_outline: bool = False
    """Whether only the footer was evaluated. Before reading, page indexes and Bloom filters must be evaluated,
    and stages must be planned."""
    evidence: str | None = None
    """Evidence for pruning a file that was not opened, in a word or two."""

    @property
    def kept_row_groups(self) -> tuple[int, ...]:
        """Indexes of the row groups that are read."""
        return tuple(plan.index for plan in self.row_groups if plan.prune_reason is None)

    @property
    def total(self) -> int:
        """Number of row groups in the file."""
        return len(self.row_groups)

    @property
    def bytes_kept(self) -> int:
        """Stored bytes of needed columns after pruning: of pages if page indexes are used, otherwise of row groups."""
        return sum(plan.bytes_read for plan in self.row_groups)

    @property
    def bytes_total(self) -> int:
        """Stored bytes of the needed columns in all row groups."""
        return sum(plan.num_bytes for plan in self.row_groups)

    @property
    def rows_kept(self) -> int:
        """Number of rows read."""
        return sum(plan.rows_read for plan in self.row_groups)

    @property
    def rows_total(self) -> int:
        """Number of rows in the file."""
        return sum(plan.num_rows for plan in self.row_groups)

    @property
    def reasons(self) -> dict[int, str]:
        """The reason for skipping each skipped row group, by index."""
        return {plan.index: plan.prune_reason for plan in self.row_groups if plan.prune_reason is not None}

    def to_json(self) -> str:
        """Serialise the plan as JSON text; :meth:`from_json` restores an equal plan."""
        return json.dumps(
            {
                "path": self.path,
                "prune_reason": self.prune_reason,
                "footer_crc": self.footer_crc,
                "is_outline": self.is_outline,
                "evidence": self.evidence,
                "row_groups": [_group_to_dict(group) for group in self.row_groups],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Task:
        """Parse a plan written by :meth:`to_json`. Raises ``ValueError`` if the text is not a plan."""
        try:
            tree = json.loads(text)
            crc, is_outline = tree["footer_crc"], tree.get("is_outline", False) is True
            groups = tuple(_group_from_dict(group, is_outline) for group in _check_list(tree["row_groups"]))
            crc = None if crc is None else _check_integer(crc)
            evidence = None if tree.get("evidence") is None else _check_text(tree["evidence"])
            plan = cls(_check_text(tree["path"]), groups, _parse_prune_reason(tree), crc, is_outline, evidence)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not a valid plan: {error!r}") from error
        if len({group.index for group in groups}) < len(groups):
            raise ValueError("not a valid plan: duplicate row groups")
        return plan


def merge_stages(stages: Sequence[Stage]) -> Stage:
    """Merge ``stages`` into one stage that reads all their columns and applies all their filters."""
    if len(stages) == 1:
        return stages[0]
    columns = tuple(dict.fromkeys(name for stage in stages for name in stage.columns or ()))
    filters, requested, before = [], [], 0
    for stage in stages:
        if stage.filter is not None:
            filters.append(stage.filter)
            requested += [(before + place, leaf) for place, leaf in stage.asked]
            before += len(operands(stage.filter))
    compared = tuple(dict.fromkeys(name for stage in stages for name in stage.compared))
    kept = tuple(name for name in compared if any(name in stage.kept for stage in stages))
    return Stage(columns, all_of(filters) if filters else None, kept, stages[-1].leaves, tuple(requested), compared)


def merge_byte_ranges(ranges: Iterable[ByteRange]) -> tuple[ByteRange, ...]:
    """Sort byte ranges, and merge ranges that touch or overlap."""
    result = merge_ranges(range(offset, offset + length) for offset, length in ranges)
    return tuple((item.start, len(item)) for item in result)


def _group_to_dict(plan: RowGroupPlan) -> dict[str, Any]:
    return {
        "index": plan.index,
        "num_rows": plan.num_rows,
        "num_bytes": plan.num_bytes,
        "prune_reason": plan.prune_reason,
        "rows": None if plan.rows is None else [[item.start, item.stop] for item in plan.rows],
        "evidence": plan.evidence,
        "pages": plan.pages,
        "stages": [
            {
                "columns": stage.columns,
                "filter": None if stage.filter is None else to_json(stage.filter),
                "kept": stage.kept,
                "leaves": stage.leaves,
                "asked": stage.asked,
                "compared": stage.compared,
                "byte_ranges": stage.byte_ranges,
            }
            for stage in plan.stages
        ],
    }


def _group_from_dict(tree: Mapping[str, Any], is_outline: bool) -> RowGroupPlan:
    index, prune_reason = _check_count(tree["index"]), _parse_prune_reason(tree)
    num_rows, num_bytes = _check_integer(tree["num_rows"]), _check_integer(tree["num_bytes"])
    rows = None if tree["rows"] is None else [range(start, stop) for start, stop in _check_pairs(tree["rows"])]
    at = 0
    for item in rows or ():
        if not at <= item.start < item.stop <= num_rows:
            raise TypeError(f"rows must ascend and stay within row group {index}")
        at = item.stop
    stages = tuple(map(_stage_from_dict, _check_list(tree["stages"])))
    if prune_reason is None and not stages and not is_outline:
        raise TypeError(f"no stage reads row group {index}")
    if len(stages) > 1 and any(stage.columns is None for stage in stages):
        raise TypeError(f"row group {index} has {len(stages)} stages, so every stage must list its columns")
    evidence = tuple(map(_check_text, _check_list(tree["evidence"])))
    retained, pages = (0, 0) if tree["pages"] is None else map(_check_count, _check_pair(tree["pages"]))
    result = None if tree["pages"] is None else (retained, pages)
    return RowGroupPlan(index, num_rows, num_bytes, prune_reason, rows, stages, evidence, result)


def _stage_from_dict(tree: Mapping[str, Any]) -> Stage:
    return Stage(
        None if tree["columns"] is None else tuple(map(_check_text, _check_list(tree["columns"]))),
        None if tree["filter"] is None else from_json(_check_text(tree["filter"])),
        tuple(map(_check_text, _check_list(tree["kept"]))),
        tuple((_check_text(name), _check_count(leaf)) for name, leaf in map(_check_pair, _check_list(tree["leaves"]))),
        tuple((_check_count(place), _check_count(leaf)) for place, leaf in _check_pairs(tree["asked"])),
        tuple(map(_check_text, _check_list(tree["compared"]))),
        tuple((_check_count(offset), _check_count(length)) for offset, length in _check_pairs(tree["byte_ranges"])),
    )


def _parse_prune_reason(tree: Mapping[str, Any]) -> str | None:
    return None if tree["prune_reason"] is None else _check_text(tree["prune_reason"])


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {type(value).__name__}")
    return value


def _check_integer(value: Any) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise TypeError(f"expected a 64-bit integer, not {value!r:.100}")
    return value


def _check_count(value: Any) -> int:
    if _check_integer(value) < 0:
        raise TypeError(f"expected a non-negative integer, not {value}")
    return int(value)


def _check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, not {type(value).__name__}")
    return value


def _check_pair(value: Any) -> tuple[Any, Any]:
    if len(_check_list(value)) != 2:
        raise TypeError(f"expected a list of length 2, not {len(value)}")
    return value[0], value[1]


def _check_pairs(value: Any) -> list[tuple[int, int]]:
    return [(_check_integer(first), _check_integer(second)) for first, second in map(_check_pair, _check_list(value))]


def check_plans(
    plans: Iterable[RowGroupPlan], file: ParquetFile, computed_columns: Sequence[ComputedColumn]
) -> Iterator[RowGroupPlan]:
    """Check that the row groups, columns and leaves in ``plans`` exist in ``file``, and yield the plans.

    Raises ``ValueError`` if a plan belongs to another file.
    """
    seen: set[tuple[Stage, ...]] = set()
    for plan in plans:
        check_row_groups([plan.index], file)
        if plan.prune_reason is None and not plan.stages:
            raise ValueError(f"the plan of row group {plan.index} is an outline without stages; pass a complete plan")
        if plan.stages not in seen:
            for number, stage in enumerate(plan.stages):
                _check_stage(stage, file, computed_columns, is_last=number == len(plan.stages) - 1)
            seen.add(plan.stages)
        yield plan


def check_row_groups(row_groups: Iterable[int], file: ParquetFile) -> None:
    """Raise ``ValueError`` if a row group does not exist in ``file``."""
    for index in row_groups:
        if not 0 <= index < len(file.row_groups):
            raise _other_file_error(f"it reads row group {index}, but the file has {len(file.row_groups)} row groups")


def _check_stage(stage: Stage, file: ParquetFile, computed_columns: Sequence[ComputedColumn], *, is_last: bool) -> None:
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
