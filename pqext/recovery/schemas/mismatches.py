"""Explain why pages do not match a schema: the first mismatching column, and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pqext.core.base.limits import Limits
from pqext.core.io.source import Source
from pqext.recovery.candidates.assessments import Assessment
from pqext.recovery.candidates.candidates import Candidates
from pqext.recovery.candidates.chunk_locations import leaf_paths
from pqext.recovery.candidates.report import Loss
from pqext.recovery.detection.codecs import CodecDetector
from pqext.recovery.detection.footers import Effort
from pqext.recovery.detection.pages import Page, Segment
from pqext.recovery.row_groups.assignment import MISMATCH
from pqext.recovery.row_groups.schema_fit import Chunk, MatchedGroup, Mismatch, SchemaMatcher
from pqext.recovery.row_groups.search import UNPLACED
from pqext.recovery.schemas.physical_types import build_columns, find_readable_type

_STEPS = 1_000_000
_WARNING = "the schema may not match the file"


def explain_losses(
    source: Source,
    segments: Sequence[Segment],
    losses: Sequence[Loss],
    schema: Candidates,
    codecs: CodecDetector,
    limits: Limits,
    *,
    vary_types: bool,
    read_values: bool,
) -> list[Loss]:
    """Return ``losses``, with an explanation added to the first loss of unplaced pages.

    The explanation states the column and the page at which the schema stops matching. If all pages match by their
    headers and ``read_values`` is true, their values are read too. ``vary_types`` tries all physical types.
    """
    lost = [at for at, loss in enumerate(losses) if loss.reason in (UNPLACED, MISMATCH)]
    if not lost or not segments:
        return list(losses)
    effort = Effort(0)
    effort.remaining = _STEPS
    segment = segments[0]
    columns = build_columns(source, schema.elements, codecs, limits, effort, vary_types=vary_types)
    matcher = SchemaMatcher(segment.pages, columns, effort)
    matched = matcher.match_all_pages()
    mismatch = matcher.furthest
    if matched:
        mismatch = _find_value_mismatch(source, segment.pages, matched, effort, limits) if read_values else None
    if effort.remaining < 0 or mismatch is None or (matcher.breaks_off and not segment.at_end):
        return list(losses)
    name = ".".join(schema.elements[at].name for at in leaf_paths(schema.elements)[mismatch.leaf][1:])
    offset = segment.pages[mismatch.page].offset
    expected = f"column {name} was expected at byte {offset}, which has {mismatch.reason}"
    reason = f"{_WARNING}: {expected}; {_schema_hint(schema)}"
    result = list(losses)
    result[lost[0]] = replace(result[lost[0]], reason=f"{result[lost[0]].reason}; {reason}")
    return result


def _schema_hint(schema: Candidates) -> str:
    """Suggest how the schema may differ from the file."""
    if any(element.logicalType is not None and element.logicalType.VARIANT is not None for element in schema.elements):
        return "pass a file with the same VARIANT shredding as schema"
    return "its type may differ, or the schema may lack a preceding column"


def _find_value_mismatch(
    source: Source, pages: Sequence[Page], matched_groups: Sequence[MatchedGroup], effort: Effort, limits: Limits
) -> Mismatch | None:
    """Find the first unreadable chunk of each row group, and return the last of these chunks in the file.

    Returns None if a row group can be read, if pages are known to be damaged, or if no effort remains.
    """
    mismatches: list[Mismatch] = []
    for group in matched_groups:
        unreadable = _iter_value_mismatches(source, pages, group, effort, limits)
        mismatch = next((first for first in unreadable if first is not None), None)
        if mismatch is None or effort.remaining < 0 or any(page.checked is False for page in pages[: group.end]):
            return None
        mismatches.append(mismatch)
    return max(mismatches, key=lambda mismatch: mismatch.page, default=None)


def _iter_value_mismatches(
    source: Source, pages: Sequence[Page], group: MatchedGroup, effort: Effort, limits: Limits
) -> Iterator[Mismatch | None]:
    """Yield the first unreadable chunk of each column of a row group, or None if the column is readable."""

    def find_mismatch(shape: Sequence[Chunk], leaf: int) -> Mismatch | None:
        for number, (types, start, stop) in enumerate(shape, leaf):
            if find_readable_type(source, types, pages[start:stop], group.rows, effort, limits) is None:
                return Mismatch(start, number, "values of another type")
        return None

    leaf = 0
    for shapes in group.columns:
        lost = [find_mismatch(shape, leaf) for shape in shapes]
        yield None if None in lost else max(filter(None, lost), key=lambda mismatch: mismatch.page)
        leaf += len(shapes[0])


def add_schema_hint(assessments: Sequence[Assessment]) -> None:
    """Add a hint about the schema to the reason of the first unreadable column whose pages are intact."""
    for assessment in assessments:
        for name, reason in assessment.damaged.items():
            if not assessment.recoverable_rows and "checksum" not in reason:
                assessment.damaged[name] = f"{reason}; {_WARNING}"
                return
