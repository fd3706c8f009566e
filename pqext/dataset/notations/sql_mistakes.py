"""What is told of SQL text that is no condition: what was expected, and where."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ParseError, exp

from pqext.core.suggest import around
from pqext.core.text import visible
from pqext.dataset.notations.sql_literals import offset_told, start_of

_REQUIRED = re.compile(r"Required keyword: '(\w+)' missing for <class '(?:\w+\.)*(\w+)'>")
_EXPECTING = re.compile(r"Expecting ([^\w\s])")
_CONDITION = "a filter is one condition, as in mag >= 5"
_MOST = 40
"""Characters of a word of the text that are repeated."""


def expected(text: str, error: ParseError, parser: Any) -> tuple[int, str]:
    """Where sqlglot's ``parser`` gave up, and what it needed there."""
    told = error.errors[0] if error.errors else {}
    description, word = str(told.get("description")), str(told.get("highlight") or "")
    is_end = getattr(parser, "_index", 0) >= len(getattr(parser, "_tokens", "-"))
    at = len(text.rstrip()) if is_end else offset_told(text, told)
    required, closing = _REQUIRED.search(description), _EXPECTING.search(description)
    if required is not None:
        what = "a condition" if required[2] in ("And", "Or", "Not") else "a value"
        what = "and with a second value" if required[1] == "high" else what
    elif closing is not None:
        what = repr(closing[1])
    elif word == ")":
        return at, "the filter cannot be read: this ) closes nothing"
    elif description == "a statement":
        return at, _CONDITION
    else:
        what = "a comparison, and, or or the end"
    where = "where the text ends" if is_end else f"instead of {_quoted(word)}"
    return at, f"the filter cannot be read: {what} is expected {where}"


def unknown_form(node: Any) -> tuple[int, str]:
    """Where a part of the text says more than filters understand, and what to write."""
    at = start_of(node) or 0
    if isinstance(node, exp.Alias) and isinstance(node.args.get("alias"), exp.Identifier):
        alias = node.args["alias"]
        where = start_of(alias)
        return at if where is None else where, f"and, or or the end is expected instead of {_quoted(str(alias.this))}"
    if isinstance(node, exp.Query):
        return 0, f"{_CONDITION}, without select, from and where"
    if isinstance(node, exp.In):
        return at, "in takes a list of literals in parentheses, as in kind in ('a', 'b'); of places ask st_intersects"
    return at, "this form is not understood in a filter"


def _quoted(word: str) -> str:
    return repr(visible(around(word, 0, _MOST)))
