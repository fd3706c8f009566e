"""The writing half of data source ``pqext``: every task a file, all files visible at once or none.

Tasks write into a hidden folder of the target. :mod:`pqext.spark.commit` tells how its files become the target's, what
is seen of a save that is killed, and by whom. Overwriting removes the Parquet files that reading the target would show,
and nothing else; a target that shows other files is refused.

With ``geometry={"g": {"order": "hilbert"}}`` each task orders all its rows, ``row_group_bytes`` of them at a time. It
knows no other task's rows, so every file covers the whole map unless the rows were dealt out by place before:
``df.repartitionByRange(n, st_hilbert("g"))``, with :func:`pqext.spark.functions.st_hilbert`.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.core.errors import ParquetError
from pqext.core.options import WriteOptions
from pqext.core.reader import ParquetFile
from pqext.core.suggest import did_you_mean
from pqext.core.writer import ParquetWriter
from pqext.dataset.files import spark_metadata
from pqext.dataset.files.folders import files_below
from pqext.dataset.one_table.agreement import check_agreement
from pqext.dataset.one_table.partitions import partitions_of
from pqext.spark import commit
from pqext.spark.arrays import conform_batch
from pqext.spark.carried import carried
from pqext.spark.files import option_paths
from pqext.spark.instants import file_schema_in_spark
from pqext.spark.request import Query
from pqext.spark.types import file_schema
from pqext.variant.shredding.choice import shredding

_SPARK_OPTIONS = {"path", "paths"}


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports: the name of its file, None when it had no rows."""

    name: str | None


class Sink(DataSourceArrowWriter):
    """Writes a data frame of Spark ``schema`` into a folder; see :func:`write_options` for the options."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        paths = option_paths(options)
        if len(paths) != 1:
            raise ValueError("save() takes one path")
        self.target = Path(paths[0]).absolute()
        self.options = options_of(schema, options)
        self.schema = file_schema(schema)
        self.overwrite = overwrite
        empty = self._empty_file()  # options that do not suit the columns are refused before any task runs
        check_target(self.target, overwrite, lambda: empty)
        self.job = uuid.uuid4().hex
        # A task that starts after the job was aborted finds it gone.
        self.folder = commit.begin(self.target, self.job)

    def _empty_file(self) -> bytes:
        return empty_file(self.schema, self.options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's batches to one file; its remains are deleted when anything fails."""
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return Written(None)
        context = TaskContext.get()
        part, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        name = f"part-{part:05d}-{self.job}-{attempt}.parquet"
        if not self.folder.is_dir():
            raise RuntimeError(f"the job that writes {self.target} was aborted")
        path = self.folder / name
        writer = None
        try:
            writer = ParquetWriter(str(path), self.schema, **self.options)
            batches = (conform_batch(batch, self.schema) for batch in chain([first], iterator) if batch.num_rows)
            for table in self._gathered(batches):
                writer.write_ordered(table)
            writer.close()
            commit.flush(path)
        except BaseException:
            if writer is not None:
                writer.abort()
            with suppress(OSError):  # the error is what the user must see
                path.unlink(missing_ok=True)
            raise
        return Written(name)

    def _gathered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The batches one by one, or as many as make a row group where that is looked at as a whole.

        Every row group is where a column orders the rows, the first one where a schema is inferred from it.
        """
        options = WriteOptions(**self.options)
        ordered = any(isinstance(choice, Mapping) and choice.get("order") for choice in options.geometry.values())
        whole = ordered or any(shredding(choice).schema is None for choice in options.shredding.values())
        gathered: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            gathered.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            full = size >= options.row_group_bytes or (rows >= options.row_group_rows and not ordered)
            if full or not whole:
                yield pa.Table.from_batches(gathered)
                gathered, rows, size, whole = [], 0, 0, ordered
        if gathered:
            yield pa.Table.from_batches(gathered)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks the target's: see :func:`pqext.spark.commit.commit`."""
        try:
            names = [message.name for message in messages if isinstance(message, Written) and message.name is not None]
            commit.commit(self.target, self.job, names or [self._write_empty()], overwrite=self.overwrite)
        except BaseException:
            commit.abort(self.target, self.job)
            raise

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks left, those that failed and those that did not."""
        commit.abort(self.target, self.job)

    def _write_empty(self) -> str:
        """A data frame without rows still has a schema, which needs a file to stand in."""
        name = f"part-00000-{self.job}-empty.parquet"
        (self.folder / name).write_bytes(self._empty_file())
        commit.flush(self.folder / name)
        return name


def empty_file(schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    """A file without rows, which holds the schema."""
    sink = io.BytesIO()
    with ParquetWriter(sink, schema, **options):
        pass
    return sink.getvalue()


def check_target(target: Path, overwrite: bool, empty: Callable[[], bytes]) -> None:
    """Raise ``ValueError`` for a folder that files like ``empty`` cannot be saved to, before any task runs."""
    if target.is_file():
        raise ValueError(f"{target} is a file; a save writes a folder")
    if (target / spark_metadata.FOLDER).is_dir():
        raise ValueError(
            f"{target} belongs to a streaming sink of Spark, whose log in {spark_metadata.FOLDER} would hide "
            "the new files from all readers: save to another folder"
        )
    if target.is_dir():
        if overwrite:
            commit.replaceable(target)
        else:
            check_append(target, empty())


def check_append(target: Path, appended: bytes) -> None:
    """Raise ``ValueError`` where a file like ``appended`` would make ``target`` unreadable by another schema.

    A file that is there and cannot be read, such as an encrypted one, is compared with nothing.
    """
    present = files_below(str(target))
    if not present:
        return
    query = Query(tuple(present.values()))
    partitions = partitions_of(str(target), tuple(present))
    path, at = next(iter(present.items()))
    try:
        there = file_schema_in_spark(at, query.options, query.limits)
    except ParquetError:
        return
    with ParquetFile(appended, query.options) as file:
        new = file.arrow_schema
    first, other = (_nullable(partitions.complete_schema(schema)) for schema in (there, new))
    try:
        check_agreement(first, other, path, "the data frame")
    except ValueError as error:
        raise ValueError(
            f"{error}; no reader could read both, so nothing was written: select and cast the columns that {target} "
            'has, or save to another folder or with mode("overwrite")'
        ) from None


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)


def options_of(schema: StructType, options: Mapping[str, str]) -> dict[str, Any]:
    """The writer's options for a data frame of ``schema``: as :func:`write_options`, with what its columns carry.

    Where both say how a column is shredded, the option takes precedence. Raises ``VariantError`` as
    :func:`pqext.spark.carried.carried` does.
    """
    parsed = write_options(options)
    choices = {path: choice.options() for path, choice in carried(schema).items()}
    return {**parsed, "shredding": {**choices, **parsed.get("shredding", {})}} if choices else parsed


def write_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The writer's options out of a data source's, which are all text.

    Names are those of :class:`pqext.core.options.WriteOptions`; a value is a word, a number, ``true`` or
    ``false``, or JSON where the option takes a mapping. ``profile`` is ``spark`` unless ``none`` is asked for, since
    Spark's own reader loses rows of other files (:mod:`pqext.core.types.profile`). Raises ``ValueError`` for an unknown
    name or an unsuitable value.
    """
    known = {field.name: field for field in fields(WriteOptions)}
    parsed: dict[str, Any] = {}
    for key, text in options.items():
        name = key.lower()
        if name in _SPARK_OPTIONS:
            continue
        if name not in known:
            meant = did_you_mean(key, known) or "; data source pqext writes with " + ", ".join(sorted(known))
            raise ValueError(f"unknown option {key!r}{meant}")
        parsed[name] = _parse_option(text)
    if str(parsed.get("profile")).lower() == "none" and "profile" in parsed:
        parsed["profile"] = None
    return with_profile(parsed, "option profile=none")


def with_profile(options: dict[str, Any], lifted_by: str) -> dict[str, Any]:
    """Checked options of the writer, of profile ``spark`` unless they name one; ``ValueError`` says what lifts that."""
    WriteOptions(**options)
    if "profile" in options:
        return options
    options = {**options, "profile": "spark"}
    try:
        WriteOptions(**options)
    except ValueError as error:
        raise ValueError(f"{error}, which is the default in Spark; {lifted_by} lifts it") from None
    return options


def _parse_option(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    return text if value is None or isinstance(value, str) else value
