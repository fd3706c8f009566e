"""How a question over files is narrowed to fewer columns, and what its filter's names stand for."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.base.suggestions import not_a_column
from pqext.dataset.expressions import Column, Expression, Value
from pqext.dataset.expressions.dotted_names import replace_columns
from pqext.dataset.planning.projection import Computed

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


def with_computed(expression: Expression, computed: Sequence[Computed]) -> Expression:
    """``expression`` where names of ``computed`` columns stand for the values that they are."""
    if not computed:
        return expression
    known = {one.name: one.field for one in computed}

    def replacement(column: Column) -> Value:
        path = column.exact(known).path
        above = known.get(path[0])
        if len(path) > 1 and isinstance(above, Column):  # a field of a struct under another name
            return Column((*above.path, *path[1:]))
        return column if above is None or len(path) > 1 else above

    made: Expression = replace_columns(expression, replacement)
    return made
