"""Split the text of a Spark SQL condition where AND or OR join its clauses.

Only quotes, comments, brackets and the words around them are told apart: the clauses themselves may be of any SQL.
"""

from __future__ import annotations

import re
from typing import Literal

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`(?:[^`]|``)*+`)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<word>\w+)|(?P<other>.)""",
    re.S,
)
_OPENING, _CLOSING = "([{", ")]}"

Word = Literal["and", "or"]


def clauses(text: str, word: Word) -> list[str]:
    """Return the clauses of ``text`` that ``word`` joins; the text alone if another word joins it, or nothing does.

    >>> clauses("a = 1 and (b or c) and d between 1 and 2", "and")
    ['a = 1', '(b or c)', 'd between 1 and 2']
    """
    found: dict[Word, list[str]] = {"and": [], "or": []}
    starts: dict[Word, int] = {"and": 0, "or": 0}
    depth = cases = betweens = 0
    for token in _TOKEN.finditer(text):
        part = token[0].lower()
        if token["other"]:
            depth += (part in _OPENING) - (part in _CLOSING)
            if part in "'\"`" or depth < 0:
                return [text]  # a quote or a bracket without its other end
        elif token["word"] and not depth:
            cases += (part == "case") - (part == "end")
            betweens += part == "between"
            if part == "and" and betweens:
                betweens -= 1
            elif part in ("and", "or") and not cases:
                joint: Word = "and" if part == "and" else "or"
                found[joint].append(text[starts[joint] : token.start()].strip())
                starts[joint] = token.end()
    if depth or cases or betweens or (word == "and" and found["or"]):
        return [text]
    return [*found[word], text[starts[word] :].strip()]


def without_brackets(text: str) -> str:
    """``text`` without the pairs of brackets around all of it.

    >>> without_brackets("((a) or (b))")
    '(a) or (b)'
    """
    text = text.strip()
    while text.startswith("(") and _is_one_bracket(text):
        text = text[1:-1].strip()
    return text


def _is_one_bracket(text: str) -> bool:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["other"]:
            depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
            if not depth:
                return token.end() == len(text)
    return False


def with_standard_quotes(text: str) -> str:
    r"""``text`` with the quotes of standard SQL in its texts, in which a backslash is no more than that.

    Raises ``ValueError`` for escapes that stand for other characters.

    >>> with_standard_quotes(r"s = 'it\'s' and t like 'a\\\_b'")
    "s = 'it''s' and t like 'a\\\\_b'"
    """
    made = []
    for token in _TOKEN.finditer(text):
        part = token[0]
        made.append(_standard(part) if token["quoted"] and part[0] == "'" and "\\" in part else part)
    return "".join(made)


def _standard(quoted: str) -> str:
    def replacement(escape: re.Match[str]) -> str:
        if escape[1] in "%_":
            return escape[0]
        if escape[1] not in "\\'\"":
            raise ValueError(f"the text has an escape of Spark, {escape[0]}")
        return "''" if escape[1] == "'" else escape[1]

    return re.sub(r"\\(.)", replacement, quoted, flags=re.S)
