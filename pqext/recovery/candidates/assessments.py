"""Check candidate row groups by reading all their pages.

Every page of every chunk is read strictly. Variants, geometries and JSON are verified as by :func:`pqext.verify`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.progress import Progress, Steps
from pqext.core.base.usage import Budget
from pqext.core.format.metadata import SchemaElement
from pqext.core.io.source import Source
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.damage import DamageReport
from pqext.core.read.leaf_runs import is_byte_array_decimal
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import Shape
from pqext.recovery.candidates.candidates import (
    CandidateGroup,
    Candidates,
    CandidateSource,
    file_metadata,
    first_equal_groups,
)
from pqext.verification import verify

_BATCH = 1 << 16
_STRICT = ReadOptions(arrow_schema=False, geoparquet=False, trust_statistics=False)
_LENIENT = replace(_STRICT, on_corrupt="skip")
_FAULTS = 1 << 20
_MISSTATED = frozenset({"page.v2.counts", "logical.decimal.byte-array"})
"""Rules that concern the metadata around the values, or their representation. Rewriting the file fixes violations."""
_OF_HEADERS = frozenset({"page.v2.levels", "layout.page-lost", "encoding.plain.whole"})
"""Rules that concern a page header. If they are violated, values may be wrong or belong to other rows."""
_OF_FOOTER = frozenset({"layout.chunks-apart", "layout.file-metadata"})
"""Rules that concern a footer: it lists row groups several times, or its schema lacks required parts."""
_MOST_DAMAGES = 20_000
"""Maximum number of damaged pages in a file. Row groups beyond it are not recovered."""


@dataclass(slots=True)
class Assessment:
    """Result of checking a row group.

    ``damaged`` maps each unreadable or invalid top-level column to the reason, ``lost_columns`` each column without
    any readable rows, and ``misstated`` each readable column whose pages have wrong headers. ``recoverable_rows`` is
    the number of rows outside damaged pages.
    """

    group: CandidateGroup
    damaged: dict[str, str] = field(default_factory=dict)
    lost_columns: dict[str, str] = field(default_factory=dict)
    misstated: dict[str, str] = field(default_factory=dict)
    recoverable_rows: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all values can be read."""
        return not self.damaged

    @property
    def can_be_copied(self) -> bool:
        """Whether the chunks can be copied unchanged."""
        return not self.damaged and not self.misstated


def assess(
    source: Source, candidates: Candidates, limits: Limits, progress: Progress | None = None
) -> list[Assessment]:
    """Check each candidate row group by reading its pages. ``progress`` counts groups with locations of all chunks."""
    schema = from_elements(candidates.elements, limits)
    assessments = [Assessment(group) for group in candidates.groups]
    damages, budget = DamageReport(_MOST_DAMAGES), Budget(limits, source.size)
    complete = [item for item in assessments if None not in item.group.chunks]
    with suppress_warnings():
        if complete:
            _read_all(source, candidates, complete, limits, budget, Steps(progress, len(complete)))
            _verify(source, candidates, complete, schema, limits)
        for assessment in assessments:
            if None in assessment.group.chunks:
                _assess_incomplete(source, candidates, schema, assessment, limits, budget)
            elif assessment.damaged:
                _count_recoverable(source, candidates, assessment, limits, budget, damages)
            else:
                assessment.recoverable_rows = assessment.group.rows
    return assessments


def open_candidates(
    source: Source, candidates: Candidates, groups: Sequence[CandidateGroup], limits: Limits,
    options: ReadOptions = _STRICT,
) -> ParquetFile:
    """Open the file with the metadata of ``candidates`` instead of its footer."""
    return ParquetFile(CandidateSource(source, file_metadata(candidates, groups), limits), options, limits=limits)


def remove_columns(candidates: Candidates, dropped_columns: Sequence[str], limits: Limits) -> Candidates:
    """Return the candidates without the top-level columns in ``dropped_columns``."""
    schema = from_elements(candidates.elements, limits)
    elements: list[SchemaElement] = []
    retained: list[int] = []
    at, children = 1, 0
    for node in schema.root.children:
        size = _count_elements(node)
        if node.name not in dropped_columns:
            elements += list(candidates.elements)[at : at + size]
            retained += range(node.leaf_start, node.leaf_stop)
            children += 1
        at += size
    root = SchemaElement(name=candidates.elements[0].name, num_children=children)
    groups = [replace(group, chunks=[group.chunks[leaf] for leaf in retained]) for group in candidates.groups]
    return replace(candidates, elements=[root, *elements], groups=groups)


def _count_elements(node: SchemaNode) -> int:
    return 1 + sum(map(_count_elements, node.children))


def _needs_value_check(leaf: SchemaNode) -> bool:
    """Return whether the values of a leaf have a structure that reading does not check."""
    return leaf.leaf_type.member in ("JSON", "GEOMETRY", "GEOGRAPHY")


def _contains_variant(node: SchemaNode) -> bool:
    """Return whether a node or a group below it is a VARIANT."""
    return node.logical_name == "VARIANT" or any(
        not child.is_leaf and _contains_variant(child) for child in node.children
    )


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress warnings in a ``with`` block. The report describes the same faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _read_all(
    source: Source, candidates: Candidates, assessments: Sequence[Assessment], limits: Limits, budget: Budget,
    steps: Steps,
) -> None:
    """Read all columns of the row groups, and record each column that cannot be read in its assessment."""
    with open_candidates(source, candidates, [item.group for item in assessments], limits) as file:
        file.check_rows()
        names = [top.node.name for top in file.shapes]
        for index, assessment in enumerate(assessments):
            try:
                # Dictionaries are not expanded: a few bytes of indexes can refer to a long text very many times.
                for _ in file.iter_dictionary_batches(_BATCH, None, index, None, names, budget.restart()):
                    pass
            except ParquetError:
                for top in file.shapes:
                    if (reason := _read_error(file, top, index, budget)) is not None:
                        assessment.damaged[top.node.name] = reason
                if not assessment.damaged:  # each column is within the limits, but not all together
                    for top in file.shapes:
                        assessment.damaged[top.node.name] = "its row group exceeds the limits"
            steps.advance(1)


def _read_error(file: ParquetFile, top: Shape, group: int, budget: Budget) -> str | None:
    """Read one column of a row group, and return the error message; None if the column is readable."""
    try:
        for _ in file.iter_storage_arrays(top, group, _BATCH, budget=budget.restart(), as_dictionaries=True):
            pass
    except ParquetError as error:
        return error.message
    return None


def _verify(
    source: Source, candidates: Candidates, assessments: Sequence[Assessment], schema: Schema, limits: Limits
) -> None:
    """Add the faults that verification finds in readable row groups.

    If a column has a logical type that reading does not check (JSON, VARIANT or geometries), all faults are added.
    Otherwise, only faults around the values are added: no checksum covers the header of a V2 page, and empty decimals
    are invalid.
    """
    has_meaning = any(_needs_value_check(leaf) for leaf in schema.root.leaves()) or _contains_variant(schema.root)
    is_checked = has_meaning or any(is_byte_array_decimal(leaf) for leaf in schema.root.leaves())
    readable = [item for item in assessments if not item.damaged and (is_checked or item.group.may_count_rows)]
    if not readable:
        return
    candidate = CandidateSource(source, file_metadata(candidates, [item.group for item in readable]), limits)
    checks: Sequence[Literal["chunks"]] | None = None if has_meaning else ["chunks"]
    report = verify(candidate, checks=checks, limit=_FAULTS, limits=limits)
    names = [node.name for node in schema.root.children]
    for fault in report.faults:
        for index, assessment in enumerate(readable):
            if fault.row_group not in (None, index) or (fault.rule in _OF_FOOTER and fault.column is None):
                continue
            top = _top_level_name(fault.column or "", names)
            if fault.rule in _MISSTATED:
                assessment.misstated.setdefault(top, fault.message)
            elif has_meaning or fault.rule in _OF_HEADERS:
                assessment.damaged.setdefault(top, f"{fault.message} ({fault.rule})")
    for assessment, first in zip(readable, first_equal_groups(item.group for item in readable), strict=True):
        assessment.misstated = dict(readable[first].misstated)  # verification decodes shared bytes once
        assessment.damaged = dict(readable[first].damaged)
    if len(report.faults) < report.total:
        for assessment in readable:
            columns = assessment.damaged if has_meaning else assessment.misstated
            columns.setdefault("", "too many invalid values")


def _top_level_name(column: str, names: Sequence[str]) -> str:
    """Return the top-level column of the dotted path ``column``: the longest of ``names`` that is a prefix of the path.

    Returns ``column`` if no name is a prefix.
    """
    prefixes = [name for name in names if column == name or column.startswith(f"{name}.")]
    return max(prefixes, key=len, default=column)


def _count_recoverable(
    source: Source, candidates: Candidates, assessment: Assessment, limits: Limits, budget: Budget,
    damages: DamageReport,
) -> None:
    """Set the number of rows outside damaged pages, and the columns without any readable rows."""
    group = assessment.group
    with open_candidates(source, candidates, [group], limits, _LENIENT) as file:
        file.damage = damages
        names = [top.node.name for top in file.shapes]
        if not assessment.damaged.keys() <= set(names) or len(set(names)) < len(names):
            assessment.lost_columns.update(assessment.damaged)
            return
        assessment.recoverable_rows = _count_rows(file, None, budget)
        if assessment.recoverable_rows == group.rows:
            # A value is stored correctly but invalid, so no row is marked as damaged.
            assessment.recoverable_rows = 0
            assessment.lost_columns.update(assessment.damaged)
        elif not assessment.recoverable_rows:
            for name, reason in assessment.damaged.items():
                if not _count_rows(file, [name], budget):
                    assessment.lost_columns[name] = reason


def _count_rows(file: ParquetFile, columns: list[str] | None, budget: Budget) -> int:
    try:
        batches = file.iter_dictionary_batches(_BATCH, columns, 0, None, (), budget.restart())
        return sum(batch.num_rows for batch in batches)
    except ParquetError:
        return 0


def _assess_incomplete(
    source: Source, candidates: Candidates, schema: Schema, assessment: Assessment, limits: Limits, budget: Budget
) -> None:
    """Check a row group with unlocated chunks by reading the columns that are located."""
    missing = [
        node.name for node in schema.root.children if None in assessment.group.chunks[node.leaf_start : node.leaf_stop]
    ]
    lost = dict.fromkeys(missing, "the location of its pages is unknown") | assessment.group.rejected
    assessment.damaged = assessment.lost_columns = lost
    if len(missing) == len(schema.root.children):
        return
    part = remove_columns(replace(candidates, groups=[assessment.group]), missing, limits)
    partial = Assessment(part.groups[0])
    _read_all(source, part, [partial], limits, budget, Steps(None, 1))
    assessment.lost_columns = assessment.damaged = {**assessment.damaged, **partial.damaged}
