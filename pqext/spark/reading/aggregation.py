"""Aggregate groups in Spark tasks: counts, sums and extremes. Spark combines the partial results of the tasks.

A task returns one row for each group in a batch: the group's values, and the partial state of each function. Results
have the types and semantics of Spark's functions: NaN is the greatest number, integers and decimals are added exactly,
and a sum that overflows its type raises an error if Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.core.read.reader import ParquetFile
from pqext.dataset.aggregates import proved_value
from pqext.dataset.expressions import Column as StoredOperand
from pqext.dataset.planning.plan import RowGroupPlan, Task
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.scan_planner import ScanPlanner
from pqext.spark.base.arrays import conform
from pqext.spark.base.types import to_exchange_schema

FUNCTIONS = ("count", "sum", "min", "max", "avg")
_ADDED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType)
_ORDERED = (
    *_ADDED, T.StringType, T.BinaryType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.TimeType,
)  # fmt: skip
_DIGITS = 38
_OF = "of"
"""Metadata key of a partial result for the type of the aggregated values."""


@dataclass(frozen=True)
class Aggregate:
    """Aggregate in result column ``name``: ``function`` over the input column at index ``input_index``.

    The aggregate counts rows if ``input_index`` is None.
    """

    name: str
    function: str
    input_index: int | None


@dataclass(frozen=True)
class Aggregation:
    """Grouping by the first ``by`` input columns, and the aggregates of each group."""

    by: int
    aggregates: tuple[Aggregate, ...]

    @property
    def counts_rows(self) -> bool:
        """Whether the result is a number of rows, so that no column is read."""
        return not self.by and all(item.input_index is None for item in self.aggregates)

    def check(self, values: T.StructType) -> None:
        """Raise ``TypeError`` for values that cannot be grouped, ordered or added."""
        for field in values.fields[: self.by]:
            if not isinstance(field.dataType, _ORDERED):
                raise TypeError(f"rows cannot be grouped by {_describe_field(field)}")
        for item in self.aggregates:
            if item.input_index is None or item.function == "count":
                continue
            field, is_added = values[item.input_index], item.function in ("sum", "avg")
            if not isinstance(field.dataType, _ADDED if is_added else _ORDERED):
                raise TypeError(f"{item.function} is not defined for {_describe_field(field)}")

    def compared_fields(self, values: T.StructType) -> list[T.StructField]:
        """Return the fields whose values are compared, to group rows or to find a minimum or maximum."""
        extremes = [item for item in self.aggregates if item.function in ("min", "max")]
        return [
            *values.fields[: self.by],
            *(values[item.input_index] for item in extremes if item.input_index is not None),
        ]

    def partial_schema(self, values: T.StructType) -> T.StructType:
        """Return the schema of the rows that tasks return: group values, then the partial results of each aggregate."""
        self.check(values)
        groups = values.fields[: self.by]
        fields = [T.StructField(f"group_{input_index}", field.dataType) for input_index, field in enumerate(groups)]
        for number, item in enumerate(self.aggregates):
            of = {} if item.input_index is None else {_OF: values[item.input_index].dataType.simpleString()}
            fields += [
                T.StructField(_part_name(number, what), type, True, of) for what, type in _part_types(item, values)
            ]
        return T.StructType(fields)

    def compute_partial(self, values: T.StructType, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Compute the partial results of ``batch``, which has the fields ``values`` in exchange types."""
        names = [f"group_{input_index}" for input_index in range(self.by)]
        columns: dict[str, pa.Array] = dict(zip(names, batch.columns, strict=False))
        requested: list[tuple[Any, str]] = []
        for number, item in enumerate(self.aggregates):
            for what, array in _iter_inputs(item, values, batch):
                part = _part_name(number, what)
                if array is None:
                    requested.append(([], "count_all"))
                else:
                    columns[part] = array
                    requested.append((part, _ARROW[what]))
        table = pa.table(columns) if columns else pa.table({"": pa.nulls(batch.num_rows)})
        grouped = table.group_by(names, use_threads=False).aggregate(requested)
        value = {name: grouped[name] for name in names}
        for (part, _), column in zip(requested, grouped.columns[len(names) :], strict=True):
            value[part or "count_all"] = column
        schema = to_exchange_schema(self.partial_schema(values))
        arrays = [self._finish_column(value, field) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def from_metadata(
        self, planner: ScanPlanner, task: Task, file: ParquetFile, values: T.StructType
    ) -> tuple[list[pa.RecordBatch], list[RowGroupPlan]]:
        """Compute partial results from the metadata of row groups.

        Returns the partial results, and the plans of the row groups whose rows must be read.
        """
        columns = [_stored_operand(entry) for entry in planner.request.result or ()]
        names = planner.request.partitions.schema.names
        with_reasons = not self.by and all(
            item.function in ("count", "min", "max")
            and (
                item.input_index is None
                or ((column := columns[item.input_index]) is not None and column.path[0] not in names)
            )
            for item in self.aggregates
        )
        certain, others = planner.split(task, file) if with_reasons else ([], list(task.row_groups))
        schema, batches = to_exchange_schema(self.partial_schema(values)), []
        for plan in certain:
            group = file.row_groups[plan.index]
            results = [
                pa.array([group.num_rows])
                if element.input_index is None or (column := columns[element.input_index]) is None
                else proved_value(group, column, element.function)
                for element in self.aggregates
            ]
            if any(array is None for array in results):
                others.append(plan)
                continue
            arrays = [conform(array, field.type, field.name) for array, field in zip(results, schema, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return batches, sorted(others, key=lambda plan: plan.index)

    def _finish_column(self, parts: Mapping[str, pa.ChunkedArray], field: pa.Field) -> pa.Array:
        """Return a column of the partial result. The maximum of numbers that include NaN is NaN."""
        if field.name.startswith("count") and field.name not in parts:
            column = parts["count_all"]
        else:
            column = parts[field.name]
        nan = parts.get(field.name.replace("max_", "nan_", 1)) if field.name.startswith("max_") else None
        array = column.combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
        if nan is not None:
            array = pc.if_else(pc.fill_null(nan, False), pa.scalar(float("nan"), array.type), array)
            array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
        try:
            return array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise UnsupportedError(
                f"a sum has more than {_DIGITS} digits; cast the column to double", feature="sums of large decimals"
            ) from error

    def combine(self, partial: DataFrame, groups: Sequence[str]) -> DataFrame:
        """Combine the partial results of all tasks into the final result.

        ``groups`` are the names of the grouping columns.
        """
        by = [F.col(f"group_{input_index}").alias(name) for input_index, name in enumerate(groups)]
        kinds = {field.name: (field.metadata or {}).get(_OF, "") for field in partial.schema}
        results = [
            _combine_parts(number, item.function, kinds).alias(item.name) for number, item in enumerate(self.aggregates)
        ]
        return partial.groupBy(*by).agg(*results)


def parse_aggregates(agg: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, function and column of each aggregate in the user's ``agg`` mapping.

    The column is None when rows are counted. Raises ``TypeError`` or ``ValueError`` for invalid aggregates.
    """
    if not isinstance(agg, Mapping) or not agg:
        raise TypeError("agg must map names to functions, such as {'rows': 'count', 'total': ('sum', 'price')}")
    for name, choice in agg.items():
        function, column = (choice, None) if isinstance(choice, str) else choice if _is_pair(choice) else (None, None)
        if not isinstance(name, str) or not isinstance(function, str):
            raise TypeError(f"agg[{name!r}] must be 'count', or a pair of a function and a column, not {choice!r}")
        if function not in FUNCTIONS:
            meant = did_you_mean(function, FUNCTIONS) or f"; the functions are {', '.join(FUNCTIONS)}"
            raise ValueError(f"agg[{name!r}]: unknown function {function!r}{meant}")
        if column is None and function != "count":
            raise ValueError(f"agg[{name!r}]: {function} needs a column, as in ('{function}', 'name')")
        yield name, function, None if isinstance(column, str) and column == "*" else column


def _stored_operand(column: str | ComputedColumn) -> StoredOperand | None:
    """Return the stored column of a value, or None if the value is computed."""
    if isinstance(column, str):
        return StoredOperand((column,))
    return column.field if isinstance(column.field, StoredOperand) else None


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _describe_field(field: T.StructField) -> str:
    return escape_text(f"column {field.name!r} of type {field.dataType.simpleString()}")


def _part_name(number: int, part: str) -> str:
    return f"{part}_{number}"


_ARROW = {"count": "count", "min": "min", "max": "max", "nan": "any", "sum": "sum"}
"""Arrow's function for each partial result."""


def _part_types(aggregate: Aggregate, values: T.StructType) -> Iterator[tuple[str, T.DataType]]:
    """Yield the name and the type of each partial result of a function."""
    type = None if aggregate.input_index is None else values[aggregate.input_index].dataType
    if aggregate.function in ("count", "avg"):
        yield "count", T.LongType()
    if type is not None and aggregate.function in ("sum", "avg"):
        yield "sum", _sum_type(type, is_mean=aggregate.function == "avg")
    if type is not None and aggregate.function in ("min", "max"):
        yield aggregate.function, type


def _sum_type(type: T.DataType, *, is_mean: bool) -> T.DataType:
    if isinstance(type, T.DecimalType):
        return T.DecimalType(_DIGITS, type.scale)
    is_float = isinstance(type, T.FloatType | T.DoubleType)
    return T.DoubleType() if is_float or is_mean else T.DecimalType(_DIGITS, 0)


def _iter_inputs(
    aggregate: Aggregate, values: T.StructType, batch: pa.RecordBatch
) -> Iterator[tuple[str, pa.Array | None]]:
    """Yield the name and the input values of each partial result. The values are None if rows are counted."""
    if aggregate.input_index is None:
        yield "count", None
        return
    array = batch.column(aggregate.input_index)
    for what, type in _part_types(aggregate, values):
        yield what, _prepare_sum(array, type) if what == "sum" else array
        if what == "max" and pa.types.is_floating(array.type):
            yield "nan", pc.is_nan(array)


def _prepare_sum(array: pa.Array, type: T.DataType) -> pa.Array:
    """Cast values so that Arrow sums a batch exactly. Floats become doubles."""
    if isinstance(type, T.DoubleType):
        return array.cast(pa.float64(), safe=False)  # as Spark adds integers for a mean
    if pa.types.is_integer(array.type):
        array = array.cast(pa.int64())
        least, most = pc.min_max(array).values()
        if not least.is_valid or len(array) * max(abs(least.as_py()), abs(most.as_py())) < 1 << 63:
            return array
        return array.cast(pa.decimal128(_DIGITS, 0))
    spare = _DIGITS - array.type.precision
    wide = pa.decimal128(_DIGITS, array.type.scale)
    return array.cast(wide if len(array) <= 10**spare else pa.decimal256(76, array.type.scale))


def _combine_parts(number: int, function: str, types: Mapping[str, str]) -> Column:
    """Combine the partial results of ``function``. ``types`` are the types of the aggregated columns."""
    part = _part_name(number, function)
    if function in ("min", "max"):
        return F.min(part) if function == "min" else F.max(part)
    count, total = F.sum(_part_name(number, "count")), F.sum(_part_name(number, "sum"))
    if function == "count":
        return F.coalesce(count, F.lit(0).cast("bigint"))
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", types[_part_name(number, "sum")])
    digits, scale = map(int, decimal.groups()) if decimal else (0, 0)
    if function == "sum":
        if decimal:
            return total.cast(T.DecimalType(min(digits + 10, _DIGITS), scale))
        return total if types[part] in ("float", "double") else total.cast(T.LongType())
    divisor = F.when(count > 0, count)
    if not decimal:
        return total / divisor
    # Spark reduces the scale of a quotient if its dividend has more digits.
    mean = total.cast(T.DecimalType(min(digits + 10, _DIGITS), scale)) / divisor
    return mean.cast(T.DecimalType(min(digits + 4, _DIGITS), min(scale + 4, _DIGITS)))


def to_data(aggregation: Aggregation) -> dict[str, Any]:
    """Convert an aggregation to JSON-compatible values."""
    return {
        "by": aggregation.by,
        "aggregates": [[item.name, item.function, item.input_index] for item in aggregation.aggregates],
    }


def from_data(data: Any, columns: Sequence[Any] | None) -> Aggregation:
    """Parse an aggregation written by :func:`to_data`. Raises ``ValueError`` for other values."""
    count = 0 if columns is None else len(columns)
    if not isinstance(data, dict) or data.keys() != {"by", "aggregates"} or not isinstance(data["aggregates"], list):
        raise ValueError("expected a JSON object with the keys 'by' and 'aggregates', as written by pqext.spark.query")
    by, requested = data["by"], []
    for item in data["aggregates"]:
        name, function, input_index = item if isinstance(item, list) and len(item) == 3 else (None, None, None)
        is_index = isinstance(input_index, int) and not isinstance(input_index, bool) and 0 <= input_index < count
        is_known = function in FUNCTIONS and (is_index or (input_index is None and function == "count"))
        if not isinstance(name, str) or not isinstance(function, str) or not is_known:
            raise ValueError(f"expected [name, function, index of a column] for each result column, not {item!r}")
        requested.append(Aggregate(name, function, input_index))
    if not isinstance(by, int) or isinstance(by, bool) or not 0 <= by <= count:
        raise ValueError(f"by must be the number of grouping columns, from 0 to {count}, not {by!r}")
    return Aggregation(by, tuple(requested))
