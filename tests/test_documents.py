"""The examples of the README and of the site run in the order of their pages and print what is shown."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import documents
import pytest
from documents import ROOT

LONGEST_README = 130
GUIDES = [
    ROOT / name
    for name in ("ARCHITECTURE.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md")
]
NAMED = r"`((?:pqext|tests|specs|benchmarks|docs|\.ci)/[\w./-]*)`"
REFERENCE = [page.read_text("utf-8") for page in sorted((documents.DOCS / "reference").glob("*.md"))]
MODULES = (
    "pqext", "pqext.encryption", "pqext.extension", "pqext.filters", "pqext.geo", "pqext.skipping",
    "pqext.spark", "pqext.table_metrics", "pqext.tables", "pqext.variant",
)  # fmt: skip
ELSEWHERE = {
    "pqext.__version__", "pqext.open", "pqext.encryption.MissingKeyError", "pqext.geo.crs", "pqext.geo.join",
    "pqext.geo.dissolve", "pqext.geo.nearest", "pqext.geo.read_geopandas", "pqext.geo.stac_collection",
    "pqext.geo.stac_item", "pqext.geo.write_dataset", "pqext.geo.write_file", "pqext.spark.functions",
}
"""Other names of objects that are there, and modules, whose members are."""
PAGES = [page for page in documents.pages() if not documents.uses_spark(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_examples_print_the_documented_output(page: Path, tmp_path: Path) -> None:
    documents.run(page, tmp_path)


def test_blocks_of_missing_optional_libraries_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nimport some_library_of_maps\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n")
    assert len([*documents.steps(page)]) == 2
    monkeypatch.setattr(documents, "OPTIONAL", ("some_library_of_maps",))
    assert [step.code for step in documents.steps(page)] == ["print(1)\n"]


def test_examples_are_found_with_output_and_line_numbers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("One:\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```console\n$ pqext a\nb\n$ pqext c\n```\n")
    python, first, second = documents.steps(page)
    assert (python.line, python.code, python.printed) == (4, "print(1)\n", "1\n")
    assert (first.line, first.command, first.printed) == (12, "pqext a", "b\n")
    assert (second.line, second.command, second.printed) == (14, "pqext c", "")


@pytest.mark.parametrize(
    ("printed", "shown", "agrees"),
    [("a b\n", "a b", True), ("a b", "a c", False), ("a b c", "a ... c", True), ("a\nb\nc", "a\n...\nc", True),
     ("a", "", False), ("ab", "a", False), ("1+1", "1+1", True), ("11", "1+1", False), ("a  \nb", "a\nb", True)],
)  # fmt: skip
def test_ellipsis_matches_any_text(printed: str, shown: str, agrees: bool) -> None:
    assert documents.agree(printed, shown) is agrees


@pytest.mark.parametrize("page", sorted(documents.DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_begins_with_a_sentence(page: Path) -> None:
    first = re.split(r"^# .*\n+", page.read_text("utf-8"), maxsplit=1, flags=re.M)[1].partition("\n\n")[0]
    assert not first.startswith(("#", "```", "|", "- ", ":::")), "state what the reader can do after the page"
    assert "." in first


def test_readme_can_be_read_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= LONGEST_README


def test_every_file_named_in_the_documents_exists() -> None:
    texts = {page: page.read_text("utf-8") for page in [*documents.pages(), *GUIDES]}
    named = {(page, ROOT / path) for page, text in texts.items() for path in re.findall(NAMED, text)}
    links = {
        (page, page.parent / path)
        for page, text in texts.items()
        if documents.DOCS not in page.parents  # mkdocs checks those of the site
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    }
    assert [(str(page), str(path)) for page, path in sorted(named | links) if not path.exists()] == []


@pytest.mark.parametrize("module", MODULES)
def test_reference_lists_every_public_name(module: str) -> None:
    described = set(re.findall(r"^::: (\S+)", "\n".join(REFERENCE), re.M))
    public = {f"{module}.{name}" for name in import_module(module).__all__}
    assert public - described - ELSEWHERE - set(MODULES) == set()
