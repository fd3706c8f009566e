"""The printable report of :func:`pqext.inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pqext.core.base.text import render_text
from pqext.inspection.model import FileFacts

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, slots=True)
class Report(FileFacts):
    """Report on a file's layout, which can be printed as text or converted by :meth:`to_dict`.

    ``row_groups`` lists the requested row groups; ``num_row_groups`` is the number of all row groups.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from pqext.inspection.rendering import render

        yield from render(self)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return str(self)
