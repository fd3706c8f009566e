"""Record shredding and assembly, value by value, over plain Python data.

A type is ``("leaf",)``, ``("struct", {name: type})`` or ``("list", type)``, each wrapped as ``(nullable, type)``.
"""

from __future__ import annotations

from typing import Any

Type = tuple[bool, Any]
Entry = tuple[int, int, Any]
"""Repetition level, definition level, value (``None`` below the highest definition level)."""


def leaf_paths(kind: Type, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    shape = kind[1]
    if shape[0] == "leaf":
        return [path]
    if shape[0] == "struct":
        return [leaf for name, child in shape[1].items() for leaf in leaf_paths(child, (*path, name))]
    return leaf_paths(shape[1], (*path, "*"))


def shred(kind: Type, values: list[Any]) -> dict[tuple[str, ...], list[Entry]]:
    """The entries of each leaf for a column of ``values``."""
    out: dict[tuple[str, ...], list[Entry]] = {path: [] for path in leaf_paths(kind)}
    for value in values:
        _shred(kind, value, 0, 0, 0, (), out)
    return out


def _ended(kind: Type, rep: int, level: int, path: tuple[str, ...], out: dict[tuple[str, ...], list[Entry]]) -> None:
    for leaf in leaf_paths(kind, path):
        out[leaf].append((rep, level, None))


def _shred(kind: Type, value: Any, rep: int, depth: int, level: int, path: tuple[str, ...], out: Any) -> None:
    nullable, shape = kind
    if value is None:
        assert nullable
        _ended(kind, rep, level, path, out)
        return
    level += nullable
    if shape[0] == "leaf":
        out[path].append((rep, level, value))
    elif shape[0] == "struct":
        for name, child in shape[1].items():
            _shred(child, value[name], rep, depth, level, (*path, name), out)
    elif not value:
        _ended(kind, rep, level, path, out)
    else:
        for index, element in enumerate(value):
            _shred(shape[1], element, rep if index == 0 else depth + 1, depth + 1, level + 1, (*path, "*"), out)
