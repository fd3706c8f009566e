"""What one Spark task of :func:`pqext.spark.ingest_json` does: JSON text in, a Parquet file out.

A task may be tried again, or twice at once. Each attempt writes a file with a name of its own, and only those count
whose attempt Spark reports to the driver.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pqext.core.errors import ChangedFileError, GeometryError, ParquetError, SourceError, VariantError
from pqext.core.sources.streams import open_stream
from pqext.core.writer import ParquetWriter
from pqext.dataset.made_columns import make, maker
from pqext.spark import commit
from pqext.spark.ingest_plan import Ingestion, Part, stamp_of
from pqext.variant.json.faults import line_fault, placed
from pqext.variant.json.lines import count_newlines
from pqext.variant.json.parser import Parsing

FAILED = "failed"
"""The file in a job's folder that tells its tasks that one of them met an error that comes again."""
_ADVICE = 'on_error="null" or "skip" goes on without it'


@dataclass
class Taken:
    """What was taken from a part: rows, bytes of text, and lines or documents that are not JSON."""

    part: Part
    rows: int = 0
    bytes: int = 0
    bad: int = 0


@dataclass(frozen=True)
class Attempt:
    """What one attempt reports: what it read, and what it wrote, each a name and a number of bytes."""

    taken: tuple[Taken, ...] = ()
    written: tuple[tuple[str, int], ...] = ()
    error: ParquetError | None = None


class Stopped(ParquetError):
    """A task gave up because another one failed."""


@dataclass(frozen=True)
class IngestTask:
    """Does parts of ``work``, into the folder ``staged`` of a job."""

    staged: str
    job: str
    work: tuple[tuple[Part, ...], ...]
    how: Ingestion

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One pickled :class:`Attempt` for each number of a part of the work."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = pickle.dumps(self.attempt(number))
                yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["attempt"])

    def attempt(self, number: int) -> Attempt:
        """Do one part of the work. Errors that come again are told rather than raised: Spark would try again."""
        staged = Path(self.staged)
        if not staged.is_dir():
            raise RuntimeError(f"the job that writes {staged.parent} was aborted")
        path = staged / f"part-{number:05d}-{self.job}-{uuid.uuid4().hex[:12]}.parquet"
        try:
            return self._write(number, path)
        except ParquetError as error:
            if isinstance(error, SourceError) and not isinstance(error, ChangedFileError):
                raise
            (staged / FAILED).touch()
            return Attempt(error=error.with_traceback(None))

    def _write(self, number: int, path: Path) -> Attempt:
        how = self.how.parsing()
        schema = self.how.schema(how)
        taken = [Taken(part) for part in self.work[number]]
        writer: ParquetWriter | None = None
        try:
            for one in taken:
                for batch in self._batches(one, how, schema):
                    if (path.parent / FAILED).exists():
                        raise Stopped("another task failed")
                    writer = writer or ParquetWriter(str(path), schema, **self.how.options)
                    writer.write_batch(batch)
            if writer is None:
                return Attempt(tuple(taken))
            writer.close()
            commit.flush(path)
        except BaseException:
            if writer is not None:
                writer.abort()
            with suppress(OSError):  # the error is what the user must see
                path.unlink(missing_ok=True)
            raise
        return Attempt(tuple(taken), ((path.name, path.stat().st_size),))

    def _batches(self, taken: Taken, how: Parsing, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a part; ``taken`` counts what is in it."""
        part = taken.part
        makers = [(maker(one, self.how.column), marked) for one, marked in self.how.made]
        before, is_placed, document = 0, part.start == 0, 0
        for piece in self.how.pieces(part):
            _, arrays, found, lines = piece.parsed(how)
            taken.bytes += len(piece.text)
            if found and not is_placed:
                before, is_placed = self._lines_before(part, piece.start), True
            faults = [line_fault(fault, before) for fault in found]
            before += lines
            taken.bad += len(faults)
            if faults and self.how.on_error == "fail":
                raise VariantError(f"{placed(faults[0], part.name)}; {_ADVICE}")
            for array in arrays:
                # Faulty documents are null rows, and there are no others: JSON's null is a variant.
                mine, faults = faults[: array.null_count], faults[array.null_count :]
                rows = np.flatnonzero(array.is_null()) if mine else ()
                reasons = {int(row): placed(fault, part.name) for row, fault in zip(rows, mine, strict=True)}
                columns = [array]
                for make_one, marked in makers:
                    made, bad = make(make_one, pa.RecordBatch.from_arrays([array], [self.how.column]))
                    columns.append(made.cast(marked.type))
                    for row, reason in bad:
                        where = f"{part.name}, document {document + row + 1} from byte {part.start}"
                        reasons.setdefault(row, f"{where}, column {marked.name}: {reason}")
                if reasons and self.how.on_error == "fail":
                    raise GeometryError(f"{reasons[min(reasons)]}; {_ADVICE}")
                taken.bad += len(reasons) - len(mine)
                document += len(array)
                batch = self._batch(columns, reasons, schema)
                taken.rows += len(batch)
                if len(batch):
                    yield batch
        if stamp_of(self.how.place(part))[0] != part.stamp:
            raise ChangedFileError("the file has changed since it was listed: ingest it again", path=part.name)

    def _batch(self, columns: list[pa.Array], reasons: Mapping[int, str], schema: pa.Schema) -> pa.RecordBatch:
        """The rows as they are written; ``reasons`` tell of those that have a fault."""
        rows = len(columns[0])
        if self.how.error_column is not None:
            told = [reasons.get(row) for row in range(rows)] if reasons else pa.nulls(rows, pa.string())
            columns = [*columns, pa.array(told, pa.string())]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if not reasons or self.how.on_error != "skip":
            return batch
        return batch.filter(pa.array([row not in reasons for row in range(rows)]))

    def _lines_before(self, part: Part, at: int) -> int:
        """The lines before byte ``at`` of a file that is not compressed."""
        with open_stream(self.how.place(part)) as file:
            return count_newlines(file, at)
