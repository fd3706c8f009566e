"""How a question over files is narrowed to fewer columns, and what its filter's names stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pqext.core.base.suggestions import not_a_column
from pqext.dataset.execution.top_rows import OrderKey
from pqext.dataset.expressions import Column, Value, col
from pqext.dataset.expressions.dotted_names import replace_columns
from pqext.dataset.planning.projection import Computed

T = TypeVar("T")
Result = tuple["str | Computed", ...]


def selected(before: Result | None, wanted: Result) -> Result:
    """The ``wanted`` columns of a result that had those ``before``, all of the files' when None.

    A name stands for all parts of a column that there were, and a path for what lies within a column. Raises
    ``ValueError`` for a name that is not among them.
    """
    if before is None:
        return wanted
    found: list[str | Computed] = []
    for one in wanted:
        if isinstance(one, Computed):
            found.append(one)
            continue
        whole = [known for known in before if one == (known if isinstance(known, str) else known.name)]
        names = [known for known in before if isinstance(known, str)]
        parts = [known for known in names if known.startswith(one + ".")]
        above = [one] if any(one.startswith(known + ".") for known in names) else []
        if not (whole or parts or above):
            every = [known if isinstance(known, str) else known.name for known in before]
            raise ValueError(not_a_column(one, every).replace("the file has", "the scan has"))
        found += whole or above or parts
    return tuple(dict.fromkeys(found))


def with_computed(expression: T, computed: Sequence[Computed]) -> T:
    """``expression``, a condition or a value, where names of ``computed`` columns stand for their values."""
    if not computed:
        return expression
    known = {one.name: one.field for one in computed}

    def replacement(column: Column) -> Value:
        path = column.exact(known).path
        above = known.get(path[0])
        if len(path) > 1 and isinstance(above, Column):  # a field of a struct under another name
            return Column((*above.path, *path[1:]))
        return column if above is None or len(path) > 1 else above

    made: T = replace_columns(expression, replacement)
    return made


def order_keys(
    columns: Sequence[Any], descending: bool | Sequence[bool], nulls_first: bool | Sequence[bool],
    computed: Sequence[Computed],
) -> tuple[OrderKey, ...]:
    """The keys of an order by ``columns``, names or values, where names of ``computed`` columns stand for their values.

    Raises ``TypeError`` for what is not a column, and ``ValueError`` for a number of flags other than that of columns.
    """
    if not columns:
        raise TypeError("order_by takes columns, such as 'price' or pqext.col('price')")
    flags = []
    for name, choice in (("descending", descending), ("nulls_first", nulls_first)):
        choices = [choice] * len(columns) if isinstance(choice, bool) else [*choice]
        if not all(isinstance(one, bool) for one in choices):
            raise TypeError(f"{name} is a bool or a list of one for each column, not {choice!r}")
        if len(choices) != len(columns):
            raise ValueError(f"{name} has {len(choices)} flags for {len(columns)} columns: pass one for each or a bool")
        flags.append(choices)
    keys = []
    for column, is_descending, is_first in zip(columns, *flags, strict=True):
        value = col(column) if isinstance(column, str) else column
        if not isinstance(value, Value):
            raise TypeError(f"order_by takes names of columns and values such as pqext.col('a') * 2, not {column!r}")
        keys.append(OrderKey(with_computed(value, computed), is_descending, is_first))
    return tuple(keys)
