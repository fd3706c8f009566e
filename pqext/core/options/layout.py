"""Options of a file's layout: footer format, checkpoints, statistics, indexes and sorting.

Spec: "File format" (the Thrift footer) and "Binary Protocol Extensions" (the other formats). Checkpoints are written by
:mod:`pqext.core.footer.checkpoints`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

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
    """Raise ``ValueError`` if a footer format does not support encryption, a footer extension or the profile."""
    check_format(format)
    if format == "thrift":
        return
    if is_encrypted:
        raise ValueError(f'a file with footer={format!r} cannot be encrypted; pass footer="thrift" or omit encryption=')
    if has_extension and format != "flatbuffers":
        raise ValueError(
            f"footer={format!r} uses the same extension as extensions['file']; omit the extension, or choose another "
            "footer"
        )
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
                "a checkpoint needs a positive number of row_groups, bytes or seconds, such as checkpoint=16 or "
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


def to_checkpoint(choice: int | Checkpoint | None) -> Checkpoint | None:
    """Convert the option ``checkpoint`` to a :class:`Checkpoint` or None. Raises ``ValueError`` for an invalid
    interval.
    """
    return choice if choice is None or isinstance(choice, Checkpoint) else Checkpoint(row_groups=choice)


@dataclass(frozen=True, slots=True)
class BloomFilterChoice:
    """Settings of a Bloom filter. ``fpp`` is its maximum false-positive rate.

    ``ndv`` is the number of distinct values in a row group. If it is None, the number is estimated for each row group.
    """

    fpp: float = 0.01
    ndv: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.fpp, bool) or not isinstance(self.fpp, (int, float)) or not 0 < self.fpp < 1:
            raise ValueError(f"a Bloom filter's fpp must be between 0 and 1, not {self.fpp!r}")
        if self.ndv is not None and (isinstance(self.ndv, bool) or not isinstance(self.ndv, int) or self.ndv < 1):
            raise ValueError(f"a Bloom filter's ndv must be a positive number, not {self.ndv!r}")


def bloom_filter_choice(value: Any) -> BloomFilterChoice | None:
    """Convert a column's value of the option ``bloom_filters`` to filter settings. False becomes None.
    """
    if isinstance(value, bool):
        return BloomFilterChoice() if value else None
    if isinstance(value, BloomFilterChoice):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"a column's bloom_filters must be a bool or a mapping, not a {type(value).__name__}")
    unknown = value.keys() - {"fpp", "ndv"}
    if unknown:
        raise ValueError(f"bloom_filters accepts the keys fpp and ndv, not {', '.join(sorted(map(str, unknown)))}")
    return BloomFilterChoice(**value)


@dataclass(frozen=True, slots=True)
class SortKey:
    """Sort key of rows: the dotted path of a leaf, the sort direction and the position of nulls."""

    path: str
    descending: bool = False
    nulls_first: bool = False


def _parse_sort_key(text: str) -> SortKey:
    """Parse a sort key. The words after the path are parsed from the end, because a path may also contain ``desc``."""
    path, nulls, direction = text.strip(), "", ""
    parts = path.rsplit(None, 2)
    if len(parts) == 3 and parts[1].lower() == "nulls" and parts[2].lower() in ("first", "last"):
        path, nulls = parts[0], parts[2].lower()
    parts = path.rsplit(None, 1)
    if len(parts) == 2 and parts[1].lower() in ("asc", "desc"):
        path, direction = parts[0], parts[1].lower()
    return SortKey(path, descending=direction == "desc", nulls_first=nulls == "first")


def sort_keys(columns: Iterable[Any]) -> tuple[SortKey, ...]:
    """Convert elements of the option ``sorting`` to sort keys: :class:`SortKey`, ``"a.b"``, ``"a.b desc"`` or ``"a.b
    desc nulls first"``.
    """
    if isinstance(columns, (str, SortKey)) or not isinstance(columns, Iterable):
        raise TypeError(f"sorting must be a list of columns, as text or SortKey, not {columns!r}")
    keys = []
    for column in columns:
        key = _parse_sort_key(column) if isinstance(column, str) else column
        if not isinstance(key, SortKey):
            raise TypeError(f"sorting must list columns as text or SortKey, not {key!r}")
        keys.append(key)
    paths = [key.path for key in keys]
    if len({*paths}) < len(paths):
        raise ValueError(f"sorting names a column twice: {', '.join(map(str, paths))}")
    return tuple(keys)


def check_index_options(options: Any) -> None:
    """Raise ``ValueError`` or ``TypeError`` for invalid options of indexes and sorting."""
    for name in ("statistics", "page_index"):
        value = getattr(options, name)
        choices = value.values() if isinstance(value, Mapping) else [value]
        if not all(isinstance(choice, bool) for choice in choices):
            raise TypeError(f"{name} must be a bool or a mapping from columns to bools, not {value!r}")
    filters = options.bloom_filters
    if isinstance(filters, Mapping):
        for value in filters.values():
            bloom_filter_choice(value)
    elif not isinstance(filters, bool):
        raise TypeError(f"bloom_filters must be a bool or a mapping from columns, not a {type(filters).__name__}")
    if options.bloom_filter_place not in ("file", "row_group"):
        raise ValueError(f'bloom_filter_place must be "file" or "row_group", not {options.bloom_filter_place!r}')
    size = options.bloom_filter_bytes
    if isinstance(size, bool) or not isinstance(size, int) or not 32 <= size <= 1 << 30:
        raise ValueError(f"bloom_filter_bytes must be an integer from 32 to 2**30, not {size!r}")
    if options.float_order not in ("type", "ieee754"):
        raise ValueError(f'float_order must be "type" or "ieee754", not {options.float_order!r}')
    if isinstance(options.bound_bytes, bool) or not isinstance(options.bound_bytes, int) or options.bound_bytes < 1:
        raise ValueError(f"bound_bytes must be a positive integer, not {options.bound_bytes!r}")
    if options.bound_bytes >= 1 << 63:
        raise ValueError(f"bound_bytes must be less than 2**63, not {options.bound_bytes}")
    sort_keys(options.sorting)
