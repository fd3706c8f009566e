"""What of row groups is not in the new file, and what stands in it otherwise than in the old, as a report tells it."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.base.limits import Limits
from pqext.core.base.text import counted
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.claims.claims import ClaimedGroup, Claims
from pqext.recovery.claims.report import Loss
from pqext.recovery.claims.verdicts import Verdict


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
        f"column {name}: {reasons[0]}; {counted(len(reasons), 'row group')} written anew, with the same values"
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
