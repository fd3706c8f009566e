"""Calls on hostile input: what they run, which errors they may raise, and random values shared by the modules."""

from __future__ import annotations

import linecache
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError

INTEGERS = (0, 1, -1, 2, 3, 7, 127, 128, 255, 1 << 15, 1 << 16, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, -(1 << 31),
            1 << 32, 1 << 40, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))  # fmt: skip
DOUBLES = (0.0, -0.0, 1.5, -1.0, 5e-324, 1e300, -1e308, 180.0, -180.0, 540.0, 91.0, float("inf"), float("-inf"),
           float("nan"))  # fmt: skip
WORDS = ("", " ", "a", "A", "é", "\0", "\ud800", "\u202e", "x" * 5000, "a.b", "a..b", ".", "$", "$.a", "$.a[0]", "$['",
         "$[99999999999999999999]", "%", "%ff", "../a", "/", "\\", "'", '"', "`", "null", "NaN", "1e999", "-0", "[",
         "{",
         "{}", "[]", '{"a": 1}', "ARROW:schema", "geo", "pandas", "org.apache.spark.version", "EPSG:4326", "OGC:CRS84",
         "srid:0", "srid:999999999", "projjson:geo", "EPSG:99999999", "EPSG:-1", "2024-02-30", "9" * 400)  # fmt: skip
FRAME = re.compile(r"(?:^|[/\\])pqext[/\\]")


@dataclass(frozen=True)
class Call:
    """One public call on the input of a seed."""

    name: str
    run: Callable[[], Any]
    is_argument: bool = False
    """Whether the input is an argument of the caller, so that ``ValueError`` and ``TypeError`` are right answers."""
    is_mistyped: bool = False
    """Whether the argument may have any type, so that a TypeError of Python itself is a right answer."""
    errors: tuple[type[BaseException], ...] = ()
    """Further errors that are right answers, such as ``OSError`` for paths."""
    memory: int = 100 << 20
    """Bytes that the call may hold."""


Kind = Callable[[random.Random], list[Call]]


def is_expected(error: BaseException, call: Call) -> bool:
    """Whether a call may answer with this error.

    Errors of arguments count only if pqext raises them itself: a TypeError of an operator is an accident.
    """
    if isinstance(error, (ParquetError, *call.errors)):
        return True
    if call.is_argument and str(error).startswith("embedded null"):  # of a path
        return True
    if call.is_mistyped and isinstance(error, TypeError):
        return True
    return call.is_argument and isinstance(error, ValueError | TypeError) and _is_raised_by_pqext(error)


def _is_raised_by_pqext(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    file = trace.tb_frame.f_code.co_filename
    return FRAME.search(file) is not None and linecache.getline(file, trace.tb_lineno).strip().startswith("raise ")


def check_result(result: Any) -> None:
    """Raise an error of pyarrow if Arrow data that a call returned is invalid."""
    for value in result if isinstance(result, tuple | list) else (result,):
        if isinstance(value, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
            value.validate(full=True)


def sample(chance: random.Random, calls: Sequence[Call], count: int) -> list[Call]:
    """Choose calls at random, in the order in which they are listed."""
    return [calls[at] for at in sorted(chance.sample(range(len(calls)), min(count, len(calls))))]


def integer(chance: random.Random, bits: int = 64) -> int:
    """Draw a signed integer, most often an extreme one."""
    number = chance.choice(INTEGERS) + chance.choice((0, 0, 0, 1, -1))
    if chance.random() < 0.2:
        number = chance.getrandbits(chance.randrange(1, bits))
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def word(chance: random.Random) -> str:
    """Draw text that is a name, a path, a number, or none of them."""
    text = chance.choice(WORDS)
    if chance.random() < 0.2:
        text += chance.choice(WORDS)
    return text


def change_bytes(data: bytes, chance: random.Random, start: int = 0, stop: int | None = None) -> bytes:
    """Change bytes in a range, without changing the length of ``data`` unless the range is all of it."""
    result = bytearray(data)
    stop = len(data) if stop is None else min(stop, len(data))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        if stop <= start:
            break
        at = chance.randrange(start, stop)
        choice = chance.randrange(7)
        if choice == 0:
            result[at] ^= 1 << chance.randrange(8)
        elif choice == 1:
            result[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))
        elif choice == 2:
            result[at] = (result[at] + chance.choice((-1, 1))) & 0xFF
        elif choice == 3:
            size = min(chance.choice((2, 4, 8)), stop - at)
            result[at : at + size] = (integer(chance) % (1 << (8 * size))).to_bytes(
                size, chance.choice(("little", "big"))
            )
        elif choice == 4:
            size = min(chance.randrange(1, 65), stop - at)
            source = chance.randrange(start, stop - size + 1)
            result[at : at + size] = result[source : source + size]
        elif start == 0 and stop == len(data) == len(result):
            if choice == 5:
                del result[at : at + chance.randrange(1, 17)]
            else:
                result[at:at] = result[at : at + chance.randrange(1, 33)] * chance.randrange(1, 4)
            stop = min(stop, len(result))
            data = bytes(result)
    return bytes(result)


def change_text(text: str, chance: random.Random, tokens: Iterable[str]) -> str:
    """Delete, repeat, swap or insert parts of a text; ``tokens`` are words of its language."""
    choices = tuple(tokens)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(text) + 1)
        size = chance.choice((1, 1, 2, 5, 20))
        choice = chance.randrange(6)
        if choice == 0:
            text = text[:at] + text[at + size :]
        elif choice == 1:
            text = text[:at] + chance.choice(choices) + text[at:]
        elif choice == 2:
            text = text[:at] + chance.choice(choices) + text[at + size :]
        elif choice == 3:
            text = text[:at] + text[at : at + size] * chance.choice((2, 3, 200)) + text[at + size :]
        elif choice == 4:
            text = text[:at] + word(chance) + text[at:]
        else:
            other = chance.randrange(len(text) + 1)
            text = text[:at] + text[other : other + size] + text[at + size :]
    return text[:20_000]
