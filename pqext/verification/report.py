"""Faults in a file as plain data, and the report of :func:`pqext.verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pqext.core.base.text import escape_text, format_size, render_text, shorten, with_noun

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class Fault:
    """Violation of a rule.

    ``rule`` is the id of a rule in the specs. ``row`` is counted from the start of the file. ``offset`` is a byte
    offset in ``part``. This is the ``"file"``, or a part of the value in the row and column: the encoded ``"value"`` or
    ``"metadata"``, the ``"typed_value"``, or the ``"residual"`` object next to the shredded field.
    """

    rule: str
    message: str
    row_group: int | None = None
    row: int | None = None
    column: str | None = None
    offset: int | None = None
    part: str = "file"

    @property
    def location(self) -> str:
        """Row group, row, column and byte of the fault as text."""
        labels = (("row group", self.row_group), ("row", self.row), ("column", self.column))
        parts = [f"{label} {value}" for label, value in labels if value is not None]
        if self.offset is not None:
            parts.append(f"byte {self.offset}" + (f" of the {self.part}" if self.part != "file" else ""))
        return ", ".join(parts) or "file"

    def __str__(self) -> str:
        return escape_text(f"{self.location}: {self.message} ({self.rule})")


@dataclass(frozen=True, slots=True)
class Count:
    """Number of violations of a rule that have the same message, and advice on the remedy."""

    rule: str
    message: str
    count: int
    advice: str


@dataclass(frozen=True, slots=True)
class UncheckedColumn:
    """Column that could not be checked, and the reason, such as a missing key or an unsupported encoding."""

    column: str
    row_group: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Result of :func:`pqext.verify`. ``print`` it, or use :meth:`to_dict` for machine-readable output.

    ``checks`` lists the checks that ran. ``counts`` includes every fault. ``faults`` lists the first faults in the
    order of detection.
    """

    path: str | None
    size: int
    num_rows: int | None
    num_row_groups: int | None
    checks: tuple[str, ...]
    variant_columns: tuple[str, ...]
    counts: tuple[Count, ...]
    faults: tuple[Fault, ...]
    unchecked: tuple[UncheckedColumn, ...]

    @property
    def ok(self) -> bool:
        """Whether every requested check completed without a fault.

        A file without faults is not ``ok`` if a part of it could not be checked, which ``unchecked`` lists. The number
        of faults is ``total``.
        """
        return not self.counts and self.complete

    @property
    def complete(self) -> bool:
        """Whether all requested checks were run on all requested columns."""
        return not self.unchecked

    @property
    def total(self) -> int:
        """Number of faults."""
        return sum(count.count for count in self.counts)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible dictionaries, lists and scalars."""
        return {"ok": self.ok, "complete": self.complete, "total": self.total, **asdict(self)}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _render(self)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return str(self)


class Findings:
    """Collector of faults, which counts all faults and retains the first ``limit`` faults."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.faults: list[Fault] = []
        self.unchecked: list[UncheckedColumn] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._damage: set[tuple[int | None, str | None]] = set()

    @property
    def capacity(self) -> int:
        """Number of faults that can still be retained."""
        return self.limit - len(self.faults)

    def add(self, fault: Fault) -> None:
        """Count a fault, and retain the fault unless ``limit`` faults are already retained."""
        self.count(fault.rule, fault.message, 1)
        if self.capacity > 0:
            self.faults.append(fault)

    def count(self, rule: str, message: str, number: int) -> None:
        """Count ``number`` faults without retaining them."""
        self._counts[rule, message] = self._counts.get((rule, message), 0) + number

    def add_damage(self, fault: Fault) -> None:
        """Add a fault that prevents reading a column of a row group, unless a fault of this type was already added."""
        if (fault.row_group, fault.column) not in self._damage:
            self.mark_damaged(fault.row_group, fault.column)
            self.add(fault)

    def mark_damaged(self, row_group: int | None, column: str | None) -> None:
        """Mark a column of a row group as damaged, so that no other check reports it."""
        self._damage.add((row_group, column))

    def skip(self, column: str, row_group: int | None, reason: str) -> None:
        """Record an unchecked column, once for each reason and row group. At most ``limit`` columns are recorded."""
        unchecked = UncheckedColumn(column, row_group, reason)
        if len(self.unchecked) < max(self.limit, 1) and unchecked not in self.unchecked:
            self.unchecked.append(unchecked)

    def counts(self, advice: Sequence[tuple[str, str]]) -> tuple[Count, ...]:
        """Return the counts in descending order. ``advice`` contains pairs of a rule prefix and a remedy."""
        ordered = sorted(self._counts.items(), key=lambda item: -item[1])
        return tuple(
            Count(rule, message, number, next((text for start, text in advice if rule.startswith(start)), ""))
            for (rule, message), number in ordered
        )


_MAX_TEXT = 200


def _render(report: Report) -> Iterator[RenderableType]:
    """Yield the summary, the violated rules and the faults."""
    yield _summary_table(report)
    if report.counts:
        yield from _rule_table(report)
        yield _fault_table(report)
    if report.unchecked:
        yield _unchecked_lines(report)


def _to_plain_text(text: object) -> Text:
    from rich.text import Text

    return Text(shorten(escape_text(str(text)), _MAX_TEXT))


def _summary_table(report: Report) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    path = report.path if report.path is not None else "in memory"
    verdict = Text(f"{with_noun(report.total, 'fault')}" if report.counts else "no faults", style="bold")
    if report.unchecked and not report.counts:
        verdict.append(" in the checked data", style="not bold")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row(Text("file", style="dim"), _to_plain_text(path))
    grid.add_row(Text("size", style="dim"), Text(format_size(report.size)))
    if report.num_rows is not None and report.num_row_groups is not None:
        rows = f"{with_noun(report.num_rows, 'row')} in {with_noun(report.num_row_groups, 'row group')}"
        grid.add_row(Text("holds", style="dim"), Text(rows))
    grid.add_row(Text("checked", style="dim"), Text(", ".join(report.checks)))
    if report.variant_columns:
        grid.add_row(Text("variants", style="dim"), _to_plain_text(", ".join(report.variant_columns)))
    grid.add_row(Text("found", style="dim"), verdict)
    return Group(grid, "")


def _table(title: str, *columns: str, right: int | None = None) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i == right else "left", no_wrap=i == right, overflow="fold")
    return table


def _rule_table(report: Report) -> Iterator[RenderableType]:
    from rich.console import Group
    from rich.text import Text

    table = _table("broken rules", "faults", "rule", "what is wrong", right=0)
    for count in report.counts:
        table.add_row(f"{count.count:,}", Text(count.rule), _to_plain_text(count.message))
    yield Group(table, "")
    advice = list(dict.fromkeys(count.advice for count in report.counts if count.advice))
    if advice:
        yield Group(Text("what to do", style="bold"), *(Text(f"- {text}") for text in advice), "")


def _fault_table(report: Report) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    table = _table("first faults" if report.total > len(report.faults) else "faults", "where", "what", "rule")
    for fault in report.faults:
        table.add_row(_to_plain_text(fault.location), _to_plain_text(fault.message), Text(fault.rule))
    remaining = report.total - len(report.faults)
    return Group(table, *([Text(f"and {remaining:,} more", style="dim")] if remaining else []), "")


def _unchecked_lines(report: Report) -> RenderableType:
    from rich.console import Group

    table = _table("not checked", "column", "row group", "why")
    for skipped in report.unchecked:
        group = "all" if skipped.row_group is None else str(skipped.row_group)
        table.add_row(_to_plain_text(skipped.column), group, _to_plain_text(skipped.reason))
    return Group(table, "")
