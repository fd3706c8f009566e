"""Reads in two steps: rows by the part of a condition that pqext evaluates, which Spark then filters by the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pqext.dataset.expressions import visitors
from pqext.dataset.notations.dnf import as_expression
from pqext.dataset.planning.projection import Computed
from pqext.dataset.scan_planner import ScanPlanner
from pqext.spark.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def names_column(where: Any, column: str | None) -> bool:
    """Whether a filter names ``column``, in any case of its letters."""
    expression = None if column is None else as_expression(where)
    if column is None or expression is None:
        return False
    return column.casefold() in {name.casefold() for name in visitors.columns(expression)}


def can_evaluate(make_query: Callable[[], Any]) -> bool:
    """Whether tasks can evaluate the condition of a ``Query`` on its first file.

    Faults of the file are left to those who read it.
    """
    try:
        query = make_query()
        ScanPlanner(query.query(query.files[:1], query.values_schema().names, query.filter())).plan()
    except (TypeError, ValueError):
        return False
    except OSError:
        pass
    return True


def read_in_two_steps(
    read: Callable[..., DataFrame],
    columns: Sequence[Any] | None,
    condition: str | Column,
    where: Callable[[DataFrame, str | Column], DataFrame],
) -> DataFrame:
    """Call ``read`` for ``columns`` and those of the ``condition``, and ``where`` with what it returns."""
    if columns is None:
        return where(read(), condition)
    added = columns_read_too(columns, condition, read().schema.names)
    found = where(read([*columns, *added]), condition)
    names = [column if isinstance(column, str) else column.name for column in columns]
    return found.select(*map(quoted, names)) if added else found


def columns_read_too(columns: Sequence[str | Computed], where: str | Column, stored: Sequence[str]) -> list[str]:
    """The ``stored`` columns that a condition may name and that are not among the ``columns`` of a read."""
    text = str(where).casefold()
    words = set(re.findall(r"\w+", text))
    used = [name for name in stored if (fold := name.casefold()) in words or (fold in text and re.search(r"\W", fold))]
    if hidden := [one.name for one in columns if isinstance(one, Computed) and one.name in used]:
        raise ValueError(f"column {hidden[0]!r} is computed, and where= reads the stored one: use another name for it")
    folds = [name.casefold() for name in stored]
    names = [column if isinstance(column, str) else column.name for column in columns]
    read = {name.casefold() for name in names if folds.count(name.casefold()) == 1}
    return [name for name in used if name not in names and name.casefold() not in read]
