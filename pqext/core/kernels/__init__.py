"""Compiled inner loops, with no policy: contiguous buffers in, contiguous buffers or typed errors out."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

Readable = Any
"""An object with the buffer protocol (``collections.abc.Buffer`` from Python 3.12 on)."""


def _check_compiled(folder: str) -> None:
    """Raise ``ImportError`` where the sources of kernels lie in ``folder`` without what is compiled of them."""
    found = os.listdir(folder) if os.path.isdir(folder) else []
    compiled = {name.partition(".")[0] for name in found if name.endswith(tuple(EXTENSION_SUFFIXES))}
    lacking = sorted(stem for stem, end in map(os.path.splitext, found) if end == ".pyx" and stem not in compiled)
    if lacking:
        raise ImportError(
            f"{folder} lacks {len(lacking)} compiled kernels ({', '.join(lacking[:3])}, ...). It is a checkout of "
            "pqext, which hides an installed pqext where Python runs in it: run Python in another folder, or compile "
            "the kernels here with: pip install -e ."
        )


_check_compiled(os.path.dirname(os.path.abspath(__file__)))
