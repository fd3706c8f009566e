"""What :func:`pqext.verify` finds in a file, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pqext.core.base.text import escape_text


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where a rule is broken.

    ``rule`` is the rule's id in the ledger. ``row`` counts from the start of the file; ``offset`` is a byte of
    ``part``: of the ``"file"``, or, in that row and column, of the encoded ``"value"`` or ``"metadata"``, the
    ``"typed_value"``, or the ``"residual"`` beside the object that the column is a field of.
    """

    rule: str
    message: str
    row_group: int | None = None
    row: int | None = None
    column: str | None = None
    offset: int | None = None
    part: str = "file"

    @property
    def place(self) -> str:
        """Where the fault is, in words."""
        labels = (("row group", self.row_group), ("row", self.row), ("column", self.column))
        place = [f"{label} {value}" for label, value in labels if value is not None]
        if self.offset is not None:
            place.append(f"byte {self.offset}" + (f" of the {self.part}" if self.part != "file" else ""))
        return ", ".join(place) or "file"

    def __str__(self) -> str:
        return escape_text(f"{self.place}: {self.message} ({self.rule})")


@dataclass(frozen=True, slots=True)
class Count:
    """How often a rule is broken in one way, and what to do about it."""

    rule: str
    message: str
    count: int
    advice: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What could not be looked at, and why: a key is missing, an encoding is not known."""

    column: str
    row_group: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a file.

    ``checks`` names what was looked for. ``counts`` covers every fault, ``faults`` holds the first of them in the order
    in which they were found.
    """

    path: str | None
    size: int
    num_rows: int | None
    num_row_groups: int | None
    checks: tuple[str, ...]
    variant_columns: tuple[str, ...]
    counts: tuple[Count, ...]
    faults: tuple[Fault, ...]
    unchecked: tuple[Unchecked, ...]

    @property
    def ok(self) -> bool:
        """Was everything checked that was asked for, and nothing wrong?

        A file without faults of which something could not be checked is not ``ok``: see ``unchecked``, and ``total``
        for the faults alone.
        """
        return not self.counts and self.complete

    @property
    def complete(self) -> bool:
        """Could everything be checked that was asked for?"""
        return not self.unchecked

    @property
    def total(self) -> int:
        """The number of faults."""
        return sum(count.count for count in self.counts)

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers, booleans and None, fit for JSON."""
        return {"ok": self.ok, "complete": self.complete, "total": self.total, **asdict(self)}


class Findings:
    """Collects faults: all are counted, the first ``limit`` kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.faults: list[Fault] = []
        self.unchecked: list[Unchecked] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._damage: set[tuple[int | None, str | None]] = set()

    @property
    def room(self) -> int:
        """How many faults may still be kept."""
        return self.limit - len(self.faults)

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it while there is room."""
        self.count(fault.rule, fault.message, 1)
        if self.room > 0:
            self.faults.append(fault)

    def count(self, rule: str, message: str, number: int) -> None:
        """Count faults."""
        self._counts[rule, message] = self._counts.get((rule, message), 0) + number

    def damaged(self, fault: Fault) -> None:
        """Add what keeps a column of a row group from being read, once, whoever runs into it."""
        if (fault.row_group, fault.column) not in self._damage:
            self.know_damage(fault.row_group, fault.column)
            self.add(fault)

    def know_damage(self, row_group: int | None, column: str | None) -> None:
        """The column is known to be damaged in the row group: nobody else reports it."""
        self._damage.add((row_group, column))

    def skip(self, column: str, row_group: int | None, reason: str) -> None:
        """Note what was not looked at; many row groups of one column only once for each reason."""
        known = Unchecked(column, row_group, reason)
        if len(self.unchecked) < max(self.limit, 1) and known not in self.unchecked:
            self.unchecked.append(known)

    def counts(self, advice: Sequence[tuple[str, str]]) -> tuple[Count, ...]:
        """The counts, the most frequent first; ``advice`` pairs beginnings of rules with what to do."""
        ordered = sorted(self._counts.items(), key=lambda item: -item[1])
        return tuple(
            Count(rule, message, number, next((text for start, text in advice if rule.startswith(start)), ""))
            for (rule, message), number in ordered
        )
