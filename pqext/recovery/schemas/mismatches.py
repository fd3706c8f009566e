"""Why pages make no row groups of a schema: the first column that its pages do not fit, and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pqext.core.base.limits import Limits
from pqext.core.io.source import Source
from pqext.recovery.claims.chunk_locations import lines
from pqext.recovery.claims.claims import Claims
from pqext.recovery.claims.report import Loss
from pqext.recovery.claims.verdicts import Verdict
from pqext.recovery.fragments.codecs import Codecs
from pqext.recovery.fragments.footers import Effort
from pqext.recovery.fragments.pages import Page, Segment
from pqext.recovery.row_groups.assignment import MISFIT
from pqext.recovery.row_groups.schema_fit import Chunk, Misfit, Walked, Walker
from pqext.recovery.row_groups.search import UNPLACED
from pqext.recovery.schemas.physical_forms import columns_of, first_read

_STEPS = 1_000_000
_DOUBT = "the schema may not be that of the file"


def explained(
    source: Source,
    segments: Sequence[Segment],
    losses: Sequence[Loss],
    schema: Claims,
    codecs: Codecs,
    limits: Limits,
    *,
    vary: bool,
    by_values: bool,
) -> list[Loss]:
    """``losses``, the first of pages that make no row group with the column and page at which the schema fails.

    ``by_values``: where all pages fit, their values are asked too.
    """
    lost = [at for at, loss in enumerate(losses) if loss.reason in (UNPLACED, MISFIT)]
    if not lost or not segments:
        return list(losses)
    effort = Effort(0)
    effort.left = _STEPS
    segment = segments[0]
    columns = columns_of(source, schema.elements, codecs, limits, effort, vary=vary)
    walker = Walker(segment.pages, columns, effort)
    reached = walker.reach()
    misfit = walker.furthest
    if reached:
        misfit = _by_values(source, segment.pages, reached, effort, limits) if by_values else None
    if effort.left < 0 or misfit is None or (walker.breaks_off and not segment.at_end):
        return list(losses)
    name = ".".join(schema.elements[at].name for at in lines(schema.elements)[misfit.leaf][1:])
    place = segment.pages[misfit.page].offset
    why = f"{_DOUBT}: where column {name} should be, at byte {place}, are {misfit.reason}; {_hint(schema)}"
    found = list(losses)
    found[lost[0]] = replace(found[lost[0]], reason=f"{found[lost[0]].reason}; {why}")
    return found


def _hint(schema: Claims) -> str:
    """What may be wrong with the schema."""
    if any(element.logicalType is not None and element.logicalType.VARIANT is not None for element in schema.elements):
        return "how a VARIANT is shredded only the schema of a file that is shredded alike tells"
    return "its type may be another, or the schema may lack a column before it"


def _by_values(
    source: Source, pages: Sequence[Page], reached: Sequence[Walked], effort: Effort, limits: Limits
) -> Misfit | None:
    """The furthest chunk that can be read in none of its forms, of the first such chunks of row groups.

    ``None`` where a row group can be read, where pages are known to be damaged, and where no effort is left.
    """
    found: list[Misfit] = []
    for walked in reached:
        misfit = next((one for one in _unreadable(source, pages, walked, effort, limits) if one is not None), None)
        if misfit is None or effort.left < 0 or any(page.checked is False for page in pages[: walked.end]):
            return None
        found.append(misfit)
    return max(found, key=lambda one: one.page, default=None)


def _unreadable(
    source: Source, pages: Sequence[Page], walked: Walked, effort: Effort, limits: Limits
) -> Iterator[Misfit | None]:
    """For each column of a row group the furthest chunk that none of its shapes can read, else ``None``."""

    def first_lost(shape: Sequence[Chunk], leaf: int) -> Misfit | None:
        for number, (forms, start, stop) in enumerate(shape, leaf):
            if first_read(source, forms, pages[start:stop], walked.rows, effort, limits) is None:
                return Misfit(start, number, "values that it cannot have")
        return None

    leaf = 0
    for shapes in walked.columns:
        lost = [first_lost(shape, leaf) for shape in shapes]
        yield None if None in lost else max(filter(None, lost), key=lambda one: one.page)
        leaf += len(shapes[0])


def blame(verdicts: Sequence[Verdict]) -> None:
    """Say of the first column that cannot be read, although its pages are as they were written, why that may be."""
    for verdict in verdicts:
        for name, reason in verdict.damaged.items():
            if not verdict.rows_left and "checksum" not in reason:
                verdict.damaged[name] = f"{reason}; {_DOUBT}"
                return
