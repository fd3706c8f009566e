"""Types of columns from key-value metadata: the geometries of GeoParquet, and the calendar that Spark records.

The nodes of all leaves with dates or instants in the legacy calendar refer to it, so that values and bounds are
converted wherever they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pqext.core.base.errors import AnnotationWarning, ParquetError, warn_about_file
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.format.metadata import FieldRepetitionType, FileMetaData, KeyValue, LogicalType, Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.annotations import KeyValueMetadataHandler, find_by_property, generation
from pqext.core.schema.arrow_schema import stored_schema
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types.legacy_calendar import DATES, INT96, KEYS, VERSION, ZONE, LegacyCalendar, UnknownCalendar

_DEFAULT = ReadOptions()
_MAX_TEXT = 64 << 10
"""Maximum number of characters of metadata that are reduced to what determines types."""
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def apply_key_value_types(schema: Schema, pairs: Iterable[KeyValue], path: str | None = None) -> tuple[Schema, bool]:
    """Return ``schema`` with the logical types that key-value metadata assigns, and whether there was a warning.

    Types are assigned to top-level columns. Metadata that is invalid or contradicts the schema is ignored with an
    ``AnnotationWarning``, which names the file at ``path``.
    """
    pairs = list(pairs)
    logical_types: dict[str, LogicalType] = {}
    has_warned = False
    for pair in pairs:
        handler = find_handler(pair.key) if pair.value else None
        if handler is not None and pair.value:
            try:
                properties = {other.key: other.value or "" for other in pairs}
                adopted = handler.assigned_types(pair.value, lambda name: _find_column(schema, name), properties)
                logical_types |= adopted.types
                has_warned |= bool(adopted.contradictions)
                for message in adopted.contradictions:
                    warn_about_file(path, message, AnnotationWarning)
            except ParquetError as error:
                has_warned = True
                warn_about_file(path, f"the metadata {pair.key!r} is ignored: {error}", AnnotationWarning)
    return _with_types(schema, logical_types) if logical_types else schema, has_warned


def type_texts(pairs: Iterable[KeyValue], options: ReadOptions) -> tuple[tuple[str, str], ...]:
    """Return the keys and values of ``pairs``, reduced to the content that determines types.

    Long metadata is returned unchanged.
    """
    texts = tuple([(pair.key, pair.value or "") for pair in pairs])
    if not (options.geoparquet and any(find_by_property(key) for key, _ in texts)):
        return texts
    if sum(len(text) for _, text in texts) > _MAX_TEXT:
        return texts
    return tuple([(key, _type_text(key, text, generation())) for key, text in texts])


@lru_cache(maxsize=64)  # most files of a folder, and files that are opened again, have equal texts
def _type_text(key: str, text: str, generation: int) -> str:
    """Return the content of ``text`` that determines types, according to the handlers registered in ``generation``."""
    if key == stored_schema.KEY:  # has a copy of the pairs
        return stored_schema.strip_metadata(text)
    handler = find_handler(key)
    return text if handler is None else handler.type_text(text)


def retain_valid_pairs(pairs: Mapping[str, str], schema: Schema, *, is_subset: bool = False) -> dict[str, str]:
    """Return the content of the key-value metadata ``pairs`` that is valid for a file with ``schema`` and different
    rows.

    With ``is_subset``, the rows of the file are a subset of the rows that ``pairs`` describes.
    """
    result = dict(pairs)
    for key, value in pairs.items():
        handler = find_handler(key)
        if handler is not None:
            retained = handler.retain_valid(value, schema.find, is_subset=is_subset)
            if retained is None:
                del result[key]
            else:
                result[key] = retained
    return result


def find_handler(key: str) -> KeyValueMetadataHandler | None:
    """Return the handler that describes its columns in the key-value metadata ``key``; None for other keys."""
    annotation = find_by_property(key)
    if annotation is None:
        return None
    handler = annotation.load()
    return cast(KeyValueMetadataHandler, handler) if _describes_columns(type(handler)) else None


@lru_cache(maxsize=16)  # the check of a protocol is slow
def _describes_columns(handler_type: type) -> bool:
    return issubclass(handler_type, KeyValueMetadataHandler)


def _with_types(schema: Schema, logical_types: Mapping[str, LogicalType]) -> Schema:
    """Return ``schema`` with ``logical_types``, a mapping by name, applied to its top-level columns."""
    columns: dict[int, SchemaNode] = {}
    leaves: dict[int, SchemaNode] = {}
    names = schema.root.child_names
    for name, logical in logical_types.items():
        node = _find_column(schema, name)
        if node is None:
            continue
        adopted = replace(node, logical_type=logical, is_adopted=True, declared_type=node.logical_type)
        columns[names.index(name)] = adopted
        if node.is_leaf:
            leaves[node.leaf_start] = adopted
    if not columns:
        return schema
    root = replace(schema.root, children=_ReplacedNodes(schema.root.children, columns, names))
    return Schema(root, _ReplacedNodes(schema.leaves, leaves, ()))


def _find_column(schema: Schema, name: str) -> SchemaNode | None:
    """Return the top-level column ``name``; None unless the name is unique and the column is not repeated."""
    node = schema.root.child(name)
    if node is None or node.repetition == FieldRepetitionType.REPEATED or not schema.root.is_unique(name):
        return None
    return node


class _ReplacedNodes(Sequence[SchemaNode]):
    """Sequence of nodes with replacements. Nodes that are not replaced are created on access."""

    def __init__(
        self, nodes: Sequence[SchemaNode], replacements: Mapping[int, SchemaNode], names: Sequence[str]
    ) -> None:
        self._nodes = nodes
        self._others = replacements
        self._names = names

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        return self._others[place] if place in self._others else self._nodes[index]

    def names(self) -> list[str]:
        """Return the names of all nodes."""
        return list(self._names)

    def search(self, name: str) -> None:
        """Return None, because all names are available and nodes need not be searched one by one."""


class Calendars(NamedTuple):
    """Legacy calendars of dates and INT64 instants, and of INT96 instants; None for the modern calendar."""

    dates: LegacyCalendar | None = None
    int96: LegacyCalendar | None = None

    def calendar_of(self, leaf: SchemaNode) -> LegacyCalendar | None:
        """Return the calendar of a leaf; None if its values do not depend on a calendar.

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
    calendar = LegacyCalendar.from_zones(stated.get(ZONE), options.legacy_timezone)
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
    """Yield the key-value pairs that are valid for the values that are read. Calendar keys are omitted if values are
    converted to another calendar.
    """
    is_converted = options.legacy_calendar == "rebase" and calendars_of(pairs) != GREGORIAN
    return (pair for pair in pairs if not (is_converted and pair.key in KEYS))


def apply_calendars(schema: Schema, pairs: Iterable[KeyValue], options: ReadOptions) -> Schema:
    """Return ``schema`` with a calendar for each leaf whose values must be converted according to ``options``."""
    if options.legacy_calendar == "stored":
        return schema
    calendars = calendars_of(pairs, options)
    if calendars == GREGORIAN or not any(calendars.calendar_of(leaf) for leaf in schema.leaves):
        return schema
    return Schema.from_root(_apply_calendars(schema.root, calendars))


def _apply_calendars(node: SchemaNode, calendars: Calendars) -> SchemaNode:
    if node.is_leaf:
        calendar = calendars.calendar_of(node)
        return node if calendar is None else replace(node, calendar=calendar)
    return replace(node, children=tuple(_apply_calendars(child, calendars) for child in node.children))


def legacy_leaves(metadata: FileMetaData) -> dict[str, LegacyCalendar]:
    """Return the calendar of each leaf with values in the legacy calendar, by dotted path.

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
