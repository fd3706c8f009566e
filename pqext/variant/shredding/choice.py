"""Shredding of VARIANT columns: the choice in options, and the schemas of files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import warn
from pqext.core.base.suggestions import did_you_mean, excerpt, join_names
from pqext.core.base.text import escape_text
from pqext.core.format.metadata import ColumnMetaData, RowGroup
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.variant.access.path import Wildcard, format_path
from pqext.variant.shredding.infer import infer_with_options
from pqext.variant.shredding.infer_types import Inference
from pqext.variant.shredding.schema import (
    Primitive,
    ShreddingSchema,
    Untyped,
    schema_of_storage,
    shredding_schema,
    type_names,
    walk,
)
from pqext.variant.shredding.shredder import Coerce, check_coerce
from pqext.variant.types import VariantLike, is_marked, is_shredded_type

_SHOWN_PATHS = 5
_HIGH_SHARE = 0.5
"""Share of the values of a path in the residual above which a save warns."""
_INFERENCE = tuple(field.name for field in fields(Inference) if field.name != "coerce")
OPTIONS = ("schema", "coerce", *_INFERENCE)
"""Keys of a mapping of shredding options."""


@dataclass(frozen=True, slots=True)
class Shredding:
    """Choice of a column's shredding: a schema, or options to infer one, and the coercion of values."""

    schema: ShreddingSchema | None
    """Schema; None if it must be inferred."""
    inference: Inference
    coerce: Coerce

    def schema_for(self, sample: VariantLike | None) -> ShreddingSchema:
        """Return the schema. If it must be inferred, infer it from ``sample``; without a sample, it is untyped."""
        if self.schema is not None:
            return self.schema
        return infer_with_options(sample, self.inference) if sample is not None else Untyped()

    def options(self) -> dict[str, Any]:
        """Return the JSON-compatible mapping that :func:`parse_shredding` parses as an equal object."""
        if self.schema is not None:
            return {"schema": str(self.schema), "coerce": self.coerce}
        return {"schema": "infer", **asdict(self.inference)}


def parse_shredding(spec: Any, default: Coerce = "equivalent") -> Shredding:
    """Parse the ``shredding`` option of a column. ``spec`` is a schema or options.

    A schema is a value that :func:`pqext.variant.shredding_schema` accepts, or ``"infer"``. Options are a mapping, or
    JSON text that starts with a brace, with the keys ``schema`` (by default ``"infer"``), ``coerce`` as in
    :func:`pqext.variant.shred`, and, if the schema is inferred, arguments of :func:`pqext.variant.infer_schema`. A
    result of this function is also accepted. ``default`` is the default coercion.

    Raises ``ValueError`` or ``TypeError`` for other values.
    """
    if isinstance(spec, Shredding):
        return spec
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        try:
            spec = json.loads(spec)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"shredding options {excerpt(spec)!r} are not JSON: {error}") from None
    if not isinstance(spec, Mapping):
        spec = {"schema": spec}
    for name in spec:
        if name not in OPTIONS:
            meant = did_you_mean(name, OPTIONS) if isinstance(name, str) else ""
            there = f"{meant or '; a schema is DDL text, as in a INT'}; the options are {', '.join(OPTIONS)}"
            raise ValueError(f"unknown shredding option {excerpt(repr(name))}{there}")
    coerce = check_coerce(spec.get("coerce", default))
    schema = spec.get("schema", "infer")
    arguments = {name: spec[name] for name in _INFERENCE if name in spec}
    if is_inferred(schema):
        return Shredding(None, Inference(**arguments, coerce=coerce), coerce)
    if arguments:
        raise ValueError(f"shredding option {next(iter(arguments))!r} requires the schema 'infer'; omit the option")
    try:
        return Shredding(shredding_schema(schema), Inference(coerce=coerce), coerce)
    except ValueError:
        meant = did_you_mean(schema.strip(), ["infer", *type_names()]) if isinstance(schema, str) else ""
        if "'infer'" in meant:
            raise ValueError(f"invalid shredding schema {schema!r}{meant}") from None
        raise


def is_inferred(schema: Any) -> bool:
    """Return whether ``schema`` is the string ``"infer"``."""
    return isinstance(schema, str) and schema.strip().lower() == "infer"


def schema_of_file(source: Any, column: str | None = None) -> ShreddingSchema:
    """Return the shredding schema of a VARIANT column of a Parquet file; an untyped schema for unshredded columns.

    ``source`` is a source for :func:`pqext.open`, or an open file. ``column`` is a dotted path in the file, like
    ``"v"``, ``"s.v"`` or ``"l.list.element"``, by default the only VARIANT column. Raises ``ValueError`` if the column
    does not exist, or is omitted although there are several, ``TypeError`` if it is not a VARIANT, and ``VariantError``
    if it violates the layout of Variant Shredding.

    >>> import pqext
    >>> from pqext import variant
    >>> events = {"event": variant.parse_json(['{"id": 1}'])}
    >>> pqext.write_table(events, "events.parquet", shredding={"event": "id INT"})
    >>> print(variant.schema_of_file("events.parquet"))
    STRUCT<id: INT>
    """
    with nullcontext(source) if isinstance(source, ParquetFile) else ParquetFile(source) as file:
        variants = [node.dotted_path for node in _iter_nodes(file.schema.root) if node.logical_name == "VARIANT"]
        if column is None:
            if len(variants) != 1:
                if not variants:
                    raise ValueError("the file has no VARIANT column")
                raise ValueError(f"the file has several VARIANT columns; pass one as column: {join_names(variants)}")
            column = variants[0]
        node = file.schema.find(column)
        if node is None:
            meant = did_you_mean(column, [child.dotted_path for child in file.schema.root.children])
            raise ValueError(f"no column {column!r} in the file{meant}")
        if node.logical_name != "VARIANT":
            raise TypeError(f"column {column!r} is not a VARIANT")
        return _schema_of_node(file, node)


def schemas_of_file(file: ParquetFile) -> dict[str, ShreddingSchema]:
    """Return the shredding schema of each VARIANT column of ``file``, by its dotted path.

    Columns that are not shredded have an untyped schema. Raises ``VariantError`` if a column violates the layout of
    Variant Shredding.
    """
    nodes = [node for node in _iter_nodes(file.schema.root) if node.logical_name == "VARIANT"]
    return {node.dotted_path: _schema_of_node(file, node) for node in nodes}


def _schema_of_node(file: ParquetFile, node: SchemaNode) -> ShreddingSchema:
    return schema_of_storage(shape.from_node(node).storage_field(replace(file.options, shredded=True)).type)


def _iter_nodes(node: SchemaNode) -> Iterator[SchemaNode]:
    """Yield the nodes of a schema below ``node``. Nodes within a VARIANT are omitted."""
    for child in node.children:
        yield child
        if child.logical_name != "VARIANT":
            yield from _iter_nodes(child)


_JSON_NULL = b"\0"
Counts = Mapping[str, Sequence[int]]
"""Number of values in the residual and number of all values, by path, such as ``event: $.user.id``."""


def residual_counts(row_groups: Iterable[RowGroup], columns: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Count typed and residual values of the leaves in VARIANT ``columns``, which are dotted paths in the file.

    Returns :data:`Counts` by leaf. Leaves without null counts, as in encrypted columns, are omitted. JSON nulls do not
    fit any type. A residual that contains nothing else is therefore not counted.
    """
    names = set(columns)
    totals: dict[str, tuple[int, int]] = {}
    for group in row_groups:
        chunks = {tuple(chunk.meta_data.path_in_schema): chunk.meta_data for chunk in group.columns if chunk.meta_data}
        for path, typed in chunks.items():
            value = chunks.get((*path[:-1], "value"))
            name = _format_leaf_path(path, names) if path[-1] == "typed_value" else None
            if name is None or value is None:
                continue
            left, fitting = 0 if _are_json_nulls(value) else _count_present(value), _count_present(typed)
            if left is not None and fitting is not None:
                before = totals.get(name, (0, 0))
                totals[name] = before[0] + left, before[1] + left + fitting
    return totals


def residual_shares(counts: Iterable[Counts]) -> dict[str, float]:
    """Return, for each path, the share of its values that are stored in the residual. Shares of zero are omitted."""
    totals: dict[str, tuple[int, int]] = {}
    for part in counts:
        for path, (left, values) in part.items():
            before = totals.get(path, (0, 0))
            totals[path] = before[0] + left, before[1] + values
    return {path: left / values for path, (left, values) in totals.items() if left}


def format_residual(shares: Mapping[str, float]) -> str:
    """Format the largest of the ``shares`` with their paths."""
    largest = sorted(shares.items(), key=lambda entry: -entry[1])
    return join_names((f"{share:.1%} of {escape_text(path)}" for path, share in largest), _SHOWN_PATHS)


def warn_about_residual(shares: Mapping[str, float]) -> None:
    """Warn about paths with most values in the residual, because the types of the columns do not fit the values."""
    shares = {path: share for path, share in shares.items() if share > _HIGH_SHARE}
    if shares:
        warn(
            f"typed columns do not fit most values: the residual contains {format_residual(shares)}; "
            'use types that fit, such as DECIMAL(18,2) for prices in JSON text, or the schema "infer"',
            UserWarning,
        )


def warn_about_file_residual(
    schema: pa.Schema, stored_schema: pa.Schema | None, row_groups: Iterable[RowGroup]
) -> None:
    """Warn about paths of a file as :func:`warn_about_residual` does.

    ``schema`` has the columns that were written, and ``stored_schema`` has them as the file stores them.
    """
    shredded_paths = stored_shredding(schema, stored_schema)
    warn_about_residual(residual_shares([residual_counts(row_groups, shredded_paths)]))


def stored_shredding(schema: pa.Schema, stored_schema: pa.Schema | None) -> dict[str, str]:
    """Return the shredding schema of each shredded VARIANT of a file, by its path."""
    result: dict[str, str] = {}
    own = [] if stored_schema is None else [field for field in schema if field.name in stored_schema.names]
    pending = [] if stored_schema is None else _stored_children("", own, stored_schema)
    while pending:
        path, field, retained = pending.pop()
        if is_shredded_type(retained.type):
            result[path] = str(schema_of_storage(retained.type))
        elif is_marked(field):
            continue
        elif pa.types.is_struct(field.type):
            pending += _stored_children(f"{path}.", field.type, retained.type)
        elif pa.types.is_map(field.type):
            pending.append((f"{path}.key_value.value", field.type.item_field, retained.type.item_field))
        elif hasattr(field.type, "value_field"):
            pending.append((f"{path}.list.element", field.type.value_field, retained.type.value_field))
    return result


def _stored_children(
    prefix: str, fields: Iterable[pa.Field], stored_fields: Iterable[pa.Field]
) -> list[tuple[str, pa.Field, pa.Field]]:
    """Return a tuple of path, field and stored field for each child, in reverse order."""
    both = zip(fields, stored_fields, strict=True)
    return [(f"{prefix}{field.name}", field, retained) for field, retained in both][::-1]


def inexact_paths(choice: Shredding) -> list[str]:
    """Return the names of FLOAT and DOUBLE columns, if they cannot store the exact numbers of JSON text."""
    if choice.schema is None or choice.coerce == "json":
        return []
    nodes = walk(choice.schema)
    return [name for _, name, node in nodes if isinstance(node, Primitive) and pa.types.is_floating(node.type)]


def _are_json_nulls(chunk: ColumnMetaData) -> bool:
    """Return whether the bounds of a residual prove that all its values are JSON nulls."""
    bounds = chunk.statistics
    return bounds is not None and bounds.min_value == bounds.max_value == _JSON_NULL


def _count_present(chunk: ColumnMetaData) -> int | None:
    """Return the number of non-null values of a chunk, or None if it is unknown."""
    statistics = chunk.statistics
    nulls = None if statistics is None else statistics.null_count
    return None if nulls is None else chunk.num_values - nulls


def _format_leaf_path(path: tuple[str, ...], columns: set[str]) -> str | None:
    """Format the path of a ``typed_value`` leaf within one of the ``columns``; return None for other leaves."""
    for length in range(1, len(path)):
        column = ".".join(path[:length])
        if column not in columns or path[length] != "typed_value":
            continue
        steps: list[str | int | Wildcard] = []
        at = length + 1  # after a typed_value, which contains fields or a list, or is a leaf
        while at < len(path):
            is_element = path[at : at + 3] == ("list", "element", "typed_value")
            steps.append(Wildcard.ELEMENTS if is_element else path[at])
            at += 3 if is_element else 2
        return f"{column}: {format_path(steps)}"
    return None
