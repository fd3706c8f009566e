"""HTML and SVG as text. Every attribute and every text passes through one escape."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from pqext.text import visible


class Markup(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """``value`` as text that no browser takes for markup; control characters are written out."""
    return value if isinstance(value, Markup) else Markup(html.escape(visible(str(value)), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; ``class_`` and ``for_`` lose their underscore, ``stroke_width`` becomes ``stroke-width``."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[object]) -> Markup:
    """The parts one after the other, each escaped unless it is markup."""
    return Markup("".join(escape(part) for part in parts))


def number(value: float) -> str:
    """A coordinate for SVG, to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(head: Iterable[object], rows: Iterable[Iterable[object]], numeric: frozenset[int] = frozenset()) -> Markup:
    """An HTML table; the columns of ``numeric`` are set flush right.

    Each cell carries its column's head, for screens that are too narrow for columns.
    """
    heads = list(head)

    def cells(kind: str, row: Iterable[object], labels: Sequence[object] | None) -> Markup:
        return join(
            tag(kind, tag("span", cell) if labels else cell, class_="n" if i in numeric else None,
                data_label=labels[i] if labels and i < len(labels) else None)
            for i, cell in enumerate(row)
        )  # fmt: skip

    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", cells("th", heads, None))),
            tag("tbody", join(tag("tr", cells("td", row, heads)) for row in rows)),
        ),
        class_="scroll",
    )
