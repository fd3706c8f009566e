"""Build HTML and SVG as text. All attributes and texts are escaped in one place."""

from __future__ import annotations

import html
from collections.abc import Iterable

from pqext.core.base.text import escape_text


class Markup(str):
    """Text that is already markup and is not escaped again."""

    __slots__ = ()


HEAD = Markup("""
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
""")
"""Start of a page's head; the policy forbids scripts and loads of every type."""


def escape(value: object) -> Markup:
    """Return ``value`` as escaped HTML text; control characters are shown in escaped form."""
    return value if isinstance(value, Markup) else Markup(html.escape(escape_text(str(value)), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Build an element. Attributes that are None are omitted.

    ``class_`` and ``for_`` lose their underscore; ``stroke_width`` becomes ``stroke-width``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[object]) -> Markup:
    """Concatenate the parts; parts that are not markup are escaped."""
    return Markup("".join(escape(part) for part in parts))


def number(value: float) -> str:
    """Format a coordinate for SVG, rounded to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(
    head: Iterable[object],
    rows: Iterable[Iterable[object]],
    numeric: frozenset[int] = frozenset(),
    *,
    row_heads: bool = False,
    label: str | None = None,
) -> Markup:
    """Build an HTML table; the columns ``numeric`` are right-aligned.

    Each cell contains the heading of its column, for screens that are too narrow for columns. With ``row_heads``, the
    first cell of a row is its heading. A ``label`` is for wide tables, which are made scrollable, including by
    keyboard.
    """
    heads = list(head)

    def cells(row: Iterable[object]) -> Markup:
        return join(
            tag("th" if row_heads and i == 0 else "td", tag("span", cell), class_="n" if i in numeric else None,
                scope="row" if row_heads and i == 0 else None, data_label=heads[i] if i < len(heads) else None)
            for i, cell in enumerate(row)
        )  # fmt: skip

    top = join(tag("th", name, class_="n" if i in numeric else None, scope="col") for i, name in enumerate(heads))
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", top)), tag("tbody", join(tag("tr", cells(row)) for row in rows))),
        class_="scroll" if label is None else "scroll many",
        **({} if label is None else {"tabindex": 0, "role": "region", "aria_label": label}),
    )
