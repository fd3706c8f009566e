"""Error messages for invalid SQL conditions, with the expected syntax and the position of the error."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ParseError, exp

from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.base.text import escape_text
from pqext.dataset.notations.sql_dialect import FUNCTIONS
from pqext.dataset.notations.sql_literals import start_of, token_offset

_REQUIRED = re.compile(r"Required keyword: '(\w+)' missing for <class '(?:\w+\.)*(\w+)'>")
_EXPECTING = re.compile(r"Expecting ([^\w\s])")
_CONDITION = "a filter must be one condition, as in mag >= 5"
_OF_ROWS = {
    "count": "use pqext count or Scan.count()",
    "min": "use Scan.min(column)",
    "max": "use Scan.max(column)",
} | dict.fromkeys(("sum", "avg", "mean"), "query Scan.to_dataset() with DuckDB, or Scan.to_polars()")
"""SQL aggregates, and their equivalents in pqext."""
_INSTEAD = {
    **dict.fromkeys(("lower", "upper"), "use ilike to ignore case, as in name ilike 'ann'"),
    **dict.fromkeys(
        ("year", "month", "day", "date_trunc", "date_part", "extract"),
        "compare with dates, as in day >= '2026-01-01' and day < '2027-01-01'",
    ),
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), "test is null separately, joined by or"),
    "variant_get": "use try_variant_get, which returns null for a value that does not cast",
    **dict.fromkeys(("now", "current_date", "current_timestamp"), "write the date, as in '2026-05-31'"),
}
"""Unsupported functions that users often try, and their equivalents."""
_MOST = 40
"""Maximum length of a word that errors repeat."""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|(?P<open>['"`])|/\*|\*/""")
"""Quoted text, a comment to the end of the line, a quote that is not closed, or the start or end of a comment."""
_COMMENT_END = re.compile(r"/\*|\*/")


def unclosed_token(text: str) -> tuple[int, str]:
    """Return the position and a description of the unclosed quote or comment in ``text``."""
    at = depth = first = 0
    while (token := (_COMMENT_END if depth else _QUOTED).search(text, at)) is not None:
        if token[0] == "/*":
            first, depth = first if depth else token.start(), depth + 1
        elif token[0] == "*/":
            depth = max(depth - 1, 0)
        elif token["open"]:
            break
        at = token.end()
    if depth:
        return first, "the text cannot be parsed: a comment is not closed"
    return len(text), "the text cannot be parsed: a quote is not closed"


def expected_syntax(text: str, error: ParseError, parser: Any) -> tuple[int, str]:
    """Return the position at which sqlglot's ``parser`` stopped, and the expected syntax."""
    message = error.errors[0] if error.errors else {}
    description, word = str(message.get("description")), str(message.get("highlight") or "")
    is_end = getattr(parser, "_index", 0) >= len(getattr(parser, "_tokens", "-"))
    at = len(text.rstrip()) if is_end else token_offset(text, message)
    required, closing = _REQUIRED.search(description), _EXPECTING.search(description)
    if required is not None:
        what = "a condition" if required[2] in ("And", "Or", "Not") else "a value"
        what = "and with a second value" if required[1] == "high" else what
    elif closing is not None:
        what = repr(closing[1])
    elif word == ")":
        return at, "the text cannot be parsed: unmatched )"
    elif description == "a statement":
        return at, _CONDITION
    else:
        what = "a comparison, 'and', 'or' or the end"
    where = "at the end of the text" if is_end else f"instead of {_quote(word)}"
    return at, f"the text cannot be parsed: expected {what} {where}"


def unsupported_syntax(node: Any) -> tuple[int, str]:
    """Return the position of unsupported syntax, and a message with the reason and a replacement."""
    at = start_of(node) or 0
    if isinstance(node, exp.Alias) and isinstance(node.args.get("alias"), exp.Identifier):
        alias = node.args["alias"]
        where = start_of(alias)
        return at if where is None else where, f"expected 'and', 'or' or the end instead of {_quote(str(alias.this))}"
    if isinstance(node, exp.Query):
        return 0, f"{_CONDITION}, without select, from and where"
    if isinstance(node, exp.In):
        return at, "in requires a list of literals in parentheses, as in n in ('a', 'b'); for areas use st_intersects"
    return at, "this syntax is not supported here"


def unsupported_node(node: Any, parser: Any) -> tuple[int, str]:
    """Return the position of an unsupported node or operator, and the reason. ``parser`` provides the tokens."""
    at = start_of(node) or 0
    if isinstance(node, exp.BitwiseAnd | exp.BitwiseOr):
        return at, "join conditions with 'and' and 'or', not with & and |"
    right = start_of(node.expression) if isinstance(node, exp.Binary) else None
    if right is None:
        return at, "this syntax is not supported here"
    before = [item for item in getattr(parser, "_tokens", ()) if item.start < right and item.text != "("]
    while before and before[-1].text.lower() == "not":
        before.pop()
    return int(before[-1].start) if before else at, "this operator is not supported here"


NULL_COMPARED = "comparisons with null are never true: write is null or is not null"


def unknown_function_message(name: str) -> str:
    """Format the message for an unknown function ``name``, with a suggestion."""
    if name in _OF_ROWS:
        return f"{name} aggregates many rows, but filters and columns are evaluated row by row: {_OF_ROWS[name]}"
    message = f"no function {escape_text(name)!r}"
    return f"{message}; {_INSTEAD[name]}" if name in _INSTEAD else message + did_you_mean(name, FUNCTIONS)


def _quote(word: str) -> str:
    return repr(escape_text(excerpt(word, 0, _MOST)))
