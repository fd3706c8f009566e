"""Render the report as a single self-contained HTML page, with a diagram of each file's layout.

The page's content security policy forbids scripts and loading of any resources. The controls are radio buttons whose
state the style sheet evaluates. The diagram has a cell for each leaf column in each row group, shaded by size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pqext.core.base.text import format_size, shorten, with_noun
from pqext.report import map
from pqext.report.markup import HEAD, SHEET, Markup, format_number, join, table, tag
from pqext.report.model import Agreement, Chunk, DemoReport, FilePicture, Question, Reading

_LABEL = 360.0
_MAX_LABEL = 52
"""Maximum number of characters of a label, each 6.5 units wide, so that it ends within the picture."""
_BAR = 150.0
_CELLS = 640.0
_ROW = 15.0
_TOP = 22.0
_MAX_COLUMNS = 120
_MAX_ROW_GROUPS = 320


def render(report: DemoReport) -> str:
    """Render the page as HTML text, to be encoded as UTF-8."""
    head = (
        HEAD,
        tag("title", report.title),
        tag("style", Markup(SHEET + _selectors(report))),
    )
    body = tag(
        "main",
        tag("header", tag("h1", report.title), tag("p", report.source), _facts(report.facts)),
        _summary(report),
        _question_menu(report) if report.questions and report.files else Markup(""),
        _agreements(report.agreements),
        _remarks(report.notes),
        tag(
            "footer",
            "Written by pqext. The coast is a coarse drawing for orientation; boxes and sizes are the files' own.",
        ),
    )
    return "<!DOCTYPE html>\n" + tag("html", tag("head", *head), tag("body", body), lang="en") + "\n"


def _selectors(report: DemoReport) -> str:
    rules = []
    for q in range(len(report.questions)):
        for f in range(len(report.files)):
            rules.append(f"#q{q}:checked~#f{f}:checked~.stage .layer.q{q}.f{f}{{display:inline}}")
        rules.append(f"#q{q}:checked~.stage .answer.q{q}{{display:block}}")
        rules.append(f"#q{q}:checked~nav label[for=q{q}]{{background:var(--read);color:var(--paper)}}")
    for f in range(len(report.files)):
        rules.append(f"#f{f}:checked~.stage .file.f{f}{{display:block}}")
        rules.append(f"#f{f}:checked~nav label[for=f{f}]{{background:var(--read);color:var(--paper)}}")
    return "\n".join(rules)


def _facts(facts: tuple[tuple[str, str], ...]) -> Markup:
    return tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts))


def _summary(report: DemoReport) -> Markup:
    rows = [
        (
            question.title,
            reading.file,
            question.num_rows,
            f"{len(reading.row_groups)} of {reading.row_groups_total}",
            _share(len(reading.row_groups), reading.row_groups_total),
            f"{format_size(reading.bytes_read)} of {format_size(reading.bytes_total)}",
            _share(reading.bytes_read, reading.bytes_total),
        )
        for question in report.questions
        for reading in question.readings
    ]
    head = ("question", "file", "rows found", "row groups read", "share", "bytes read, with the footer", "share")
    return tag("section", tag("h2", "Data read by each query"), table(head, rows, frozenset({2, 3, 5})))


def _share(part: int, total: int) -> Markup:
    percent = 100 * part / total if total else 0.0
    bar = tag("i", style=f"width:{percent:.1f}%")
    return tag("span", tag("b", bar), f" {percent:.0f} %", class_="share")


def _question_menu(report: DemoReport) -> Markup:
    radios, labels = [], []
    for kind, names in (
        ("q", [question.title for question in report.questions]),
        ("f", [picture.label for picture in report.files]),
    ):
        chosen = []
        for n, name in enumerate(names):
            checked = "checked" if n == 0 else None
            radios.append(_radio(f"{kind}{n}", kind, checked))
            chosen.append(tag("label", name, for_=f"{kind}{n}"))
        labels.append(tag("div", *chosen))
    pictures = [
        tag(
            "div",
            tag(
                "p",
                f"{picture.name}: {with_noun(picture.rows, 'row')}, {with_noun(len(picture.row_groups), 'row group')}, "
                f"{with_noun(len(picture.columns), 'leaf column')}, {format_size(picture.size)}, of which the footer "
                "is "
                f"{format_size(picture.footer)}{'. Shredded by' if picture.schema else ''}",
            ),
            tag("p", tag("code", picture.schema)) if picture.schema else Markup(""),
            tag(
                "div",
                draw_layout(picture, f, report.questions),
                class_="scroll",
                tabindex=0,
                role="region",
                aria_label=f"{picture.name} by column",
            ),
            class_=f"file f{f}",
        )
        for f, picture in enumerate(report.files)
    ]
    stage = tag(
        "div",
        tag("h2", "Where the row groups lie"),
        _legend(),
        map.draw(report),
        join(_result_section(question, q) for q, question in enumerate(report.questions)),
        tag("h2", "The file by column"),
        tag(
            "p",
            "A line for each leaf column, a cell for each row group, as dark as the chunk has bytes; point at a cell "
            "for its encodings, sizes and bounds. Row groups that the question skipped are veiled.",
        ),
        *pictures,
        class_="stage",
    )
    return tag("section", *radios, tag("nav", *labels), stage, class_="asked")


def _radio(identity: str, name: str, is_checked: str | None) -> Markup:
    """Build a radio button. In contrast to the elements of :func:`tag`, it has no end tag."""
    opening = tag("input", type="radio", name=name, id=identity, checked=is_checked)
    return Markup(opening.removesuffix("</input>"))


def _legend() -> Markup:
    return tag(
        "p",
        tag("span", class_="key read"),
        "row group read ",
        tag("span", class_="key skipped"),
        "row group skipped ",
        tag("span", class_="key asked"),
        "box of the query ",
        tag("span", class_="key hit"),
        "row found",
        class_="legend",
    )


def _result_section(question: Question, q: int) -> Markup:
    more = question.num_rows - len(question.rows)
    return tag(
        "div",
        tag("p", tag("code", question.expression)),
        tag("p", *_describe_readings(question.readings)),
        table(question.columns, question.rows) if question.rows else tag("p", "No row matches."),
        tag("p", f"and {with_noun(more, 'row')} more") if more > 0 else Markup(""),
        class_=f"answer q{q}",
    )


def _describe_readings(readings: tuple[Reading, ...]) -> list[str]:
    return [
        f"{reading.file}: {len(reading.row_groups)} of {reading.row_groups_total} row groups read. "
        for reading in readings
    ]


def _agreements(agreements: tuple[Agreement, ...]) -> Markup:
    if not agreements:
        return Markup("")
    words = {True: "agrees", False: "differs", None: "not queried"}
    rows = [(a.reader, a.file, words[a.agrees], a.note, a.pruned) for a in agreements]
    return tag(
        "section",
        tag("h2", "Other readers on the same files"),
        table(("reader", "file", "values and nulls", "note", "row groups needed"), rows),
    )


def _remarks(remarks: tuple[str, ...]) -> Markup:
    if not remarks:
        return Markup("")
    return tag("section", tag("h2", "Notes"), tag("ul", join(tag("li", note) for note in remarks)))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the diagram: a leaf column, or the total of the columns that are not shown individually."""

    label: str
    sizes: tuple[int, ...]
    chunks: tuple[Chunk, ...] | None


def draw_layout(picture: FilePicture, f: int, questions: tuple[Question, ...]) -> Markup:
    """Draw the layout of file number ``f``. For each query, a layer dims the row groups that the query skipped."""
    groups = picture.row_groups[:_MAX_ROW_GROUPS]
    lines = _lines(picture, len(groups))
    cell = max(2.0, min(26.0, _CELLS / max(len(groups), 1)))
    largest = max((count for line in lines for count in line.sizes), default=1) or 1
    longest = max((sum(line.sizes) for line in lines), default=1) or 1
    right = _LABEL + cell * len(groups)
    height = _TOP + _ROW * len(lines)
    parts = [
        tag("text", str(group.index), x=format_number(_LABEL + cell * (i + 0.5)), y=14, class_="head")
        for i, group in enumerate(groups)
        if cell >= 16 or i % max(1, round(24 / cell)) == 0
    ]
    for n, line in enumerate(lines):
        y = _TOP + _ROW * n
        parts.append(
            tag(
                "text",
                _shorten_start(line.label),
                tag("title", line.label),
                x=format_number(_LABEL - 8),
                y=format_number(y + 11),
            )
        )
        parts += [
            _cell(picture, line, i, _LABEL + cell * i, y, cell, count / largest) for i, count in enumerate(line.sizes)
        ]
        total = sum(line.sizes)
        parts.append(
            tag(
                "rect",
                class_="bar",
                x=format_number(right + 10),
                y=format_number(y + 2),
                width=format_number(_BAR * total / longest),
                height=format_number(_ROW - 4),
            )
        )
        parts.append(
            tag(
                "text", format_size(total), class_="total",
                x=format_number(right + 14 + _BAR * total / longest), y=format_number(y + 11),
            )
        )
    veils = []
    for q, question in enumerate(questions):
        reading = next((reading for reading in question.readings if reading.file == picture.label), None)
        if reading is not None:
            skipped = [i for i, group in enumerate(groups) if group.index not in reading.row_groups]
            veils.append(
                tag(
                    "g",
                    join(
                        tag(
                            "rect",
                            x=format_number(_LABEL + cell * i),
                            y=0,
                            width=format_number(cell),
                            height=format_number(height),
                        )
                        for i in skipped
                    ),
                    class_=f"layer veil q{q} f{f}",
                )
            )
    return tag(
        "svg",
        *parts,
        *veils,
        class_="layout",
        viewBox=f"0 0 {format_number(right + _BAR + 90)} {format_number(height + 2)}",
        role="img",
        aria_label=f"Bytes of each column in each row group of {picture.name}",
    )


def _lines(picture: FilePicture, groups: int) -> list[_Line]:
    shown = picture.row_groups[:groups]
    totals = [sum(group.chunks[c].compressed for group in shown) for c in range(len(picture.columns))]
    retained = set(sorted(range(len(totals)), key=lambda c: -totals[c])[:_MAX_COLUMNS])
    lines = []
    for c, column in enumerate(picture.columns):
        if c in retained:
            chunks = tuple(group.chunks[c] for group in shown)
            lines.append(_Line(column, tuple(chunk.compressed for chunk in chunks), chunks))
    rest = [c for c in range(len(totals)) if c not in retained]
    if rest:
        sums = tuple(sum(group.chunks[c].compressed for c in rest) for group in shown)
        lines.append(_Line(f"{len(rest)} smaller columns", sums, None))
    return lines


def _cell(picture: FilePicture, line: _Line, i: int, x: float, y: float, width: float, share: float) -> Markup:
    return tag(
        "rect",
        tag("title", Markup("\n").join(join([text]) for text in _chunk_facts(picture, line, i))),
        class_="cell",
        x=format_number(x),
        y=format_number(y),
        width=format_number(max(width - 1, 1.5)),
        height=format_number(_ROW - 1),
        fill_opacity=format_number(0.06 + 0.94 * math.sqrt(share)),
    )


def _chunk_facts(picture: FilePicture, line: _Line, i: int) -> list[str]:
    facts = [line.label, f"row group {picture.row_groups[i].index}: {format_size(line.sizes[i])}"]
    if line.chunks is None:
        return facts
    chunk = line.chunks[i]
    facts[1] += f" ({format_size(chunk.uncompressed)} uncompressed, {chunk.codec})"
    facts.append(", ".join(chunk.encodings))
    if chunk.minimum is not None or chunk.maximum is not None:
        facts.append(f"{_format_bound(chunk.minimum)} to {_format_bound(chunk.maximum)}")
    if chunk.null_count is not None:
        facts.append(f"{chunk.null_count} nulls")
    return facts


def _format_bound(value: str | None) -> str:
    return "?" if value is None else shorten(value, 40)


def _shorten_start(label: str) -> str:
    # The end of a path distinguishes columns.
    return label if len(label) <= _MAX_LABEL else "…" + label[1 - _MAX_LABEL :]
