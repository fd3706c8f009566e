"""Query of a read by data source ``pqext``, parsed from its options.

Options are text, because they pass through Spark: lists, expressions and mappings are JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import types as T

from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import FOREIGN_OPTIONS, did_you_mean
from pqext.core.io.sources.locations import Location, locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.options.read_write import InvalidUtf8, ReadOptions, RebaseMode
from pqext.dataset.expressions import Column, Expression, IsNotNull, IsNull, all_of, col, visitors
from pqext.dataset.expressions.mistakes import python_hint
from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.files.sources import locate_sources, source_name
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.dataset.table.partitions import NO_PARTITIONS, Partitions, partitions_of
from pqext.dataset.table.unified_schema import check_case
from pqext.dataset.table_snapshot import TableSnapshot, is_table, open_snapshot
from pqext.geo import types as geo
from pqext.spark.base.files import is_remote, list_sources, option_paths
from pqext.spark.base.settings import CASE_SENSITIVE, PARTITION_TYPES, REBASE_MODES
from pqext.spark.base.types import spark_schema
from pqext.spark.columns.char_columns import char_lengths, check_char_padding, pad_literals
from pqext.spark.columns.months import intervals_to_months
from pqext.spark.columns.names import Names
from pqext.spark.columns.recorded_schema import KEY as NOTE
from pqext.spark.columns.recorded_schema import (
    RecordedField,
    apply_recorded_type,
    field_at_path,
    parse_recorded_fields,
    reject_collations,
    reject_intervals,
)
from pqext.spark.columns.timestamps import convert_local_times, read_schema, unify_schemas
from pqext.spark.options.file import FileFilter, check_base_path, find_readable_files, normalize_options, parse_instant
from pqext.spark.options.read import PARSERS, StoreReference, parse_flag
from pqext.spark.options.save import is_save_option
from pqext.spark.reading.aggregation import Aggregation, from_data
from pqext.variant.timezones import DEFAULT

PARTITION_BYTES = 64 << 20

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Query:
    """Query of a read: the files, columns and conditions."""

    files: tuple[str, ...] = field(repr=False)
    """Paths and URLs of the files."""
    columns: tuple[str | ComputedColumn, ...] | None = None
    has_user_schema: bool = False
    """Whether the user's schema selects columns. Files need not have the same other columns."""
    where: Expression | None = None
    bbox: Box | None = None
    bbox_column: str | None = None
    shredded: bool = False
    metrics_path: str | None = None
    partition_bytes: int = PARTITION_BYTES
    memory_bytes: int | None = None
    partitions: Partitions = NO_PARTITIONS
    trust_statistics: bool = True
    aggregation: Aggregation | None = None
    """Aggregates of groups to return instead of rows."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """Credentials and other options for URLs."""
    unified: pa.Schema | None = None
    """Schema to which the files conform; None if all files must have the same schema."""
    skipping: StoreReference | None = None
    """Data-skipping store that prunes files before they are opened."""
    case_sensitive: bool = False
    on_invalid: Literal["raise", "skip"] = "raise"
    """Action of a task for a corrupt file: raise an error, or skip the rest of the file."""
    ignore_missing_files: bool = False
    settings_known: bool = False
    """Whether the options contain the settings of the session, which Spark does not pass to a data source."""
    assumed: tuple[tuple[str, str], ...] = ()
    """Settings that the result depends on, with their values at planning time, which tasks verify."""
    invalid_utf8: InvalidUtf8 = "raise"
    legacy_timezone: str | None = None
    datetime_rebase_mode: RebaseMode = "corrected"
    int96_rebase_mode: RebaseMode = "corrected"
    interval_months: bool = False
    """Whether year-month intervals are returned as their numbers of months, as INT."""
    names_only: bool = False
    """Whether only the names of the columns are requested. Their types are VOID."""
    listed: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Metadata of listed objects, which a data-skipping store compares with its records."""
    table: TableSnapshot | None = field(default=None, repr=False, compare=False)
    """Version of the table to which the files belong."""

    @classmethod
    def from_options(
        cls, options: Mapping[str, str], locations: Sequence[tuple[str, Any]] | None = None,
        table: TableSnapshot | None = None,
    ) -> Query:
        """Parse the options of a data source. Raises ``ValueError`` if an option is unknown or malformed.

        ``locations`` are the files of the paths and their locations, and ``table`` is the snapshot of the table to
        read, if known.
        """
        arguments = normalize_options(options)
        known = {"path", "paths", *PARSERS}
        for name in arguments:
            if is_save_option(name):
                continue  # an SQL view has options for reads and writes
            if name not in known:
                elsewhere = FOREIGN_OPTIONS["spark"].get(name)
                meant = did_you_mean(name, known) or "; data source pqext reads with " + ", ".join(sorted(known))
                meant = meant if elsewhere is None else f"; {elsewhere}"
                raise ValueError(f"unknown option {name!r}{meant}")
        values: dict[str, Any] = {}
        if parse_flag(arguments.get("merge_schema") or "false"):
            arguments["schema"] = "union"
        for name, parse in PARSERS.items():
            if arguments.get(name) is not None:
                try:
                    values[name] = parse(arguments[name])
                except (ValueError, TypeError) as error:
                    raise ValueError(f"option {name}: {error}".replace(f"{name}: option {name}", name)) from None
        paths, storage = option_paths(options, allow_urls=True), values.get("storage_options")
        ignored = values.pop("ignore_table_format", False)
        version, timestamp = values.pop("version", None), values.pop("timestamp", None)
        if any(map(is_table, paths)):
            _check_table_options(paths, values)
            table = open_snapshot(paths[0], version, timestamp, storage) if table is None else table
        elif version is not None or timestamp is not None:
            raise ValueError("version and timestamp are for Delta and Iceberg tables, such as 'delta:PATH'")
        if table is not None:
            values |= {"table": table, "unified": table.schema}
            locations = [(source_name(file), file) for file in table.files]
        timezone, times = values.get("timezone"), ("modified_after", "modified_before")
        chosen = FileFilter(
            values.pop("path_glob_filter", None),
            *(parse_instant(values.pop(name), timezone) if name in values else None for name in times),
        )
        if locations is None:
            locations = chosen.apply(list_sources(paths, storage, ignore_table_format=ignored), paths)
        if values.get("on_invalid") == "skip":
            locations = find_readable_files(locations, ReadOptions(threads=1), Limits.untrusted())
        files, places = tuple(file for file, _ in locations), tuple(place for _, place in locations)
        if (aggregation := values.pop("aggregation", None)) is not None:
            values["aggregation"] = from_data(aggregation, values.get("columns"))
        values.pop("engine", None)
        roots, types = values.pop("base_path", paths), values.pop("partition_types", None)
        partitioning = values.pop("partitioning", "hive")
        partitions = partitions_of(
            locate_sources(roots, None, storage), places, partitioning, types=types
        ) if table is None else table.partitions
        if "base_path" in arguments:
            check_base_path(roots, partitions.root, places)
        declared_types = types or {}
        is_inferred = any(item.type != pa.string() and item.name not in declared_types for item in partitions.schema)
        if not values.get("settings_known"):
            values["assumed"] = tuple(
                (setting, "corrected") for option, setting in REBASE_MODES.items() if option not in values
            )
            if is_inferred:
                values["assumed"] += ((PARTITION_TYPES, "true"),)
        included = values.pop("include_file_paths", None), values.pop("include_row_numbers", None)
        if any(included):
            partitions = partitions.add_columns(*included)
        timezone = values.pop("timezone", DEFAULT)
        for name in ("columns", "where"):
            if name in values:
                values[name] = set_timezone(values[name], timezone)
        is_union = values.pop("schema", None) == "union"
        if "skipping" in values:
            values["listed"] = {file: place.listed for file, place in locations if isinstance(place, Location)}
        query = cls(files, partitions=partitions, **values)
        if is_union and query.shredded:
            raise ValueError("option schema: shredded columns with different layouts cannot be unified; omit schema")
        if not is_union:
            return query
        unified = unify_schemas(places, query.options, query.limits)
        if not query.case_sensitive:
            advice = f"; {CASE_SENSITIVE}=true (option case_sensitive) reads both"
            check_case(unified, "schemas cannot be unified", advice)
        return replace(query, unified=unified)

    def locate(self, file: str) -> Any:
        """Return the location of a file."""
        return locate(file, None, self.storage_options) if is_remote(file) else file

    def display_names(self) -> dict[str, str]:
        """Map the display names of files to their paths and URLs. Names that equal the path are omitted."""
        names = {source_name(self.locate(file)): file for file in self.files if is_remote(file)}
        return {name: file for name, file in names.items() if name != file}

    def restrict(self, names: Collection[str], named: Mapping[str, str]) -> Query:
        """Return a copy for a task that reads the files ``names`` of a table, without the metadata of other files.

        ``named`` is the result of :meth:`display_names`, which locates every file of the table and is therefore called
        only once. The statistics of the log are omitted, because only the driver needs them.
        """
        assert self.table is not None
        stated, view = self.partitions.stated or {}, self.table.view
        table = replace(
            self.table, files=(), values={}, statistics=None, view=None if view is None else view.restrict(names)
        )
        partitions = replace(self.partitions, stated={name: stated[name] for name in names if name in stated})
        files = tuple(named.get(name, name) for name in sorted(names))
        return replace(self, files=files, partitions=partitions, table=table)

    @property
    def options(self) -> ReadOptions:
        """Options of the reader. Each task uses one thread, because Spark runs a task per processor."""
        return ReadOptions(
            shredded=self.shredded,
            threads=1,
            int96="us",
            int96_utc=True,
            trust_statistics=self.trust_statistics,
            arrow_schema=False,
            invalid_utf8=self.invalid_utf8,
            legacy_timezone=self.legacy_timezone,
            datetime_rebase_mode=self.datetime_rebase_mode,
            int96_rebase_mode=self.int96_rebase_mode,
        )

    @property
    def limits(self) -> Limits:
        """Limits of a file in a task: :meth:`Limits.untrusted`, with the memory limit ``memory_bytes``."""
        return Limits.untrusted() if self.memory_bytes is None else Limits.untrusted(memory_bytes=self.memory_bytes)

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the first file, or the unified schema of all files, with partition columns.

        A partition column replaces a column of the files whose name differs from it in case only, as in Spark.
        """
        schema = self._file_schema()
        for position, name in self._renamed_columns(schema).items():
            schema = schema.set(position, schema.field(position).with_name(name))
        return self.partitions.complete_schema(schema)

    def _file_schema(self) -> pa.Schema:
        if self.unified is not None:
            return self.unified
        return read_schema(self.locate(self.files[0]), self.options, self.limits)

    def _renamed_columns(self, schema: pa.Schema) -> dict[int, str]:
        """Map positions of file columns to partition columns whose names differ only in case."""
        if self.case_sensitive:
            return {}
        excluded = {self.partitions.paths, self.partitions.rows, *schema.names}
        folders = {name.lower(): name for name in self.partitions.schema.names if name not in excluded}
        columns = enumerate(map(str.lower, schema.names))
        return {position: folders[name] for position, name in columns if name in folders}

    @property
    def replaces_columns(self) -> bool:
        """Whether partition columns replace file columns whose names differ only in case."""
        return bool(self.partitions) and bool(self._renamed_columns(self._file_schema()))

    def values_schema(self) -> T.StructType:
        """Return the Spark schema of the rows that are read. Raises ``ValueError`` if a column does not exist."""
        arrow = self.arrow_schema()
        recorded: Mapping[str, RecordedField | None] = self._recorded_fields(arrow)
        if self.columns is not None:
            fields = {field.name: field for field in arrow}
            requested = [column for column in self.columns if isinstance(column, ComputedColumn)]
            if requested:
                first = self.query(self.files[:1], [item.name for item in requested], filter=None)
                scan_fields = {field.name: field for field in ScanPlanner(first).schema}
                fields |= {entry.name: _stored_field(entry, fields) or scan_fields[entry.name] for entry in requested}
            names = [column.name if isinstance(column, ComputedColumn) else column for column in self.columns]
            recorded = {element.name: _recorded_field(element, recorded) for element in requested} | {
                name: recorded.get(name) for name in self.columns if isinstance(name, str)
            }
            missing = [name for name in names if name not in fields]
            if missing:
                message = python_hint(missing[0]) or f"the columns are {', '.join(arrow.names)}"
                raise ValueError(f"no column {missing[0]!r}; {message}")
            arrow = pa.schema([fields[name] for name in names])
        return T.StructType([apply_recorded_type(field, recorded.get(field.name)) for field in spark_schema(arrow)])

    def stored_schema(self) -> T.StructType:
        """Return the Spark schema of all columns. Unknown user-defined types are replaced by their stored type."""
        arrow = self.arrow_schema()
        fields = self._recorded_fields(arrow)
        supported = {name: item for name, item in fields.items() if not item.unsupported}
        return T.StructType([apply_recorded_type(field, supported.get(field.name)) for field in spark_schema(arrow)])

    def _recorded_fields(self, arrow: pa.Schema) -> dict[str, RecordedField]:
        """Return the columns of the schema that Spark recorded in the files, without partition columns."""
        text = str((arrow.metadata or {}).get(NOTE.encode(), b""), "utf-8", "replace")
        folders = self.partitions.schema.names
        return {name: field for name, field in parse_recorded_fields(text).items() if name not in folders}

    def schema(self) -> T.StructType:
        """Return the Spark schema of the rows that tasks return. Raises the errors of :meth:`values_schema`."""
        if self.names_only:
            return T.StructType([T.StructField(name, T.NullType()) for name in self.arrow_schema().names])
        values = self.values_schema()
        if self.aggregation is not None:
            reject_collations(self.aggregation.compared_fields(values), "group and aggregate it with Spark")
        if self.where is not None:
            self._check_comparisons(self.where)
        if self.aggregation is not None:
            return self.aggregation.partial_schema(values)
        return intervals_to_months(values) if self.interval_months else values

    def query(self, files: Sequence[str], names: Sequence[str], filter: Expression | None) -> ScanRequest:
        """Return the scan of ``files`` for the result columns ``names`` and rows that match ``filter``."""
        computed = {column.name: column for column in self.columns or () if isinstance(column, ComputedColumn)}
        result = tuple(computed.get(name, name) for name in names)
        view = None if self.table is None else self.table.view
        places = FileSet(tuple(map(self.locate, files)), self.options, self.limits, view=view)
        return ScanRequest(places, result, filter, self.partitions, self.unified)

    @property
    def is_count(self) -> bool:
        """Whether tasks only count rows."""
        return self.aggregation is not None and self.aggregation.counts_rows

    def planning_request(self, names: Sequence[str], filter: Expression | None) -> ScanRequest:
        """Return the scan of all files. The data-skipping store, if any, prunes files before they are opened."""
        query = replace(self.query(self.files, names, filter), is_count=self.is_count)
        if self.columns is None and not self.has_user_schema and not self.replaces_columns:
            query = replace(query, result=None)  # a column that exists only in later files is an error
        if self.table is not None:
            query = replace(query, table_statistics=self.table.statistics)
        if self.skipping is None:
            return query
        places = [
            replace(place, listed=self.listed.get(file)) if isinstance(place, Location) else place
            for file, place in zip(self.files, query.sources, strict=True)
        ]
        store = self.skipping.open(self.storage_options)
        return replace(query, files=replace(query.files, sources=tuple(places)), skipping=store)

    def filter(self) -> Expression | None:
        """Return ``where`` and ``bbox``, combined into one expression; None if both are None."""
        parts = [self.where] if self.where is not None else []
        if self.bbox is not None:
            if self.bbox_column is None:
                raise ValueError("bbox_column is not set; call resolve() before filter()")
            parts.append(col([self.bbox_column]).intersects(self.bbox))
        return all_of(parts) if parts else None

    def resolve(self) -> Query:
        """Return the query with column names in the spelling of the files, and with the geometry column of ``bbox``.

        Raises ``ValueError`` if several columns match a name in different cases, and if ``bbox_column`` is not set and
        the files do not have exactly one geometry column.
        """
        if self.where is None and self.columns is None and self.bbox_column is None:
            return self._resolve_bbox()
        names = Names.from_schema(self.arrow_schema(), self.case_sensitive)
        where = names.resolve(self.where)
        if where is not None:
            recorded = self._recorded_fields(self.arrow_schema())
            schema = T.StructType([record.field for record in recorded.values()])
            check_char_padding(visitors.leaves(where), schema)
            where = pad_literals(self.convert_local_times(where), char_lengths(schema))
        box, by_folders = self.bbox_column, self.partitions.schema.names
        columns = self.columns and tuple(names.resolve_result(column, by_folders) for column in self.columns)
        query = replace(self, where=where, columns=columns, bbox_column=box and names.find(box))
        if names.has_folded and not self.settings_known:
            query = replace(query, assumed=(*self.assumed, (CASE_SENSITIVE, "false")))
        return query._resolve_bbox()

    def convert_local_times(self, where: Expression) -> Expression:
        """Convert local times in ``where`` that are compared with INT96 columns to instants."""
        if not self.files:
            return where
        return convert_local_times(where, self.locate(self.files[0]), self.options, self.limits)

    def _check_comparisons(self, where: Expression) -> None:
        """Raise ``UnsupportedError`` for a condition on strings with a collation or on intervals.

        pqext would compare strings by their bytes, and intervals by the stored numbers.
        """
        arrow = self.arrow_schema()
        recorded = self._recorded_fields(arrow)
        read = [arrow.field(name) for name in visitors.columns(where) if name in recorded and name in arrow.names]
        schema = spark_schema(pa.schema(read))
        columns = {field.name: apply_recorded_type(field, recorded[field.name]) for field in schema}
        compared = [leaf for leaf in visitors.leaves(where) if not isinstance(leaf, IsNull | IsNotNull)]
        paths = {path: None for leaf in compared for path in visitors.paths(leaf) if path[0] in columns}
        fields = [field_at_path(columns[path[0]], path) for path in paths]
        advice = "filter with pqext.spark.where(df, condition), which Spark evaluates"
        reject_collations(fields, advice)
        reject_intervals(fields, advice)

    def _resolve_bbox(self) -> Query:
        if self.where is not None:
            self._check_comparisons(self.where)
        if self.bbox is None or self.bbox_column is not None:
            return self
        names = [field.name for field in self.arrow_schema() if geo.type_of(field) is not None]
        if len(names) != 1:
            result = f"several geometry columns, {', '.join(names)}" if names else "no geometry column"
            name = source_name(self.locate(self.files[0])) if self.table is None else self.table.name
            raise ValueError(
                f"bbox requires one geometry column, but {name} has {result}: select a column with bbox_column"
            )
        return replace(self, bbox_column=names[0])


_FILE_OPTIONS = frozenset({"path_glob_filter", "modified_after", "modified_before", "partition_types", "base_path"})
"""Options that select files or describe folders. The log of a table does both."""


def _check_table_options(paths: Sequence[str], values: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` unless a table is read alone, without options of files."""
    if len(paths) > 1:
        raise ValueError(f"a table cannot be read together with other paths: {', '.join(map(redact_uri, paths))}")
    unused = sorted(_FILE_OPTIONS & values.keys())
    if unused:
        raise ValueError(f"option {unused[0]} is for files; omit it, because the log of the table lists the files")


def _recorded_field(column: ComputedColumn, record: Mapping[str, RecordedField | None]) -> RecordedField | None:
    """Return the recorded field of the top-level column that ``column`` selects or renames; None for other values."""
    path = column.field.path if isinstance(column.field, Column) else ()
    return record.get(path[0]) if len(path) == 1 else None


def _stored_field(column: ComputedColumn, fields: Mapping[str, pa.Field]) -> pa.Field | None:
    """Return the field of the top-level column that ``column`` selects, with the new name; None for other values."""
    path = column.field.path if isinstance(column.field, Column) else ()
    return fields[path[0]].with_name(column.name) if len(path) == 1 and path[0] in fields else None
