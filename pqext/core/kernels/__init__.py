"""Compiled inner loops, with no policy: contiguous buffers in, contiguous buffers or typed errors out."""

from __future__ import annotations

from typing import Any

Readable = Any
"""An object with the buffer protocol (``collections.abc.Buffer`` from Python 3.12 on)."""
