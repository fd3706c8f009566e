"""Notes of how far streams have come that write into a folder: of each the last batch that is there."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pqext.core.base.errors import CorruptFileError
from pqext.dataset.files.manifests import parsed, whole

STREAMED = "_pqext_streamed-"
"""Name prefix of the record of a streaming query, followed by the query id. Readers skip it, and overwrites keep it."""


@dataclass(frozen=True)
class Batch:
    """A batch of a stream, which job ``job`` writes. Batches of a ``query`` are numbered in their order."""

    query: str
    number: int
    job: str

    @property
    def name(self) -> str:
        """The name of the query's note."""
        return f"{STREAMED}{self.query}.json"

    def dump(self) -> bytes:
        """Serialise the record that the batch is committed."""
        return json.dumps({"version": 1, "query": self.query, "batch": self.number, "job": self.job}).encode()

    def is_in(self, note: bytes, path: str, by_others: bool = False) -> bool:
        """Test whether a record lists the batch, ``by_others`` if committed by another job.

        Raises ``CorruptFileError`` if the record is corrupt.
        """
        try:
            found = parsed(note)
            return whole(found["batch"]) >= self.number and not (by_others and found["job"] == self.job)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(
                f"the note of a stream is damaged ({error}), so it is not known which of its batches are there: remove "
                "it if the last one is not", path=path,
            ) from None
