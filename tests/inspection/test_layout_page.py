"""The page of a layout: to scale, whole, safe, and for narrow screens, dark rooms and keyboards."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import contrast, in_a_browser, render

import pqext
from pqext.inspection import file_layout, layout
from pqext.report import to_scale
from pqext.report.markup import SHEET

TABLE = pa.table({"id": range(3000), "name": [f"name {i % 50}" for i in range(3000)]})
def written(table: pa.Table = TABLE, **options: object) -> bytes:
    sink = BytesIO()
    pqext.write_table(table, sink, **options)  # type: ignore[arg-type]
    return sink.getvalue()


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_and_drawings_have_sufficient_contrast(mode: int) -> None:
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", rules)) for rules in SHEET.split("@media")[:2])
    colours = (light, light | dark)[mode]
    for ground in ("paper", "card"):
        for text in ("ink", "faint", "read"):
            assert contrast(colours[text], colours[ground]) >= 4.5
        for kind, pair in to_scale._COLOURS.items():
            assert contrast(pair[mode], colours[ground]) >= 3, kind


def test_drawn_areas_are_proportional_to_bytes() -> None:
    data = written(pa.table({f"c{i}": [i, i, 3, 4] for i in range(2000)}))
    found = layout(data)
    svg = re.search("<svg.*?</svg>", found.to_html())
    assert svg is not None
    canvas = np.zeros((40, 10_000), "U30")
    for kind, *numbers in re.findall(
        r'class="k-([^"]*)" x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"', svg[0]
    ):
        x, y, width, height = map(float, numbers)
        canvas[round(y) : round(y + height), round(10 * x) : round(10 * (x + width))] = kind
    for kind in ("dictionary", "data", "column index", "offset index", "footer"):
        share = sum(part.length for part in found.parts if part.kind == kind) / len(data)
        assert share > 0.02
        assert (canvas == kind.replace(" ", "-")).mean() == pytest.approx(share, abs=0.015), kind


def test_page_begins_with_possible_savings() -> None:
    titles = re.findall("<h2>(.*?)</h2>", layout(written()).to_html())
    assert titles[:2] == ["Possible savings", "The file from its first byte to its last"]


def test_names_from_the_file_are_escaped() -> None:
    name = "<script>alert(1)</script>\"'&\x1b"
    page = layout(written(pa.table({name: [name] * 3}), key_value_metadata={name: name})).to_html()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


def test_page_has_text_alternatives_and_keyboard_navigation() -> None:
    sink = BytesIO()
    pq.write_table(TABLE, sink, row_group_size=1000, data_page_size=500, write_batch_size=100, write_page_index=True)
    found = layout(sink.getvalue())
    page = found.to_html()
    held = sum(part.kind == "data" and (part.row_group, part.column) == (0, 0) for part in found.parts)
    assert held > 1
    assert f", {held} data pages, column index " in page
    assert page.count("<details>") == page.count("<summary>") == 4  # three row groups and what follows them
    assert all("aria-label=" in svg for svg in re.findall(r"<svg[^>]*>", page))
    for text in ("name 9", "2999", "SNAPPY", "data pages", "prefers-color-scheme:dark", "offset index"):
        assert text in page
    assert "src=" not in page
    assert "://" not in page
    heads = re.findall("<th.*?</th>", page)
    assert all(re.search(' scope="(col|row)"', head) and re.sub("<[^>]*>", "", head).strip() for head in heads)
    assert page.count('tabindex="0" role="region" aria-label="Row group') == 3


def test_parts_after_the_data_are_named_by_column_and_the_footer_in_full() -> None:
    page = layout(written(page_index={"name": True, "id": False})).to_html()
    assert "column index of row group 0, column name<" in page
    page = layout(written(row_group_rows=100)).to_html()
    assert "column indexes of row group 0, 2 columns<" in page
    page = layout(written(row_group_rows=10)).to_html()
    for part in ("version", "schema", "row groups", "key-value metadata", "created by", "column orders", "stop byte"):
        assert f"footer: {part}<" in page
    assert "<span>and 500 other parts<" in page


def test_parts_omitted_from_the_page_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(pa.table({f"c{i}": range(600) for i in range(3)}), row_group_rows=1)
    page = layout(data).to_html()
    assert "<span>and 100 other row groups<" in page
    assert "<p>576 other row groups without a drawing<" in page
    assert "Statistics, encodings and codecs are not shown" not in page
    monkeypatch.setattr(file_layout, "MAX_DESCRIBED", 4)
    page = layout(data).to_html()
    assert "<span>and 2 other columns<" in page
    assert "because there are so many: 1,796 column chunks<" in page


def test_empty_file_has_no_empty_table() -> None:
    page = layout(written(TABLE.slice(0, 0))).to_html()
    assert "<tbody></tbody>" not in page
    assert "The file has no row groups." in page


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("thrift+index", " with a jump table"), ("thrift+flatbuffers", " with a FlatBuffers footer"),
        ("flatbuffers", " of FlatBuffers"),
    ],
)  # fmt: skip
def test_footer_format_is_reported(form: str, told: str) -> None:
    assert f"B{told}</dd>" in layout(written(footer=form)).to_html()


@in_a_browser
@pytest.mark.parametrize("dark", [False, True])
def test_page_renders_on_a_narrow_screen(tmp_path: Path, dark: bool) -> None:
    path = tmp_path / f"{'n' * 200}.parquet"
    path.write_bytes(written(TABLE.rename_columns(["i" * 300, "name"]), footer="thrift+index"))
    wide, boxes, paper, height = render(
        tmp_path, layout(path).to_html(),
        "[document.documentElement.scrollWidth, [...document.querySelectorAll('.scroll')].map(e => e.scrollWidth),"
        "style(document.body).backgroundColor, document.querySelector('svg').clientHeight]",
        dark=dark,
    )  # fmt: skip
    assert wide <= 360
    assert max(boxes) <= 360
    assert paper == ("rgb(21, 25, 29)" if dark else "rgb(251, 251, 249)")
    assert height >= 40


@in_a_browser
@pytest.mark.parametrize("width", [500, 800, 1200])
def test_column_tables_do_not_scroll_or_break_encoding_names(tmp_path: Path, width: int) -> None:
    page = layout(written(TABLE.rename_columns(["i" * 300, "name"]), row_group_rows=1000)).to_html()
    wide, heights = render(
        tmp_path, page,
        "[Math.max(...[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)),"
        "[...document.querySelectorAll('.many tr')].map(e => e.clientHeight)]",
        width=width,
    )  # fmt: skip
    assert wide <= 0
    assert max(heights) < 400


def test_every_part_is_visible_on_a_narrow_screen(parquet_testing: Path) -> None:
    page = layout(parquet_testing / "data" / "nested_structs.rust.parquet").to_html()
    svg = re.search("<svg.*?</svg>", page)
    assert svg is not None
    widths = [float(width) for width in re.findall(r'class="k-metadata-copy"[^>]* width="([^"]*)"', svg[0])]
    assert min(widths) * 360 / to_scale.WIDTH > 1


@in_a_browser
def test_page_contains_no_script(tmp_path: Path) -> None:
    page = layout(written()).to_html()
    hurt = page.replace("</body>", "<script>document.title = 'hurt'</script></body>")
    assert hurt != page
    assert render(tmp_path, hurt, "document.title") == "file in memory: layout"


@in_a_browser
def test_focus_is_visible(tmp_path: Path) -> None:
    outlines = render(
        tmp_path, layout(written()).to_html(),
        "[...document.querySelectorAll('summary,[tabindex]')].map(e => {e.focus();"
        "return [document.activeElement === e, style(e).outlineStyle, style(e).outlineWidth]})",
        width=1200,
    )  # fmt: skip
    assert outlines == [[True, "solid", "2px"]] * 3
