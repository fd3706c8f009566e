"""Text from users and files is parsed in time that grows with its length: quadratic time would take minutes here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.format.created_by import counts_dictionary_header
from pqext.core.options.layout import sort_keys
from pqext.geo import crs
from pqext.variant.access import path, targets
from pqext.variant.shredding.ddl import parse_ddl

LENGTH = 50_000
PARSERS: dict[str, tuple[Callable[[str], Any], list[str]]] = {
    "sort keys": (lambda text: sort_keys([text]), ["a{}b", "a{}", "a{}desc", "a{}nulls{}", "a nulls{}x"]),
    "paths": (path.parse, ["$.{}", "$[{}", "$['{}", "$['\\\\{}", "$.a[{}"]),
    "types": (targets.target_type, ["decimal128(3,{}", "timestamp[us, tz={}", "STRUCT<a{}", "{}", "`{}"]),
    "DDL": (parse_ddl, ["a{} INT", "`{}", "a '{}", "a INT COMMENT '{}", "{}a", "a INT,{}"]),
    "shredding schemas": (variant.shredding_schema, ["a{} INT", "`{}"]),
    "CRS": (crs.explain_mistake, ["EPSG{}!", "EPSG{}", "{}:{}", "{}[", "EPSG:{}+", "A{}"]),
    "CRS, read": (crs.parse, ["EPSG{}!", "{}[", "EPSG:{}+", "urn:ogc:def:crs:{}", "A{}["]),
    "created_by": (counts_dictionary_header, ["parquet-mr{}", "parquet-mr version{}", "parquet-mr version 1.{}"]),
}  # fmt: skip
FILLED = [" ", "\t", "1", "a", "A_", "_", "``", "\\", "'", "(", "[", ".", "parquet-mr ", " desc", " nulls", "a.", "1."]


@pytest.mark.parametrize("name", PARSERS)
def test_long_text_is_parsed_in_linear_time(name: str) -> None:
    parse, forms = PARSERS[name]
    began = time.process_time()
    for form in forms:
        for filling in FILLED:
            with suppress(ValueError, TypeError, RecursionError):
                parse(form.replace("{}", filling * (LENGTH // len(filling))))
    assert time.process_time() - began < 60


OLD = re.compile(r"(?P<path>.*?)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?", re.I | re.S)


WORDS = ["a", "b.c", " ", "\t\n", "asc", "desc", "DESC", "nulls", "Nulls", "first", "last"]


@given(st.lists(st.sampled_from(WORDS)))
def test_sort_keys_follow_the_grammar(words: list[str]) -> None:
    text = "".join(words)
    parts = OLD.fullmatch(text.strip())
    assert parts is not None
    (key,) = sort_keys([text])
    assert key.path == parts["path"]
    assert key.descending == ((parts["way"] or "").lower() == "desc")
    assert key.nulls_first == ((parts["nulls"] or "").lower() == "first")
