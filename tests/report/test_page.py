"""The report is one page that loads nothing and that no name in a file can break."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pyproj
import pytest

from pqext.report import Agreement, Box, Chunk, DemoReport, FilePicture, Question, Reading, RowGroup, render
from pqext.report.map import draw_graticule
from pqext.report.projection import Projection

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """Elements of a page, each with its attributes; fails on a tag that closes another."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def chunk(size: int = 100) -> Chunk:
    return Chunk(size, 2 * size, ("PLAIN", "RLE"), "SNAPPY", "a", "z", 3)


def report(name: str = "geom", columns: int = 2, groups: int = 3) -> DemoReport:
    picture = FilePicture(
        "chosen schema",
        name,
        5000,
        tuple(f"{name}{c}" for c in range(columns)),
        tuple(RowGroup(i, 64, Box(10.0 * i, 10.0 * i + 5, 0, 8), (chunk(),) * columns) for i in range(groups)),
    )
    reading = Reading("chosen schema", frozenset({0}), groups, 200, 600)
    asked = Box(170, -170, -30, -10)
    question = Question(name, f"{name} >= 5", ("place",), ((name,),), 1, (reading,), asked, ((1, 2),))
    agreement = Agreement("Some reader", "chosen schema", True, name)
    return DemoReport(name, name, ((name, name),), (picture,), (question,), (agreement,), ((1, 2),), (name,))


def classed(page: Page, name: str) -> list[dict[str, str | None]]:
    return [attributes for _, attributes in page.elements if name in (attributes.get("class") or "").split()]


def test_page_loads_and_runs_nothing() -> None:
    text = render(report())
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    assert not {"src", "href", "srcset", "action", "onclick"} & {key for _, attrs in page.elements for key in attrs}
    assert not re.search(r"url\(|@import|https?:|javascript:", text)
    assert any("default-src 'none'" in (attrs.get("content") or "") for tag, attrs in page.elements if tag == "meta")


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "</style></title></svg>",
        "\"'><img src=x onerror=alert(1)>",
        "&lt;b&gt;",
        "]]>--><!--",
        "a\x00\x1b[31m\u202eb\n",
    ],
)
def test_name_from_a_file_is_escaped(name: str) -> None:
    plain, hostile = Page(render(report())), Page(render(report(name)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [list(attrs) for _, attrs in hostile.elements] == [list(attrs) for _, attrs in plain.elements]
    if name.isprintable():
        assert name in hostile.text
    else:
        assert r"a\x00\x1b[31m\u202eb\n" in hostile.text


def test_wrapping_box_is_drawn_across_the_antimeridian() -> None:
    assert Box(165, -170, -30, -10).spans() == ((-180, -170), (165, 180))
    projection = Projection.from_boxes([Box(165, -170, -30, -10)], pyproj.CRS("OGC:CRS84"))
    assert (projection.extent.xmin, projection.extent.xmax) == pytest.approx((163.125, 191.875))
    spans = [*projection.spans(Box(165, -170, 0, 1)), *projection.spans(Box(-175, -172, 0, 1))]
    assert spans == [(165, 190), (185, 188)]
    assert Projection.from_boxes([Box(-150, 100, 0, 1), Box(165, -170, -30, -10)], projection.crs).width == 1000
    wrapping = replace(report().files[0].row_groups[0], box=Box(165, -170, -30, -10))
    base = report()
    page = Page(render(replace(base, files=(replace(base.files[0], row_groups=(wrapping,)),))))
    drawn = [(attrs["x"], attrs["width"]) for tag, attrs in page.elements if tag == "rect" and "class" not in attrs]
    # First the row group's box, then the question's, which reaches from 170 to -170.
    assert [width for _, width in drawn[:2]] == ["869.57", "695.65"]
    assert float(drawn[1][0] or 0) - float(drawn[0][0] or 0) == pytest.approx(5 * 869.57 / 25, abs=0.01)


def test_row_groups_are_marked_as_read_or_skipped_for_each_query() -> None:
    page = Page(render(report(groups=5)))
    groups = [attrs["class"] for tag, attrs in page.elements if tag == "g"]
    assert groups.count("read") == 1
    assert groups.count("skipped") == 4
    assert len(classed(page, "veil")) == 1


def test_every_chunk_is_a_cell_with_encodings_and_sizes() -> None:
    page = Page(render(report(columns=4, groups=7)))
    assert len(classed(page, "cell")) == 28
    assert "row group 6: 100 B (200 B uncompressed, SNAPPY)" in page.text
    assert "PLAIN, RLE" in page.text


def test_wide_file_shows_its_largest_columns_and_the_sum_of_the_rest() -> None:
    page = Page(render(report(columns=500)))
    assert "380 smaller columns" in page.text
    assert len(classed(page, "cell")) == 121 * 3


def test_data_in_a_small_area_fills_the_map() -> None:
    projection = Projection.from_boxes([Box(13.1, 13.7, 52.3, 52.7)])
    assert projection.x(13.1) > 0
    assert projection.width > 800
    assert projection.y(52.7) < projection.y(52.3) < projection.height


def test_nan_boxes_and_missing_boxes_are_not_drawn() -> None:
    base = report()
    groups = (
        replace(base.files[0].row_groups[0], box=Box(float("nan"), 1, 2, 3)),
        replace(base.files[0].row_groups[1], box=Box(0, float("inf"), 2, 3)),
        replace(base.files[0].row_groups[2], box=None),
    )
    text = render(replace(base, files=(replace(base.files[0], row_groups=groups),), points=((float("nan"), 1.0),)))
    assert "nan" not in text
    assert "inf" not in text.replace("information", "")


def test_report_without_queries_or_files_is_a_valid_page() -> None:
    Page(render(DemoReport("t", "s", (), (), ())))


def test_schema_and_footer_of_a_file_are_displayed() -> None:
    base = report()
    page = Page(render(replace(base, files=(replace(base.files[0], schema="STRUCT<a: INT>", footer=2048),))))
    assert "STRUCT<a: INT>" in page.text
    assert "of which the footer is 2.0 KiB" in page.text


def test_empty_answer_is_reported_in_words() -> None:
    base = report()
    page = Page(render(replace(base, questions=(replace(base.questions[0], rows=(), num_rows=0),))))
    assert "No row matches." in page.text


def test_scale_labels_do_not_overlap_each_other_or_the_edges() -> None:
    text = render(replace(report(), files=(replace(report().files[0], row_groups=WORLD),)))
    draw_graticule = text[text.index('class="graticule"') - 20000 : text.index('class="graticule"') + 20000]
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">(-?[\d.]+)</text>', draw_graticule)
    assert {label for *_, label in found} == {f"{k}" for k in range(-150, 180, 30)}
    assert len(found) == 11 + 5, "meridians and parallels, but for those along the edges"
    boxes = [(float(x), float(y) - 9, float(x) + 6 * len(label), float(y)) for x, y, label in found]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert top >= 0
        assert right <= 1000
        assert bottom <= 500
        for other in boxes[:i]:
            assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top


WORLD = (RowGroup(0, 64, Box(-180, 180, -90, 90), (chunk(),) * 2),)


def test_long_column_name_is_shortened_at_the_edge() -> None:
    page = Page(render(report(name="x" * 200)))
    label = next(text for text in re.findall(r"…x+\d", page.text))
    assert len(label) * 6.5 < 350


@pytest.mark.parametrize("box", [Box(-9.9e11, 9.9e11, 0, 0), Box(-2e7, 2e7, -2e7, 2e7), Box(0, 1e-9, -1e11, 1e11)])
def test_wide_extents_have_few_grid_lines(box: Box) -> None:
    assert str(draw_graticule(Projection.from_boxes([box]))).count("<path") < 40


def test_table_rows_are_stacked_on_a_narrow_screen() -> None:
    text = render(report("a name that is longer than a telephone is wide"))
    _, _, narrow = text.partition("@media (max-width:640px){")
    assert "td::before{content:attr(data-label)" in narrow
    assert re.search(r"table,tbody,tr\{display:block[^}]*min-width:0", narrow)
    tables = re.findall(r"<table>(.*?)</table>", text)
    assert len(tables) == 3
    for table in tables:
        page = Page(table)
        heads = re.findall(r"<th(?:| [^>]*)>(.*?)</th>", table)
        labels = [attributes["data-label"] for tag, attributes in page.elements if tag == "td"]
        assert labels == [unescape(head) for head in heads] * (len(labels) // len(heads))
        assert table.count("<td") == table.count("<td") // len(heads) * len(heads)
        assert len(re.findall(r"<td[^>]*><span>", table)) == len(labels)  # one box beside the label


def test_scrollable_regions_are_named_and_keyboard_accessible() -> None:
    text = render(report())
    drawings = re.findall(r'<div class="scroll"[^>]*><svg', text)
    assert drawings
    assert all(re.search(' tabindex="0" role="region" aria-label="[^"]+ by column"', one) for one in drawings)
    assert not re.search("<th[^>]*></th>", text)
