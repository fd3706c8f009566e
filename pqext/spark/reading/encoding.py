"""Encode the arguments of a read as options of data source ``pqext``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pqext.dataset.notations.dnf import as_expression
from pqext.dataset.notations.json_text import to_json, tree_of
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.dataset.table.partitions import Partitioning, PartitionTypes
from pqext.spark.base.hadoop import storage_options_text
from pqext.spark.options.read import PARSERS, StoreReference
from pqext.spark.reading.aggregation import Aggregation, to_data


def encode_options(
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    where: Any = None,
    bbox: Sequence[float] | str | None = None,
    bbox_column: str | None = None,
    shredded: bool = False,
    metrics_path: str | None = None,
    partition_bytes: int | None = None,
    partitioning: Partitioning = "hive",
    trust_statistics: bool = True,
    memory_bytes: int | None = None,
    aggregation: Aggregation | None = None,
    storage_options: Mapping[str, Any] | None = None,
    schema: str | None = None,
    include_file_paths: str | None = None,
    include_row_numbers: str | None = None,
    path_glob_filter: str | None = None,
    skipping: Any = None,
    partition_types: PartitionTypes | None = None,
    ignore_table_format: bool = False,
    file_options: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Encode the arguments of a read as options. Raises ``ValueError`` or ``TypeError`` for invalid values."""
    expression = as_expression(where)
    options = {
        "columns": None if columns is None else json.dumps(list(map(_encode_column, parse_columns(columns)))),
        "aggregation": None if aggregation is None else json.dumps(to_data(aggregation)),
        "where": where if isinstance(where, str) else None if expression is None else to_json(expression),
        "bbox": bbox if bbox is None or isinstance(bbox, str) else json.dumps([*bbox], default=float),
        "bbox_column": bbox_column,
        "shredded": "true" if shredded else None,
        "metrics_path": metrics_path,
        "partition_bytes": None if partition_bytes is None else str(partition_bytes),
        "memory_bytes": None if memory_bytes is None else str(memory_bytes),
        "partitioning": {None: "none", "hive": None}.get(partitioning, str(partitioning)),
        "partition_types": (
            json.dumps({name: str(type) for name, type in partition_types.items()}) if partition_types else None
        ),
        "trust_statistics": None if trust_statistics else "false",
        "storage_options": None if not storage_options else storage_options_text(storage_options),
        "schema": schema,
        "include_file_paths": include_file_paths,
        "include_row_numbers": include_row_numbers,
        "path_glob_filter": path_glob_filter,
        "skipping": None if skipping is None else StoreReference.from_argument(skipping).as_text(),
        "ignore_table_format": "true" if ignore_table_format else None,
    }
    arguments = {name: value for name, value in options.items() if value is not None} | dict(file_options)
    for name, value in arguments.items():
        PARSERS[name](value)
    return arguments


def _encode_column(column: str | ComputedColumn) -> Any:
    return column if isinstance(column, str) else {"name": column.name, "value": tree_of(column.field)}
