"""Lazy imports of a package's public names, so that importing the package stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import lazy_loader

from pqext.core.base.suggestions import missing_attribute


def attach(
    package: str, file: str, hints: Mapping[str, str] | None = None, external: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the ``__getattr__``, ``__dir__`` and ``__all__`` of ``package``, whose ``__init__.pyi`` lists its names.

    Args:
        package: Dotted name of the package.
        file: The package's ``__file__``.
        hints: Replacements for names of other libraries, for error messages.
        external: Modules of other packages that define further names.
    """
    load, _, stub_names = lazy_loader.attach_stub(package, file)
    elsewhere = external or {}
    public = sorted([*stub_names, *elsewhere])

    def get(name: str) -> Any:
        if name not in public:
            raise missing_attribute(f"module {package!r}", name, public, hints or {})
        value = getattr(import_module(elsewhere[name]), name) if name in elsewhere else load(name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: list(public), public
