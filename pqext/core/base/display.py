"""How objects show themselves in notebooks: tables that take the colours of the page, and scroll where it is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pqext.core.base.text import visible

_LEFT = "text-align:left"
_TEXT = f"{_LEFT};overflow-wrap:anywhere"


def as_html(title: str, rows: Iterable[tuple[str, ...]], *further: str) -> str:
    """A small table of HTML below ``title``, whose rows are named by their first cells, and ``further`` HTML below it.

    Texts from files are made harmless.
    """
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    caption = f'<caption style="{_LEFT};font-weight:bold">{_harmless(title)}</caption>'
    table = f"<table>{caption}<tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto;max-width:100%">{table}{"".join(further)}</div>'


def folded(title: str, heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table with a row of headings, shown when its ``title`` is opened."""
    return f"<details><summary>{_harmless(title)}</summary>{with_headings(heads, rows)}</details>"


def with_headings(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table with a row of headings."""
    head = "".join(f'<th scope="col" style="{_LEFT}">{_harmless(text)}</th>' for text in heads)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: tuple[str, ...]) -> str:
    name, *cells = row
    return f'<th scope="row" style="{_LEFT}">{_harmless(name)}</th>' + "".join(
        f'<td style="{_TEXT}">{_harmless(cell)}</td>' for cell in cells
    )


def _harmless(text: str) -> str:
    return escape(visible(text))
