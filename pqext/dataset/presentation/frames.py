"""Convert tables to pandas and polars data frames with VARIANT and geometry columns as text or Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.suggestions import join_names
from pqext.core.schema.data_frames import PANDAS_FAULTS, convert_table, store_extension_types
from pqext.dataset.presentation.columns import Formats, is_geometry, is_variant, map_to_list, plain_layout

if TYPE_CHECKING:
    import pandas
    import polars


def require_package(name: str) -> None:
    """Import an optional package. Raises ``ImportError`` with the command that installs it."""
    try:
        import_module(name)
    except ImportError as error:
        source = "'pqext[geopandas]'" if name == "geopandas" else name
        raise ImportError(f"{name} is needed: pip install {source} ({error})") from error


def to_pandas(table: pa.Table, formats: Formats, options: Mapping[str, Any]) -> pandas.DataFrame:
    """Convert a table to a pandas DataFrame; ``options`` are passed to ``pyarrow.Table.to_pandas``.

    The attributes of the frame record the types of VARIANT and geometry columns that keep their stored format.
    """
    require_package("pandas")
    made = _object_columns(table, formats)
    shown = formats.arrow_formats().convert_table(_clear_columns(table, made))
    frame = convert_table(shown, "pandas", lambda part: part.to_pandas(**options), *PANDAS_FAULTS)
    store_extension_types(frame, shown.schema)
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
    """Convert a table to a polars DataFrame. Raises ``ValueError`` for duplicate column names."""
    require_package("polars")
    import polars

    names = table.column_names
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"polars does not support duplicate column names: {join_names(duplicates)}; use to_table()")
    made = _object_columns(table, formats)
    shown = formats.arrow_formats().convert_table(_clear_columns(table, made))
    faults = (polars.exceptions.PolarsError, polars.exceptions.PanicException)
    frame = convert_table(shown, "polars", polars.DataFrame, *faults)
    for place, values in made.items():
        frame.replace_column(place, polars.Series(table.schema.field(place).name, values, dtype=polars.Object))
    return frame


def _object_columns(table: pa.Table, formats: Formats) -> dict[int, list[Any]]:
    """Return the Python objects of each column that Arrow cannot represent, by column position."""
    return {
        place: [value for chunk in column.chunks for value in objects(chunk, field, formats)]
        for place, (column, field) in enumerate(zip(table.columns, table.schema, strict=True))
        if formats.needs_objects(field)
    }


def _clear_columns(table: pa.Table, positions: Mapping[int, object]) -> pa.Table:
    """Replace the columns at ``positions`` with nulls."""
    for place in positions:
        table = table.set_column(place, table.schema.field(place).name, pa.nulls(table.num_rows))
    return table


def objects(array: pa.Array, field: pa.Field, formats: Formats) -> list[Any]:
    """Convert the values of a column to Python objects. ``formats`` defines the classes of geometries and VARIANTs.

    Structs become dicts, lists become lists, and maps become lists of pairs.
    """
    if not formats.needs_objects(field):
        values: list[Any] = formats.convert_array(array, field).to_pylist()
        return values
    if is_geometry(field):
        from pqext.geo.wkb import to_shapely

        return list(to_shapely(array))
    if is_variant(field):
        from pqext.variant.conversion.objects import to_python

        return to_python(array)
    array = plain_layout(array)
    kind = array.type
    if pa.types.is_struct(kind):
        names = [child.name for child in kind]
        columns = [objects(array.field(i), kind.field(i), formats) for i in range(kind.num_fields)]
        valid = array.is_valid().to_pylist()
        return [
            dict(zip(names, row, strict=True)) if is_present else None
            for is_present, row in zip(valid, zip(*columns, strict=True), strict=True)
        ]
    if pa.types.is_map(kind):
        lists = map_to_list(array)
        pairs = lists.flatten()
        keys, items = (objects(pairs.field(i), pairs.type.field(i), formats) for i in range(2))
        return list(_group_values(lists, list(zip(keys, items, strict=True))))
    return list(_group_values(array, objects(array.flatten(), kind.value_field, formats)))


def _group_values(array: pa.Array, values: list[Any]) -> Iterator[list[Any] | None]:
    """Yield the values of each list; None for null lists."""
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            yield None
            continue
        yield values[start : start + length]
        start += length
