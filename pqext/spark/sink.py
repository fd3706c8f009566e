"""The writing half of data source ``pqext``: every task a file, all files visible at once or none.

Tasks write into a hidden folder of the target, named after the job. Commit moves the finished files up,
removes the old ones when overwriting, and puts ``_SUCCESS`` last; abort removes the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.core.options import WriteOptions
from pqext.core.writer import ParquetWriter
from pqext.spark.arrays import conform_batch
from pqext.spark.files import option_paths
from pqext.spark.types import file_schema

SUCCESS = "_SUCCESS"
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
        if self.target.is_file():
            raise ValueError(f"{self.target} is a file; save() writes a folder")
        self.options = write_options(options)
        self.schema = file_schema(schema)
        self.overwrite = overwrite
        self.job = uuid.uuid4().hex
        self.folder = self.target / f"_pqext_temporary-{self.job}"
        # Made before any task runs, and by none: a task that starts after the job was aborted finds it gone.
        self.folder.mkdir(parents=True)

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
            writer.write_batch(conform_batch(first, self.schema))
            for batch in iterator:
                if batch.num_rows:
                    writer.write_batch(conform_batch(batch, self.schema))
            writer.close()
        except BaseException:
            if writer is not None:
                writer.abort()
            path.unlink(missing_ok=True)
            raise
        return Written(name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible; when that fails, none of them stays."""
        names = [message.name for message in messages if isinstance(message, Written) and message.name is not None]
        if not names:
            names = [self._write_empty()]
        old = self._visible() if self.overwrite else []
        moved: list[Path] = []
        try:
            for name in names:
                os.replace(self.folder / name, self.target / name)
                moved.append(self.target / name)
        except BaseException:
            for path in moved:
                path.unlink(missing_ok=True)
            self._clean()
            raise
        for path in old:
            path.unlink(missing_ok=True)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        self._clean()
        (self.target / SUCCESS).touch()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove whatever the tasks left, those that failed and those that did not."""
        self._clean()

    def _write_empty(self) -> str:
        """A data frame without rows still has a schema, which needs a file to stand in."""
        name = f"part-00000-{self.job}-empty.parquet"
        with ParquetWriter(str(self.folder / name), self.schema, **self.options):
            pass
        return name

    def _visible(self) -> list[Path]:
        """The Parquet files that readers of the folder see now; nothing else is ever removed."""
        return [
            path
            for path in self.target.rglob("*.parquet")
            if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(self.target).parts)
        ]

    def _clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.target.rmdir()  # the job created it and left nothing in it


def write_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The writer's options out of a data source's, which are all text.

    Names are those of :class:`pqext.core.options.WriteOptions`; a value is a word, a number, ``true`` or
    ``false``, or JSON where the option takes a mapping. Raises ``ValueError`` for a name or value that is none.
    """
    known = {field.name: field for field in fields(WriteOptions)}
    parsed = {}
    for key, text in options.items():
        name = key.lower()
        if name in _SPARK_OPTIONS:
            continue
        if name not in known:
            raise ValueError(f"unknown option {key!r}; data source pqext writes with {', '.join(sorted(known))}")
        parsed[name] = _parse_option(text)
    WriteOptions(**parsed)
    return parsed


def _parse_option(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    return text if value is None or isinstance(value, str) else value
