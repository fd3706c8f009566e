"""Claims put to the test: every page of every chunk is read, as strictly as any reader does, and variants, geometries
and JSON documents as :func:`pqext.verify` does."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import SchemaElement
from pqext.core.io.source import Source
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.damage import DamageReport
from pqext.core.read.leaf_runs import is_byte_array_decimal
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import Shape
from pqext.recovery.claims.claims import ClaimedGroup, ClaimedSource, Claims, file_metadata, first_of_each
from pqext.verification import verify

_BATCH = 1 << 16
_STRICT = ReadOptions(arrow_schema=False, geoparquet=False, trust_statistics=False)
_LENIENT = replace(_STRICT, on_corrupt="skip")
_FAULTS = 1 << 20
_MISSTATED = frozenset({"page.v2.counts", "logical.decimal.byte-array"})
"""Rules that are broken by what is beside the values, or by another form of them: written again they are right."""
_OF_HEADERS = frozenset({"page.v2.levels", "layout.page-lost", "encoding.plain.whole"})
"""Rules that are broken by a page header, so that values may be others than they seem, or in other rows."""
_OF_FOOTER = frozenset({"layout.chunks-apart", "layout.file-metadata"})
"""Rules that a footer breaks: it names row groups several times, or its schema lacks what readers assume."""
_MOST_DAMAGES = 20_000
"""Damaged pages of a file; row groups that have more are given up."""


@dataclass(slots=True)
class Verdict:
    """What a row group is worth: ``damaged`` names top-level columns that are not as they should be, and why.

    ``rows_left`` are those outside damaged pages; ``gone`` are columns of which, by themselves, none is left.
    ``misstated`` names columns whose values can be had, although their pages do not say truly what they hold.
    """

    group: ClaimedGroup
    damaged: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    misstated: dict[str, str] = field(default_factory=dict)
    rows_left: int = 0

    @property
    def is_whole(self) -> bool:
        """Can all its values be had?"""
        return not self.damaged

    @property
    def can_be_copied(self) -> bool:
        """Is nothing wrong with it?"""
        return not self.damaged and not self.misstated


def judge(source: Source, claims: Claims, limits: Limits) -> list[Verdict]:
    """A verdict on each row group of ``claims``."""
    schema = from_elements(claims.elements, limits)
    verdicts = [Verdict(one) for one in claims.groups]
    damages = DamageReport(_MOST_DAMAGES)
    complete = [one for one in verdicts if None not in one.group.chunks]
    with quiet():
        if complete:
            _read_all(source, claims, complete, limits)
            _verify(source, claims, complete, schema, limits)
        for verdict in verdicts:
            if None in verdict.group.chunks:
                _judge_incomplete(source, claims, schema, verdict, limits)
            elif verdict.damaged:
                _what_is_left(source, claims, verdict, limits, damages)
            else:
                verdict.rows_left = verdict.group.rows
    return verdicts


def opened(
    source: Source, claims: Claims, groups: Sequence[ClaimedGroup], limits: Limits, options: ReadOptions = _STRICT
) -> ParquetFile:
    """The file as ``claims`` have it."""
    return ParquetFile(ClaimedSource(source, file_metadata(claims, groups), limits), options, limits=limits)


def without(claims: Claims, dropped: Sequence[str], limits: Limits) -> Claims:
    """The claims without some top-level columns."""
    schema = from_elements(claims.elements, limits)
    elements: list[SchemaElement] = []
    kept: list[int] = []
    at, left = 1, 0
    for node in schema.root.children:
        size = _size(node)
        if node.name not in dropped:
            elements += list(claims.elements)[at : at + size]
            kept += range(node.leaf_start, node.leaf_stop)
            left += 1
        at += size
    root = SchemaElement(name=claims.elements[0].name, num_children=left)
    groups = [replace(group, chunks=[group.chunks[leaf] for leaf in kept]) for group in claims.groups]
    return replace(claims, elements=[root, *elements], groups=groups)


def _size(node: SchemaNode) -> int:
    return 1 + sum(map(_size, node.children))


def _has_meaning(leaf: SchemaNode) -> bool:
    return leaf.leaf_type.member in ("JSON", "GEOMETRY", "GEOGRAPHY")


def _annotated(node: SchemaNode) -> bool:
    return node.logical_name == "VARIANT" or any(not child.is_leaf and _annotated(child) for child in node.children)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings: the report tells what they would."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _read_all(source: Source, claims: Claims, verdicts: Sequence[Verdict], limits: Limits) -> None:
    with opened(source, claims, [one.group for one in verdicts], limits) as file:
        file.check_rows()
        for index, verdict in enumerate(verdicts):
            try:
                for _ in file.iter_batches(_BATCH, row_groups=[index]):
                    pass
            except ParquetError:
                for top in file.shapes:
                    if (reason := _fault(file, top, index)) is not None:
                        verdict.damaged[top.node.name] = reason
                if not verdict.damaged:  # only together do they exceed what may be held
                    for top in file.shapes:
                        verdict.damaged[top.node.name] = "its row group exceeds the limits"


def _fault(file: ParquetFile, top: Shape, group: int) -> str | None:
    try:
        for _ in file.iter_stored(top, group, _BATCH):
            pass
    except ParquetError as error:
        return error.message
    return None


def _verify(source: Source, claims: Claims, verdicts: Sequence[Verdict], schema: Schema, limits: Limits) -> None:
    """Note what verification finds in row groups that can be read.

    All of it counts where values have a meaning that reading does not ask for. Of others only what is beside the values
    is asked: no checksum covers the header of a page of version 2, and some decimals are no numbers.
    """
    has_meaning = any(_has_meaning(leaf) for leaf in schema.root.leaves()) or _annotated(schema.root)
    asked = has_meaning or any(is_byte_array_decimal(leaf) for leaf in schema.root.leaves())
    sound = [one for one in verdicts if not one.damaged and (asked or one.group.may_count_rows)]
    if not sound:
        return
    claimed = ClaimedSource(source, file_metadata(claims, [one.group for one in sound]), limits)
    checks: Sequence[Literal["chunks"]] | None = None if has_meaning else ["chunks"]
    report = verify(claimed, checks=checks, limit=_FAULTS, limits=limits)
    names = [node.name for node in schema.root.children]
    for fault in report.faults:
        for index, verdict in enumerate(sound):
            if fault.row_group not in (None, index) or (fault.rule in _OF_FOOTER and fault.column is None):
                continue
            top = _top(fault.column or "", names)
            if fault.rule in _MISSTATED:
                verdict.misstated.setdefault(top, fault.message)
            elif has_meaning or fault.rule in _OF_HEADERS:
                verdict.damaged.setdefault(top, f"{fault.message} ({fault.rule})")
    for verdict, first in zip(sound, first_of_each(one.group for one in sound), strict=True):
        verdict.misstated = dict(sound[first].misstated)  # verification decodes shared bytes once
        verdict.damaged = dict(sound[first].damaged)
    if len(report.faults) < report.total:
        for verdict in sound:
            noted = verdict.damaged if has_meaning else verdict.misstated
            noted.setdefault("", "too many values that break rules")


def _top(column: str, names: Sequence[str]) -> str:
    """The top-level column that a dotted path leads into."""
    found = [name for name in names if column == name or column.startswith(f"{name}.")]
    return max(found, key=len, default=column)


def _what_is_left(source: Source, claims: Claims, verdict: Verdict, limits: Limits, damages: DamageReport) -> None:
    """The rows outside damaged pages."""
    group = verdict.group
    with opened(source, claims, [group], limits, _LENIENT) as file:
        file.damage = damages
        names = [top.node.name for top in file.shapes]
        if not verdict.damaged.keys() <= set(names) or len(set(names)) < len(names):
            verdict.gone.update(verdict.damaged)
            return
        verdict.rows_left = _count(file, None)
        if verdict.rows_left == group.rows:
            # A value that is stored well and means nothing: no row of it is called damaged.
            verdict.rows_left = 0
            verdict.gone.update(verdict.damaged)
        elif not verdict.rows_left:
            for name, reason in verdict.damaged.items():
                if not _count(file, [name]):
                    verdict.gone[name] = reason


def _count(file: ParquetFile, columns: list[str] | None) -> int:
    try:
        return sum(batch.num_rows for batch in file.iter_batches(_BATCH, columns, row_groups=[0]))
    except ParquetError:
        return 0


def _judge_incomplete(source: Source, claims: Claims, schema: Schema, verdict: Verdict, limits: Limits) -> None:
    """A row group of which the places of some chunks are not known."""
    missing = [
        node.name for node in schema.root.children if None in verdict.group.chunks[node.leaf_start : node.leaf_stop]
    ]
    lost = dict.fromkeys(missing, "the place of its pages is not known") | verdict.group.refused
    verdict.damaged = verdict.gone = lost
    if len(missing) == len(schema.root.children):
        return
    part = without(replace(claims, groups=[verdict.group]), missing, limits)
    found = Verdict(part.groups[0])
    _read_all(source, part, [found], limits)
    verdict.gone = verdict.damaged = {**verdict.damaged, **found.damaged}
