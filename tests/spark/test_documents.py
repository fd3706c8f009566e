"""The pages of the site that use Spark run in the session of the tests and print what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import documents
import pytest
from documents import ROOT

PAGES = [page for page in documents.pages() if documents.uses_spark(page)]


def test_spark_has_a_page() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_prints_what_it_shows(spark: Any, spark_folder: Path, page: Path) -> None:
    documents.run(page, spark_folder)
