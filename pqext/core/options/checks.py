"""Checks of option values that readers and writers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.format.compression import levels


def check_flags(options: Any, *flags: str) -> None:
    """Raise for flags that are no bools and for ``threads`` that are no number of them."""
    for name in flags:
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} must be a bool, not {getattr(options, name)!r}")
    threads = options.threads
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or a positive number, not {threads!r}")


def check_pairs(pairs: Mapping[Any, Any]) -> None:
    """Raise for key-value metadata that is no text."""
    for text in (part for pair in pairs.items() for part in pair):
        if not isinstance(text, str):
            raise TypeError(f"key_value_metadata maps text to text, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"key_value_metadata holds {text!r}, which is not Unicode text") from None


def check_level(codec: str, level: Any, *, strict: bool) -> None:
    """Raise for a level that the codec does not have; ``strict``: for a codec without levels too."""
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"compression_level must be a number, not {level!r}")
    allowed = levels(codec)
    if allowed is None and strict:
        raise ValueError(f"compression {codec!r} has no levels, so compression_level must be None")
    if allowed is not None and not allowed[0] <= level <= allowed[1]:
        raise ValueError(f"compression {codec!r} has levels {allowed[0]} to {allowed[1]}, not {level}")
