"""Result of a save."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pqext.dataset.writing.part_files import WrittenFile
from pqext.variant.shredding.file_shredding import residual_shares


@dataclass(frozen=True)
class SaveResult:
    """Result of a save: its folder and its files."""

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
        for path, result in self.shredded.items():
            more = f", and {len(result) - 1} other schemas" if len(result) > 1 else ""
            lines.append(f"  {path}: {result[0]}{more}")
        lines += [f"  in the residual: {share:.1%} of {path}" for path, share in self.residual.items()]
        return "\n".join(lines)


def shreddings(files: Iterable[WrittenFile]) -> dict[str, tuple[str, ...]]:
    """The different shredding schemas of each VARIANT in ``files``."""
    result: dict[str, dict[str, None]] = {}
    for file in files:
        for path, schema in file.shredded.items():
            result.setdefault(path, {})[schema] = None
    return {path: tuple(schemas) for path, schemas in result.items()}
