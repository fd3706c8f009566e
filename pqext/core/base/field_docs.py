"""Docstrings of option classes that hold what stands below each field, for ``help()``."""

from __future__ import annotations

import inspect
from textwrap import dedent, indent
from typing import Any, TypeVar

T = TypeVar("T")


def with_field_docs(kind: type[T]) -> type[T]:
    """``kind``, a dataclass, whose docstring goes on with its fields, their defaults and the texts below them.

    They are gathered from the source when the docstring is asked for, so that importing costs nothing.

    >>> from pqext.core.options.read_write import ReadOptions
    >>> "checksums: bool = True" in ReadOptions.__doc__
    True
    """
    type.__setattr__(kind, "__doc__", _FieldDocs(inspect.cleandoc(kind.__doc__ or "")))
    return kind


class _FieldDocs:
    """The docstring of a class, which asks for it by the descriptor protocol."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: Any, owner: type) -> str:
        import ast

        try:
            found = ast.parse(dedent(inspect.getsource(owner))).body[0]
        except (OSError, TypeError, SyntaxError):  # only compiled code is there
            return self._text
        assert isinstance(found, ast.ClassDef)
        lines = [self._text, "", "Fields:"]
        for field, text in zip(found.body, found.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                told = inspect.cleandoc(ast.literal_eval(text.value))
                lines += [indent(ast.unparse(field), " " * 4), indent(told, " " * 8)]
        return "\n".join(lines)
