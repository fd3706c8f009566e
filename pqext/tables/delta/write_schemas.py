"""Convert Arrow schemas to Delta schemas, check rows against a table, and map columns to their names in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.marks import FIELD_ID
from pqext.dataset.writing.appending import drop_columns, empty_file
from pqext.geo import geoparquet
from pqext.geo.geoarrow import encoding_of
from pqext.geo.types import GeospatialType, describe_difference, mark, type_of
from pqext.geo.wkb import holds_bytes
from pqext.tables.delta.schemas import COVERING, GEOMETRY, ID, PHYSICAL_NAME, covering_columns
from pqext.variant.types import is_marked, storage_type

Struct = Mapping[str, Any]
_DEFAULT_INDEXED = 32
_PRIMITIVES: Mapping[pa.DataType, str] = {
    pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string", pa.binary(): "binary",
    pa.large_binary(): "binary", pa.binary_view(): "binary", pa.int64(): "long", pa.int32(): "integer",
    pa.int16(): "short", pa.int8(): "byte", pa.float32(): "float", pa.float64(): "double", pa.bool_(): "boolean",
    pa.date32(): "date",
}
_ADVICE: Mapping[str, str] = {
    "uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "decimal128(20, 0)", "halffloat": "float32",
    "date64[ms]": "date32", "null": "the type of the column",
}


def delta_struct(schema: pa.Schema) -> dict[str, Any]:
    """Convert an Arrow schema to the JSON of a Delta schema. Raises ``UnsupportedError`` for unsupported types."""
    lowered: dict[str, str] = {}
    for name in schema.names:
        if name.lower() in lowered:
            raise UnsupportedError(
                f"columns {lowered[name.lower()]!r} and {name!r} have the same name in Delta, because it ignores case; "
                "rename one of the columns", feature="repeated column names", column=name,
            )
        lowered[name.lower()] = name
    return {"type": "struct", "fields": [_delta_field(field, field.name) for field in schema]}


def struct_of_rows(
    schema: pa.Schema, by: Sequence[str], options: Mapping[str, Any], table: pa.Schema | None = None
) -> dict[str, Any]:
    """Return the Delta schema of rows with ``schema``, including the covering columns that the writer adds.

    The CRS and edges in the writer's ``options`` take precedence over those in ``schema``. If neither states a CRS and
    edges, the CRS and edges of the existing ``table`` apply. ``by`` are the partition columns.
    """
    if table is not None:
        schema = pa.schema(
            [_with_types(field, table.field(field.name)) if field.name in table.names else field for field in schema],
            schema.metadata,
        )
    with ParquetFile(empty_file(drop_columns(schema, by), {**options, "sorting": ()})) as file:
        stored = file.arrow_schema
    covering = [field for field in stored if field.name not in schema.names]
    coverings = geoparquet.coverings((stored.metadata or {}).get(geoparquet.KEY.encode(), b"").decode())
    chosen = {name for name in stored.names for path in options["geometry"] if f"{path}.".startswith(f"{name}.")}
    rows = [stored.field(field.name) if field.name in chosen else field for field in schema]
    struct = delta_struct(pa.schema([*rows, *covering]))
    for member in struct["fields"]:
        if member["name"] in coverings:
            member["metadata"][COVERING] = coverings[member["name"]][0][0]
    return struct


def _with_types(field: pa.Field, target: pa.Field) -> pa.Field:
    """Copy geometry types from ``target`` to unannotated binary columns of ``field``, including fields of structs."""
    type = type_of(target)
    if type is not None:
        return mark(field, type) if type_of(field) is None and holds_bytes(field.type) else field
    if pa.types.is_struct(field.type) and pa.types.is_struct(target.type) and not is_marked(field):
        names = {child.name for child in target.type}
        children = [
            _with_types(child, target.type.field(child.name)) if child.name in names else child for child in field.type
        ]
        return field.with_type(pa.struct(children))
    return field


def with_coverings(options: Mapping[str, Any], struct: Struct) -> dict[str, Any]:
    """Return a copy of ``options`` with which the writer computes the covering columns of a table."""
    geometry = dict(options["geometry"])
    types = {member["name"]: member["type"] for member in struct["fields"]}
    for name, covering in covering_columns(struct).items():
        choice = geometry.get(name, {})
        choice = choice if isinstance(choice, Mapping) else {"crs": choice}
        geometry[name] = {**choice, "covering": {"name": covering, "type": types[covering]["fields"][0]["type"]}}
    return {**options, "geometry": geometry, "geoparquet": "1.1"}


def _delta_field(field: pa.Field, path: str) -> dict[str, Any]:
    metadata = {}
    geometry = type_of(field)
    if is_marked(field):
        type: Any = "variant"
    elif geometry is not None or encoding_of(field) is not None:
        type = "binary"
        if geometry is not None:
            metadata = {GEOMETRY: geometry.extension_metadata()}
    else:
        type = _delta_type(field.type, path)
    return {"name": field.name, "type": type, "nullable": field.nullable, "metadata": metadata}


def _delta_type(type: pa.DataType, path: str) -> Any:
    type = storage_type(type)
    if pa.types.is_dictionary(type):
        return _delta_type(type.value_type, path)
    if type in _PRIMITIVES:
        return _PRIMITIVES[type]
    if pa.types.is_timestamp(type) and type.unit != "ns":
        return "timestamp_ntz" if type.tz is None else "timestamp"
    if pa.types.is_decimal(type) and type.precision <= 38 and 0 <= type.scale <= type.precision:
        return f"decimal({type.precision},{type.scale})"
    if pa.types.is_fixed_size_binary(type):
        return "binary"
    if pa.types.is_struct(type):
        return {"type": "struct", "fields": [_delta_field(child, f"{path}.{child.name}") for child in type]}
    if pa.types.is_map(type):
        key, value = (_delta_field(child, path) for child in (type.key_field, type.item_field))
        return {
            "type": "map", "keyType": key["type"], "valueType": value["type"], "valueContainsNull": value["nullable"]
        }
    if hasattr(type, "value_field"):
        element = _delta_field(type.value_field, path)
        return {"type": "array", "elementType": element["type"], "containsNull": element["nullable"]}
    target = "timestamp('us')" if pa.types.is_timestamp(type) else _ADVICE.get(str(type))
    advice = f"cast it to {target}" if target else "cast it to a type of Delta, or remove the column"
    raise UnsupportedError(f"Delta has no type for {type}; {advice}", feature="Arrow types in Delta", column=path)


def check_columns(rows: Struct, table: Struct, name: str) -> None:
    """Raise ``SchemaMismatchError`` unless rows with the Delta schema ``rows`` can be added to ``table``."""
    row_fields = {member["name"]: member for member in rows["fields"]}
    table_fields = {member["name"]: member for member in table["fields"]}
    for column in table_fields:
        if column not in row_fields:
            raise _mismatch(f"the rows lack column {column!r}{did_you_mean(column, row_fields)}; add it", name, column)
    for column in row_fields:
        if column not in table_fields:
            hint = did_you_mean(column, table_fields) or f"; its columns are {', '.join(table_fields)}"
            raise _mismatch(f"the table has no column {column!r}{hint}", name, column)
    for column, member in table_fields.items():
        difference = _geometry_difference(row_fields[column], member, column)
        if difference:
            raise _mismatch(f"{difference}; transform it with pqext.geo.transform", name, column)
        difference = _difference(row_fields[column]["type"], member["type"], column)
        if difference:
            raise _mismatch(f"{difference}; cast the column", name, column)


def _mismatch(message: str, name: str, column: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"{message}; nothing was written", path=name, column=column)


def _geometry_difference(row_field: Struct, table_field: Struct, path: str) -> str | None:
    """Describe the first difference in CRS or edges between geometry fields, including fields of structs."""
    texts = [field.get("metadata", {}).get(GEOMETRY) for field in (row_field, table_field)]
    if None not in texts:
        types = [GeospatialType.from_extension_metadata(text) for text in texts]
        rows, table = describe_difference(*types)
        return None if types[0] == types[1] else f"{path} has {rows} in the rows, but {table} in the table"
    fields, others = (
        {} if isinstance(field["type"], str) else {child["name"]: child for child in field["type"].get("fields", ())}
        for field in (row_field, table_field)
    )
    differences = (
        _geometry_difference(child, others[name], f"{path}.{name}") for name, child in fields.items() if name in others
    )
    return next((difference for difference in differences if difference is not None), None)


def _difference(row_type: Any, table_type: Any, path: str) -> str | None:
    """Describe the first difference between two types. Required fields of rows match nullable fields of the table."""
    if isinstance(row_type, str) or isinstance(table_type, str):
        same = isinstance(row_type, str) and isinstance(table_type, str) and row_type == table_type.replace(" ", "")
        return None if same else f"{path} is {_name(row_type)} in the rows and {_name(table_type)} in the table"
    if row_type["type"] != table_type["type"]:
        return f"{path} is {_name(row_type)} in the rows and {_name(table_type)} in the table"
    if row_type["type"] == "struct":
        names = [[member["name"] for member in type["fields"]] for type in (row_type, table_type)]
        if names[0] != names[1]:
            return f"{path} has the fields {', '.join(names[0])} in the rows and {', '.join(names[1])} in the table"
        for first, second in zip(row_type["fields"], table_type["fields"], strict=True):
            inner = f"{path}.{first['name']}"
            if first["nullable"] and not second.get("nullable", True):
                return f"{inner} is nullable in the rows but not in the table"
            if (result := _difference(first["type"], second["type"], inner)) is not None:
                return result
        return None
    nullable, parts = "valueContainsNull", ["keyType", "valueType"]
    if row_type["type"] == "array":
        nullable, parts = "containsNull", ["elementType"]
    if row_type[nullable] and not table_type[nullable]:
        return f"the values in {path} are nullable in the rows but not in the table"
    differences = (_difference(row_type[part], table_type[part], path) for part in parts)
    return next((difference for difference in differences if difference is not None), None)


def _name(type: Any) -> str:
    return type if isinstance(type, str) else str(type["type"])


def physical_field(field: pa.Field, member: Struct) -> pa.Field:
    """Return ``field`` and its children with the physical names and ids in the column mapping of ``member``."""
    metadata = member.get("metadata", {})
    marks = {**(field.metadata or {})}
    if ID in metadata:
        marks[FIELD_ID] = str(metadata[ID]).encode()
    type = field.type if is_marked(field) else _physical_type(field.type, member["type"])
    name = metadata.get(PHYSICAL_NAME, member["name"])
    return pa.field(name, type, field.nullable, marks or None)


def _physical_type(type: pa.DataType, delta: Any) -> pa.DataType:
    if isinstance(delta, str):
        return type
    if delta["type"] == "struct":
        return pa.struct([physical_field(child, part) for child, part in zip(type, delta["fields"], strict=True)])
    if delta["type"] == "map":
        key = pa.field("key", _physical_type(type.key_type, delta["keyType"]), nullable=False)
        value = _physical_type(type.item_type, delta["valueType"])
        return pa.map_(key, pa.field("value", value, type.item_field.nullable))
    inner = type.value_field
    return pa.list_(inner.with_type(_physical_type(inner.type, delta["elementType"])))


def rename_options(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Replace column names in the keys of writer options with the names of the columns in files."""
    result = {}
    for option, value in options.items():
        if isinstance(value, Mapping) and option not in ("key_value_metadata", "annotations", "extensions"):
            value = {_rename(key, names): choice for key, choice in value.items()}
        result[option] = value
    return result


def _rename(path: str, names: Mapping[str, str]) -> str:
    top, dot, rest = path.partition(".")
    return names[path] if path in names else f"{names.get(top, top)}{dot}{rest}"


def indexed_columns(
    schema: pa.Schema, configuration: Mapping[str, str | None], version: int | None, name: str
) -> list[str]:
    """Return the columns for which the table properties request statistics in the log.

    Raises ``CorruptFileError`` if a property of ``version`` of the table ``name`` is not an integer.
    """
    column_list = configuration.get("delta.dataSkippingStatsColumns")
    if column_list:
        tops = {column.strip().strip("`") for column in column_list.split(",")}
        return [column for column in schema.names if column in tops]
    text = configuration.get("delta.dataSkippingNumIndexedCols")
    try:
        limit = _DEFAULT_INDEXED if text is None else int(text)
    except ValueError:
        raise CorruptFileError(
            f"version {version} has the property delta.dataSkippingNumIndexedCols = {text!r}, which is not an "
            "integer; correct it with deltalake's alter.set_table_properties", path=name,
        ) from None
    result: list[str] = []
    leaves = 0
    for field in schema:
        leaves += _leaves(field)
        if limit >= 0 and leaves > limit:
            break
        result.append(field.name)
    return result


def _leaves(field: pa.Field) -> int:
    if pa.types.is_struct(field.type) and b"ARROW:extension:name" not in (field.metadata or {}):
        return sum(map(_leaves, field.type))
    return 1
