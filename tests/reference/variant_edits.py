"""Changes of Python values as the project's edits of variants should make them, written for reading."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

Path = Sequence["str | int"]
NOWHERE = object()


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2, word for word."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        target = dict(target)
        for name, value in patch.items():
            if value is None:
                target.pop(name, None)
            else:
                target[name] = merge_patch(target.get(name), value)
        return target
    return patch


def find(value: Any, path: Path) -> Any:
    """The value at the path, NOWHERE where there is none."""
    for step in path:
        named = isinstance(step, str) and isinstance(value, dict) and step in value
        if named or (isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value)):
            value = value[step]
        else:
            return NOWHERE
    return value


def _made(path: Path, value: Any) -> Any:
    """The value within new objects and arrays, NOWHERE when an index is not 0."""
    for step in reversed(path):
        if isinstance(step, str):
            value = {step: value}
        elif step == 0:
            value = [value]
        else:
            return NOWHERE
    return value


def set_at(value: Any, path: Path, new: Any, create: bool = True) -> Any:
    """The value with ``new`` at the path; unchanged where that leads nowhere."""
    if not path:
        return new
    value = copy.deepcopy(value)
    last = path[-1]
    for depth in range(len(path)):
        parent = find(value, path[:depth])
        step = path[depth]
        if find(parent, [step]) is not NOWHERE:
            continue
        made = _made(path[depth + 1 :], new)
        if not create or made is NOWHERE:
            return value
        if isinstance(parent, dict) and isinstance(step, str):
            parent[step] = made
        elif isinstance(parent, list) and step == len(parent):
            parent.append(made)
        return value
    find(value, path[:-1])[last] = new
    return value


def delete_at(value: Any, path: Path) -> Any:
    """The value without what is at the path."""
    if find(value, path) is NOWHERE:
        return value
    value = copy.deepcopy(value)
    del find(value, path[:-1])[path[-1]]
    return value
