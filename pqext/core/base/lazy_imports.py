"""Names of a package that are imported when they are first used, so that importing the package stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import lazy_loader

from pqext.core.base.suggestions import missing


def attach(
    package: str, file: str, of_others: Mapping[str, str] | None = None, above: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of ``package``, whose names stand in its ``__init__.pyi``.

    ``file`` is the package's ``__file__``. ``above`` places names in modules of other packages. ``of_others`` says what
    to use for names that other libraries have.
    """
    load, _, found = lazy_loader.attach_stub(package, file)
    elsewhere = above or {}
    public = sorted([*found, *elsewhere])

    def get(name: str) -> Any:
        if name not in public:
            raise missing(f"module {package!r}", name, public, of_others or {})
        value = getattr(import_module(elsewhere[name]), name) if name in elsewhere else load(name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: list(public), public
