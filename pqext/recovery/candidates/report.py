"""Report of :func:`pqext.recover` as plain data: row groups, losses and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pqext.core.base.limits import Limits
from pqext.core.base.text import escape_text, with_noun
from pqext.core.read.damage import format_rows
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.candidates.assessments import Assessment
from pqext.recovery.candidates.candidates import Assigned, CandidateGroup, Candidates


@dataclass(frozen=True, slots=True)
class RecoveredRowGroup:
    """Row group of the new file.

    ``source_row_group`` is its number in the footer, or None if it was located by its pages. ``offset`` is the offset
    of its first page in the damaged file. ``evidence`` describes how it was located. ``checksums`` means that every
    page has a checksum, so the bytes of recovered pages are unmodified.

    ``assigned`` is the basis of the assignment of pages to columns: a ``"footer"``, a footer that is not at its stated
    end of the file (``"moved"``), or a footer that values ``"contradicted"``, through its statistics or by extra bytes
    in pages. Otherwise, the pages were assigned by the schema: by the ``"only"`` split that fits, by the only
    ``"regular"`` split, with pages of equal size, or by the argument ``"row_group_rows"``. ``null_columns`` lists the
    top-level columns whose lost chunks were replaced with nulls. ``certified`` means that every recovered page has a
    matching checksum, a footer assigned the pages, and no lost values were replaced with nulls.
    """

    rows: int
    offset: int
    source_row_group: int | None
    evidence: str
    checksums: bool
    assigned: Assigned
    certified: bool
    null_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """Byte range from ``start`` to ``stop`` of the damaged file that was not recovered, and the reason.

    ``start`` and ``stop`` are None if the byte range is unknown, and ``rows`` is None if the number of lost rows is.
    ``column`` is a dotted path, or None if the loss affects all columns.
    """

    reason: str
    start: int | None = None
    stop: int | None = None
    source_row_group: int | None = None
    column: str | None = None
    rows: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.source_row_group is not None:
            parts.append(f"row group {self.source_row_group}")
        if self.column is not None:
            parts.append(f"column {self.column}")
        if self.start is not None and self.stop is not None:
            parts.append(f"bytes {self.start} to {self.stop}")
        if self.rows is not None:
            parts.append(with_noun(self.rows, "row"))
        return escape_text(f"{', '.join(parts) or 'file'}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Recovery:
    """Result of :func:`pqext.recover`. ``print`` it, or use :meth:`to_dict` for machine-readable output.

    ``written`` is false if nothing could be recovered and no file was written. ``evidence`` describes how the layout
    was determined, and ``schema_from`` describes the origin of the schema. ``dropped_columns`` lists omitted top-level
    columns. ``notes`` lists corrections, guesses, and hints that the file contradicts or does not need.
    """

    path: str | None
    size: int
    written: bool
    evidence: str
    schema_from: str
    footers: tuple[str, ...]
    row_groups: tuple[RecoveredRowGroup, ...]
    losses: tuple[Loss, ...]
    dropped_columns: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows in the new file."""
        return sum(group.rows for group in self.row_groups)

    @property
    def is_certified(self) -> bool:
        """Whether rows were written, all checksums match, and footers assign the pages to columns and types."""
        return self.written and all(group.certified for group in self.row_groups)

    @property
    def checksums(self) -> bool:
        """Whether rows were written and every page has a matching checksum.

        If a page has no checksum, its damage may go undetected.
        """
        return self.written and all(group.checksums for group in self.row_groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible dictionaries, lists and scalars."""
        return {"rows": self.rows, "certified": self.is_certified, "checksums": self.checksums, **asdict(self)}

    def _assignment_lines(self) -> list[str]:
        """Describe how pages were assigned to columns, one line per basis of the assignment."""
        is_type_list = self.schema_from.startswith(("the DDL ", "the provided DDL", "the provided Arrow schema"))
        by = self.schema_from if is_type_list else f"the schema of {self.schema_from}"
        if is_type_list or self.schema_from.startswith(("the file ", "the provided file")):
            by += ", whose names and types no footer confirms"
        schema = f"assigned by {by}, in the only way"
        reasons = {
            "footer": ("certain", "as the footer states"),
            "moved": ("not certain", "as the footer states, but bytes before it are missing or were added"),
            "contradicted": ("not certain", "as the footer states, but values contradict it"),
            "only": ("not certain", f"{schema} that fits"),
            "regular": ("not certain", f"{schema} with pages of equal size; other splits fit too"),
            "row_group_rows": ("not certain", f"assigned by {by} and row_group_rows; other splits fit too"),
        }
        assigned = [group.assigned for group in self.row_groups]
        lines = []
        for basis, (certain, reason) in reasons.items():
            count = sum(other == basis for other in assigned)
            if count:
                scope = f" in {with_noun(count, 'row group')}" if count < len(assigned) else ""
                lines.append(f"{certain}{scope}: {reason}")
        return lines

    def _null_lines(self) -> list[str]:
        """Describe the columns whose lost values were replaced with nulls, one line per row group."""
        first, lines = 0, []
        for number, group in enumerate(self.row_groups):
            if group.null_columns:
                rows = format_rows(first, first + group.rows)
                lines.append(f"{', '.join(group.null_columns)} in row group {number} of the new file, {rows}")
            first += group.rows
        return lines

    def __str__(self) -> str:
        lines = [
            f"file       {escape_text(self.path) if self.path else 'in memory'}, {self.size:,} bytes",
            f"layout     {self.evidence}",
            f"schema     {'from ' * self.schema_from.startswith('the ')}{self.schema_from}",
            *(f"found      {escape_text(footer)}" for footer in self.footers),
            f"recovered  {with_noun(self.rows, 'row')} in {with_noun(len(self.row_groups), 'row group')}"
            if self.written
            else "recovered  nothing: no file was written",
        ]
        if self.written:
            unsure = sum(not group.checksums for group in self.row_groups)
            certain = "certain: every recovered page has a matching checksum"
            guess = f"not certain in {with_noun(unsure, 'row group')}: pages without checksums were only decoded"
            lines.append(f"bytes      {guess if unsure else certain}")
            lines += [f"columns    {escape_text(line)}" for line in self._assignment_lines()]
        lines += [f"note       {escape_text(note)}" for note in self.notes]
        if self.dropped_columns:
            lines.append(f"omitted    {escape_text(', '.join(self.dropped_columns))}")
        lines += [f"nulls      {escape_text(line)}" for line in self._null_lines()]
        lines += [f"lost       {loss}" for loss in self.losses]
        return "\n".join(lines)


def list_column_losses(assessments: Sequence[Assessment]) -> list[Loss]:
    """Return a loss for each damaged column of the row groups, and for each column that was replaced with nulls."""
    losses = []
    for item in assessments:
        lost = [(name, reason, item.group.rows - item.recoverable_rows) for name, reason in item.damaged.items()]
        if item.recoverable_rows:
            lost += [
                (name, f"{reason}; replaced with nulls", item.group.rows) for name, reason in item.group.nulls.items()
            ]
        losses += [create_column_loss(item.group, name, reason, rows) for name, reason, rows in lost]
    return losses


def describe_wrong_headers(assessments: Sequence[Assessment]) -> list[str]:
    """Describe each column whose values were rewritten because of wrong page headers."""
    by_column: dict[str, list[str]] = {}
    for item in assessments:
        for name, reason in item.misstated.items() if item.recoverable_rows else ():
            by_column.setdefault(name, []).append(reason)
    return [
        f"column {name}: {reasons[0]}; {with_noun(len(reasons), 'row group')} rewritten with the same values"
        for name, reasons in by_column.items()
    ]


def create_column_loss(group: CandidateGroup, column: str, reason: str, rows: int) -> Loss:
    """Return the loss of ``rows`` rows of ``group`` because of damage to a top-level column."""
    start, stop = group.extent or (None, None)
    return Loss(reason, start, stop, group.number, column or None, rows)


def sort_losses(losses: Sequence[Loss], candidates: Candidates, limits: Limits) -> list[Loss]:
    """Sort losses by their position in the file, and losses of a row group by column."""
    columns = {node.name: at for at, node in enumerate(from_elements(candidates.elements, limits).root.children)}
    offsets: dict[int | None, int] = {}
    reached = 0
    for group in candidates.groups:
        reached = group.offset or reached  # the offset of a row group without chunks is unknown
        offsets[group.number] = reached

    def position(loss: Loss) -> tuple[int, int, int]:
        start = offsets.get(loss.source_row_group, reached) if loss.start is None else loss.start
        group = -1 if loss.source_row_group is None else loss.source_row_group
        return start, group, columns.get((loss.column or "").split(".")[0], -1)

    return sorted(losses, key=position)


def describe_group(group: CandidateGroup, rows: int) -> RecoveredRowGroup:
    """Return the report's entry for a row group of ``rows`` rows in the new file."""
    certified = group.checksums and group.assigned == "footer" and not group.nulls
    return RecoveredRowGroup(
        rows, group.offset, group.number, group.evidence, group.checksums, group.assigned, certified, tuple(group.nulls)
    )
