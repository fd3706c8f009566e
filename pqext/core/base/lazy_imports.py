"""Imports on first use: public names of packages, and functions that lower layers call in higher layers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import lazy_loader

from pqext.core.base.suggestions import missing_attribute

_SERVICES: dict[str, str] = {}


def load_object(reference: str) -> Any:
    """Import the object at ``module:name``."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def register_service(name: str, reference: str) -> None:
    """Register the function at ``module:name``, so that lower layers can call it without importing its module."""
    _SERVICES[name] = reference


def load_service(name: str) -> Any:
    """Import and return the function that is registered as ``name``."""
    return load_object(_SERVICES[name])


def attach(
    package: str, file: str, hints: Mapping[str, str] | None = None, external_modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for ``package``. Its ``__init__.pyi`` lists the names.

    Args:
        package: Dotted name of the package.
        file: The package's ``__file__``.
        hints: Replacement for each known name of another library, for error messages.
        external_modules: Modules outside the package, by the public names that they define.
    """
    load, _, stub_names = lazy_loader.attach_stub(package, file)
    modules = external_modules or {}
    public = sorted([*stub_names, *modules])

    def get(name: str) -> Any:
        if name not in public:
            raise missing_attribute(f"module {package!r}", name, public, hints or {})
        value = load_object(f"{modules[name]}:{name}") if name in modules else load(name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: list(public), public
