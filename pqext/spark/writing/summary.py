"""What a save wrote, told to the process that asked for it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pqext.dataset.writing.part_files import WrittenFile as WrittenFile
from pqext.dataset.writing.saved import Saved as Saved


def leave(path: str, target: str, files: Sequence[WrittenFile]) -> None:
    """Write what :func:`take` reads."""
    place = Path(path)
    partial = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    partial.write_text(json.dumps({"path": target, "files": [asdict(file) for file in files]}), "utf-8")
    partial.replace(place)


def take(path: Path) -> Saved:
    """The summary in the file that ``summary_path`` named."""
    found = json.loads(path.read_text("utf-8"))
    return Saved(found["path"], tuple(WrittenFile(**file) for file in found["files"]))
