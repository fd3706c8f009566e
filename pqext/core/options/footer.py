"""Options of footers: footer format and interval between checkpoints.

Spec: "File format" (the Thrift footer) and "Binary Protocol Extensions" (the other formats). Checkpoints are written by
:mod:`pqext.core.footer.checkpoints`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from pqext.core.base.text import BYTE_UNITS, parse_bytes

FooterFormat = Literal["thrift", "thrift+index", "thrift+flatbuffers", "flatbuffers"]
FORMATS: tuple[FooterFormat, ...] = get_args(FooterFormat)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def check_format(format: object) -> None:
    """Raise ``ValueError`` for an unknown footer format."""
    if format not in FORMATS:
        names = ", ".join(f'"{name}"' for name in FORMATS[:-1])
        raise ValueError(f'footer must be {names} or "{FORMATS[-1]}", not {format!r}')


def check_combination(format: FooterFormat, *, is_encrypted: bool, has_extension: bool, profile: str | None) -> None:
    """Raise ``ValueError`` if the format excludes encryption, an extension of the footer, or a profile."""
    check_format(format)
    if format == "thrift":
        return
    if is_encrypted:
        raise ValueError(f"a file with footer={format!r} cannot be encrypted: omit one of them")
    if has_extension and format != "flatbuffers":
        raise ValueError(f"footer={format!r} uses the same extension as extensions['file']: omit one of them")
    if profile == "spark" and format == "flatbuffers":
        raise ValueError(
            'Spark does not read files with footer="flatbuffers"; choose another footer, or omit profile="spark"'
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Interval between checkpoints: a number of ``row_groups``, ``bytes`` or ``seconds``, whichever is reached first.

    A checkpoint is written after a row group, and is a footer of all preceding row groups. The cost of frequent
    checkpoints, such as ``checkpoint=1``, therefore grows with the square of the number of row groups: a file with
    1,000 row groups would contain 1,000 footers of 500 row groups each on average. A checkpoint every 16 row groups or
    more, or ``seconds=60``, costs little.
    """

    row_groups: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        values = [value for value in (self.row_groups, self.bytes, self.seconds) if value is not None]
        if not values or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 for value in values
        ):
            raise ValueError(
                "a checkpoint needs a positive number of row_groups, bytes or seconds, like checkpoint=16 or "
                "checkpoint=pqext.Checkpoint(seconds=60)"
            )
        for name in ("row_groups", "bytes"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ValueError(
                    f"{name} of a checkpoint must be an integer, not {value!r}; for a time pass "
                    "pqext.Checkpoint(seconds=2.5)"
                )


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse an interval between checkpoints: row groups (``16``), bytes (``64MB``) or seconds (``30s``).

    Raises ``ValueError`` for other text.
    """
    match = _AMOUNT.fullmatch(text.strip())
    unit = "" if match is None else match[2].lower()
    if match is not None and float(match[1]) > 0:
        if not unit and "." not in match[1]:
            return Checkpoint(row_groups=int(match[1]))
        if unit in BYTE_UNITS:
            return Checkpoint(bytes=max(1, parse_bytes(text)))
        if unit in _SECONDS:
            return Checkpoint(seconds=float(match[1]) * _SECONDS[unit])
    raise ValueError(f"checkpoint must be a number of row groups (16), bytes (64MB) or seconds (30s), not {text!r}")


def as_checkpoint(choice: int | Checkpoint | None) -> Checkpoint | None:
    """Return the option as a :class:`Checkpoint`; None for None. Raises ``ValueError`` if it is invalid."""
    return choice if choice is None or isinstance(choice, Checkpoint) else Checkpoint(row_groups=choice)
