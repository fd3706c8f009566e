"""Estimate the share of a table's files that a lookup of one value reads, from the statistics in the log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pqext.core.format.predicate import Bounds
from pqext.dataset.expressions import Column, Operand, VariantField, bases
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.log_statistics import UNKNOWN, LogStatistics, variant_ranges
from pqext.variant.access.path import parse
from pqext.variant.types import is_marked

_COLUMNS = 32
"""Maximum number of columns that are estimated."""


def column_shares(snapshot: TableSnapshot) -> dict[str, float]:
    """Return the share of files that a lookup reads, for each column. Columns without bounds are missing.

    VARIANT columns are not estimated.
    """
    columns = [field.name for field in snapshot.schema if not is_marked(field)][:_COLUMNS]
    shares = {name: key_share(snapshot, Column((name,))) for name in columns}
    return {name: share for name, share in shares.items() if share is not None}


def key_share(snapshot: TableSnapshot, key: Operand) -> float | None:
    """Return the share of files that a lookup by ``key`` reads: a column, or a value within a VARIANT column.

    None if it is unknown, because no file has bounds of the values.
    """
    statistics = snapshot.statistics
    if not isinstance(statistics, LogStatistics) or not snapshot.files:
        return None
    files = statistics.files_of(snapshot.files)
    if isinstance(key, Column):
        return read_share([UNKNOWN if file is None else file.bounds(key.path) for file in files])
    fields = [base for base in bases(key) if isinstance(base, VariantField)]
    if len(fields) != 1 or not all(isinstance(step, str) for step in parse(fields[0].path)):
        return None
    path, column = tuple(map(str, parse(fields[0].path))), fields[0].column.path
    ranges = variant_ranges(files, column, {path})
    return read_share([by_path[path].bounds if path in by_path else UNKNOWN for by_path in ranges])


def read_share(bounds: Sequence[Bounds]) -> float | None:
    """Return the mean share of ``bounds`` that contain a value. The values are the minima and maxima of all bounds.

    None if there are no minima and maxima, or they cannot be compared.
    """
    known: list[tuple[Any, Any]] = [(each.minimum, each.maximum) for each in bounds if _is_known(each)]
    unknown = sum(not _is_known(each) and not each.all_null for each in bounds)
    if not known:
        return None
    try:
        lows, highs = sorted(low for low, _ in known), sorted(high for _, high in known)
        reads = sum(bisect_right(lows, value) - bisect_left(highs, value) + unknown for value in (*lows, *highs))
    except TypeError:  # paths of VARIANT columns have values of several types
        return None
    return reads / (2 * len(known) * len(bounds))


def _is_known(bounds: Bounds) -> bool:
    return bounds.minimum is not None and bounds.maximum is not None and not bounds.all_null


def format_shares(before: Mapping[str, float], after: Mapping[str, float] | None) -> str:
    """Format the share of each key as text: before and after a rewrite or, if ``after`` is None, only before."""
    return ", ".join(f"{key} {percentages}" for key, percentages in _percentages(before, after))


def _percentages(before: Mapping[str, float], after: Mapping[str, float] | None) -> Iterable[tuple[str, str]]:
    for key, share in before.items():
        following = "" if after is None else f" -> {after[key]:.0%}" if key in after else " -> unknown"
        yield key, f"{share:.0%}{following}"
