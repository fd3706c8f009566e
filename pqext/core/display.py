"""How objects show themselves in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from pqext.core.text import visible


def as_html(title: str, rows: Iterable[tuple[str, ...]]) -> str:
    """A small table of HTML below ``title``; texts from files are made harmless."""
    cells = ("".join(f"<td>{escape(visible(text))}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<p><b>{escape(visible(title))}</b></p><table>{body}</table>"
