"""Format text for display: escape text from files, pluralise nouns, format sizes, and render HTML tables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escape_text(text: str) -> str:
    r"""Escape every control, formatting and unassigned character in ``text``.

    A name in a file can contain anything, such as terminal escape sequences, line breaks and marks that change the
    writing direction. Code that displays names calls this function or Python's ``repr``.

    >>> escape_text("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii") if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def with_noun(count: int, noun: str) -> str:
    """Return the number followed by its noun in the singular or plural.

    >>> with_noun(1, "row"), with_noun(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


BYTE_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
"""Number of bytes in each unit, as in DuckDB: KB is a power of 1,000, and KiB a power of 1,024."""
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Parse a number of bytes, with or without a unit. Raises ``ValueError`` for other text.

    >>> parse_bytes("64MiB"), parse_bytes("1.5 GB"), parse_bytes("1000")
    (67108864, 1500000000, 1000)
    """
    match = _BYTES.fullmatch(text.strip())
    unit = BYTE_UNITS.get(match[2].lower() or "b") if match is not None else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write bytes or a unit, as in 1000, 64MB or 2GiB")
    return int(Decimal(match[1]) * unit)


def format_size(count: int) -> str:
    """Format ``count`` bytes in the largest binary unit in which the number is at least 1.

    >>> format_size(999), format_size(123456)
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
    """Return ``text``, truncated to at most ``limit`` characters with an ellipsis at the end."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def render_text(report: object) -> str:
    """Render ``report`` as plain text of at most 160 columns, using rich."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=160, color_system=None, legacy_windows=False).print(report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()


_LEFT = "text-align:left"
_CELL = f"{_LEFT};overflow-wrap:anywhere"


def html_summary(title: str, rows: Iterable[tuple[str, ...]], *fragments: str) -> str:
    """Render an HTML table whose first column contains row headings, followed by the ``fragments`` HTML.

    All text of the table is escaped.

    The table uses the colours of the page, and scrolls if the page is narrow.
    """
    body = "".join(f"<tr>{_html_row(row)}</tr>" for row in rows)
    caption = f'<caption style="{_LEFT};font-weight:bold">{_html_text(title)}</caption>'
    table = f"<table>{caption}<tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto;max-width:100%">{table}{"".join(fragments)}</div>'


def html_details(title: str, heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Render an HTML table with column headings that is collapsed under its ``title``."""
    return f"<details><summary>{_html_text(title)}</summary>{html_table(heads, rows)}</details>"


def html_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Render an HTML table with column headings."""
    head = "".join(f'<th scope="col" style="{_LEFT}">{_html_text(text)}</th>' for text in heads)
    body = "".join(f"<tr>{_html_row(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(row: tuple[str, ...]) -> str:
    name, *cells = row
    return f'<th scope="row" style="{_LEFT}">{_html_text(name)}</th>' + "".join(
        f'<td style="{_CELL}">{_html_text(cell)}</td>' for cell in cells
    )


def _html_text(text: str) -> str:
    return escape(escape_text(text))
