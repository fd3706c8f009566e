"""The figures and the table of the README agree with recorded results, with installed versions and with the site."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from statistics import median
from typing import Any

import documents
import pytest

import pqext

README = (documents.ROOT / "README.md").read_text("utf-8")
PAGE = (documents.DOCS / "about" / "comparison.md").read_text("utf-8")
RESULTS = documents.ROOT / "benchmarks" / "results"
PLAIN_FILTERS = 15
FULL_READS = 40


def recorded(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return result


def table(page: str) -> dict[str, dict[str, str]]:
    """The cells of the comparison by row and tool, without the marks of footnotes."""
    lines = page[page.index("| | pqext |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip(" ¹²³⁴⁵") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def ratios(cases: dict[str, dict[str, float]]) -> dict[str, str]:
    """The median time of each tool in multiples of pqext, over the cases that it has."""
    names = {"datafusion": "DataFusion"}
    tools = {tool for times in cases.values() for tool in times} - {"pqext"}
    medians = {tool: median(times[tool] / times["pqext"] for times in cases.values()) for tool in tools}
    return {names.get(tool, tool): f"{ratio:.2f}" for tool, ratio in medians.items()}


def test_readme_and_site_have_equal_comparisons() -> None:
    assert table(README) == table(PAGE)
    assert README[README.index("¹ ") :].partition("\n\n")[0] == PAGE[PAGE.index("¹ ") :].partition("\n\n")[0]


@pytest.mark.parametrize(
    ("row", "cases", "count"),
    [
        ("time to read plain columns, pqext = 1",
         {name: times for name, times in recorded("read_write")["cases"].items() if name.startswith("read: ")},
         FULL_READS),
        ("time to filter plain columns, pqext = 1",
         {name: times for name, times in recorded("scan")["cases"].items() if not re.search("variant|box", name)},
         PLAIN_FILTERS),
    ],
)  # fmt: skip
def test_times_in_the_comparison_match_the_recorded_medians(
    row: str, cases: dict[str, dict[str, float]], count: int
) -> None:
    assert len(cases) == count
    cells = {tool: cell for tool, cell in table(README)[row].items() if cell and tool != "pqext"}
    assert cells == ratios(cases)


def test_installed_releases_match_the_comparison() -> None:
    packages = {"DataFusion": "datafusion", "DuckDB": "duckdb", "Spark": "pyspark"}
    cells = table(README)["first stable release (1.0) is out"]
    assert cells.pop("Sedona") == "yes"  # the only cell from its documentation
    assert {tool: int(version(packages.get(tool, tool)).partition(".")[0]) >= 1 for tool in cells} == {
        tool: cell == "yes" for tool, cell in cells.items()
    }
    assert pqext.__version__.startswith("0.")


def test_figures_of_the_large_example_match_the_recorded_ones() -> None:
    result = recorded("quakes")
    ((case, seconds),) = result["cases"].items()
    size = result["bytes"]
    section = README[README.index("## Ten million events") :].partition("\n## ")[0].replace("\n", " ")
    assert case == "10 million events"
    for figure in (
        f"{size['json'] / 1e6:,.0f} MB of JSON",
        f"a file of {size['file'] / 1e6:.1f} MB",
        f"gets {size['matches']} events",
        f"reads {size['read'] / size['file']:.2%} of the file".replace("%", " %"),
        f"| pqext | {seconds['pqext']:.2g} s | {size['read'] / 1e6:.2f} MB |",
        f"| DuckDB, same file | {seconds['DuckDB']:.2g} s | |",
        f"`{result['command']}`",
    ):
        assert figure in section
    assert result["unit"] == "wall seconds"
    assert "2 processors" in result["machine"]
    assert "Wall times on 2 processors" in section
