"""GeoJSON input of ``pqext convert``: the features of several files as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.cli.inputs import Source, Stream, name_of, open_bytes
from pqext.core.base.errors import CorruptFileError, SchemaMismatchError
from pqext.core.io.sources.streams import codec_errors

if TYPE_CHECKING:
    import pyarrow as pa

_UNUSED = "\0geometry"
"""A column name that no property can have."""


def read_geojson(
    sources: Sequence[Source], properties: str | None = None, types: Mapping[str, pa.DataType] | None = None
) -> Stream:
    """Read the features of GeoJSON files into memory: their geometries, and a column per property.

    The geometry column is called ``geometry``, ``geom`` or ``geom_``: the first name that no property has.
    Times have the types that they would have in a single file.

    Args:
        sources: The files.
        properties: Name of a single column of JSON text for all properties.
        types: Types of columns of the file that the features are appended to. Times have these types.

    Raises:
        SchemaMismatchError: If a property has incompatible types in two files, or times that its type in ``types``
            cannot represent.
    """
    from pqext.geo.text.geojson import read_feature_table
    from pqext.geo.text.times import infer_times

    tables: list[pa.Table] = []
    for source in sources:
        with codec_errors(name_of(source)):
            text: Any = source if isinstance(source, str) else open_bytes(source).read()
        tables.append(read_feature_table(text, _UNUSED, properties))
        if tables[-1].schema.field(0).metadata != tables[0].schema.field(0).metadata:
            reason = f"the CRS differs from the CRS of {name_of(sources[0])}"
            raise CorruptFileError(reason, path=name_of(source))
    texts = _concatenate(tables, sources)
    table = infer_times(texts)
    for name, type in (types or {}).items():
        if name in texts.column_names and _is_text_or_time(type) and _is_text_or_time(texts.schema.field(name).type):
            for source, part in zip(sources, tables, strict=True):
                _check_times(part, name, type, name_of(source))
            position = texts.column_names.index(name)
            table = table.set_column(position, texts.schema.field(name).with_type(type), texts[name].cast(type))
    name = next(name for name in ("geometry", "geom", "geom_") if name not in table.column_names)
    table = table.rename_columns([name, *table.column_names[1:]])
    return Stream(table.schema, iter(table.to_batches()))


def _concatenate(tables: list[pa.Table], sources: Sequence[Source]) -> pa.Table:
    """Concatenate tables whose columns may differ, widening their types.

    Raises:
        SchemaMismatchError: With the file and the column, if the types of a property are incompatible.
    """
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        fields: dict[str, pa.Field] = {}
        for source, table in zip(sources, tables, strict=True):
            for field in table.schema:
                fields[field.name] = _unify(fields.get(field.name, field), field, name_of(source))
        raise


def _unify(field: pa.Field, other: pa.Field, path: str) -> pa.Field:
    """Return a field for the values of both fields. Raises ``SchemaMismatchError`` for incompatible types."""
    import pyarrow as pa

    try:
        return pa.unify_schemas([pa.schema([field]), pa.schema([other])], promote_options="permissive").field(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise SchemaMismatchError(
            f"the property has type {other.type}, but {field.type} in preceding files; convert the files separately, "
            "or pass --properties NAME to store all properties in a VARIANT column",
            path=path, column=field.name,
        ) from None


def _check_times(table: pa.Table, name: str, type: pa.DataType, path: str) -> None:
    """Raise ``SchemaMismatchError`` if a text in a column cannot be cast to ``type``, a temporal type."""
    import pyarrow as pa

    if name not in table.column_names:
        return
    try:
        table[name].cast(type)
    except pa.ArrowInvalid as error:
        reason = str(error).partition(": expected")[0]
        raise SchemaMismatchError(
            f"the property cannot be appended to a column of type {type}: {reason}; convert the input to a new file "
            "without --append",
            path=path, column=name,
        ) from None


def _is_text_or_time(type: pa.DataType) -> bool:
    import pyarrow as pa

    return any(test(type) for test in (pa.types.is_string, pa.types.is_date, pa.types.is_timestamp))
