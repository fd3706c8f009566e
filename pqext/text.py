"""Small texts for people: sizes, counts, and names from files made harmless (:mod:`pqext.core.base.text`)."""

from __future__ import annotations

from pqext.core.base.text import counted, visible

__all__ = ["counted", "printed", "shorten", "size", "visible"]


def size(count: int) -> str:
    """``count`` bytes in the largest binary unit that leaves at least one.

    >>> size(999), size(123456)
    ('999 B', '120.6 KiB')
    """
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if abs(value) < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def shorten(text: str, limit: int) -> str:
    """``text``, or its beginning and an ellipsis, in at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printed(report: object) -> str:
    """What rich prints of ``report``, as plain text of at most 160 columns."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=160, color_system=None, legacy_windows=False).print(report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()
