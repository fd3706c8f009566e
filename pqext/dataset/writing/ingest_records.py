"""Records of the input files that were ingested into a folder, and of the last batch of each stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.pending_files import check_manifest_size
from pqext.dataset.files.manifests import parse_integer, parse_json

Digest = tuple[tuple[int, str], ...]
"""Hashes of consecutive byte ranges of a file, each with the end of its range."""


@dataclass(frozen=True)
class JobInput:
    """Record of an input file: stamp, content hashes, arguments of the job, and number of invalid documents."""

    stamp: str
    """The size, and the modification time or the version in its store."""
    digest: Digest | None = None
    """The content hashes; None for files of stores, and in records of earlier versions."""
    arguments: Mapping[str, str] | None = None
    """The arguments of the job as text; None in records of earlier versions."""
    bad_lines: int = 0
    """Number of invalid documents."""


IngestRecord = Mapping[str, JobInput]
"""The input files of one job, by path."""


def parse_ingest_record(record: bytes, path: str) -> IngestRecord:
    """Parse a job's record of ingested files. Raises ``CorruptFileError`` if it is corrupt."""
    try:
        content = parse_json(record)
        arguments = content.get("arguments")
        if arguments is not None:
            arguments = {str(name): str(text) for name, text in arguments.items()}
        return {
            str(file["path"]): JobInput(
                str(file["stamp"]), _digest(file.get("digest")), arguments, parse_integer(file.get("bad_lines", 0))
            )
            for file in content["files"]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFileError(
            f"the record of ingested files is corrupt ({error}); remove the record to ingest the files again", path=path
        ) from None


def dump_ingest_record(entries: Sequence[Mapping[str, Any]], arguments: Mapping[str, str] | None = None) -> bytes:
    """Serialise a record of ingested files. Raises ``LimitError`` if it is too large."""
    content = {"version": 1, "files": [*entries]} | ({} if arguments is None else {"arguments": {**arguments}})
    record = json.dumps(content).encode()
    check_manifest_size(len(record), "the record of ingested files")
    return record


def _digest(ranges: Any) -> Digest | None:
    return None if ranges is None else tuple((parse_integer(stop), str(text)) for stop, text in ranges)


STREAMED = "_pqext_streamed-"
"""Name prefix of the record of a streaming query, followed by the query id. Readers skip it, and overwrites keep it."""


@dataclass(frozen=True)
class Batch:
    """A batch of a stream, written by ``job``. The batches of a ``query`` are numbered in ascending order."""

    query: str
    number: int
    job: str

    @property
    def name(self) -> str:
        """The file name of the query's record."""
        return f"{STREAMED}{self.query}.json"

    def dump(self) -> bytes:
        """Serialise the record of the query. This batch becomes the last committed batch of the query."""
        return json.dumps({"version": 1, "query": self.query, "batch": self.number, "job": self.job}).encode()

    def is_in(self, record: bytes, path: str, by_other_job: bool = False) -> bool:
        """Return whether a record marks the batch as committed; if ``by_other_job``, as committed by another job.

        Raises ``CorruptFileError`` if the record is corrupt.
        """
        try:
            result = parse_json(record)
            return parse_integer(result["batch"]) >= self.number and not (by_other_job and result["job"] == self.job)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(
                f"the record of a stream is corrupt ({error}), so the last committed batch is unknown; remove the "
                "record if the folder does not contain the rows of the last batch", path=path,
            ) from None
