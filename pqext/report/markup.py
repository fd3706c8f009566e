"""Build HTML and SVG with escaped attributes and texts, and define the style sheet of the reports."""

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
    """Build an HTML or SVG element. Attributes that are None are omitted.

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


def format_number(value: float) -> str:
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


def rows_as_lists(selector: str = "") -> str:
    """Return CSS rules that show each table row within ``selector`` as a list of named values."""
    rules = (
        ("table,tbody,tr", "display:block;width:100%;min-width:0"),
        ("thead", "display:none"),
        ("tr", "border-bottom:1px solid var(--line);padding:6px 0"),
        ("td,td.n,tbody th", "display:flex;gap:12px;padding:1px 0;border:0;text-align:left"),
        ("tbody th::before,td::before", "content:attr(data-label);flex:0 0 38%;color:var(--faint)"),
        ("td>span,tbody th>span", "min-width:0;overflow-wrap:anywhere"),
        ("td:has(>span:empty)", "display:none"),
    )
    return "".join(f"{','.join(selector + item for item in of.split(','))}{{{rule}}}" for of, rule in rules)


SHEET = """
:root{--paper:#fbfbf9;--ink:#22262b;--faint:#6c747d;--line:#dcdfe2;--card:#fff;--sea:#eef3f6;--land:#dfe3dc;
--read:#0b6e8f;--skipped:#8d969e;--asked:#d2541b;--hit:#d2541b;--cell:#0b6e8f;--veil:#fbfbf9}
@media (prefers-color-scheme:dark){:root{--paper:#15191d;--ink:#e4e7ea;--faint:#97a1ab;--line:#333b43;--card:#1b2025;
--sea:#1a2229;--land:#2b343a;--read:#4cc3e6;--skipped:#75808a;--asked:#ff8c4d;--hit:#ffa06a;--cell:#4cc3e6;--veil:#15191d}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px}
header p,footer,.legend{color:var(--faint)}footer{margin-top:40px;font-size:13px}
dl{display:flex;flex-wrap:wrap;gap:10px;margin:16px 0 0}
dl div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px 14px}
dt{font-size:12px;color:var(--faint)}dd{margin:0;font-size:17px;font-weight:600}
.scroll{overflow-x:auto}.scroll:focus-visible{outline:2px solid var(--read);outline-offset:2px}
table{border-collapse:collapse;font-size:13.5px;min-width:60%}
th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
thead th{color:var(--faint);font-weight:500}tbody th{font-weight:inherit}
h1,h2,dd,li,summary,p{overflow-wrap:anywhere}.n{text-align:right;font-variant-numeric:tabular-nums}
code{font:13px/1.4 ui-monospace,monospace;background:var(--card);border:1px solid var(--line);border-radius:4px;
padding:2px 6px}
.share{white-space:nowrap}
.share b{display:inline-block;width:90px;height:8px;background:var(--line);border-radius:4px;overflow:hidden;
vertical-align:middle}
.share i{display:block;height:100%;background:var(--read)}
.asked input{position:absolute;opacity:0}
nav{position:sticky;top:0;background:var(--paper);padding:10px 0;margin-top:28px;z-index:1;
border-bottom:1px solid var(--line)}
nav div{display:flex;flex-wrap:wrap;gap:6px;margin:3px 0}
nav label{border:1px solid var(--line);border-radius:16px;padding:3px 12px;cursor:pointer;font-size:13.5px}
input:focus-visible~nav{outline:2px solid var(--read)}
svg{display:block;width:100%;height:auto}
.map{border:1px solid var(--line);border-radius:8px}
.sea{fill:var(--sea)}.land{fill:var(--land)}
.graticule{pointer-events:none;font-size:12px}.graticule path{fill:none;stroke:var(--line);stroke-width:1;
vector-effect:non-scaling-stroke}
.graticule text{fill:var(--ink);paint-order:stroke;stroke:var(--sea);
stroke-width:.25em;stroke-linejoin:round}
.rows{stroke:var(--faint);stroke-width:1.8;stroke-linecap:round;opacity:.45}
.layer,.answer,.file{display:none}
.read rect{fill:var(--read);fill-opacity:.28;stroke:var(--read);stroke-width:1.4}
.skipped rect{fill:var(--skipped);fill-opacity:.05;stroke:var(--skipped);stroke-width:.7}
.map g g:hover rect{stroke-width:2.6}
.map .asked rect{fill:none;stroke:var(--asked);stroke-width:1.6;stroke-dasharray:5 3}
.hits{stroke:var(--hit);stroke-width:5;stroke-linecap:round}
.key{display:inline-block;width:14px;height:10px;margin:0 5px 0 12px;border:1.5px solid}
.key.read{border-color:var(--read);background:color-mix(in srgb,var(--read) 28%,transparent)}
.key.skipped{border-color:var(--skipped)}.key.asked{border:1.5px dashed var(--asked)}
.key.hit{border:0;width:9px;height:9px;border-radius:5px;background:var(--hit)}
.layout{min-width:900px}.layout text{font:10.5px ui-monospace,monospace;fill:var(--ink);text-anchor:end}
.layout .head{text-anchor:middle;fill:var(--faint)}.layout .total{text-anchor:start;fill:var(--faint)}
.cell{fill:var(--cell)}.bar{fill:var(--skipped);opacity:.6}.cell:hover{stroke:var(--asked);stroke-width:1.5}
.veil rect{fill:var(--veil);opacity:.66;pointer-events:none}
"""

SHEET += "@media (max-width:640px){.graticule{font-size:22px}main{padding:16px 12px 40px}"
SHEET += "code{overflow-wrap:anywhere}" + rows_as_lists() + "}\n"
