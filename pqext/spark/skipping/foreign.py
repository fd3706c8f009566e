"""Index files in formats that only Spark reads, such as CSV, JSON or ORC.

Spark sorts the values of the indexed columns by file. Tasks compute the cells of the store from them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.progress import Progress
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text, with_noun
from pqext.dataset.expressions import Column
from pqext.dataset.files.sources import source_name
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.construction import Summary
from pqext.skipping.maintenance.object_cells import Row, TypedIndex
from pqext.skipping.maintenance.part_layout import Layout, PartWriter
from pqext.skipping.store.objects import UNKNOWN, Objects, canonical_path, current_objects
from pqext.skipping.store.table import Table
from pqext.spark.base.types import to_exchange_type
from pqext.spark.columns.names import quote
from pqext.spark.skipping.tasks import REPORT, Report, StoreParts, TaskLocation, parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_AS = "io.pqext.read"
"""Index parameter that records how Spark read the files: format, options and column type."""
_SETTLED_MS = 50
_FILE = "_metadata.file_path"
_PLAIN = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip


@dataclass(frozen=True)
class Files:
    """Files of a format, and the options with which Spark reads the files."""

    spark: SparkSession
    paths: Sequence[str]
    format: str
    schema: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def frame(self) -> DataFrame:
        """Return the rows as a data frame.

        Raises ``UnsupportedError`` if Spark does not record the file of a row in the format.
        """
        result = self._read(self._schema)
        try:
            _ = result.select(_FILE).schema
        except Exception as error:
            if "_metadata" not in str(error):
                raise
            message = f"Spark does not expose the file of a row in format {self.format!r}"
            raise UnsupportedError(message, feature=f"skipping files of {self.format}") from None
        return result

    @cached_property
    def _schema(self) -> Any:
        """Schema, which is inferred once if it is not set."""
        return self._read(None).schema if self.schema is None else self.schema

    @cached_property
    def row_schema(self) -> T.StructType:
        """Schema of the rows, including the columns in folder names."""
        return self.frame().schema

    def _read(self, schema: Any) -> DataFrame:
        reader = self.spark.read.format(self.format).options(**self.options)
        return (reader if schema is None else reader.schema(schema)).load(list(self.paths))

    def read_as(self, type: T.DataType) -> str:
        """Return the format, options, type and time zone that determine the values of a column, as JSON."""
        arguments = {name.lower(): str(value) for name, value in self.options.items()}
        zone = {"timeZone": self.spark.conf.get("spark.sql.session.timeZone")} if _is_temporal(type) else {}
        about = {"format": self.format.lower(), "options": arguments, "type": type.simpleString(), **zone}
        return json.dumps(about, sort_keys=True)


@dataclass(frozen=True)
class FrameTask:
    """Task function that creates store rows from batches of file URIs and values, which are sorted by file."""

    parts: StoreParts
    objects: Mapping[str, TaskLocation]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process all batches of a task, and yield its report."""
        context = TaskContext.get()
        writer, report = self.parts.writer(0 if context is None else context.partitionId()), Report()
        name: str | None = None
        collectors: list[Any] = []
        for batch in batches:
            for uri, rows in _split_by_file(batch):
                if uri != name:
                    self._finish_file(name, collectors, writer, report)
                    name = uri
                    collectors = [item.index.collector(item.values) for item in self.parts.layout.indexed]
                for at, (collector, element) in enumerate(zip(collectors, self.parts.layout.indexed, strict=True)):
                    collector.add(rows.column(at + 1).cast(element.values))
        self._finish_file(name, collectors, writer, report)
        report.added = writer.finish()
        yield report.as_batch()

    def _finish_file(self, uri: str | None, collectors: Sequence[Any], writer: PartWriter, report: Report) -> None:
        path = None if uri is None else store_path(uri)
        place = None if path is None else self.objects.get(path)
        if path is None or place is None:  # a file that did not exist when files were listed
            return
        source = place.source(self.parts.storage_options)
        known = current_objects([source])
        report.seen.add(path)
        is_same = not isinstance(source, str) or _version(known) == place.listed
        if known.modified[0] == UNKNOWN or not is_same:
            report.failed.append((place.path, "the file changed during indexing, or its modification time is unknown"))
            return
        indexed = self.parts.layout.indexed
        cells = [collector.cell().cast(item.cells) for collector, item in zip(collectors, indexed, strict=True)]
        modified, size = int(known.modified[0]), int(known.sizes[0])
        report.read += 1
        writer.add(source, Row(path, modified, size, known.etags[0].as_py(), cells, read=True))


@dataclass(frozen=True)
class FrameIndexing:
    """Strategy that indexes files of a format that Spark reads."""

    files: Files
    storage_options: Mapping[str, Any] | None = field(repr=False)
    progress: Progress | None = None

    def resolve(self, indexes: Sequence[Index], source: Any) -> list[TypedIndex]:
        """Look up the indexed columns in the Spark schema. Return each index with its value type and entry type.

        Raises ``ValueError`` for a column that does not exist, and ``TypeError`` for values that an index does not
        support.
        """
        schema = self.files.row_schema
        results = []
        for index in indexes:
            if not isinstance(index.operand, Column):
                raise TypeError(f"{index}: values within a VARIANT can be indexed in Parquet files only")
            type = find_type(schema, index.operand.path)
            values = store_type(type)
            if values is None:
                raise TypeError(f"{index}: columns of type {type.simpleString()} are indexed in Parquet files only")
            met = index.for_field(pa.field(index.operand.path[-1], values))
            results.append(TypedIndex(met, values, met.cell_type(values), {READ_AS: self.files.read_as(type)}))
        return results

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files``, and write their rows as parts of the store at ``location``."""
        known = current_objects(files)
        if any(isinstance(source, str) for source in files):  # a file that is rewritten now could have the same time
            time.sleep(_SETTLED_MS / 1000)
        frame = self.files.frame()  # Spark lists the files here
        objects = {}
        for at, source in enumerate(files):
            place = TaskLocation.from_source(source)
            listed = place.listed if place.listed is not None else _version(known, at)
            objects[known.paths[at].as_py()] = TaskLocation(place.path, listed)
        requested = [uri for uri in frame.inputFiles() if store_path(uri) in objects]
        frame = _filter_by_file(frame, requested, are_included=True) if len(files) < len(table.files) else frame
        values = [_create_column(element.index.operand).alias(f"v{at}") for at, element in enumerate(layout.indexed)]
        parts = StoreParts(layout, TaskLocation.from_source(location), table.partitions, self.storage_options)
        total = min(len(files), 2 * parallelism(self.files.spark))
        task = FrameTask(parts, objects)
        sorted_ = frame.select(F.col(_FILE).alias("file"), *values).repartition(total, "file")
        report_frame = sorted_.sortWithinPartitions("file").mapInArrow(task.run, REPORT)
        title = f"pqext: index {with_noun(len(files), 'file')} for {source_name(location)}"
        report = parts.run(self.files.spark, report_frame, title, total, self.progress)
        reason = "Spark found no rows in the file"
        rowless = [(item.path, reason) for path, item in objects.items() if path not in report.seen]
        return Summary(len(files), report.added, 0, report.read, (*report.failed, *rowless))


def exclude_files(frame: DataFrame, pruned_files: set[str]) -> DataFrame:
    """Exclude the rows of pruned files, by the paths of these files in the store. Spark does not open the files."""
    return _filter_by_file(
        frame, [uri for uri in frame.inputFiles() if store_path(uri) in pruned_files], are_included=False
    )


def _filter_by_file(frame: DataFrame, uris: Sequence[str], are_included: bool) -> DataFrame:
    """Select or exclude the rows of the files ``uris``. Spark has two notations for URIs of local files."""
    all_uris = [*uris, *(uri.replace("file:///", "file:/", 1) for uri in uris if uri.startswith("file:///"))]
    if not all_uris and not are_included:
        return frame
    result = F.col(_FILE).isin(all_uris)
    return frame.where(result if are_included else ~result)


def store_path(uri: str) -> str:
    """Convert the URI of a file in Spark to its path in stores."""
    return canonical_path(unquote(uri))


def find_type(schema: T.StructType, path: Sequence[str]) -> T.DataType:
    """Return the type of a column or struct field. Raises ``ValueError`` if the column or field does not exist."""
    type: T.DataType = schema
    for name in path:
        names = type.names if isinstance(type, T.StructType) else []
        if name not in names:
            raise ValueError(f"no column {escape_text('.'.join(path))!r}{did_you_mean(name, names)}")
        assert isinstance(type, T.StructType)
        type = type[name].dataType
    return type


def store_type(type: T.DataType) -> pa.DataType | None:
    """Return the Arrow type of values in stores; None if stores do not support the type."""
    if type == T.StringType():  # strings with other collations compare differently
        return pa.string()
    if not isinstance(type, _PLAIN):
        return None
    result = to_exchange_type(type)
    return pa.timestamp("us", "UTC") if isinstance(type, T.TimestampType) else result


def _is_temporal(type: T.DataType) -> bool:
    return isinstance(type, T.TimestampType | T.TimestampNTZType | T.DateType)


def _create_column(operand: Any) -> Any:
    first, *nested = operand.path
    column = F.col(quote(first))
    for name in nested:
        column = column[name]
    return column


def _version(objects: Objects, index: int = 0) -> tuple[int, int, str | None]:
    """Return the modification time, size and etag of the object at ``index``."""
    return int(objects.modified[index]), int(objects.sizes[index]), objects.etags[index].as_py()


def _split_by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each file in a batch that is sorted by file."""
    names = batch.column(0)
    if not len(names):
        return
    codes = np.asarray(pc.dictionary_encode(names).indices)
    bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for start, stop in pairwise(bounds):
        yield names[start].as_py(), batch.slice(start, stop - start)
