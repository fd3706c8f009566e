"""What :func:`pqext.recover` found, wrote and gave up, as plain data that prints itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pqext.text import counted, visible


@dataclass(frozen=True, slots=True)
class Recovered:
    """A row group of the new file.

    ``source_row_group`` is its number in the footer that was found, ``None`` where pages told of it, and ``offset``
    where its first page begins in the damaged file. ``evidence`` says what told its place. ``certified``: every page
    has a checksum that fits, and no value contradicts the statistics of the footer.
    """

    rows: int
    offset: int
    source_row_group: int | None
    evidence: str
    certified: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """What was given up: bytes ``start`` to ``stop`` of the damaged file, what they held as far as is known, and why.

    ``rows`` is ``None`` where nothing tells how many rows they were. ``column`` is a dotted path.
    """

    reason: str
    start: int | None = None
    stop: int | None = None
    source_row_group: int | None = None
    column: str | None = None
    rows: int | None = None

    def __str__(self) -> str:
        place = []
        if self.source_row_group is not None:
            place.append(f"row group {self.source_row_group}")
        if self.column is not None:
            place.append(f"column {self.column}")
        if self.start is not None and self.stop is not None:
            place.append(f"bytes {self.start} to {self.stop}")
        if self.rows is not None:
            place.append(counted(self.rows, "row"))
        return visible(f"{', '.join(place) or 'file'}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of a damaged file. ``print`` it for people, :meth:`to_dict` it for programs.

    ``written`` is false where nothing could be had: there is no new file then. ``evidence`` says how the layout was
    known, ``schema_from`` where the schema came from. ``dropped_columns`` names the top-level columns that were left
    out.
    """

    path: str | None
    size: int
    written: bool
    evidence: str
    schema_from: str
    footers: tuple[str, ...]
    row_groups: tuple[Recovered, ...]
    losses: tuple[Loss, ...]
    dropped_columns: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows of the new file."""
        return sum(group.rows for group in self.row_groups)

    @property
    def certified(self) -> bool:
        """Has every page that was kept a checksum that fits? Without, values cannot be told from damage."""
        return self.written and all(group.certified for group in self.row_groups)

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers, booleans and None, fit for JSON."""
        return {"rows": self.rows, "certified": self.certified, **asdict(self)}

    def __str__(self) -> str:
        lines = [
            f"file       {visible(self.path) if self.path else 'in memory'}, {self.size:,} bytes",
            f"layout     {self.evidence}",
            f"schema     {self.schema_from}",
            *(f"found      {visible(footer)}" for footer in self.footers),
            f"recovered  {counted(self.rows, 'row')} in {counted(len(self.row_groups), 'row group')}"
            if self.written
            else "recovered  nothing: no file was written",
        ]
        if self.written:
            unsure = sum(not group.certified for group in self.row_groups)
            certain = "certain: every page has a checksum that fits"
            guess = f"not certain in {counted(unsure, 'row group')}: pages without checksums were only decoded"
            lines.append(f"values     {guess if unsure else certain}")
        if self.dropped_columns:
            lines.append(f"left out   {visible(', '.join(self.dropped_columns))}")
        lines += [f"lost       {loss}" for loss in self.losses]
        return "\n".join(lines)
