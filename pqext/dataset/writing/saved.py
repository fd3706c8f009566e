"""Result of saving a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pqext.dataset.writing.part_files import WrittenFile
from pqext.variant.shredding.choice import residual_shares


@dataclass(frozen=True)
class SaveResult:
    """Result of a save: its folder and its new files."""

    path: str
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.bytes for file in self.files)

    @property
    def shredded(self) -> dict[str, tuple[str, ...]]:
        """The shredding schemas of each VARIANT, as DDL. There are several if schemas differ between files."""
        return shreddings(self.files)

    @property
    def residual(self) -> dict[str, float]:
        """The fraction of values stored in the residual, by path (``event: $.user.id``), without zeros."""
        return residual_shares(file.residual for file in self.files)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows, {self.bytes:,} bytes in {len(self.files):,} files in {self.path}"]
        for path, result in self.shredded.items():
            more = f", and {len(result) - 1} other schemas" if len(result) > 1 else ""
            lines.append(f"  {path}: {result[0]}{more}")
        lines += [f"  in the residual: {share:.1%} of {path}" for path, share in self.residual.items()]
        return "\n".join(lines)


def shreddings(files: Iterable[WrittenFile]) -> dict[str, tuple[str, ...]]:
    """Return the distinct shredding schemas of each VARIANT in ``files``."""
    result: dict[str, dict[str, None]] = {}
    for file in files:
        for path, schema in file.shredded.items():
            result.setdefault(path, {})[schema] = None
    return {path: tuple(schemas) for path, schemas in result.items()}
