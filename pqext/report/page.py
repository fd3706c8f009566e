"""Render the report as a single self-contained HTML page.

Its content security policy forbids scripts and loading of any resources. The controls are radio buttons whose state the
style sheet evaluates.
"""

from __future__ import annotations

from pqext.core.base.text import format_size, with_noun
from pqext.report import layout, map
from pqext.report.markup import HEAD, Markup, join, table, tag
from pqext.report.model import Agreement, DemoReport, Question, Reading
from pqext.report.style import SHEET


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
                layout.draw(picture, f, report.questions),
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
    """Build a radio button, an empty element without an end tag."""
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
        tag("p", *_sentences(question.readings)),
        table(question.columns, question.rows) if question.rows else tag("p", "No row matches."),
        tag("p", f"and {with_noun(more, 'row')} more") if more > 0 else Markup(""),
        class_=f"answer q{q}",
    )


def _sentences(readings: tuple[Reading, ...]) -> list[str]:
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
