"""Why pages make no row groups of a schema: the first column whose pages do not fit, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pqext.core.limits import Limits
from pqext.core.source import Source
from pqext.recovery.checking import Verdict
from pqext.recovery.claims import Claims
from pqext.recovery.codecs import Codecs
from pqext.recovery.footers import Effort
from pqext.recovery.forms import columns_of
from pqext.recovery.grouping import MISFIT
from pqext.recovery.pages import Segment
from pqext.recovery.placing import lines
from pqext.recovery.report import Loss
from pqext.recovery.searching import UNPLACED
from pqext.recovery.walking import Walker

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
) -> list[Loss]:
    """``losses``, the first of pages that make no row group with the column and page at which the schema fails."""
    lost = [at for at, loss in enumerate(losses) if loss.reason in (UNPLACED, MISFIT)]
    if not lost or not segments:
        return list(losses)
    effort = Effort(0)
    effort.left = _STEPS
    segment = segments[0]
    walker = Walker(segment.pages, columns_of(source, schema.elements, codecs, limits, vary=vary), effort)
    walker.reach()
    misfit = walker.furthest
    if misfit is None or walker.fits or (walker.breaks_off and not segment.at_end):
        return list(losses)
    name = ".".join(schema.elements[at].name for at in lines(schema.elements)[misfit.leaf][1:])
    place = segment.pages[misfit.page].offset
    why = f"{_DOUBT}: where column {name} should be, at byte {place}, are {misfit.reason}"
    found = list(losses)
    found[lost[0]] = replace(found[lost[0]], reason=f"{found[lost[0]].reason}; {why}")
    return found


def blame(verdicts: Sequence[Verdict]) -> None:
    """Say of the first column that cannot be read, although its pages are as they were written, why that may be."""
    for verdict in verdicts:
        for name, reason in verdict.damaged.items():
            if not verdict.rows_left and "checksum" not in reason:
                verdict.damaged[name] = f"{reason}; {_DOUBT}"
                return
