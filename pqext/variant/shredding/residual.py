"""Shares of values that stay in the residual of a shredded VARIANT column, from the null counts of a file's footer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pqext.core.format.metadata import ColumnMetaData, RowGroup
from pqext.variant.access.path import Wildcard, format_path

_JSON_NULL = b"\0"
Counts = Mapping[str, Sequence[int]]
"""By path, ``event: $.user.id``: the values that stay in the residual, and all values that the path has."""


def residual_counts(row_groups: Iterable[RowGroup], columns: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The :data:`Counts` of the typed leaves of VARIANT ``columns``, which are dotted paths in the file.

    A leaf without null counts, as in encrypted columns, is not counted, and neither are the JSON nulls of chunks whose
    residual holds nothing else: no type fits them.
    """
    names = set(columns)
    totals: dict[str, tuple[int, int]] = {}
    for group in row_groups:
        chunks = {tuple(chunk.meta_data.path_in_schema): chunk.meta_data for chunk in group.columns if chunk.meta_data}
        for path, typed in chunks.items():
            value = chunks.get((*path[:-1], "value"))
            name = _name(path, names) if path[-1] == "typed_value" else None
            if name is None or value is None:
                continue
            left, fitting = 0 if _are_json_nulls(value) else _present(value), _present(typed)
            if left is not None and fitting is not None:
                before = totals.get(name, (0, 0))
                totals[name] = before[0] + left, before[1] + left + fitting
    return totals


def residual_shares(counts: Iterable[Counts]) -> dict[str, float]:
    """The share of the values of each path that stay in the residual, of all ``counts`` together; without zeros."""
    totals: dict[str, tuple[int, int]] = {}
    for part in counts:
        for path, (left, values) in part.items():
            before = totals.get(path, (0, 0))
            totals[path] = before[0] + left, before[1] + values
    return {path: left / values for path, (left, values) in totals.items() if left}


def _are_json_nulls(chunk: ColumnMetaData) -> bool:
    """Whether the bounds of a residual prove that all its values are JSON nulls."""
    bounds = chunk.statistics
    return bounds is not None and bounds.min_value == bounds.max_value == _JSON_NULL


def _present(chunk: ColumnMetaData) -> int | None:
    """The values of a chunk that are not null."""
    statistics = chunk.statistics
    nulls = None if statistics is None else statistics.null_count
    return None if nulls is None else chunk.num_values - nulls


def _name(path: tuple[str, ...], columns: set[str]) -> str | None:
    """Format the path of a leaf ``typed_value`` below one of the ``columns``; None for other leaves."""
    for length in range(1, len(path)):
        column = ".".join(path[:length])
        if column not in columns or path[length] != "typed_value":
            continue
        steps: list[str | int | Wildcard] = []
        at = length + 1  # after a typed_value, which holds fields, a list or nothing
        while at < len(path):
            is_element = path[at : at + 3] == ("list", "element", "typed_value")
            steps.append(Wildcard.ELEMENTS if is_element else path[at])
            at += 3 if is_element else 2
        return f"{column}: {format_path(steps)}"
    return None
