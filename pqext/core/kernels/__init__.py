"""Compiled loops without policy. They accept contiguous buffers, and return buffers or raise typed errors."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

Readable = Any
"""Object with the buffer protocol (``collections.abc.Buffer`` since Python 3.12)."""


def _check_compiled(root: str) -> None:
    """Raise ``ImportError`` if a kernel below ``root`` has a source file but no compiled module."""
    missing = []
    for _, _, files in os.walk(root):
        compiled = {name.partition(".")[0] for name in files if name.endswith(tuple(EXTENSION_SUFFIXES))}
        missing += [stem for stem, end in map(os.path.splitext, files) if end == ".pyx" and stem not in compiled]
    if missing:
        raise ImportError(
            f"{root} lacks {len(missing)} compiled kernels ({', '.join(sorted(missing)[:3])}, ...). This is a source "
            "checkout, and Python imports it instead of an installed pqext because Python was started in it: start "
            "Python in another folder, or compile the kernels here with: pip install -e ."
        )


_check_compiled(os.path.dirname(os.path.abspath(__file__)))
