"""The plots of the site are those that the recorded results give."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location("draw", BENCHMARKS / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("recording", None)


def test_every_plot_is_drawn_from_the_recorded_results(draw: Any) -> None:
    drawn = draw.pictures()
    assert drawn
    assert {path: path.read_text("utf-8") for path in draw.PICTURES.glob("*.svg")} == drawn


def test_mark_is_drawn_at_the_ratio_of_its_case(draw: Any) -> None:
    result = {"title": "t", "cases": {"a": {"pqext": 2.0, "DuckDB": 8.0}, "b": {"pqext": 1.0, "DuckDB": 1.0}}}
    assert draw.ratios(result) == {"a": {"DuckDB": 4.0}, "b": {"DuckDB": 1.0}}
    marks = [line for line in draw.picture(result).splitlines() if line.startswith("<polygon")]
    assert len(marks) == 3  # the legend's and one for each case


def test_plot_labels_do_not_overlap(draw: Any) -> None:
    label = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"(?: text-anchor="(\w+)")?[^>]*>([^<]*)</text>')
    cases = {"a": {"pqext": 1.0, "DuckDB": 0.1}, "b": {"pqext": 1.0, "datafusion": 1000.0}}
    wide = draw.picture({"title": "t: a long name of the kind of all these cases", "cases": cases})
    for path, drawn in {**draw.pictures(), Path("wide"): wide}.items():
        width = float(re.findall(r'viewBox="0 0 (\d+)', drawn)[0])
        lines: dict[float, list[tuple[float, float]]] = {}
        for x, y, anchor, words in label.findall(drawn):
            length = draw.LETTER * len(unescape(words))
            start = float(x) - {"middle": length / 2, "end": length}.get(anchor, 0)
            lines.setdefault(float(y), []).append((start, start + length))
        for spans in map(sorted, lines.values()):
            assert spans[0][0] >= -1, path
            assert spans[-1][1] <= width, path
            assert all(end <= start for (_, end), (start, _) in pairwise(spans)), path


def test_overview_shows_medians_in_multiples_of_pqext(draw: Any) -> None:
    cases = {"read: a": {"pqext": 2.0, "DuckDB": 4.0}, "read: b": {"pqext": 1.0, "DuckDB": 6.0}}
    results = {name: {"title": name, "cases": cases} for name in draw.OVERVIEW_RESULTS}
    assert draw.overview(results)["cases"]["read plain columns"] == {"pqext": 1.0, "DuckDB": 4.0}


def test_benchmarks_page_begins_with_the_recorded_medians(draw: Any) -> None:
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in draw.RESULTS.glob("*.json")}
    cases = draw.overview(results)["cases"]
    page = (BENCHMARKS.parent / "docs" / "about" / "benchmarks.md").read_text("utf-8").replace("\n", " ")
    reads, filters = cases["read plain columns"], cases["filter plain columns"]
    for figures in (
        f"DuckDB takes {cases['filter by a VARIANT path']['DuckDB']:.0f} times as long for filters by a path",
        f"and {cases['filter by a box']['DuckDB']:.1f} times as long for a box",
        f"DuckDB takes {cases['parse JSON into VARIANT']['DuckDB']:.1f} times as long to parse it",
        f"and {cases['print VARIANT as JSON']['DuckDB']:.1f} times as long to print it",
        f"To read them, polars takes {reads['polars']:.2f} of the time of pqext, "
        f"pyarrow {reads['pyarrow']:.2f} and DuckDB {reads['DuckDB']:.2f}.",
        f"To filter them, polars takes {filters['polars']:.2f} of the time of pqext, "
        f"pyarrow {filters['pyarrow']:.2f} and DuckDB {filters['DuckDB']:.2f}.",
    ):
        assert figures in page
    assert page.index("{{ overview }}") < page.index("{{ benchmarks }}")


def test_results_without_a_peer_are_not_drawn(draw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alone.json").write_text('{"title": "t", "cases": {"a": {"pqext": 1.0}}}', "utf-8")
    (tmp_path / "beside.json").write_text('{"title": "t", "cases": {"a": {"pqext": 1.0, "DuckDB": 3.0}}}', "utf-8")
    monkeypatch.setattr(draw, "RESULTS", tmp_path)
    assert [path.name for path in draw.pictures()] == ["beside.svg"]
