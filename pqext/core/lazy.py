"""Names of a package that are imported when they are first used, so that importing the package stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pqext.core.suggest import missing


def attach(
    package: str, homes: Mapping[str, str], of_others: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of ``package``, whose public names ``homes`` places.

    A home is a module that has the name, or a module and another name (``module:name``); ``module:`` is the module
    itself. ``of_others`` says what to use for names that other libraries have.
    """

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise missing(f"module {package!r}", name, homes, of_others or {})
        module, colon, attribute = home.partition(":")
        found = import_module(module)
        value = found if colon and not attribute else getattr(found, attribute or name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(homes)

    return get, names
