"""Draw ``benchmarks/results/*.json`` as the plots of the site: how many times as long as pqext each engine takes.

    python benchmarks/draw.py

The pictures have the colours of the text around them, so that they can be read in light and in dark.
"""

from __future__ import annotations

import json
import math
import re
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from recording import RESULTS

PICTURES = RESULTS.parent.parent / "docs" / "images" / "benchmarks"
MARKS = {"pyarrow": ("#d9822b", "circle"), "DuckDB": ("#8e9a14", "square"), "polars": ("#2f8fd8", "diamond"),
         "Spark": ("#d9483b", "triangle"), "Spark with schema": ("#d9483b", "diamond"),
         "datafusion": ("#7a5bd0", "triangle"), "everything": ("#7f7f7f", "circle"), "pyogrio": ("#b3591f", "diamond"),
         "SedonaDB": ("#c2388f", "square"), "geopandas": ("#1f9e89", "circle"), "shapely": ("#5b6bd0", "diamond"),
         "spherely": ("#2f9e44", "triangle"), "deltalake": ("#3b7a9e", "square")}  # fmt: skip
LEFT, WIDTH, ROW, TOP, BOTTOM = 186, 620, 18, 46, 26
LETTER = 6.1
"""How wide a letter of a case's name is, about."""
GAP = 8
"""The least space between two labels of a line."""
OVERVIEW = {
    "read plain columns": ("read_write", "^read"),
    "write plain columns": ("read_write", "^write"),
    "filter plain columns": ("scan", "^(?!.*(variant|box))"),
    "filter by a box": ("scan", "box"),
    "filter by a VARIANT path": ("scan", "variant path"),
    "both, ten million rows": ("quakes", ""),
    "read one path of a VARIANT": ("variant_get", ""),
    "parse JSON into VARIANT": ("json_to_variant", ""),
    "print VARIANT as JSON": ("variant_to_json", ""),
}
"""The tasks of the first chart: the results and the cases of which it shows the median."""
OVERVIEW_RESULTS = {name for name, _ in OVERVIEW.values()}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def shape(kind: str, x: float, y: float, colour: str) -> str:
    """One mark around a point."""
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    corners = {
        "square": [(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
        "diamond": [(0, -5), (5, 0), (0, 5), (-5, 0)],
        "triangle": [(0, -5), (4.6, 3.6), (-4.6, 3.6)],
    }[kind]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def text(x: float, y: float, words: str, anchor: str = "start", opacity: float = 1) -> str:
    faded = f' opacity="{opacity}"' if opacity < 1 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{faded}>{escape(words)}</text>'


def ratios(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """For each case, the time of every other engine over that of pqext."""
    return {
        case: {engine: taken / seconds["pqext"] for engine, taken in seconds.items() if engine != "pqext"}
        for case, seconds in result["cases"].items()
    }


def picture(result: dict[str, Any]) -> str:
    """The plot as SVG without blank lines, as Markdown takes it: a row per case, a mark per engine, a log scale."""
    rows = ratios(result)
    values = [value for row in rows.values() for value in row.values()]
    low = max((tick for tick in TICKS if tick <= min([*values, 1]) * 1.02), default=TICKS[0])
    high = min((tick for tick in TICKS if tick >= max([*values, 2]) * 0.98), default=TICKS[-1])
    height = TOP + ROW * len(rows) + BOTTOM
    left = max(LEFT, 14 + math.ceil(LETTER * max(map(len, rows))))
    width = WIDTH - LEFT + left

    def across(value: float) -> float:
        return left + (width - left - 24) * math.log(value / low) / math.log(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 {width} {height}" '
        f'font-size="12" fill="currentColor" stroke="none">',
        f"<title>{escape(result['title'])}</title>",
    ]
    left_of_legend = 0.0
    if ": " in result["title"]:
        kind = result["title"].rpartition(": ")[2].capitalize()
        parts.append(f'<text x="0" y="16" font-weight="bold">{escape(kind)}</text>')
        left_of_legend = 14 + LETTER * 1.1 * len(kind)  # it is bold
    x = max(float(left), left_of_legend)
    for engine in (engine for engine in MARKS if any(engine in row for row in rows.values())):
        colour, kind = MARKS[engine]
        parts += [shape(kind, x, 12, colour), text(x + 10, 16, engine)]
        x += 20 + LETTER * len(engine)
    last = 0.0
    for tick in (tick for tick in TICKS if low <= tick <= high):
        at = across(tick)
        weight, opacity = (1.6, 0.7) if tick == 1 else (0.6, 0.3)
        parts.append(
            f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{height - BOTTOM + 2}" stroke="currentColor" '
            f'stroke-width="{weight}" opacity="{opacity}"/>'
        )
        label = "pqext" if tick == 1 else f"{tick:g}x"
        half = LETTER * len(label) / 2
        if tick == 1 or (at - half >= last + GAP and not at < across(1) < at + half + GAP + LETTER * 2.5):
            parts.append(text(at, TOP - 14, label, "middle", 0.85))
            last = at + half
    for number, (case, row) in enumerate(rows.items()):
        y = TOP + ROW * (number + 0.5)
        parts.append(text(left - 14, y + 4, case, "end"))
        parts += [shape(MARKS[engine][1], across(value), y, MARKS[engine][0]) for engine, value in row.items()]
    meaning = "times as long as pqext: right of the line, pqext is quicker"
    parts.append(text(width - 24, height - 8, meaning, "end", 0.85))
    return "\n".join([*parts, "</svg>"]) + "\n"


def overview(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The median of each task of ``OVERVIEW`` and engine, in multiples of the time of pqext."""
    cases = {}
    for task, (name, pattern) in OVERVIEW.items():
        chosen = [times for case, times in ratios(results[name]).items() if re.search(pattern, case)]
        engines = dict.fromkeys(engine for times in chosen for engine in times)
        medians = {engine: median(times[engine] for times in chosen if engine in times) for engine in engines}
        cases[task] = {"pqext": 1.0, **medians}
    return {"title": "Time of each tool in multiples of pqext", "cases": cases}


def pictures() -> dict[Path, str]:
    """The file of each plot, and what it must hold; results that compare pqext with nothing have none."""
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    first = {PICTURES / "overview.svg": picture(overview(results))} if results.keys() >= OVERVIEW_RESULTS else {}
    return first | {
        PICTURES / f"{name}.svg": picture(part)
        for stem, result in results.items()
        for name, part in parts_of(stem, result).items()
        if any(ratios(part).values())
    }


def parts_of(name: str, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One plot, or one per kind where cases are called ``kind: case``."""
    kinds = list(dict.fromkeys(case.partition(": ")[0] for case in result["cases"] if ": " in case))
    if not kinds:
        return {name: result}
    cases = [(*case.partition(": ")[::2], times) for case, times in result["cases"].items()]
    return {
        f"{name}_{re.sub('[^a-z0-9]+', '_', kind)}": {
            **result,
            "title": f"{result['title']}: {kind}",
            "cases": {case: times for of, case, times in cases if of == kind},
        }
        for kind in kinds
    }


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path, drawn in pictures().items():
        path.write_text(drawn, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
