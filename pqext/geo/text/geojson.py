"""Convert geometries to and from GeoJSON (RFC 7946), in arrays and as feature collections.

GeoJSON is always in longitude and latitude on WGS84, OGC:CRS84. It does not support M and NaN.

Properties of features become columns, with inferred types and exact integers. The size of sparse tables is limited.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from os import PathLike
from pathlib import Path
from secrets import randbits
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from pqext.core.base.errors import GeometryError, LimitError
from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text
from pqext.core.io.sources.streams import codec_errors, open_stream
from pqext.core.schema.arrow_check import check_table
from pqext.geo import crs as crs_
from pqext.geo.kernels.features import read_features
from pqext.geo.kernels.geojson import to_wkb
from pqext.geo.kernels.property_paths import measure
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.text.times import infer_times
from pqext.geo.text.wkt import text_chunks, write
from pqext.geo.types import geometry_field, type_of
from pqext.geo.wkb import GeometryArray, as_columns, assemble

_BINARY = (pa.binary(), pa.large_binary())
_BATCH_ROWS = 8192
_LEAST_CELLS = 1 << 24
_CELLS_PER_BYTE = 8
"""Maximum number of table cells per byte of text. Larger tables consist mostly of nulls."""
_MAX_PATHS = 1 << 22
_DECIMAL = pa.decimal128(38, 0)
_INT64 = 1 << 63


def from_geojson(array: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> GeometryArray:
    """Convert GeoJSON geometries or features in an Arrow array or a list of strings to ISO WKB in a ``binary`` array.

    Null, the text ``null`` and a feature without geometry become null. A geometry is XYZ if any of its positions has
    three numbers, with NaN as the Z of positions with two. Further numbers and members that GeoJSON does not define are
    ignored. Use :func:`read_geojson` for collections. The result is ``large_binary`` for 2 GiB and more. Raises
    GeometryError with row and byte if the text is not GeoJSON, and TypeError if ``array`` is not an array of strings.
    """
    if isinstance(array, (list, tuple)):
        array = text_chunks(array)[0]
    chunks = text_chunks(array)
    made = ((len(chunk), *_to_buffers(column)) for chunk, column in zip(chunks, as_columns(chunks), strict=True))
    return assemble(array, made, _BINARY)


def _to_buffers(column: WkbColumn) -> tuple[pa.Buffer | None, Any, Any]:
    data, offsets, flags = to_wkb(column)
    return bitmap(flags), data, offsets


def bitmap(flags: Any) -> pa.Buffer | None:
    """Return a validity bitmap from one byte per row; None if all bytes are set."""
    valid = np.frombuffer(flags, np.uint8)
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def to_geojson(array: GeometryArray, precision: int | None = None) -> GeometryArray:
    """Convert geometries to GeoJSON in a ``string`` array; null remains null.

    M, NaN in Z and empty points of a MultiPoint are omitted, because GeoJSON cannot represent them. Numbers,
    ``precision`` and the type of the result are as in :func:`to_wkt`. Coordinates are not transformed: they must be
    longitudes and latitudes. Raises GeometryError with row and byte if WKB is invalid, and if other coordinates are NaN
    or infinite.

    >>> from pqext.geo import from_points
    >>> to_geojson(from_points([1.23456], [2]), precision=2).to_pylist()
    ['{"type":"Point","coordinates":[1.23,2]}']
    """
    return write(array, json=True, precision=precision)


def read_geojson(
    source: str | PathLike[str] | bytes, geometry: str = "geometry", *, properties: str | None = None
) -> pa.Table:
    """Read the features of a file or text into a table: a column ``geometry`` and one column per property.

    ``source`` is a path, or the text itself, which begins with ``{``; compressed files are decompressed. It contains a
    FeatureCollection, or a sequence of features and geometries, as in GeoJSON text sequences (RFC 8142). The CRS is
    OGC:CRS84, or the system in the obsolete member ``crs`` of a collection. Properties have the types that
    ``pyarrow.json`` infers; integers beyond INT64 become DECIMAL(38,0), or text if they have more than 38 digits, and a
    property of mixed types becomes a string column of JSON text. ISO 8601 dates become dates and times timestamps: in
    UTC if all times of the property have an offset from UTC, without a zone if none has; otherwise they remain strings.
    The unit is seconds, or milliseconds, microseconds or nanoseconds if a fraction of a second has up to 3, 6 or 9
    digits; times with more digits, or in years that the unit cannot represent, remain strings. If features have an
    ``id``, it becomes a column unless a property has that name. ``properties`` is the name of a single string column
    for all properties as JSON text, for features with sparse properties. The text is held in memory. Raises
    GeometryError with the index of the feature as row and the byte in the text, and if ``crs`` is unknown; LimitError
    if the properties would result in a table that is mostly nulls; ValueError if a path is not a regular file, or a
    property is called like the geometry column.

    >>> from pqext.geo import x
    >>> table = read_geojson(
    ...     '{"type": "Feature", "properties": {"name": "Suva", "founded": "1849-01-01"},'
    ...     ' "geometry": {"type": "Point", "coordinates": [178.44, -18.14]}}'
    ... )
    >>> table["name"].to_pylist(), str(table["founded"].type), x(table["geometry"]).to_pylist()
    (['Suva'], 'date32[day]', [178.44])
    """
    return infer_times(read_feature_table(source, geometry, properties))


def read_feature_table(source: str | PathLike[str] | bytes, geometry: str, properties: str | None) -> pa.Table:
    """Read features like :func:`read_geojson`, with times as strings."""
    try:
        return _table(_text(source), geometry, properties)
    except (GeometryError, LimitError) as error:
        error.locate(path=None if _is_text(source) else os.fsdecode(source))
        raise


def _table(text: bytes, geometry: str, column: str | None) -> pa.Table:
    data, offsets, flags, properties, ids, crs, longest = read_features(text)
    rows = len(flags)
    shape = pa.nulls(rows, pa.binary())
    wkb = assemble(shape, [(rows, bitmap(flags), data, offsets)], _BINARY)
    if column is None:
        table = objects(properties, rows, longest)
    else:
        table = pa.table({column: as_text(properties, rows).cast(pa.string())})
    if ids is not None and "id" not in table.column_names:
        table = table.append_column("id", objects(ids, rows, longest).column("id"))
    if geometry in table.column_names:
        raise ValueError(
            f"a property has the name of the geometry column, {geometry!r}; pass a different name with geometry="
        )
    return table.add_column(0, geometry_field(geometry, _crs(bytes(crs).splitlines())).with_type(wkb.type), wkb)


def _crs(members: list[bytes]) -> str | None:
    """Return the CRS in the ``crs`` members of collections. RFC 7946 removed this member from GeoJSON."""
    try:
        results = {_parse_crs_member(json.loads(member)) for member in members}
    except (RecursionError, ValueError) as error:
        raise GeometryError(f"the crs member cannot be parsed: {error}", rule="geo.geojson.crs") from None
    crs = results.pop() if results else None
    if results or crs_.is_geographic(crs) is None:
        fault = "several systems" if results else f"an unknown system: {excerpt(crs or '')!r}"
        raise GeometryError(f"the crs member names {fault}; correct or remove the member", rule="geo.geojson.crs")
    return crs


def _parse_crs_member(crs: Any) -> str | None:
    properties = crs.get("properties") if isinstance(crs, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if crs is not None and not isinstance(name, str):
        raise ValueError("the member 'name' is missing")
    return crs_.normalize(name)


def _is_text(source: Any) -> bool:
    if isinstance(source, str):
        return source.lstrip("\ufeff \t\r\n\x1e").startswith("{")
    return isinstance(source, (bytes, bytearray, memoryview))


def _text(source: Any) -> bytes:
    if _is_text(source):
        try:
            return source.encode() if isinstance(source, str) else bytes(source)
        except UnicodeEncodeError:
            raise GeometryError("the text is not valid Unicode: it contains lone surrogates") from None
    if isinstance(source, (str, PathLike)):
        if (path := Path(source)).exists() and not (path.is_file() or path.is_dir()):
            raise ValueError(f"{source} is not a regular file: read it and pass the text")
        with codec_errors(str(path)), open_stream(str(path)) as file:
            return bytes(file.read())
    raise TypeError(f"GeoJSON must be a path or text, not {type(source).__name__}")


def write_geojson(
    table: pa.Table, dest: Any, *, geometry: str | None = None, id: str | None = None, precision: int | None = None
) -> None:
    """Write ``table`` as a FeatureCollection, with one feature per line, to a path or a binary file object.

    ``geometry`` is the name of the geometry column, by default the only column with a geometry type. ``id`` is the name
    of a column that becomes the features' id. All other columns become properties: dates and times as ISO 8601,
    decimals as numbers, NaN and infinite numbers as null, and dictionary-encoded values decoded. ``precision`` is the
    number of decimals of rounded coordinates. The file appears at its path when it is complete. Raises GeometryError if
    a column's CRS is not OGC:CRS84 (see :func:`pqext.geo.transform`) and in the cases of :func:`to_geojson`, TypeError
    for columns that JSON cannot represent, and ValueError for columns that do not exist.

    >>> from pqext.geo import from_points
    >>> table = pa.table({"name": ["Suva"], "geometry": from_points([178.44], [-18.14])})
    >>> write_geojson(table, "towns.geojson")
    >>> read_geojson("towns.geojson")["name"].to_pylist()
    ['Suva']
    """
    from pqext.core.io.sink import Sink

    name = _geometry_column(table.schema, geometry)
    if id is not None and id not in table.column_names:
        raise ValueError(f"id: the table has no column {id!r}")
    result = type_of(table.schema.field(name))
    if result is not None and not crs_.equal(result.crs, crs_.DEFAULT):
        message = f"GeoJSON requires OGC:CRS84, not {result.crs}; transform with geo.transform"
        raise GeometryError(message, rule="geo.geojson.crs")
    for field in table.schema:
        if field.name != name:
            _check_type(field.type, field.name)
    check_table(table)
    with Sink(dest) as sink:
        sink.write(b'{"type":"FeatureCollection","features":[')
        separator = "\n"
        row = 0
        for batch in table.to_batches(_BATCH_ROWS):
            try:
                lines = list(_features(batch, name, id, precision))
            except GeometryError as error:
                raise error.shift_row(row) from None
            if lines:
                sink.write((separator + ",\n".join(lines)).encode())
                separator = ",\n"
            row += batch.num_rows
        sink.write(b"\n]}\n")


def _geometry_column(schema: pa.Schema, name: str | None) -> str:
    if name is not None:
        if schema.get_field_index(name) < 0:
            raise ValueError(f"column {name!r} does not exist or is ambiguous")
        return name
    marked = [field.name for field in schema if type_of(field) is not None]
    if len(marked) != 1:
        raise ValueError(f"{len(marked) or 'no'} columns have a geometry type; name the geometry column with geometry=")
    return str(marked[0])


def _features(batch: pa.RecordBatch, name: str, id: str | None, precision: int | None) -> Iterator[str]:
    geometries = to_geojson(batch.column(name), precision).to_pylist()
    names = [other for other in batch.schema.names if other not in (name, id)]
    columns = [_values(batch.column(other), other) for other in names]
    ids = None if id is None else _values(batch.column(id), id)
    for row, geometry in enumerate(geometries):
        properties = json.dumps(dict(zip(names, (column[row] for column in columns), strict=True)), ensure_ascii=False)
        head = '{"type":"Feature"'
        if ids is not None and ids[row] is not None:
            head += f',"id":{json.dumps(ids[row], ensure_ascii=False)}'
        yield f'{head},"geometry":{geometry or "null"},"properties":{properties}}}'


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_PLAIN = (*_TEXTS, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
_OTHERS = (pa.types.is_floating, pa.types.is_decimal, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)


def _check_type(type: pa.DataType, path: str) -> None:
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    if pa.types.is_dictionary(type):
        type = type.value_type
    if pa.types.is_struct(type):
        for field in type:
            _check_type(field.type, f"{path}.{field.name}")
    elif pa.types.is_map(type):
        if not any(test(type.key_type) for test in _TEXTS):
            raise TypeError(f"{path!r}: JSON cannot represent a map with {type.key_type} keys; omit the column")
        _check_type(type.item_type, path)
    elif hasattr(type, "value_type"):
        _check_type(type.value_type, path)
    elif not any(test(type) for test in (*_PLAIN, *_OTHERS)):
        raise TypeError(f"{path!r}: JSON cannot represent {type}; omit the column")


def _values(array: pa.Array, name: str) -> list[Any]:
    if pa.types.is_timestamp(array.type):  # Python's datetime does not support nanoseconds
        texts = pa.compute.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
        with_colon = pa.compute.replace_substring_regex(texts, r"([+-]\d\d)(\d\d)$", r"\1:\2")  # of the offset from UTC
        return list(with_colon.to_pylist())
    nested = {"maps_as_pydicts": "strict"} if pa.types.is_nested(array.type) else {}
    try:
        values: list[Any] = array.to_pylist(**nested)
    except OverflowError as error:
        raise ValueError(
            f"column {escape_text(name)!r} contains a {array.type} value outside the years 1 to 9999: {error}; omit "
            "the column or cast it to text"
        ) from None
    except ValueError as error:
        raise ValueError(f"column {escape_text(name)!r} contains an invalid {array.type} value: {error}") from None
    except KeyError:  # pyarrow's error for a map as a dictionary
        raise ValueError(
            f"column {escape_text(name)!r} contains a map with duplicate keys, which a JSON object cannot represent: "
            "omit the column or cast it to a list of structs"
        ) from None
    return values if any(test(array.type) for test in _PLAIN) else [_json_value(value) for value in values]


def _json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _json_value(element) for key, element in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, list) else value


def objects(lines: Any, rows: int, max_length: int) -> pa.Table:
    """Parse JSON objects, one per line, into a table. Times are strings.

    Integers beyond INT64 become DECIMAL(38,0), or text if they have more digits. Raises ``LimitError`` if the table
    would be far larger than the text.
    """
    cells, names, big = measure(lines, randbits(64), _MAX_PATHS) if rows else (0, 0, [])
    if names >= _MAX_PATHS or cells > max(_LEAST_CELLS, _CELLS_PER_BYTE * len(memoryview(lines))):
        raise LimitError(
            f"the features have {names:,} property names, which would make {cells:,.0f} cells, mostly nulls; pass "
            "properties=NAME to store all properties in one column"
        )
    options = pajson.ReadOptions(use_threads=True, block_size=max(1 << 20, 2 * max_length))
    try:
        table = pajson.read_json(BytesIO(lines), options) if rows else pa.table({})
        exact_fields = _exact_fields(table.schema, big)
        fields = {field.name: field.with_type(_replace_timestamps(field.type)) for field in exact_fields}
        for field in table.schema:
            if field.name not in fields and (type := _replace_timestamps(field.type)) != field.type:
                fields[field.name] = field.with_type(type)
        if fields:
            schema = pa.schema(fields.values())
            parsing = pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
            columns = pajson.read_json(BytesIO(lines), options, parsing)
            for number, field in enumerate(table.schema):
                if field.name in fields:
                    table = table.set_column(number, field.name, columns[field.name])
    except pa.ArrowInvalid:  # a column of mixed types, or an integer with more than 38 digits
        try:
            table = _property_table([json.loads(line) for line in bytes(lines).splitlines()])
        except (RecursionError, ValueError) as error:  # a lone surrogate, or more digits than Python accepts
            raise GeometryError(f"the properties cannot be parsed: {error}", rule="geo.geojson.features") from None
    if not table.num_columns:
        return pa.Table.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return table


def as_text(lines: Any, rows: int) -> pa.Array:
    """Split JSON objects, one per line, into a string array. Raises ``GeometryError`` if the text is not UTF-8."""
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    texts = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(lines))
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise GeometryError(f"the properties are not UTF-8: {error}", rule="geo.geojson.features") from None
    return pa.compute.utf8_rtrim(texts, "\n")


def _exact_fields(schema: pa.Schema, big_fields: list[tuple[bytes | None, ...]]) -> list[pa.Field]:
    """Return the fields of ``schema`` that contain integers beyond INT64, with a decimal type for these integers."""
    exact: dict[str, pa.Field] = {}
    for path in big_fields:
        top, *below = [None if name is None else json.loads(b'"' + name + b'"') for name in path]
        field = exact.get(str(top)) or schema.field(top)
        exact[str(top)] = field.with_type(_replace_with_decimal(field.type, below))
    return list(exact.values())


def _replace_with_decimal(type: pa.DataType, path: list[str | None]) -> pa.DataType:
    if not path:
        return _DECIMAL if pa.types.is_float64(type) else type
    if path[0] is None:
        return pa.list_(_replace_with_decimal(type.value_type, path[1:]))
    fields = [
        item if item.name != path[0] else item.with_type(_replace_with_decimal(item.type, path[1:])) for item in type
    ]
    return pa.struct(fields)


def _replace_timestamps(type: pa.DataType) -> pa.DataType:
    """Return a type with strings instead of timestamps, because ``pyarrow.json`` drops the UTC offsets of times."""
    if pa.types.is_timestamp(type):
        return pa.string()
    if pa.types.is_list(type):
        return pa.list_(_replace_timestamps(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([item.with_type(_replace_timestamps(item.type)) for item in type])
    return type


def _property_table(objects: list[dict[str, Any]]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for element in objects for name in element):
        columns[name] = _column([item.get(name) for item in objects])
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    integers = [value for value in values if value is not None]
    if integers and all(type(value) is int for value in integers):
        if -_INT64 <= min(integers) <= max(integers) < _INT64:
            return pa.array(values, pa.int64())
        try:
            return pa.array(values, _DECIMAL)
        except (pa.ArrowInvalid, OverflowError):
            return pa.array([None if value is None else str(value) for value in values], pa.string())
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
