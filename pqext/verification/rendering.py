"""The report of a verification for a terminal. Every text of the file's is made harmless first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pqext.core.base.text import escape_text, format_size, shorten, with_noun
from pqext.verification.model import Verdict

_MAX_TEXT = 200


def render(report: Verdict) -> Iterator[RenderableType]:
    """The verdict, then the rules that are broken, then where."""
    yield _head(report)
    if report.counts:
        yield from _rules(report)
        yield _places(report)
    if report.unchecked:
        yield _unchecked(report)


def _plain(text: object) -> Text:
    return Text(shorten(escape_text(str(text)), _MAX_TEXT))


def _head(report: Verdict) -> RenderableType:
    path = report.path if report.path is not None else "in memory"
    verdict = Text(f"{with_noun(report.total, 'fault')}" if report.counts else "no faults", style="bold")
    if report.unchecked and not report.counts:
        verdict.append(" in the checked data", style="not bold")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row(Text("file", style="dim"), _plain(path))
    grid.add_row(Text("size", style="dim"), Text(format_size(report.size)))
    if report.num_rows is not None and report.num_row_groups is not None:
        rows = f"{with_noun(report.num_rows, 'row')} in {with_noun(report.num_row_groups, 'row group')}"
        grid.add_row(Text("holds", style="dim"), Text(rows))
    grid.add_row(Text("checked", style="dim"), Text(", ".join(report.checks)))
    if report.variant_columns:
        grid.add_row(Text("variants", style="dim"), _plain(", ".join(report.variant_columns)))
    grid.add_row(Text("found", style="dim"), verdict)
    return Group(grid, "")


def _table(title: str, *columns: str, right: int | None = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i == right else "left", no_wrap=i == right, overflow="fold")
    return table


def _rules(report: Verdict) -> Iterator[RenderableType]:
    table = _table("broken rules", "faults", "rule", "what is wrong", right=0)
    for count in report.counts:
        table.add_row(f"{count.count:,}", Text(count.rule), _plain(count.message))
    yield Group(table, "")
    advice = list(dict.fromkeys(count.advice for count in report.counts if count.advice))
    if advice:
        yield Group(Text("what to do", style="bold"), *(Text(f"- {text}") for text in advice), "")


def _places(report: Verdict) -> RenderableType:
    table = _table("first faults" if report.total > len(report.faults) else "faults", "where", "what", "rule")
    for fault in report.faults:
        table.add_row(_plain(fault.place), _plain(fault.message), Text(fault.rule))
    left = report.total - len(report.faults)
    return Group(table, *([Text(f"and {left:,} more", style="dim")] if left else []), "")


def _unchecked(report: Verdict) -> RenderableType:
    table = _table("not checked", "column", "row group", "why")
    for skipped in report.unchecked:
        group = "all" if skipped.row_group is None else str(skipped.row_group)
        table.add_row(_plain(skipped.column), group, _plain(skipped.reason))
    return Group(table, "")
