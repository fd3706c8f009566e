"""Fields of option classes: checks of their values, and their texts in the docstring of the class for ``help()``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from textwrap import dedent, indent
from typing import Any, TypeVar

from pqext.core.format.compression import levels

T = TypeVar("T")


def check_flags(options: Any, *flags: str) -> None:
    """Raise for flags that are no bools and for ``threads`` that are no number of them."""
    for name in flags:
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} must be a bool, not {getattr(options, name)!r}")
    threads = options.threads
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or a positive number, not {threads!r}")


def check_pairs(pairs: Mapping[Any, Any]) -> None:
    """Raise for key-value metadata that is no text."""
    for text in (part for pair in pairs.items() for part in pair):
        if not isinstance(text, str):
            raise TypeError(f"key_value_metadata maps text to text, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"key_value_metadata holds {text!r}, which is not Unicode text") from None


def check_level(codec: str, level: Any, *, strict: bool) -> None:
    """Raise for a level that the codec does not have; ``strict``: for a codec without levels too."""
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"compression_level must be a number, not {level!r}")
    allowed = levels(codec)
    if allowed is None and strict:
        raise ValueError(f"compression {codec!r} has no levels, so compression_level must be None")
    if allowed is not None and not allowed[0] <= level <= allowed[1]:
        raise ValueError(f"compression {codec!r} has levels {allowed[0]} to {allowed[1]}, not {level}")


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
