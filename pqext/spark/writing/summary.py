"""What a save wrote, told to the process that asked for it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pqext.spark.writing.part_files import WrittenFile
from pqext.variant.shredding.residual import residual_shares


@dataclass(frozen=True)
class Saved:
    """What a save wrote: its folder and its files."""

    path: str
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """Rows that were written."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def shredded(self) -> dict[str, tuple[str, ...]]:
        """The shredding schemas of each VARIANT, as DDL; files with schemas of their own give several."""
        return shreddings(self.files)

    @property
    def residual(self) -> dict[str, float]:
        """The share of the values that stay in the residual, by path (``event: $.user.id``); without zeros."""
        return residual_shares(file.residual for file in self.files)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows, {self.bytes:,} bytes in {len(self.files):,} files in {self.path}"]
        for path, found in self.shredded.items():
            more = f", and {len(found) - 1} other schemas" if len(found) > 1 else ""
            lines.append(f"  {path}: {found[0]}{more}")
        lines += [f"  in the residual: {share:.1%} of {path}" for path, share in self.residual.items()]
        return "\n".join(lines)


def shreddings(files: Iterable[WrittenFile]) -> dict[str, tuple[str, ...]]:
    """The different shredding schemas of each VARIANT in ``files``."""
    found: dict[str, dict[str, None]] = {}
    for file in files:
        for path, schema in file.shredded.items():
            found.setdefault(path, {})[schema] = None
    return {path: tuple(schemas) for path, schemas in found.items()}


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
