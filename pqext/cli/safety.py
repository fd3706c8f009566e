"""Options that keep what is written from getting lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pqext.core.checkpoint_choice import Checkpoint

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 1000, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def parse_checkpoint(text: str) -> Checkpoint:
    """Row groups (``16``), bytes (``64MB``) or seconds (``30s``) from checkpoint to checkpoint.

    Raises ``ValueError`` for anything else.
    """
    from pqext.core.checkpoint_choice import Checkpoint

    found = _AMOUNT.fullmatch(text.strip())
    unit = "" if found is None else found[2].lower()
    if found is not None and float(found[1]) > 0:
        if not unit and "." not in found[1]:
            return Checkpoint(row_groups=int(found[1]))
        if unit in _BYTES:
            return Checkpoint(bytes=max(1, round(float(found[1]) * _BYTES[unit])))
        if unit in _SECONDS:
            return Checkpoint(seconds=float(found[1]) * _SECONDS[unit])
    raise ValueError(f"--checkpoint is a number of row groups, 16, of bytes, 64MB, or of seconds, 30s, not {text!r}")
