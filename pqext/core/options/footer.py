"""Options of footers: their format, and how often a writer leaves a checkpoint.

Spec: "File format" (the Thrift footer) and "Binary Protocol Extensions" (the others). Checkpoints are written by
:mod:`pqext.core.footer.checkpoints`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from pqext.core.base.text import BYTE_UNITS, parse_bytes

FooterForm = Literal["thrift", "thrift+index", "thrift+flatbuffers", "flatbuffers"]
FORMS: tuple[FooterForm, ...] = get_args(FooterForm)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def check_form(form: object) -> None:
    """Raise ``ValueError`` for a form that there is not."""
    if form not in FORMS:
        listed = ", ".join(f'"{one}"' for one in FORMS[:-1])
        raise ValueError(f'footer must be {listed} or "{FORMS[-1]}", not {form!r}')


def check_beside(form: FooterForm, *, encrypted: bool, extended: bool, profile: str | None) -> None:
    """Raise ``ValueError`` for a form that cannot be had with encryption, an extension of the footer or a profile."""
    check_form(form)
    if form == "thrift":
        return
    if encrypted:
        raise ValueError(f"a file with footer={form!r} cannot be encrypted: leave out one of them")
    if extended and form != "flatbuffers":
        raise ValueError(f"footer={form!r} takes the place of extensions['file']: leave out one of them")
    if profile == "spark" and form == "flatbuffers":
        raise ValueError('Spark does not read files with footer="flatbuffers"; profile="spark" forbids it')


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """When checkpoints are written: behind the row group with which so many ``row_groups``, ``bytes`` of the file or
    ``seconds`` are new, whichever comes first.

    Each checkpoint is a footer of all row groups before it. Frequent ones, in the extreme ``checkpoint=1``, therefore
    add bytes and time that grow with the square of the number of row groups: a file of 1,000 row groups would hold
    1,000 footers of 500 row groups each on average. One after every 16 or more, or ``seconds=60``, costs little.
    """

    row_groups: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.row_groups, self.bytes, self.seconds) if value is not None]
        if not given or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 for value in given
        ):
            raise ValueError(
                "a checkpoint needs a positive number of row_groups, bytes or seconds, like checkpoint=16 or "
                "checkpoint=pqext.Checkpoint(seconds=60)"
            )
        for name in ("row_groups", "bytes"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ValueError(
                    f"{name} of a checkpoint must be a whole number, not {value!r}; for a time there is "
                    "pqext.Checkpoint(seconds=2.5)"
                )


def parse_checkpoint(text: str) -> Checkpoint:
    """Row groups (``16``), bytes (``64MB``) or seconds (``30s``) from checkpoint to checkpoint.

    Raises ``ValueError`` for anything else.
    """
    found = _AMOUNT.fullmatch(text.strip())
    unit = "" if found is None else found[2].lower()
    if found is not None and float(found[1]) > 0:
        if not unit and "." not in found[1]:
            return Checkpoint(row_groups=int(found[1]))
        if unit in BYTE_UNITS:
            return Checkpoint(bytes=max(1, parse_bytes(text)))
        if unit in _SECONDS:
            return Checkpoint(seconds=float(found[1]) * _SECONDS[unit])
    raise ValueError(f"checkpoint is a number of row groups, 16, of bytes, 64MB, or of seconds, 30s, not {text!r}")


def as_checkpoint(choice: int | Checkpoint | None) -> Checkpoint | None:
    """The option as an object. Raises ``ValueError`` for what is none."""
    return choice if choice is None or isinstance(choice, Checkpoint) else Checkpoint(row_groups=choice)
