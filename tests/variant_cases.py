"""The shredded cases of parquet-testing, by what cases.json says of each, whichever of them a copy has."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("PARQUET_TEST_DATA", "")) / "shredded_variant"
_TABLE = Path(__file__).resolve().parent.parent / "specs" / "conformance.md"

KNOWN = {int(number) for number in re.findall(r"`shredded_variant/case-(\d+)", _TABLE.read_text("utf-8"))}
"""Numbers of the cases that were judged when ``specs/conformance.md`` was written; of others less is known."""


def all_cases() -> list[dict[str, Any]]:
    """The cases of the copy that have a file; none without a copy."""
    described = FOLDER / "cases.json"
    if not described.exists():
        return []
    cases = [case for case in json.loads(described.read_bytes()) if "parquet_file" in case]
    return [case for case in cases if (FOLDER / case["parquet_file"]).exists()]


def must_fail(case: dict[str, Any]) -> bool:
    """Has every reader to refuse the case?"""
    return "error_message" in case


def may_fail(case: dict[str, Any]) -> bool:
    """May a reader refuse the case? It is labelled so, or strict reading has not been judged."""
    return "INVALID" in case["parquet_file"] or "notes" in case or case["case_number"] not in KNOWN
