"""Report of :func:`pqext.inspect`, which prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pqext.core.base.text import render_text
from pqext.inspection.model import FileFacts

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, slots=True)
class Report(FileFacts):
    """A file's layout. ``print`` it for people, :meth:`to_dict` it for programs.

    ``row_groups`` holds those that were asked for, ``num_row_groups`` counts all.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from pqext.inspection.rendering import render

        yield from render(self)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return str(self)
