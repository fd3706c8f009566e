"""Create the scan of files or of a table from the arguments of :func:`pqext.scan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.core.io.source import FileSource
from pqext.core.options.keywords import ReadKeywords, ScanKeywords
from pqext.core.options.read_write import ReadOptions, from_keywords
from pqext.dataset.column_names import expand_columns
from pqext.dataset.files.file_set import FileSet, OnInvalid
from pqext.dataset.files.sources import find_sources, locate_sources
from pqext.dataset.files.summaries import expand_summaries
from pqext.dataset.notations.dnf import Filter, as_expression
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.dataset.scan import Scan
from pqext.dataset.scan_request import ScanRequest, SchemaRule
from pqext.dataset.skipping import Skipping, skipping_of
from pqext.dataset.table.partitions import Partitioning, PartitionTypes, partitions_of
from pqext.dataset.table_snapshot import TableSnapshot, is_table, open_snapshot
from pqext.variant.timezones import find_timezone

_OPTIONS = ReadKeywords.__annotations__
_ARGUMENTS = ("columns", "filter", *(name for name in ScanKeywords.__annotations__ if name not in _OPTIONS))


def create_scan(
    sources: FileSource | Sequence[FileSource],
    columns: Sequence[Any] | Mapping[str, Any] | None,
    filter: Filter,
    keywords: ReadKeywords,
    *,
    schema: SchemaRule,
    on_invalid: OnInvalid,
    partitioning: Partitioning,
    partition_types: PartitionTypes | None,
    included_columns: tuple[str | None, str | None],
    skipping: Any,
    ignore_table_format: bool,
    version: int | None,
    timestamp: str | datetime | None,
    timezone: str,
    limits: Limits,
    options: ReadOptions | None,
    filesystem: Any,
    storage_options: Mapping[str, Any] | None,
) -> Scan:
    """Create the scan that :func:`pqext.scan` describes.

    ``included_columns`` contains the names of the additional columns with file paths and with row numbers.
    ``keywords`` are fields of ``ReadOptions`` and take precedence over ``options``.
    """
    chosen = None if columns is None else parse_columns(columns)
    find_timezone(timezone)
    read = from_keywords(ReadOptions, keywords, *_ARGUMENTS, base=options)
    if schema is not None and not isinstance(schema, pa.Schema) and schema != "union":
        raise ValueError(f'schema must be "union", a pyarrow.Schema or None, not {schema!r}')
    if is_table(sources):
        if filesystem is not None or partition_types is not None:
            raise ValueError("filesystem and partition_types apply to files only; omit them for a table")
        snapshot = open_snapshot(sources, version, timestamp, storage_options)
        return _scan_table(
            snapshot, chosen, filter, schema, FileSet(snapshot.files, read, limits, on_invalid, view=snapshot.view),
            included_columns, skipping_of(skipping, filesystem, storage_options), timezone,
        )
    if version is not None or timestamp is not None:
        raise ValueError("version and timestamp apply to tables only; pass a table such as 'delta:PATH', or omit them")
    places = locate_sources(sources, filesystem, storage_options)
    found = find_sources(places, ignore_table_format=ignore_table_format)
    files, summaries = expand_summaries(places, found, read, limits)
    partitions = partitions_of(places, files, partitioning, types=partition_types)
    if isinstance(schema, pa.Schema):
        partitions = partitions.cast(schema)
        if chosen is None:
            chosen = tuple(schema.names)
    file_set = FileSet(files, read, limits, on_invalid, summaries)
    included = [name for name in included_columns if name is not None]
    if included:
        partitions = partitions.add_columns(*included_columns)
    if chosen is not None:
        chosen = expand_columns(chosen, lambda: Scan(ScanRequest(file_set, None, None, partitions, schema)).schema)
        chosen = tuple(dict.fromkeys([*chosen, *included]))
    return Scan(
        ScanRequest(
            file_set, chosen, as_expression(filter), partitions, schema,
            skipping=skipping_of(skipping, filesystem, storage_options), timezone=timezone,
        )
    )


def _scan_table(
    snapshot: TableSnapshot, selection: tuple[str | ComputedColumn, ...] | None, filter: Filter, schema: SchemaRule,
    files: FileSet, included_columns: tuple[str | None, str | None], skipping: Skipping | None, timezone: str,
) -> Scan:
    """Create a scan of a table. The scan has the columns of ``schema`` if it is a schema, otherwise of the table."""
    partitions = snapshot.partitions
    rule = schema if isinstance(schema, pa.Schema) else snapshot.schema
    if isinstance(schema, pa.Schema):
        partitions = partitions.cast(schema)
    if any(name is not None for name in included_columns):
        partitions = partitions.add_columns(*included_columns)
    columns: tuple[str | ComputedColumn, ...] = tuple(rule.names) if selection is None else selection
    statistics = snapshot.statistics if rule is snapshot.schema else None
    columns = expand_columns(columns, lambda: Scan(ScanRequest(files, None, None, partitions, rule)).schema)
    columns = tuple(dict.fromkeys([*columns, *(name for name in included_columns if name is not None)]))
    return Scan(
        ScanRequest(
            files, columns, as_expression(filter), partitions, rule, table_statistics=statistics, skipping=skipping,
            timezone=timezone,
        )
    )
