"""What one Spark task of :func:`pqext.spark.ingest_json` does: JSON text in, a Parquet file out.

A task may be tried again, or twice at once. Each attempt writes a file with a name of its own, and only those count
whose attempt Spark reports to the driver.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import compress

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import ChangedFileError, GeometryError, ParquetError, SourceError, VariantError
from pqext.dataset.computed_columns import make, maker
from pqext.dataset.writing.part_files import PartFiles, Staging
from pqext.dataset.writing.staging import Staged
from pqext.spark.ingest.bad_lines import documents, told_of
from pqext.spark.ingest.plan import Ingestion
from pqext.spark.json.csv_documents import CsvPiece
from pqext.spark.json.text_parts import Part, digest_of, form_hint, lines_before, stamp_of
from pqext.variant.access.cast import extract
from pqext.variant.access.path import as_path
from pqext.variant.json.faults import line_fault, placed
from pqext.variant.json.parser import Parsing

_ADVICE = 'on_error="null" or "skip" goes on without it'


@dataclass
class Taken:
    """What was taken from a part: rows, bytes of text, and documents that have a fault, as lines of the side file."""

    part: Part
    rows: int = 0
    bytes: int = 0
    bad: int = 0
    told: bytearray = field(default_factory=bytearray)
    digest: str | None = None
    """The hash of its bytes; None for files of stores, whose stamps are versions."""


@dataclass(frozen=True)
class Attempt:
    """What one attempt reports: what it read, and what it wrote."""

    taken: tuple[Taken, ...] = ()
    written: tuple[Staging, ...] = ()
    error: ParquetError | None = None


class Stopped(ParquetError):
    """A task gave up because another one failed."""


@dataclass(frozen=True)
class IngestTask:
    """Does parts of ``work``, into the place ``staged`` of a job."""

    staged: Staged
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
        self.staged.check()
        try:
            return self._write(number, f"part-{number:05d}-{self.job}-{uuid.uuid4().hex[:12]}")
        except ParquetError as error:
            if isinstance(error, SourceError) and not isinstance(error, ChangedFileError):
                raise
            self.staged.fail()
            return Attempt(error=error.with_traceback(None))

    def _write(self, number: int, name: str) -> Attempt:
        how = self.how.parsing()
        schema = self.how.schema(how)
        taken = [Taken(part) for part in self.work[number]]
        with PartFiles(self.staged, name, schema, self.how.options, self.how.division) as files:
            for one in taken:
                for batch in self._batches(one, how, schema):
                    if self.staged.has_failed:
                        raise Stopped("another task failed")
                    files.write(batch)
            return Attempt(tuple(taken), files.close())

    def _batches(self, taken: Taken, how: Parsing, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a part; ``taken`` counts what is in it."""
        part = taken.part
        makers = [(maker(one, self.how.column), marked) for one, marked in self.how.made]
        named = [(as_path(path), kind) for _, path, kind in self.how.partitions]
        told: list[bytes] = []
        before, is_placed, document = 0, part.start == 0, 0
        for piece in self.how.pieces(part):
            _, arrays, found, lines = piece.parsed(how)
            taken.bytes += len(piece.text)
            if found and not is_placed:
                before, is_placed = lines_before(self.how.place(part), piece.start), True
            faults = [line_fault(fault, before) for fault in found]
            before += lines
            taken.bad += len(faults)
            texts: list[tuple[int | None, bytes]] | None = None
            first = 0
            if faults and self.how.on_error == "fail":
                hint = form_hint(faults[0]) if self.how.unit == "line" else ""
                raise VariantError(f"{placed(faults[0], part.name, unit=self.how.unit)}{hint}; {_ADVICE}")
            for array in arrays:
                # Faulty documents are null rows, and there are no others: JSON's null is a variant.
                mine, faults = faults[: array.null_count], faults[array.null_count :]
                rows = np.flatnonzero(array.is_null()) if mine else ()
                reasons = {
                    int(row): placed(fault, part.name, unit=self.how.unit)
                    for row, fault in zip(rows, mine, strict=True)
                }
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
                if reasons and self.how.tells_bad_lines:
                    texts = texts or documents(piece)
                    told.append(told_of(part.name, texts[first : first + len(array)], reasons))
                if isinstance(piece, CsvPiece):
                    columns += piece.beside.slice(first, len(array)).columns
                document += len(array)
                first += len(array)
                columns += [extract(array, path, kind, timezone=self.how.timezone) for path, kind in named]
                batch = self._batch(columns, reasons, schema)
                taken.rows += len(batch)
                if len(batch):
                    yield batch
        taken.told += compress(b"".join(told))
        place = self.how.place(part)
        if isinstance(place, str):
            taken.digest = digest_of(place, part.start, part.size if part.stop is None else part.stop)
        if stamp_of(place)[0] != part.stamp:
            raise ChangedFileError("the file has changed since it was listed: ingest it again", path=part.name)

    def _batch(self, columns: list[pa.Array], reasons: Mapping[int, str], schema: pa.Schema) -> pa.RecordBatch:
        """The rows as they are written; ``reasons`` tell of those that have a fault."""
        rows = len(columns[0])
        if self.how.error_column is not None:
            told = [reasons.get(row) for row in range(rows)] if reasons else pa.nulls(rows, pa.string())
            columns.insert(1 + len(self.how.made) + len(self.how.beside), pa.array(told, pa.string()))
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if not reasons or self.how.on_error != "skip":
            return batch
        return batch.filter(pa.array([row not in reasons for row in range(rows)]))
