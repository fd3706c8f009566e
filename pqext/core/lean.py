"""Frozen dataclasses that are made as quickly as others: a wide file needs a dozen a column."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")


def lean(kind: type[T]) -> type[T]:
    """Give a frozen dataclass a constructor that does not go through ``object.__setattr__`` for each field.

    The same arguments, written out like the one that it replaces. Raises ``TypeError`` for what it does not know:
    default factories, ``InitVar`` and arguments by keyword only.
    """
    slotted = "__slots__" in kind.__dict__
    scope: dict[str, Any] = {}
    arguments, lines = ["self"], [] if slotted else ["held = self.__dict__"]
    for one in fields(cast(Any, kind)):
        name = one.name
        if one.kw_only or one.default_factory is not MISSING or (not one.init and one.default is MISSING):
            raise TypeError(f"{kind.__name__}.{name} is a field that a lean constructor does not take")
        scope[f"default_{name}"] = one.default
        if slotted:
            scope[f"set_{name}"] = getattr(kind, name).__set__
        if one.init:
            arguments.append(name if one.default is MISSING else f"{name}=default_{name}")
        value = name if one.init else f"default_{name}"
        lines.append(f"set_{name}(self, {value})" if slotted else f"held[{name!r}] = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n    " + "\n    ".join(lines), scope)
    made = scope["__init__"]
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    made.__annotations__ = kind.__init__.__annotations__
    kind.__init__ = made  # type: ignore[method-assign]
    return kind
