"""The pages of the site that use Spark run in the session of the tests and print what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import documents
import pytest
from documents import ROOT

PAGES = [page for page in documents.pages() if documents.uses_spark(page)]


def test_spark_documentation_has_executable_pages() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_examples_print_the_documented_output(spark: Any, spark_folder: Path, page: Path) -> None:
    documents.run(page, spark_folder)
