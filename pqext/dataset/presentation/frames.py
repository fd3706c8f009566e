"""Data frames of pandas and polars whose VARIANT and geometry columns are text or Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.suggestions import listed
from pqext.core.schema.data_frames import PANDAS_FAULTS, convert_table, remember
from pqext.dataset.presentation.columns import Formats
from pqext.dataset.presentation.objects import objects

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(table: pa.Table, formats: Formats, options: Mapping[str, Any]) -> pandas.DataFrame:
    """A table as a DataFrame in the formats; ``options`` are those of ``pyarrow.Table.to_pandas``.

    Its attributes keep the types of VARIANT and geometry columns in their stored form.
    """
    made = _objects(table, formats)
    shown = formats.arrow().table(_without(table, made))
    frame = convert_table(shown, "pandas", lambda part: part.to_pandas(**options), *PANDAS_FAULTS)
    remember(frame, shown.schema)
    seen: dict[str, int] = {}
    for place, field in enumerate(table.schema):
        nth = seen.setdefault(field.name, 0)
        seen[field.name] += 1
        if place not in made:
            continue
        import pandas

        matches = [at for at, name in enumerate(frame.columns) if name == field.name]
        values = pandas.Series(made[place], index=frame.index, dtype=object)
        frame.isetitem(matches[nth], values)
    return frame


def to_polars(table: pa.Table, formats: Formats) -> polars.DataFrame:
    """A table as a DataFrame in the formats."""
    import polars

    names = table.column_names
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"a polars frame has no duplicate columns: {listed(duplicates)}; use to_table()")
    made = _objects(table, formats)
    shown = formats.arrow().table(_without(table, made))
    faults = (polars.exceptions.PolarsError, polars.exceptions.PanicException)
    frame = convert_table(shown, "polars", polars.DataFrame, *faults)
    for place, values in made.items():
        frame.replace_column(place, polars.Series(table.schema.field(place).name, values, dtype=polars.Object))
    return frame


def _objects(table: pa.Table, formats: Formats) -> dict[int, list[Any]]:
    """The columns of which Arrow does not hold the values, by their places."""
    return {
        place: [value for chunk in column.chunks for value in objects(chunk, field, formats)]
        for place, (column, field) in enumerate(zip(table.columns, table.schema, strict=True))
        if formats.needs_objects(field)
    }


def _without(table: pa.Table, places: Mapping[int, object]) -> pa.Table:
    """The table with nulls in these columns."""
    for place in places:
        table = table.set_column(place, table.schema.field(place).name, pa.nulls(table.num_rows))
    return table
