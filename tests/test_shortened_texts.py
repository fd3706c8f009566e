"""Shortened texts: of the longest text or list nothing is omitted, and a longer one has that length and a mark.

The lengths are written out, not imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

import pqext
from pqext import variant
from pqext.core.base.suggestions import excerpt, join_names
from pqext.core.format.metadata import KeyValue
from pqext.core.io.sources.store_errors import redact_error
from pqext.core.schema.difference import difference
from pqext.core.schema.nodes import Schema


def schema(count: int, type: pa.DataType, name: str = "#") -> Schema:
    """The schema of a file with columns of a name and a number."""
    sink = pa.BufferOutputStream()
    names = [f"{name}{at}" for at in range(count)]
    pqext.write_table(pa.table([pa.array([], type)] * count, names=names), sink)
    with pqext.open(sink.getvalue()) as file:
        return file.schema


def differ(first: Schema, other: Schema) -> str:
    text = difference(first, other, "the first file")
    assert text is not None
    return text


def residual(count: int) -> str:
    """Why fields are not shredded, each of them always null."""
    row = {"a": 1, **{f"#{at}": None for at in range(count)}}
    return variant.infer_schema(variant.from_python([row] * 3)).explain()


@dataclass
class Case:
    """A text with ``longest`` items that contain ``#``, and what is added for ``omitted`` ones."""

    longest: int
    text: Callable[[int], str]
    mark: Callable[[int], str]


def more(count: int) -> str:
    return f" and {count} more"


def dots(count: int) -> str:
    return "..."


INT = pa.int32()
CASES = {
    "missing columns": Case(5, lambda count: differ(schema(count, INT), schema(1, INT, "a")).split(";")[0], more),
    "extra columns": Case(5, lambda count: differ(schema(1, INT, "a"), schema(count, INT)).split(";")[1], more),
    "columns of other types": Case(
        5, lambda count: differ(schema(count, INT), schema(count, pa.string())), "{} more columns differ".format
    ),
    "fields in the residual": Case(5, residual, more),
    "names": Case(30, lambda count: join_names([f"#{at}" for at in range(count)]), more),
    "excerpt": Case(300, lambda count: excerpt("#" * count), dots),
    "text of a structure": Case(
        80, lambda count: repr(KeyValue(key="#" * count)), lambda omitted: f"({80 + omitted} characters)"
    ),
    "error of a store": Case(300, lambda count: redact_error(OSError("#" * count)), dots),
    "variant": Case(78, lambda count: repr(variant.Variant.from_python("#" * count)), dots),
    "variant in a notebook": Case(1998, lambda count: variant.Variant.from_python("#" * count)._repr_html_(), dots),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_text_is_shortened_only_beyond_its_limit(name: str) -> None:
    case = CASES[name]
    for count in (1, case.longest - 1, case.longest):
        text = case.text(count)
        assert text.count("#") == count
        assert not re.search(r"\bmore\b|\.\.\.|characters\)", text)
    for omitted in (1, 2, case.longest):
        text = case.text(case.longest + omitted)
        assert case.mark(omitted) in text
        assert case.longest - 3 < text.count("#") <= case.longest + 1
