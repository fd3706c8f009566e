"""Calendar of a file's dates and instants, which Spark records in key-value metadata.

The nodes of all leaves with dates or instants in the legacy calendar refer to it, so that values and bounds are
converted wherever they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.format.metadata import FileMetaData, KeyValue, Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types.legacy_calendar import DATES, INT96, KEYS, VERSION, ZONE, LegacyCalendar, UnknownCalendar

_DEFAULT = ReadOptions()
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


class Calendars(NamedTuple):
    """Legacy calendars of dates and INT64 instants, and of INT96 instants; None for the modern calendar."""

    dates: LegacyCalendar | None = None
    int96: LegacyCalendar | None = None

    def calendar_of(self, leaf: SchemaNode) -> LegacyCalendar | None:
        """Return the calendar of a leaf; None if its values do not depend on one.

        Spark never converts local timestamps.
        """
        if leaf.physical_type == Type.INT96:
            return self.int96 if leaf.logical_type is None else None
        member = leaf.leaf_type.member
        instants = leaf.logical_type.TIMESTAMP if leaf.logical_type is not None and member == "TIMESTAMP" else None
        return self.dates if member == "DATE" or (instants is not None and instants.isAdjustedToUTC) else None


GREGORIAN = Calendars()


def calendars_of(pairs: Iterable[KeyValue], options: ReadOptions = _DEFAULT) -> Calendars:
    """Return the calendars of a file with these key-value ``pairs``.

    Spark supported only the legacy calendar before version 3.0, and for INT96 before version 3.1. ``options`` define
    the calendars of files of other writers, and the time zone of files that do not record it.
    """
    stated = {pair.key: pair.value or "" for pair in pairs if pair.key in KEYS}
    version = _VERSION.match(stated.get(VERSION, ""))
    calendar = LegacyCalendar(stated.get(ZONE) or options.legacy_timezone)
    if version is None:
        modes = {name: getattr(options, name) for name in ("datetime_rebase_mode", "int96_rebase_mode")}
        choices = {"corrected": None, "legacy": calendar}
        return Calendars(*(choices.get(mode, UnknownCalendar(option=name)) for name, mode in modes.items()))
    number = int(version[1]), int(version[2])
    return Calendars(
        calendar if DATES in stated or number < (3, 0) else None,
        calendar if INT96 in stated or number < (3, 1) else None,
    )


def iter_valid_pairs(pairs: Sequence[KeyValue], options: ReadOptions) -> Iterator[KeyValue]:
    """Return the pairs that are valid for the values that are read. The calendars of converted values are omitted."""
    is_converted = options.legacy_calendar == "rebase" and calendars_of(pairs) != GREGORIAN
    return (pair for pair in pairs if not (is_converted and pair.key in KEYS))


def with_calendars(schema: Schema, pairs: Iterable[KeyValue], options: ReadOptions) -> Schema:
    """Return ``schema`` with the calendar of each leaf whose values are converted according to ``options``."""
    if options.legacy_calendar == "stored":
        return schema
    calendars = calendars_of(pairs, options)
    if calendars == GREGORIAN or not any(calendars.calendar_of(leaf) for leaf in schema.leaves):
        return schema
    return Schema.from_root(_with_calendars(schema.root, calendars))


def _with_calendars(node: SchemaNode, calendars: Calendars) -> SchemaNode:
    if node.is_leaf:
        calendar = calendars.calendar_of(node)
        return node if calendar is None else replace(node, calendar=calendar)
    return replace(node, children=tuple(_with_calendars(child, calendars) for child in node.children))


def legacy_leaves(metadata: FileMetaData) -> dict[str, LegacyCalendar]:
    """Return the calendars of the leaves that are in the legacy calendar, by dotted path.

    The calendars of dates have no time zone.
    """
    calendars = calendars_of(metadata.key_value_metadata or ())
    if calendars == GREGORIAN:
        return {}
    leaves = from_elements(metadata.schema, DEFAULT_LIMITS).leaves
    result = {leaf.dotted_path: calendars.calendar_of(leaf) for leaf in leaves}
    dates = {leaf.dotted_path for leaf in leaves if leaf.logical_name == "DATE"}
    result = {path: LegacyCalendar() if path in dates and calendar else calendar for path, calendar in result.items()}
    return {path: calendar for path, calendar in result.items() if calendar is not None}
