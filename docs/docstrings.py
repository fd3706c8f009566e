"""Convert Sphinx markup in docstrings: roles like ``:func:`pqext.scan``` become links where the site has the name,
and examples after ``>>>`` code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|mod|data|meth|attr|exc):`(~?)([\w.]+)`")
EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*)*", re.M)


def link(match: re.Match[str], scope: str) -> str:
    short, name = match.groups()
    shown = name.rpartition(".")[2] if short else name
    target = name if name.startswith("pqext") else f"{scope}.{name}"
    return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'


def fenced(match: re.Match[str]) -> str:
    return f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```"


class Docstrings(griffe.Extension):
    """Rewrites the docstring of every object as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            scope = obj.parent.path if obj.parent is not None else obj.path
            text = ROLE.sub(lambda match: link(match, scope), obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(fenced, re.sub(r"::$", ":", text, flags=re.M))
