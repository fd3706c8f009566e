"""What footers say to Spark's own Parquet reader: what it cannot read, and where values within VARIANTs lie.

A value at a path of a VARIANT is *plain* where every file holds it in one typed leaf of one type, and nothing in the
residual ``value`` beside that leaf, in any row group. Such a leaf can be read as a column of its own.
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
"""All but BYTE_STREAM_SPLIT, which Spark reads from 4.3 on only, and ALP."""
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
class FilesFound:
    """What the files that are read have in common."""

    fields: dict[Key, T.DataType | None] = field(default_factory=dict)
    """The values within VARIANTs that are plain, by the keys of their operands: the Spark type of their leaf, None
    where no file has such a leaf, so that there is no value at all."""
    alike: dict[str, pa.Field] = field(default_factory=dict)
    """The VARIANT columns that all files store alike, each with its storage."""
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    """By top-level column and leaf, what Spark's reader cannot read."""
    inexact: set[str] = field(default_factory=set)
    """Leaves by whose bounds or dictionaries Spark skips rows that match, by their dotted paths."""
    stored: set[str] = field(default_factory=set)
    """The columns looked at that are in the files."""
    variants: set[str] = field(default_factory=set)
    """Those of them that are VARIANTs."""
    unproven: set[str] = field(default_factory=set)
    """VARIANT columns that may hold values of types that Spark does not know, as far as the footers tell."""
    obstacles: list[str] = field(default_factory=list)
    """What Spark's reader cannot read of whole files."""

    def unsupported_reasons(self, column: str, leaves: Iterable[str] | None = None) -> list[str]:
        """What of a column cannot be read, or of these leaves of it."""
        found = self.refused.get(column, {})
        return [text for leaf, text in found.items() if leaves is None or leaf in leaves]


def look(
    files: FileSet, rows: Sequence[int], columns: Sequence[str], fields: Mapping[Key, VariantField]
) -> FilesFound:
    """What the footers of the files in ``rows`` say of these top-level columns and values within VARIANTs."""
    found = FilesFound()
    plain: dict[Key, set[T.DataType]] = {key: set() for key in fields}
    unproven: set[Key] = set()
    unlike: set[str] = set()
    for _, file in files.opened(rows):
        _look_at_file(file, found)
        for name in columns:
            node = file.schema.root.child(name)
            if node is None:
                continue
            found.stored.add(name)
            _check_column(file, node, found)
            if node.logical_name == "VARIANT":
                found.variants.add(name)
                if not _has_known_types(file, node):
                    found.unproven.add(name)
            if node.logical_name == "VARIANT" and name not in unlike:
                storage = shape.of(node).storage_field(ReadOptions(shredded=True))
                if not found.alike.setdefault(name, storage).equals(storage, check_metadata=True):
                    unlike.add(name)
        for key, one in fields.items():
            if key not in unproven and not _add_leaf(file, one, plain[key]):
                unproven.add(key)
    for key, types in plain.items():
        if key not in unproven and len(types) <= 1:
            found.fields[key] = next(iter(types), None)
    found.alike = {name: storage for name, storage in found.alike.items() if name not in unlike}
    return found


def leaf_node(root: SchemaNode, path: str) -> tuple[SchemaNode | None, SchemaNode | None] | None:
    """Where values at ``path`` of a VARIANT group ``root`` can lie: in a typed leaf, and in a residual ``value``.

    A field that the shredding of an object names is never in the residual of that object, so that one ``value`` is all
    that has to be empty (Variant Shredding, "Objects"). None where the path goes through an array or ends at one, or at
    an object.
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
                return None  # which Spark takes for it
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
    """Is the value plain in a file? The type of its leaf goes to ``types``."""
    node = file.schema.find(field.column.path)
    if node is None or node.logical_name != "VARIANT":
        return False
    place = leaf_node(node, field.path)
    if place is None:
        return False
    leaf, value = place
    if value is not None and not all(_is_empty(group, value) for group in file.row_groups):
        return False
    if leaf is not None:
        if _refused_leaf(leaf) is not None:
            return False
        types.add(spark_type(leaf.leaf_type.arrow_type()))
    return True


def _is_empty(group: RowGroupFacts, value: SchemaNode) -> bool:
    """Does a residual hold nothing in a row group, or nothing but JSON null, which is null in every type?"""
    chunk = group.chunk(value)
    bounds = chunk.bounds()
    if bounds.null_count is None:
        return False
    entries = chunk.num_values if value.max_repetition_level else group.num_rows
    return bounds.null_count == entries or bounds.minimum == bounds.maximum == _JSON_NULL


def _has_known_types(file: ParquetFile, node: SchemaNode) -> bool:
    """Whether Spark can rebuild all values of a VARIANT.

    Spark copies unshredded values without decoding them. Files that Spark wrote hold no types but its own. In other
    files the residuals must be empty: the types of typed leaves are in the schema.
    """
    if node.child("typed_value") is None:
        return True
    if not file.row_groups or _is_written_by_spark(file):
        return True
    residuals = [leaf for leaf in node.leaves() if leaf.name == "value"]
    return all(_is_empty(group, leaf) for group in file.row_groups for leaf in residuals)


def _is_written_by_spark(file: ParquetFile) -> bool:
    """Whether Spark wrote a file itself: another writer may copy Spark's properties, not the name of the writer."""
    version = file.row_groups[0].file_property("org.apache.spark.version")
    return version is not None and (file.metadata.created_by or "").startswith("parquet-mr")


def _look_at_file(file: ParquetFile, found: FilesFound) -> None:
    legacy = [leaf for leaf in file.schema.leaves if leaf.calendar is not None and leaf.leaf_type.member != "DATE"]
    if legacy and all(group.file_property(ZONE) is None for group in file.row_groups[:1]):
        found.obstacles.append(
            f"{escape_text(file.path or '')} has instants in Spark's legacy calendar and does not state its writer's "
            "time "
            "zone, for which Spark takes that of its driver"
        )


def _check_column(file: ParquetFile, node: SchemaNode, found: FilesFound) -> None:
    name, place = node.path[0], escape_text(file.path or "")
    refused = found.refused.setdefault(name, {})
    if sum(one.lower() == name.lower() for one in file.schema.root.child_names) > 1:
        text = f"another column of {place} is called {escape_text(name)!r} but for the case of its letters"
        refused.setdefault("", text)
    for path, text in _refused(node):
        refused.setdefault(path, f"column {escape_text(path)} is {text}")
    for leaf in node.leaves():
        dotted = leaf.dotted
        if _is_inexact(leaf):
            found.inexact.add(dotted)
        if dotted in refused:
            continue
        for group in file.row_groups:
            chunk = group.chunk(leaf)
            why = _refused_chunk(chunk)
            if why is not None:
                refused[dotted] = f"column {escape_text(dotted)} of {place} is {why}"
                break


def _refused_chunk(chunk: Any) -> str | None:
    if chunk.is_encrypted:
        return "encrypted"
    if chunk.file_path:
        return "stored in another file"
    if chunk.codec not in _CODECS:
        return f"compressed by a codec that Spark does not bring: the files may have {', '.join(_CODECS.values())}"
    if not _ENCODINGS.issuperset(chunk.encodings):
        return "stored in an encoding that not every Spark reads"
    return None


def _is_inexact(leaf: SchemaNode) -> bool:
    """Does Spark skip rows of such a leaf that match? It knows neither NaN nor two zeros, and cuts instants short."""
    if leaf.physical_type in (Type.FLOAT, Type.DOUBLE):
        return True
    told = leaf.logical_type.TIMESTAMP if leaf.logical_type is not None else None
    return told is not None and told.unit is not None and told.unit.MILLIS is not None


def _refused(node: SchemaNode) -> list[tuple[str, str]]:
    """The parts of a column that Spark's reader does not read as pqext does, by dotted path."""
    if node.is_leaf:
        text = _refused_leaf(node)
        return [] if text is None else [(node.dotted, text)]
    children = list(node.children)
    text = _refused_group(node, children)
    if text is not None:
        return [(leaf.dotted, text) for leaf in node.leaves()] or [(node.dotted, text)]
    if node.logical_name in ("LIST", "MAP"):
        children = list(children[0].children)
    return [found for child in children for found in _refused(child)]


def _refused_group(node: SchemaNode, children: Sequence[SchemaNode]) -> str | None:
    name = node.logical_name
    if name in ("LIST", "MAP"):
        inner = list(children[0].children) if len(children) == 1 and not children[0].is_leaf else []
        is_usual = len(inner) == 1 and children[0].name not in ("array", f"{node.name}_tuple")
        if name == "MAP":
            is_usual = [one.name for one in inner] == ["key", "value"]
        return None if is_usual and children[0].logical_type is None else f"a {name} of an unusual layout"
    if name == "VARIANT" and len(node.path) > 1:
        return "a VARIANT within another column"
    if name not in ("", "VARIANT"):
        return f"of type {name}"
    if any(child.repetition.name == "REPEATED" for child in children):
        return "a group with a repeated field that is no LIST"
    if not children or len({child.name.lower() for child in children}) < len(children):
        return "a group without fields, or with two that differ but in the case of letters"
    return None


def _refused_leaf(leaf: SchemaNode) -> str | None:
    name, type = leaf.logical_name, leaf.leaf_type
    if type.passed_over is not None or leaf.physical_type not in _LEAVES.get(name, ()):
        return f"of type {name or (leaf.physical_type.name if leaf.physical_type is not None else '')}"
    if name == "TIMESTAMP" and pa.types.is_timestamp(type.arrow_type()) and type.arrow_type().unit == "ns":
        return "a timestamp of nanoseconds"
    return None
