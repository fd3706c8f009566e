"""Notes of which files the rows of a folder come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pqext.core.errors import CorruptFileError
from pqext.core.sources.pending import check_note
from pqext.dataset.files.notes import parsed


def noted(note: bytes, path: str) -> set[tuple[str, str]]:
    """The names and stamps in the note of a job. Raises ``CorruptFileError`` for a note that is damaged."""
    try:
        return {(str(one["path"]), str(one["stamp"])) for one in parsed(note)["files"]}
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(
            f"the note of what was ingested is damaged ({error}): remove it to ingest its files again", path=path
        ) from None


def note_of(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """The note of files that were ingested. Raises ``LimitError`` for more of them than a note may name."""
    note = json.dumps({"version": 1, "files": [*entries]}).encode()
    check_note(len(note), "the note of what is ingested")
    return note
