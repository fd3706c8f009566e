"""Analyse footers to find columns that Spark's own Parquet reader does not support, and the leaves of VARIANT values.

A value at a path of a VARIANT is *plain* if all files store it in a typed leaf of the same type, and the residual
``value`` next to the leaf is empty in all row groups. The leaf can then be read as a separate column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from pqext.core.base.text import escape_text
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types.legacy_calendar import ZONE
from pqext.dataset.expressions import VariantField
from pqext.dataset.files.file_set import FileSet
from pqext.spark.base.types import spark_type
from pqext.variant.access.path import as_path

_CODECS = {0: "UNCOMPRESSED", 1: "SNAPPY", 2: "GZIP", 6: "ZSTD", 7: "LZ4_RAW"}
_ENCODINGS = frozenset({0, 2, 3, 4, 5, 6, 7, 8})
"""All encodings except BYTE_STREAM_SPLIT, which Spark reads from version 4.3, and ALP."""
_LEAVES: dict[str, frozenset[Type]] = {
    "": frozenset(Type),
    "INTEGER": frozenset({Type.INT32, Type.INT64}),
    "DECIMAL": frozenset({Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY}),
    "DATE": frozenset({Type.INT32}),
    "TIMESTAMP": frozenset({Type.INT64}),
    "STRING": frozenset({Type.BYTE_ARRAY}),
    "ENUM": frozenset({Type.BYTE_ARRAY}),
    "JSON": frozenset({Type.BYTE_ARRAY}),
    "BSON": frozenset({Type.BYTE_ARRAY}),
}
_JSON_NULL = b"\x00"
Key = tuple[Any, ...]


@dataclass
class FileSurvey:
    """Results of analysing the footers of files for Spark's reader."""

    fields: dict[Key, T.DataType | None] = field(default_factory=dict)
    """Spark types of the leaves of plain VARIANT values, by the keys of their operands. The type is None if no file has
    a leaf, so that all values are missing.
    """
    storage: dict[str, pa.Field] = field(default_factory=dict)
    """Storage of the VARIANT columns that have the same shredding in all files."""
    unsupported: dict[str, dict[str, str]] = field(default_factory=dict)
    """Obstacles for Spark's reader by top-level column and leaf."""
    inexact: set[str] = field(default_factory=set)
    """Dotted paths of leaves whose bounds or dictionaries make Spark skip matching rows."""
    stored: set[str] = field(default_factory=set)
    """Analysed columns that exist in the files."""
    variants: set[str] = field(default_factory=set)
    """Analysed columns that are VARIANTs."""
    unproven: set[str] = field(default_factory=set)
    """VARIANT columns that may contain values of types that Spark does not support."""
    obstacles: list[str] = field(default_factory=list)
    """Obstacles for Spark's reader that concern complete files."""

    def find_obstacles(self, column: str, leaves: Iterable[str] | None = None) -> list[str]:
        """Return the obstacles of a column. If ``leaves`` is not None, return only obstacles of these dotted paths."""
        obstacles = self.unsupported.get(column, {})
        return [text for leaf, text in obstacles.items() if leaves is None or leaf in leaves]


def survey_files(
    files: FileSet, positions: Sequence[int], columns: Sequence[str], fields: Mapping[Key, VariantField]
) -> FileSurvey:
    """Analyse top-level columns and VARIANT values in the footers of the files at ``positions``."""
    survey = FileSurvey()
    plain: dict[Key, set[T.DataType]] = {key: set() for key in fields}
    not_plain: set[Key] = set()
    different: set[str] = set()
    for _, file in files.iter_open(positions):
        _check_file(file, survey)
        for name in columns:
            node = file.schema.root.child(name)
            if node is None:
                continue
            survey.stored.add(name)
            _check_column(file, node, survey)
            if node.logical_name == "VARIANT":
                survey.variants.add(name)
                if not _has_known_types(file, node):
                    survey.unproven.add(name)
            if node.logical_name == "VARIANT" and name not in different:
                storage = shape.from_node(node).storage_field(ReadOptions(shredded=True))
                if not survey.storage.setdefault(name, storage).equals(storage, check_metadata=True):
                    different.add(name)
        for key, operand in fields.items():
            if key not in not_plain and not _add_leaf(file, operand, plain[key]):
                not_plain.add(key)
    for key, types in plain.items():
        if key not in not_plain and len(types) <= 1:
            survey.fields[key] = next(iter(types), None)
    survey.storage = {name: storage for name, storage in survey.storage.items() if name not in different}
    return survey


def find_leaf_nodes(root: SchemaNode, path: str) -> tuple[SchemaNode | None, SchemaNode | None] | None:
    """Return the typed leaf and the residual ``value`` that can contain values at ``path`` of a VARIANT group ``root``.

    Shredded fields are never in the residual of their object, so only one ``value`` must be empty (Variant Shredding,
    "Objects"). Returns None if the path contains an array index, or ends at an array or object.
    """
    group = root
    for step in as_path(path):
        typed = group.child("typed_value")
        if not isinstance(step, str):
            return None
        is_object = typed is not None and not typed.is_leaf and not typed.logical_name
        member = typed.child(step) if typed is not None and is_object else None
        if member is None:
            others = typed.child_names if typed is not None and is_object else ()
            if any(name.lower() == step.lower() for name in others):
                return None  # Spark would match it case-insensitively
            return None, group.child("value")
        assert typed is not None
        if member.is_leaf or not typed.is_unique(step):
            return None
        group = member
    leaf = group.child("typed_value")
    if leaf is not None and (not leaf.is_leaf or leaf.max_repetition_level):
        return None
    return leaf, group.child("value")


def _add_leaf(file: ParquetFile, field: VariantField, types: set[T.DataType]) -> bool:
    """Return whether a file stores all values of a VARIANT field in one typed leaf. Add its type to ``types``."""
    node = file.schema.find(field.column.path)
    if node is None or node.logical_name != "VARIANT":
        return False
    nodes = find_leaf_nodes(node, field.path)
    if nodes is None:
        return False
    leaf, value = nodes
    if value is not None and not all(_is_empty_residual(group, value) for group in file.row_groups):
        return False
    if leaf is not None:
        if _leaf_obstacle(leaf) is not None:
            return False
        types.add(spark_type(leaf.leaf_type.arrow_type()))
    return True


def _is_empty_residual(group: RowGroupFacts, value: SchemaNode) -> bool:
    """Return whether a residual in a row group is empty or contains only JSON null, which casts to null."""
    chunk = group.chunk(value)
    bounds = chunk.bounds()
    if bounds.null_count is None:
        return False
    entries = chunk.num_values if value.max_repetition_level else group.num_rows
    return bounds.null_count == entries or bounds.minimum == bounds.maximum == _JSON_NULL


def _has_known_types(file: ParquetFile, node: SchemaNode) -> bool:
    """Return whether Spark can reassemble all values of a VARIANT.

    Spark copies unshredded values without decoding them. Files written by Spark contain only types that it supports. In
    other files the residuals must be empty: the types of typed leaves are in the schema.
    """
    if node.child("typed_value") is None:
        return True
    if not file.row_groups or _is_written_by_spark(file):
        return True
    residuals = [leaf for leaf in node.leaves() if leaf.name == "value"]
    return all(_is_empty_residual(group, leaf) for group in file.row_groups for leaf in residuals)


def _is_written_by_spark(file: ParquetFile) -> bool:
    """Return whether Spark wrote a file. Other writers may copy Spark's properties, but not the name of the writer."""
    version = file.row_groups[0].file_property("org.apache.spark.version")
    return version is not None and (file.metadata.created_by or "").startswith("parquet-mr")


def _check_file(file: ParquetFile, survey: FileSurvey) -> None:
    legacy = [leaf for leaf in file.schema.leaves if leaf.calendar is not None and leaf.leaf_type.member != "DATE"]
    if legacy and all(group.file_property(ZONE) is None for group in file.row_groups[:1]):
        survey.obstacles.append(
            f"{escape_text(file.path or '')} has instants in Spark's legacy calendar and does not state its writer's "
            "time zone, which Spark would replace by the time zone of its driver"
        )


def _check_column(file: ParquetFile, node: SchemaNode, survey: FileSurvey) -> None:
    name, path = node.path[0], escape_text(file.path or "")
    obstacles = survey.unsupported.setdefault(name, {})
    if sum(other.lower() == name.lower() for other in file.schema.root.child_names) > 1:
        obstacles.setdefault("", f"another column of {path} differs from {escape_text(name)!r} in case only")
    for dotted, text in _column_obstacles(node):
        obstacles.setdefault(dotted, f"column {escape_text(dotted)} is {text}")
    for leaf in node.leaves():
        dotted = leaf.dotted_path
        if _is_inexact(leaf):
            survey.inexact.add(dotted)
        if dotted in obstacles:
            continue
        for group in file.row_groups:
            obstacle = _chunk_obstacle(group.chunk(leaf))
            if obstacle is not None:
                obstacles[dotted] = f"column {escape_text(dotted)} of {path} is {obstacle}"
                break


def _chunk_obstacle(chunk: Any) -> str | None:
    if chunk.is_encrypted:
        return "encrypted"
    if chunk.file_path:
        return "stored in another file"
    if chunk.codec not in _CODECS:
        return f"compressed with a codec that Spark does not include, which has {', '.join(_CODECS.values())}"
    if not _ENCODINGS.issuperset(chunk.encodings):
        return "stored in an encoding that not every version of Spark supports"
    return None


def _is_inexact(leaf: SchemaNode) -> bool:
    """Return whether Spark's filter pushdown may skip matching rows of a leaf.

    The pushdown ignores NaN and signed zeros, and truncates instants to milliseconds.
    """
    if leaf.physical_type in (Type.FLOAT, Type.DOUBLE):
        return True
    timestamp = leaf.logical_type.TIMESTAMP if leaf.logical_type is not None else None
    return timestamp is not None and timestamp.unit is not None and timestamp.unit.MILLIS is not None


def _column_obstacles(node: SchemaNode) -> list[tuple[str, str]]:
    """Return the dotted path of each node that Spark reads differently from pqext, and the reason."""
    if node.is_leaf:
        text = _leaf_obstacle(node)
        return [] if text is None else [(node.dotted_path, text)]
    children = list(node.children)
    text = _group_obstacle(node, children)
    if text is not None:
        return [(leaf.dotted_path, text) for leaf in node.leaves()] or [(node.dotted_path, text)]
    if node.logical_name in ("LIST", "MAP"):
        children = list(children[0].children)
    return [obstacle for child in children for obstacle in _column_obstacles(child)]


def _group_obstacle(node: SchemaNode, children: Sequence[SchemaNode]) -> str | None:
    name = node.logical_name
    if name in ("LIST", "MAP"):
        inner = list(children[0].children) if len(children) == 1 and not children[0].is_leaf else []
        is_usual = len(inner) == 1 and children[0].name not in ("array", f"{node.name}_tuple")
        if name == "MAP":
            is_usual = [child.name for child in inner] == ["key", "value"]
        return None if is_usual and children[0].logical_type is None else f"a {name} of an unusual layout"
    if name == "VARIANT" and len(node.path) > 1:
        return "a VARIANT within another column"
    if name not in ("", "VARIANT"):
        return f"of type {name}"
    if any(child.repetition.name == "REPEATED" for child in children):
        return "a group with a repeated field that is not a LIST"
    if not children or len({child.name.lower() for child in children}) < len(children):
        return "a group without fields, or with names that differ in case only"
    return None


def _leaf_obstacle(leaf: SchemaNode) -> str | None:
    name, type = leaf.logical_name, leaf.leaf_type
    if type.ignored_reason is not None or leaf.physical_type not in _LEAVES.get(name, ()):
        return f"of type {name or (leaf.physical_type.name if leaf.physical_type is not None else '')}"
    if name == "TIMESTAMP" and pa.types.is_timestamp(type.arrow_type()) and type.arrow_type().unit == "ns":
        return "a timestamp of nanoseconds"
    return None
