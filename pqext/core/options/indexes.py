"""Validate and normalise options of ``WriteOptions`` for statistics, indexes and sorting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


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
    """Return the settings for a column's option, a bool or a mapping with ``fpp`` and ``ndv``; None for False."""
    if isinstance(value, bool):
        return BloomFilterChoice() if value else None
    if isinstance(value, BloomFilterChoice):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"a column's bloom_filters must be a bool or a mapping, not a {type(value).__name__}")
    unknown = value.keys() - {"fpp", "ndv"}
    if unknown:
        raise ValueError(f"bloom_filters accepts fpp and ndv, not {', '.join(sorted(map(str, unknown)))}")
    return BloomFilterChoice(**value)


@dataclass(frozen=True, slots=True)
class SortKey:
    """Dotted path of a leaf by which rows are sorted, the direction, and the position of nulls."""

    path: str
    descending: bool = False
    nulls_first: bool = False


def _parse_sort_key(text: str) -> SortKey:
    """Parse ``text`` from its end, since a path may contain spaces and the keywords."""
    path, nulls, direction = text.strip(), "", ""
    parts = path.rsplit(None, 2)
    if len(parts) == 3 and parts[1].lower() == "nulls" and parts[2].lower() in ("first", "last"):
        path, nulls = parts[0], parts[2].lower()
    parts = path.rsplit(None, 1)
    if len(parts) == 2 and parts[1].lower() in ("asc", "desc"):
        path, direction = parts[0], parts[1].lower()
    return SortKey(path, descending=direction == "desc", nulls_first=nulls == "first")


def sort_keys(columns: Iterable[Any]) -> tuple[SortKey, ...]:
    """Return sort keys for :class:`SortKey` objects or text such as ``"a.b"``, ``"a.b desc"`` and ``"a.b desc nulls
    first"``.
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
        raise ValueError(f"bloom_filter_bytes must be a number from 32 to 2**30, not {size!r}")
    if options.float_order not in ("type", "ieee754"):
        raise ValueError(f'float_order must be "type" or "ieee754", not {options.float_order!r}')
    if isinstance(options.bound_bytes, bool) or not isinstance(options.bound_bytes, int) or options.bound_bytes < 1:
        raise ValueError(f"bound_bytes must be a positive number, not {options.bound_bytes!r}")
    if options.bound_bytes >= 1 << 63:
        raise ValueError(f"bound_bytes must be less than 2**63, not {options.bound_bytes}")
    sort_keys(options.sorting)
