"""What :func:`pqext.verify` finds in a file, as data that prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pqext.core.base.text import render_text
from pqext.verification.model import Verdict

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True, slots=True)
class Report(Verdict):
    """What is wrong with a file. ``print`` it for people, :meth:`to_dict` it for programs.

    ``checks`` names what was looked for. ``counts`` covers every fault, ``faults`` holds the first of them in the order
    in which they were found.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from pqext.verification.rendering import render

        yield from render(self)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return str(self)
