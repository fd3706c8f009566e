"""What :func:`pqext.recover` found, wrote and gave up, as plain data that prints itself.

It lists the losses of each row group, and the values that differ between the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pqext.core.base.limits import Limits
from pqext.core.base.text import escape_text, with_noun
from pqext.core.read.damage import format_rows
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.claims.claims import Assigned, ClaimedGroup, Claims
from pqext.recovery.claims.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Recovered:
    """A row group of the new file.

    ``source_row_group`` is its number in the footer that was found, ``None`` where pages told of it, and ``offset``
    where its first page begins in the damaged file. ``evidence`` says what told its place. ``checksums``: every page
    has one, so that the bytes of those that were kept are those that were written.

    ``assigned`` is what told to which columns the pages belong: a ``"footer"``, one that does not stand where it says
    that the file ends (``"moved"``), or one that the values ``"contradicted"``, by its statistics or by bytes behind
    them. Otherwise the schema did, in the ``"only"`` way in which the pages fit it, in the only ``"regular"`` one, with
    pages of one size, or where ``"told"`` rows of a row group decided.
    ``null_columns`` names the top-level columns that hold nulls in the place of lost chunks. ``certified``: every
    page that was kept has a checksum that fits, a footer assigned the pages, and no nulls stand for lost values.
    """

    rows: int
    offset: int
    source_row_group: int | None
    evidence: str
    checksums: bool
    assigned: Assigned
    certified: bool
    null_columns: tuple[str, ...] = ()


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
            place.append(with_noun(self.rows, "row"))
        return escape_text(f"{', '.join(place) or 'file'}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of a damaged file. ``print`` it for people, :meth:`to_dict` it for programs.

    ``written`` is false where nothing could be had: there is no new file then. ``evidence`` says how the layout was
    known, ``schema_from`` where the schema came from. ``dropped_columns`` names the top-level columns that were left
    out. ``notes`` say what was found otherwise than it was told.
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
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the new file."""
        return sum(group.rows for group in self.row_groups)

    @property
    def certified(self) -> bool:
        """Are all values those of their columns? Checksums fit, and footers told which columns and types pages have."""
        return self.written and all(group.certified for group in self.row_groups)

    @property
    def checksums(self) -> bool:
        """Has every page that was kept a checksum that fits? Without, values cannot be told from damage."""
        return self.written and all(group.checksums for group in self.row_groups)

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers, booleans and None, fit for JSON."""
        return {"rows": self.rows, "certified": self.certified, "checksums": self.checksums, **asdict(self)}

    def _assigned(self) -> list[str]:
        """How pages were assigned to columns, a line for each way."""
        is_type_list = self.schema_from.startswith(("the DDL ", "the Arrow schema "))
        by = self.schema_from if is_type_list else f"the schema of {self.schema_from}"
        if is_type_list or self.schema_from.startswith("the file "):
            by += ", whose names and types no footer confirms"
        schema = f"assigned by {by}, in the only way"
        ways = {
            "footer": ("certain", "as the footer says"),
            "moved": ("not certain", "as the footer says, before which bytes are missing or were added"),
            "contradicted": ("not certain", "as the footer says, but values contradict it"),
            "only": ("not certain", f"{schema} that fits"),
            "regular": ("not certain", f"{schema} with pages of one size; others fit too"),
            "told": ("not certain", f"assigned by {by}, and by the rows of row groups that were given; others fit too"),
        }
        found = [group.assigned for group in self.row_groups]
        lines = []
        for way, (certain, why) in ways.items():
            count = sum(one == way for one in found)
            if count:
                where = f" in {with_noun(count, 'row group')}" if count < len(found) else ""
                lines.append(f"{certain}{where}: {why}")
        return lines

    def _nulls(self) -> list[str]:
        """Which columns hold nulls in the place of lost values, a line for each row group."""
        first, lines = 0, []
        for number, group in enumerate(self.row_groups):
            if group.null_columns:
                rows = format_rows(first, first + group.rows)
                lines.append(f"{', '.join(group.null_columns)} in row group {number} of the new file, {rows}")
            first += group.rows
        return lines

    def __str__(self) -> str:
        lines = [
            f"file       {escape_text(self.path) if self.path else 'in memory'}, {self.size:,} bytes",
            f"layout     {self.evidence}",
            f"schema     {'from ' * self.schema_from.startswith('the ')}{self.schema_from}",
            *(f"found      {escape_text(footer)}" for footer in self.footers),
            f"recovered  {with_noun(self.rows, 'row')} in {with_noun(len(self.row_groups), 'row group')}"
            if self.written
            else "recovered  nothing: no file was written",
        ]
        if self.written:
            unsure = sum(not group.checksums for group in self.row_groups)
            certain = "certain: every page that is kept has a checksum that fits"
            guess = f"not certain in {with_noun(unsure, 'row group')}: pages without checksums were only decoded"
            lines.append(f"bytes      {guess if unsure else certain}")
            lines += [f"columns    {escape_text(line)}" for line in self._assigned()]
        lines += [f"note       {escape_text(note)}" for note in self.notes]
        if self.dropped_columns:
            lines.append(f"left out   {escape_text(', '.join(self.dropped_columns))}")
        lines += [f"nulls      {escape_text(line)}" for line in self._nulls()]
        lines += [f"lost       {loss}" for loss in self.losses]
        return "\n".join(lines)


def losses_of(verdicts: Sequence[Verdict]) -> list[Loss]:
    """What of these row groups is not in the new file."""
    found = []
    for one in verdicts:
        lost = [(name, reason, one.group.rows - one.rows_left) for name, reason in one.damaged.items()]
        if one.rows_left:
            lost += [
                (name, f"{reason}; nulls stand in its place", one.group.rows)
                for name, reason in one.group.nulls.items()
            ]
        found += [loss_of(one.group, name, reason, rows) for name, reason, rows in lost]
    return found


def misstated(verdicts: Sequence[Verdict]) -> list[str]:
    """Of which columns rows are written anew although none is lost."""
    found: dict[str, list[str]] = {}
    for one in verdicts:
        for name, reason in one.misstated.items() if one.rows_left else ():
            found.setdefault(name, []).append(reason)
    return [
        f"column {name}: {reasons[0]}; {with_noun(len(reasons), 'row group')} written anew, with the same values"
        for name, reasons in found.items()
    ]


def loss_of(group: ClaimedGroup, column: str, reason: str, rows: int) -> Loss:
    """The loss of ``rows`` rows of a row group because of a top-level column."""
    start, stop = group.extent or (None, None)
    return Loss(reason, start, stop, group.number, column or None, rows)


def ordered(losses: Sequence[Loss], claims: Claims, limits: Limits) -> list[Loss]:
    """Losses in the order of the file, and those of a row group in the order of the columns."""
    columns = {node.name: at for at, node in enumerate(from_elements(claims.elements, limits).root.children)}
    places: dict[int | None, int] = {}
    reached = 0
    for group in claims.groups:
        reached = group.offset or reached  # of one without any chunk nothing tells where it was
        places[group.number] = reached

    def place(loss: Loss) -> tuple[int, int, int]:
        start = places.get(loss.source_row_group, reached) if loss.start is None else loss.start
        group = -1 if loss.source_row_group is None else loss.source_row_group
        return start, group, columns.get((loss.column or "").split(".")[0], -1)

    return sorted(losses, key=place)
