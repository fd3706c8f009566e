"""Combine the geometries of each group of rows into a union or an envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import did_you_mean, unknown_column_message
from pqext.dataset.geometry_rows import GeometryRows
from pqext.geo.joins.geometry_column import call_shapely
from pqext.geo.wkb import from_shapely

Method = Literal["union", "envelope"]
Key = tuple[Any, ...]
_PENDING = 64
"""Number of unions of parts of a group that are united at once."""


def dissolve(
    rows: Any,
    by: str | Sequence[str] = (),
    *,
    column: str | None = None,
    method: Method = "union",
    aggregates: Mapping[str, str] | None = None,
) -> pa.Table:
    """Combine the geometries of each group of rows into one.

    Geometries are read and combined in batches. The columns of ``by`` and ``aggregates`` are held in memory.

    Args:
        rows: A pyarrow Table or what :func:`pqext.write_table` accepts, a :class:`pqext.Scan`, or a path to scan.
        by: The columns whose values form a group. Null is a value like any other. Without columns, all rows are one
            group.
        column: The geometry column; by default the only one.
        method: ``"union"`` for the union of the geometries, ``"envelope"`` for the smallest rectangle around them.
        aggregates: One function for each further column, such as ``{"population": "sum"}``. The functions are the hash
            aggregations of pyarrow.

    Returns:
        A row for each group in the order of first appearance: the columns of ``by``, the geometry in the CRS of the
        input, and the aggregates as ``population_sum``. The geometry is null if all geometries of the group are.

    Raises:
        ValueError: If a column, method or function is unknown.
        TypeError: If ``aggregates`` does not map columns to one function each, the geometry column is GEOGRAPHY, or
            Arrow cannot dictionary-encode a column of ``by``.
        GeometryError: If WKB is invalid or GEOS cannot unite the geometries.

    Example:
        >>> import pyarrow as pa, shapely
        >>> from pqext import geo
        >>> areas = geo.from_shapely([shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(5, 5, 6, 6)])
        >>> parts = pa.table({"state": ["a", "a", "b"], "area": areas, "people": [3, 4, 5]})
        >>> states = geo.dissolve(parts, "state", aggregates={"people": "sum"})
        >>> states["people_sum"].to_pylist(), geo.area(states["area"]).to_pylist()
        ([7, 5], [2.0, 1.0])
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be 'union' or 'envelope', not {method!r}")
    if not isinstance(aggregates, Mapping | None):
        example = {"population": "sum"}
        raise TypeError(f"aggregates must map columns to functions, such as {example}, not {aggregates!r}")
    keys, functions = [by] if isinstance(by, str) else list(by), dict(aggregates or {})
    source = GeometryRows.from_input(rows, column, "the input", "column=")
    for name in (*keys, *functions):
        if name not in source.schema.names:
            raise ValueError(unknown_column_message(name, source.schema.names))
    if source.name in (*keys, *functions):
        raise ValueError(f"{source.name!r} is the geometry column, which is combined and cannot form groups")
    for name, function in functions.items():
        _check_function(name, function)
    if source.type is not None and not source.type.planar:
        raise TypeError("dissolve requires planar geometries; project GEOGRAPHY with Scan.to_crs or geo.transform")
    groups: _Unions | _Envelopes = _Unions() if method == "union" else _Envelopes()
    names = list(dict.fromkeys([*keys, *functions]))
    others = []
    for table in source.select(names).tables():
        try:
            groups.add(groups.number_rows(table, keys), source.geometries(table).shapes())
        except GeometryError as error:
            error.locate(column=source.name)
            raise
        others.append(table.select(names))
    try:
        rest = pa.concat_tables(others) if names else pa.table({})
        grouped = rest.group_by(keys, use_threads=False).aggregate(list(functions.items())) if names else rest
    except (pa.ArrowKeyError, pa.ArrowNotImplementedError) as error:
        raise TypeError(f"the groups cannot be aggregated: {error}") from None
    geometries = from_shapely(groups.geometries())
    field = source.schema.field(source.name).with_type(geometries.type)
    added = [name for name in grouped.column_names if name not in keys]
    return pa.table(
        [*(grouped[name] for name in keys), geometries, *(grouped[name] for name in added)],
        schema=pa.schema([*(grouped.schema.field(name) for name in keys), field, *map(grouped.schema.field, added)]),
    )


def _check_function(column: str, function: Any) -> None:
    """Raise ``ValueError`` if ``function`` is not an aggregation of a column, ``TypeError`` if it is not a string.

    The message lists all aggregations.
    """
    prefix, without_column = "hash_", ("count_all", "pivot_wider")
    names = [name.removeprefix(prefix) for name in pa.compute.list_functions() if name.startswith(prefix)]
    known = sorted({*names} - {*without_column})
    if function not in known:
        listed = ", ".join(map(repr, known))
        meant = did_you_mean(function, known) if isinstance(function, str) else ""
        error = ValueError if isinstance(function, str) else TypeError
        raise error(f"aggregates[{column!r}] must be one of {listed}, not {function!r}{meant}")


class _Groups:
    """Mapping of group keys to numbers, in order of first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number_rows(self, table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return the group number of each row.

        Raises:
            TypeError: If Arrow cannot encode a key as a dictionary, as for lists and structs.
        """
        if not keys:
            self._numbers.setdefault((), 0)
            return np.zeros(len(table), np.int64)
        codes, values = [], []
        for name in keys:
            column = table[name].combine_chunks()
            try:
                encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
            except pa.ArrowNotImplementedError:
                raise TypeError(
                    f"cannot group by column {name!r} of type {column.type}; cast it to a type that Arrow can "
                    "dictionary-encode, such as string"
                ) from None
            codes.append(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
            values.append([*map(_hash_key, encoded.dictionary.to_pylist()), None])
        rows, which = np.unique(np.stack(codes), axis=1, return_inverse=True)
        first = np.full(rows.shape[1], len(table))
        np.minimum.at(first, which, np.arange(len(table)))
        result = np.empty(rows.shape[1], np.int64)
        for group in np.argsort(first):
            key = tuple(entries[code] for entries, code in zip(values, rows[:, group].tolist(), strict=True))
            result[group] = self._numbers.setdefault(key, len(self._numbers))
        return result[which]


class _Unions(_Groups):
    """Union of the geometries of each group. Unions of batches are merged once a group has ``_PENDING`` unions."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[int, list[Any]] = {}

    def add(self, numbers: NDArray[np.int64], shapes: NDArray[np.object_]) -> None:
        """Add each geometry to the group that ``numbers`` specifies. Nulls are ignored."""
        present = np.flatnonzero(np.array([shape is not None for shape in shapes], np.bool_))
        order = present[np.argsort(numbers[present], kind="stable")]
        groups, starts = np.unique(numbers[order], return_index=True)
        for group, members in zip(groups.tolist(), np.split(order, starts[1:]), strict=False):
            parts = self._parts.setdefault(group, [])
            parts.append(_union(shapes[members]))
            if len(parts) == _PENDING:
                parts[:] = [_union(parts)]

    def geometries(self) -> list[Any]:
        """Return the union of each group, None for a group without geometries."""
        return [_union(self._parts[group]) if group in self._parts else None for group in range(len(self))]


class _Envelopes(_Groups):
    """Bounding rectangle of each group's geometries."""

    def __init__(self) -> None:
        super().__init__()
        self._sides = np.empty((0, 4))

    def add(self, numbers: NDArray[np.int64], shapes: NDArray[np.object_]) -> None:
        """Add each geometry to the group that ``numbers`` specifies. Null and empty geometries are ignored."""
        import shapely

        more = len(self) - len(self._sides)
        self._sides = np.vstack([self._sides, np.full((more, 4), np.nan)])
        bounds = shapely.bounds(shapes)
        for side, extreme in enumerate((np.fmin, np.fmin, np.fmax, np.fmax)):
            extreme.at(self._sides[:, side], numbers, bounds[:, side])

    def geometries(self) -> list[Any]:
        """Return the rectangle around each group, None for a group without coordinates."""
        import shapely

        return [None if np.isnan(sides).any() else shapely.box(*sides) for sides in self._sides.tolist()]


def _union(shapes: Any) -> Any:
    import shapely

    return call_shapely(shapely.union_all, np.asarray(shapes, dtype=object))


def _hash_key(value: Any) -> Any:
    """Return a hashable key. Two keys are equal if the values have the same type and are equal, or are both NaN."""
    return "NaN" if isinstance(value, float) and value != value else (type(value).__name__, value)
