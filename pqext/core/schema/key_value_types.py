"""Assign logical types to columns from a file's key-value metadata, such as GeoParquet's geometries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pqext.core.base.errors import AnnotationWarning, ParquetError, warn_about_file
from pqext.core.format.metadata import FieldRepetitionType, KeyValue, LogicalType
from pqext.core.schema.annotations import KeyValueMetadataHandler, for_property
from pqext.core.schema.nodes import Schema, SchemaNode


def apply_key_value_types(schema: Schema, pairs: Iterable[KeyValue], path: str | None = None) -> tuple[Schema, bool]:
    """Return ``schema`` with the logical types that key-value metadata assigns, and whether there was a warning.

    Types are assigned to top-level columns. Metadata that is invalid or contradicts the schema is ignored with an
    ``AnnotationWarning``, which names the file at ``path``.
    """
    pairs = list(pairs)
    logical_types: dict[str, LogicalType] = {}
    has_warned = False
    for pair in pairs:
        handler = describer(pair.key) if pair.value else None
        if handler is not None and pair.value:
            try:
                properties = {other.key: other.value or "" for other in pairs}
                adopted = handler.assigned_types(pair.value, lambda name: _column(schema, name), properties)
                logical_types |= adopted.types
                has_warned |= bool(adopted.contradictions)
                for message in adopted.contradictions:
                    warn_about_file(path, message, AnnotationWarning)
            except ParquetError as error:
                has_warned = True
                warn_about_file(path, f"the metadata {pair.key!r} is ignored: {error}", AnnotationWarning)
    return _with_types(schema, logical_types) if logical_types else schema, has_warned


def retain_valid_pairs(pairs: Mapping[str, str], schema: Schema, *, is_subset: bool = False) -> dict[str, str]:
    """Return the parts of the key-value metadata ``pairs`` that are valid for a file with ``schema`` and other rows.

    With ``is_subset``, the rows of the file are a subset of the rows that ``pairs`` describes.
    """
    result = dict(pairs)
    for key, value in pairs.items():
        handler = describer(key)
        if handler is not None:
            retained = handler.retain_valid(value, schema.find, is_subset=is_subset)
            if retained is None:
                del result[key]
            else:
                result[key] = retained
    return result


def describer(key: str) -> KeyValueMetadataHandler | None:
    """Return the handler whose columns the key-value metadata ``key`` describes; None if there is none."""
    annotation = for_property(key)
    if annotation is None:
        return None
    handler = annotation.load()
    return handler if isinstance(handler, KeyValueMetadataHandler) else None


def _with_types(schema: Schema, logical_types: Mapping[str, LogicalType]) -> Schema:
    """Return ``schema`` with ``logical_types`` for the top-level columns by name."""
    columns: dict[int, SchemaNode] = {}
    leaves: dict[int, SchemaNode] = {}
    names = schema.root.child_names
    for name, logical in logical_types.items():
        node = _column(schema, name)
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


def _column(schema: Schema, name: str) -> SchemaNode | None:
    """Return the top-level column ``name``; None if there is not exactly one, or if it is repeated."""
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
