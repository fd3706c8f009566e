"""Minimum, maximum, null count and bounding box of a scan's columns, from metadata if metadata suffices.

Metadata does not prove an aggregate if a bound may be truncated or is deprecated, if it is a zero whose sign is
unknown, or if a float column may contain NaN. The row group is read instead. It is also read if a filter may exclude
some of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Type
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.statistics import is_truncatable
from pqext.dataset.evaluation.comparison import extreme, to_arrow_scalar
from pqext.dataset.evaluation.evaluate import stored_values, value_of
from pqext.dataset.execution.stages import iter_matching_batches
from pqext.dataset.expressions import Column, Value, bases, col, operand_column
from pqext.dataset.ordering import executor_of
from pqext.dataset.planning.certainty import can_be_certain, certain_rows
from pqext.dataset.planning.plan import RowGroupPlan
from pqext.dataset.planning.projection import ComputedColumn, input_columns
from pqext.dataset.pruning.binding import find, lookup
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.table.file_request import FileRequest, type_at
from pqext.dataset.table.union import ConformedRequest, preserves_values

if TYPE_CHECKING:
    from pqext.geo.box import BoundingBox

T = TypeVar("T")
_ROWS = 1 << 18


class Aggregates:
    """Aggregate functions over the columns of a scan. If the scan has a limit, rows after the limit are ignored.

    Names refer to the same columns as in :meth:`pqext.Scan.filter`: to computed columns of the result, such as a
    transformed geometry, and otherwise to columns of the files, even if they are not selected.
    """

    _planner: ScanPlanner

    def min(self, column: str | Value) -> pa.Scalar:
        """Return the minimum of a column in the matching rows.

        Args:
            column: A name or a dotted path of struct fields, as text or passed to :func:`pqext.col`, or a value
                computed from columns, such as ``col("event").variant("$.n", "int64")``. The columns may be partition
                columns.

        Returns:
            A ``pyarrow.Scalar`` of the column's type; null if no row has a value. NaN is ignored.

        Raises:
            ValueError: If the column does not exist.
            TypeError: If the column's values have no order, for example lists and geometries.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [3, 1, 2]}), "ids.parquet")
            >>> pqext.scan("ids.parquet").min("id").as_py()
            1
        """
        return _extreme(self._planner, column, "min")

    def max(self, column: str | Value) -> pa.Scalar:
        """Return the maximum of a column in the matching rows, with the same arguments and errors as :meth:`min`.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [3, 1, 2]}), "ids.parquet")
            >>> pqext.scan("ids.parquet").max("id").as_py()
            3
        """
        return _extreme(self._planner, column, "max")

    def null_count(self, column: str | Value) -> int:
        """Count the nulls of a column in the matching rows.

        Args:
            column: A name or a dotted path of struct fields, as text or passed to :func:`pqext.col`, or a value
                computed from columns, such as ``col("event").variant("$.n", "int64")``.

        Returns:
            Number of rows where the column is null. A field is also null if its struct is null.

        Raises:
            ValueError: If the column does not exist.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [3, None, 2]}), "ids.parquet")
            >>> pqext.scan("ids.parquet").null_count("id")
            1
        """
        source = _resolve(self._planner, column)
        return sum(_partial_results(
            self._planner, source, _null_count, lambda array: int(array.null_count), accepts_dictionaries=True
        ))  # fmt: skip

    def bounds(self, column: str | Value) -> BoundingBox | None:
        """Return the bounding box of all geometries of a column in the matching rows.

        Args:
            column: The name of a GEOMETRY or GEOGRAPHY column, or a value such as ``col("at").st_centroid()``.

        Returns:
            A :class:`pqext.geo.BoundingBox` in the units of the column's CRS. Without a filter it is merged from the
            boxes in the metadata, if these exist, and is as tight as the writer made them. None if no geometry has X
            and Y, or if a coordinate is infinite.

        Raises:
            ValueError: If the column does not exist.
            TypeError: If the column does not contain geometries.

        Example:
            >>> import pqext
            >>> from pqext import geo
            >>> import pyarrow
            >>> points = pyarrow.table({"at": geo.from_points([1.0, 4.0], [2.0, 3.0])})
            >>> pqext.write_table(points, "points.parquet", geometry={"at": {}})
            >>> box = pqext.scan("points.parquet").bounds("at")
            >>> box.xmin, box.ymin, box.xmax, box.ymax
            (1.0, 2.0, 4.0, 3.0)
        """
        return _bounding_box(self._planner, column)


def _resolve(planner: ScanPlanner, column: str | Value) -> str | Column | ComputedColumn:
    """Look up a column name or a value in the result of the scan; return the stored or computed column.

    Raises ``TypeError`` for other arguments, and ``ValueError`` for a field of a column without fields.
    """
    named = col(column) if isinstance(column, str) else column
    if not isinstance(named, Value):
        raise TypeError(f"expected a column name or a value such as pqext.col('a') * 2, not {column!r}")
    value = planner.resolve(named)
    if value is named and isinstance(column, str):
        return column
    return planner.name_resolver.resolve(value) if isinstance(value, Column) else ComputedColumn(str(column), value)


def _inputs(planner: ScanPlanner, column: ComputedColumn) -> tuple[tuple[str | ComputedColumn, ...], Value | None]:
    """Return the columns to read for a computed column, and the value to evaluate on these columns.

    A column that does not use partition columns is computed by the scan: the value is then None.
    """
    partitions = planner.request.partitions.schema.names
    field = planner.name_resolver.resolve_partitions(column.field)
    if all(operand_column(base).path[0] not in partitions for base in bases(field)):
        return (column,), None
    names, columns_of_files, value = input_columns(field, partitions, "_pqext_input_")
    return (*names, *columns_of_files), value


def _partial_results(
    planner: ScanPlanner, column: str | Column | ComputedColumn,
        from_metadata: Callable[[ColumnChunk], T | None], from_values: Callable[[pa.Array], T], *,
    accepts_dictionaries: bool = False,
) -> Iterator[T]:
    """Yield partial results of an aggregate of ``column``, one for each row group or batch.

    If all rows of a row group match, the result of ``from_metadata`` is used unless it is None. Other rows are read and
    passed to ``from_values``, if it ``accepts_dictionaries`` without decoding the dictionary of strings and binary.
    """
    if isinstance(column, ComputedColumn):
        result, operand = _inputs(planner, column)
        planner = ScanPlanner(replace(planner.request, result=result))
        with closing(executor_of(planner).batches(_ROWS)) as batches:
            for batch, _ in batches:
                yield from_values(batch.column(0) if operand is None else value_of(operand, batch))
        return
    top = column.path[0] if isinstance(column, Column) else column
    request = replace(planner.request, result=(top,))
    planner = ScanPlanner(request)
    executor = executor_of(planner)
    exact_column = column if isinstance(column, Column) else None
    if request.limit is not None or request.offset:
        with closing(executor.batches(_ROWS)) as batches:
            yield from (from_values(_column_values(batch, exact_column, top)) for batch, _ in batches)
        return
    for row, file, file_request in executor.files():
        node = None
        if file_request.is_exact and top not in request.partitions.schema.names:
            node = _stored_node(file, file_request, top, exact_column)
        is_known = node is not None and node.is_leaf and not node.max_repetition_level and can_be_certain(file)
        if node is None or not is_known or file_request.computed:
            with closing(executor.file_batches(row, file, file_request, _ROWS)) as batches:
                yield from (from_values(_column_values(batch, exact_column, top)) for batch in batches)
            continue
        rest: list[RowGroupPlan] = []
        plans = planner.file_planner(file_request, file).row_groups(use_page_indexes=True, with_ranges=False)
        for plan in executor.run.count_plans(plans):
            if plan.prune_reason is not None:
                continue
            group = file.row_groups[plan.index]
            condition = file_request.filter
            is_whole = condition is None or certain_rows(condition, group) == [range(group.num_rows)]
            chunk = group.chunk(node)
            value = from_metadata(chunk) if is_whole else None
            if value is not None:
                yield value
            elif accepts_dictionaries and condition is None and _is_encoded_text(chunk):
                rows = file.iter_dictionary_batches(_ROWS, [top], plan.index, None, {top}, file.budget())
                yield from (from_values(batch.column(0)) for batch in rows)
            else:
                rest.append(plan)
        with closing(iter_matching_batches(file, rest, (), _ROWS)) as parts:
            for batch, _ in parts:
                yield from_values(value_of(Column(node.path), batch))


def proved_value(group: RowGroup, column: Column, function: str) -> pa.Array | None:
    """Return an aggregate of a column in a row group as an array of one value; None if the values must be read.

    The ``function`` is ``count``, which counts non-null values, ``min`` or ``max``.
    """
    try:
        node = find(group.schema, column)
    except ValueError:  # the file lacks the column, or its schema is invalid, which reading its rows reports
        return None
    if not node.is_leaf or node.max_repetition_level:
        return None
    chunk = group.chunk(node)
    if function == "count":
        nulls = _null_count(chunk)
        return None if nulls is None else pa.array([group.num_rows - nulls], pa.int64())
    return _exact_extreme(chunk, function)


def _stored_node(file: ParquetFile, file_request: FileRequest, top: str, column: Column | None) -> SchemaNode | None:
    """Return the schema node of a column in a file; None if the unified type may compare its values differently.

    The column is ``column``, or has the name ``top`` if ``column`` is None.
    """
    if isinstance(file_request, ConformedRequest):
        schemas = file_request.schema, file.arrow_schema
        path = (top,) if top in file_request.schema.names else tuple(top.split("."))
        unified, own = (type_at(schema, path if column is None else column.path) for schema in schemas)
        if unified is None or own is None or not preserves_values(own, unified):
            return None
    return lookup(file.schema, top) if column is None else find(file.schema, column)


def _column_values(batch: pa.RecordBatch, column: Column | None, top: str) -> pa.Array:
    if column is not None:
        return value_of(column, batch)
    return value_of(Column(_path(batch, top)), batch)


def _path(batch: pa.RecordBatch, name: str) -> tuple[str, ...]:
    return (name,) if name in batch.schema.names else tuple(name.split("."))


def _is_encoded_text(chunk: ColumnChunk) -> bool:
    """Return whether a chunk belongs to a top-level column of dictionary-encoded strings or binary values."""
    is_text = chunk.node.physical_type == Type.BYTE_ARRAY and len(chunk.node.path) == 1
    return is_text and not DICTIONARY_ENCODINGS.isdisjoint(chunk.metadata.encodings)


def _null_count(chunk: ColumnChunk) -> int | None:
    if chunk.node.max_definition_level == 0 and chunk.counts_nulls:
        return 0
    return chunk.bounds().null_count


def _extreme(planner: ScanPlanner, column: str | Value, side: str) -> pa.Scalar:
    from pqext.geo.types import type_of

    known, source = partial(_exact_extreme, side=side), _resolve(planner, column)
    top = source.path[0] if isinstance(source, Column) else source
    result, value = _inputs(planner, top) if isinstance(top, ComputedColumn) else ((top,), None)
    schema = ScanPlanner(replace(planner.request, result=result)).schema
    if value is None and type_of(schema.field(0)) is not None:
        raise TypeError(f"column {schema.names[0]!r} contains geometries, which have no order; use bounds()")
    of_values = partial(extreme, side=side)
    results = [*_partial_results(planner, source, known, of_values, accepts_dictionaries=True)]
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    if isinstance(top, ComputedColumn):
        named: Value = Column((top.name,)) if value is None else value
    else:
        named = source if isinstance(source, Column) else Column(_path(empty, top))
    kind = value_of(named, empty).type
    whole = extreme(pa.concat_arrays([pa.nulls(0, kind), *(part.cast(kind) for part in results)]), side)
    stored = stored_values(named, empty).type if isinstance(named, Column) else kind
    return (whole.cast(stored) if pa.types.is_duration(stored) else whole)[0]  # durations are compared as integers


def _exact_extreme(chunk: ColumnChunk, side: str) -> pa.Array | None:
    """Return the exact minimum or maximum of a chunk as an array of one value; None if the values must be read."""
    bounds, stored, leaf = chunk.bounds(), chunk.metadata.statistics, chunk.node.leaf_type
    kind = leaf.arrow_type()
    if bounds.all_null:
        return pa.nulls(1, kind)
    value = bounds.minimum if side == "min" else bounds.maximum
    if stored is None or value is None or not chunk.counts_nulls:  # may be the bound of a value read as null
        return None
    if chunk.node.calendar is not None:  # conversion between calendars widens bounds
        return None
    raw, exact = stored.min_value, stored.is_min_value_exact
    if side == "max":
        raw, exact = stored.max_value, stored.is_max_value_exact
    if raw is None or exact is False or (is_truncatable(leaf) and not exact):
        return None
    if isinstance(value, float) and (bounds.has_nan is not False or value == 0):
        return None
    try:
        scalar = to_arrow_scalar(value, kind)
    except (ValueError, OverflowError):  # no value of the column's type can equal the bound
        return None
    return None if scalar is None else pa.repeat(scalar, 1)


def _bounding_box(planner: ScanPlanner, column: str | Value) -> BoundingBox | None:
    from pqext.geo import crs as crs_
    from pqext.geo.box import BoundingBox
    from pqext.geo.functions.table import evaluate
    from pqext.geo.summary import statistics, union
    from pqext.geo.types import type_of

    source = _resolve(planner, column)
    top = source.path[0] if isinstance(source, Column) else source
    field = ScanPlanner(replace(planner.request, result=(top,))).schema.field(0)
    kind = type_of(field)
    if kind is None:
        raise TypeError(f"column {field.name!r} contains no geometries")
    nothing = object()

    def from_metadata(chunk: ColumnChunk) -> Any:
        if chunk.bounds().all_null:
            return nothing
        stored = chunk.geospatial_statistics
        box = None if stored is None or stored.bbox is None or not chunk.trusted else stored.bbox
        return None if box is None or not BoundingBox.from_metadata(box).usable else BoundingBox.from_metadata(box)

    def from_values(array: pa.Array) -> Any:
        summary = statistics(array, kind.edges, kind.crs)
        if summary.bbox is None:
            is_empty = evaluate("st_isempty", array, edges=kind.edges, crs=kind.crs)
            return nothing if pc.all(is_empty).as_py() in (None, True) else summary
        return BoundingBox.from_metadata(summary.bbox)

    boxes = [part for part in _partial_results(planner, source, from_metadata, from_values) if part is not nothing]
    if not all(isinstance(box, BoundingBox) for box in boxes):
        return None
    return union(boxes, crs_.is_geographic(crs_.normalize(kind.crs)) is True)
