"""Read and merge GeoParquet metadata, the description of geometry columns in key-value metadata.

Versions before 2.0 describe plain columns of WKB or coordinates. Version 2.0 describes columns with Parquet's own
types. This module writes 1.1 and 2.0; :mod:`pqext.geo.geoparquet_types` converts descriptions to types.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.geometries import NAMES
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.storage import COVERING_FIELDS
from pqext.geo.summary import merge, union
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.core.format.metadata import ColumnMetaData
    from pqext.core.options.read_write import WriteOptions
    from pqext.core.schema.annotations import WrittenColumn
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode
    from pqext.geo.kernels.boxes import Summary
    from pqext.geo.storage import GeometryStorage

KEY = "geo"
VERSIONS = {"1.1": "1.1.0", "2.0": "2.0.0"}
VERSION = VERSIONS["2.0"]
LONGEST = 16 << 20
_SHORT = 64 << 10
"""Maximum length of texts in the cache shared by row groups. Only the last longer text is cached."""
_MEANING = {"encoding": None, "crs": "OGC:CRS84", "edges": "planar", "epoch": None}
"""Keys that define a column independently of its rows, with their defaults."""
_OF_VALUES = ("orientation", "epoch", "covering")
"""Keys that remain valid if the values of a row are rewritten."""


def version(options: WriteOptions) -> Literal["1.1", "2.0"] | None:
    """Return the GeoParquet version of the metadata to write, or None to write no metadata."""
    if options.geoparquet is None and KEY in options.key_value_metadata:
        return None
    if options.geoparquet == "1.1":
        return "1.1"
    return None if options.geoparquet is False else "2.0"


def check_edges(type: GeospatialType, path: str) -> None:
    """Raise GeometryError if GeoParquet 1.1 cannot represent the edges of a column."""
    if type.edges not in ("planar", "spherical"):
        error = GeometryError(f"GeoParquet 1.1 has only planar or spherical edges, not {type.edges}; use version 2.0")
        error.locate(column=path)
        raise error


def check_dimensions(summary: Summary) -> None:
    """Raise GeometryError if a column contains geometries with M, which GeoParquet 1.1 does not support."""
    if any(code >= 2000 for code in summary.types):
        raise GeometryError("GeoParquet 1.1 does not support geometries with M; drop M, or write version 2.0")


def describe_type(type: GeospatialType, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the encoding, CRS and edges that describe a column of ``type``."""
    description: dict[str, Any] = {"encoding": "WKB"}
    if type.crs is not None:
        description["crs"] = crs_.to_projjson(type.crs, properties)
    if not type.planar:
        description["edges"] = type.edges
    return description


def numbers(box: BoundingBox) -> list[Any]:
    """Return a box as a GeoParquet ``bbox``: all minima, then all maxima, with Z but without M."""
    low, high = [box.xmin, box.ymin, box.zmin], [box.xmax, box.ymax, box.zmax]
    depth = 2 if box.zmin is None else 3
    return low[:depth] + high[:depth]


def parse_metadata(text: str) -> dict[str, Mapping[str, Any]]:
    """Return the description of each column in ``text``. Raises GeometryError if ``text`` is not GeoParquet JSON."""
    if len(text) > LONGEST:
        raise GeometryError(f"GeoParquet metadata has {len(text)} characters, more than the maximum of {LONGEST}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GeometryError(f"GeoParquet metadata is not JSON: {error}") from None
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, dict) or not all(isinstance(about, dict) for about in columns.values()):
        raise GeometryError("the member 'columns' of GeoParquet metadata is missing or invalid")
    return columns


def parse_crs(crs: Any) -> str | None:
    """Convert the ``crs`` of a column to a CRS string. It is PROJJSON, WKT in early versions, or null if unknown."""
    if crs is None:
        return crs_.UNKNOWN
    if not isinstance(crs, (dict, str)):
        raise GeometryError(f"the CRS in GeoParquet metadata must be an object or a string, not {type(crs).__name__}")
    try:
        return crs_.normalize(crs if isinstance(crs, str) else json.dumps(crs))
    except RecursionError:
        raise GeometryError("GeoParquet metadata has a CRS that is nested too deeply") from None


def filter_columns(
    text: str, find: Callable[[Sequence[str]], SchemaNode | None], properties: Mapping[str, str] | None = None,
    *, is_subset: bool = False,
) -> str | None:
    """Return the metadata of the columns that ``find`` returns, without boxes and other facts about their rows.

    Boxes and geometry types are removed, and coverings and orientations too unless ``is_subset``. CRS and edges come
    from the types of the columns. Returns None if no column remains. Text that is not GeoParquet JSON is returned
    unchanged.
    """
    try:
        columns = parse_metadata(text)
    except GeometryError:
        return text
    remaining: dict[str, dict[str, Any]] = {}
    is_native = True
    for name, about in columns.items():
        node = find((name,))
        if node is None or not _can_contain_geometries(node, about.get("encoding")):
            continue
        dropped = ("bbox",) if is_subset else ("bbox", "covering", "orientation")
        remaining[name] = {key: [] if key == "geometry_types" else about[key] for key in about if key not in dropped}
        if node.logical_name in ("GEOMETRY", "GEOGRAPHY") and node.logical_type is not None:
            type = GeospatialType.from_logical_type(node.logical_type, properties)
            others = {key: value for key, value in remaining[name].items() if key not in ("encoding", "crs", "edges")}
            remaining[name] = {**describe_type(type, properties), **others}
        else:
            is_native = False
    document = {**json.loads(text), "columns": remaining}
    if is_native and "version" in document:
        document["version"] = VERSION
    if document.get("primary_column") not in [*remaining]:
        document["primary_column"] = next(iter(remaining), None)
    return json.dumps(document, separators=(",", ":")) if remaining else None


def _can_contain_geometries(node: SchemaNode, encoding: Any) -> bool:
    """Return whether a column can contain geometries in ``encoding``.

    If not, the metadata describes a column that no longer exists.
    """
    if node.logical_name in ("GEOMETRY", "GEOGRAPHY"):
        return True
    if encoding == "WKB":
        return node.is_leaf and node.physical_type == Type.BYTE_ARRAY and node.logical_type is None
    return not node.is_leaf


def merge_metadata(values: Sequence[str | None]) -> str:
    """Merge the GeoParquet metadata of files with the same schema; None represents a file without metadata.

    A key that does not define a column is retained only if all files state the same value. The result has the union
    of the boxes if all files have boxes, with Z only if all boxes have Z. Raises ValueError if CRS, encodings, edges or
    epochs differ.
    """
    texts = list(dict.fromkeys(values))
    readable = [_columns(text) for text in texts]
    first = next((text for text, columns in zip(texts, readable, strict=True) if text and columns), None)
    if first is None or len(texts) == 1:
        return next(text for text in texts if text)
    try:
        names = parse_metadata(first)
        merged_columns = {name: _merge_column(name, [columns.get(name, {}) for columns in readable]) for name in names}
        return json.dumps({**json.loads(first), "columns": merged_columns}, separators=(",", ":"))
    except RecursionError:
        raise GeometryError("GeoParquet metadata is nested too deeply") from None


def _columns(text: str | None) -> Mapping[str, Mapping[str, Any]]:
    try:
        return parse_metadata(text) if text else {}
    except GeometryError:
        return {}


def _merge_column(name: str, descriptions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the descriptions of a column in several files. A file without a description has an empty mapping."""
    stated = [about for about in descriptions if about]
    combined = dict(stated[0]) if stated else {}
    for about in stated[1:]:
        differing = [key for key, default in _MEANING.items() if about.get(key, default) != combined.get(key, default)]
        if differing and not (differing == ["crs"] and _same_crs(about, combined)):
            raise ValueError(f"column {name!r}: the files' GeoParquet metadata differs in {differing[0]!r}")
    result = {
        key: value
        for key, value in combined.items()
        if key in _MEANING or all(about.get(key) == value for about in descriptions)
    }
    result["geometry_types"] = _merge_types([about.get("geometry_types") for about in descriptions])
    result.pop("bbox", None)
    all_boxes = [box for about in descriptions if (box := box_of(about)) is not None]
    try:
        geographic = GeospatialType(parse_crs(combined["crs"]) if "crs" in combined else None).geographic
    except GeometryError:
        geographic = False
    if len(all_boxes) < len(descriptions):
        return result
    if any(box.zmin is None for box in all_boxes):
        all_boxes = [replace(box, zmin=None, zmax=None) for box in all_boxes]
    box = union(all_boxes, geographic)
    return result if box is None else {**result, "bbox": numbers(box)}


def _same_crs(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    try:
        first_crs, second_crs = (parse_crs(about["crs"]) if "crs" in about else None for about in (first, second))
        return crs_.equal(first_crs, second_crs)
    except GeometryError:
        return False


def _merge_types(lists: Sequence[Any]) -> list[str]:
    """Merge lists of geometry types. The result is empty, which means unknown, if any file does not list its types."""
    if not all(isinstance(names, list) and names and all(isinstance(name, str) for name in names) for names in lists):
        return []
    return sorted({name for names in lists for name in names}, key=lambda name: (name[-2:] == " Z", name))


def primary_column(text: str) -> str | None:
    """Return the name of the primary column in ``text``; None if the name is missing or the text is invalid."""
    try:
        parse_metadata(text)
    except GeometryError:
        return None
    name = json.loads(text).get("primary_column")
    return name if isinstance(name, str) else None


def boxes(text: str) -> dict[str, BoundingBox]:
    """Return the box of each column in ``text``. The result is empty if ``text`` is invalid."""
    return {name: box for name, about in _columns(text).items() if (box := box_of(about)) is not None}


def box_of(description: Mapping[str, Any]) -> BoundingBox | None:
    """Parse the ``bbox`` in a column's description, with Z if present; None without a valid box."""
    stated = description.get("bbox")
    if not isinstance(stated, list) or not all(type(number) in (int, float) for number in stated):
        return None
    try:
        numbers = [float(number) for number in stated]
    except OverflowError:
        return None
    if len(numbers) not in (4, 6, 8):
        return None
    low, high = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    z = (low[2], high[2]) if len(low) > 2 and math.isfinite(low[2]) and math.isfinite(high[2]) else (None, None)
    return BoundingBox(low[0], high[0], low[1], high[1], *z)


def covering_box(row_group: RowGroupFacts, node: SchemaNode, geographic: bool) -> BoundingBox | None:
    """Return a box around the geometries of a row group in column ``node``, from its covering columns.

    Returns None if the metadata has no covering, or if its statistics do not bound the geometries, for example because
    a box wraps. Float bounds may be rounded in either direction, so they are widened by one float.
    """
    text = row_group.file_property(KEY)
    paths = coverings(text).get(node.name) if text and len(node.path) == 1 else None
    nulls = row_group.chunk(node).bounds().null_count
    if paths is None or nulls is None:
        return None
    low, high = [], []
    for path in paths:
        leaf = row_group.schema.find(path)
        if leaf is None or leaf.max_repetition_level or leaf.physical_type not in (Type.FLOAT, Type.DOUBLE):
            return None
        bounds = row_group.chunk(leaf).bounds()
        if bounds.null_count != nulls or not isinstance(bounds.minimum, float) or not isinstance(bounds.maximum, float):
            return None
        single = leaf.physical_type == Type.FLOAT
        low.append(_next_float(bounds.minimum, -math.inf) if single else bounds.minimum)
        high.append(_next_float(bounds.maximum, math.inf) if single else bounds.maximum)
    box = BoundingBox(low[0], high[2], low[1], high[3])
    if not box.usable or box.wraps or (geographic and (low[0] > low[2] or high[2] < high[0])):
        return None  # a row has xmin above xmax
    if geographic and box.width >= 180:  # possibly a box that wraps
        return replace(box, xmin=min(box.xmin, -180.0), xmax=max(box.xmax, 180.0))
    return box


def file_box(row_group: RowGroupFacts, node: SchemaNode) -> BoundingBox | None:
    """Return the box of column ``node`` in the file's metadata, widened by a rounding error; None if unusable."""
    text = row_group.file_property(KEY)
    if not text or len(node.path) != 1:
        return None
    box = (_boxes(text) if len(text) <= _SHORT else _boxes_of_long(text)).get(node.name)
    return _widen_box(box) if box is not None and box.usable else None


def _widen_box(box: BoundingBox) -> BoundingBox | None:
    """Widen a box by one unit of its last decimal, or of the fourth decimal, because sfarrow rounds to that decimal.

    Return None if a box that wraps then covers all longitudes.
    """
    sides = (box.xmin, box.xmax, box.ymin, box.ymax)
    decimals = max(4, *(-int(Decimal(repr(side)).as_tuple().exponent) for side in sides))
    unit = float(f"1e-{decimals}")
    wide = replace(box, xmin=box.xmin - unit, xmax=box.xmax + unit, ymin=box.ymin - unit, ymax=box.ymax + unit)
    return None if box.wraps and not wide.wraps else wide


def _next_float(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


def encoding_of(text: str, column: str) -> str:
    """Return the encoding of a column in the metadata; an empty string if none is stated."""
    encodings = _encodings(text) if len(text) <= _SHORT else _read_encodings(text)
    return encodings.get(column, "")


def coverings(text: str) -> dict[str, list[tuple[str, ...]]]:
    """Return, for each column with a covering, the paths of the covering's xmin, ymin, xmax and ymax.

    The result is empty if the text is invalid.
    """
    return _coverings(text) if len(text) <= _SHORT else _coverings_of_long(text)


def covering_field(schema: pa.Schema, column: str) -> pa.Field | None:
    """Return the field that the schema's metadata names as the covering of ``column``; None without a covering.

    A column of a different type is an unrelated column with the same name.
    """
    text = (schema.metadata or {}).get(KEY.encode(), b"").decode("utf-8", "replace")
    paths = coverings(text).get(column) if text else None
    index = schema.get_field_index(paths[0][0]) if paths and paths[0] else -1
    if paths is None or index < 0:
        return None
    field = schema.field(index)
    bounds = {child.name: child.type for child in field.type} if pa.types.is_struct(field.type) else {}
    is_box = bounds.keys() == {*COVERING_FIELDS} and {*bounds.values()} in ({pa.float32()}, {pa.float64()})
    return field if is_box and paths == [(field.name, bound) for bound in COVERING_FIELDS] else None


def _read_coverings(text: str) -> dict[str, list[tuple[str, ...]]]:
    try:
        columns = parse_metadata(text)
    except GeometryError:
        return {}
    return {name: paths for name, about in columns.items() if (paths := parse_covering(about))}


def _read_encodings(text: str) -> dict[str, str]:
    return {name: str(about.get("encoding", "")) for name, about in _columns(text).items()}


_encodings = lru_cache(maxsize=64)(_read_encodings)
_coverings = lru_cache(maxsize=64)(_read_coverings)
_coverings_of_long = lru_cache(maxsize=1)(_read_coverings)
_boxes = lru_cache(maxsize=64)(boxes)
_boxes_of_long = lru_cache(maxsize=1)(boxes)


def parse_covering(description: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the paths of xmin, ymin, xmax and ymax in a column's description; empty without a covering."""
    paths = [_bounds(description).get(bound) for bound in COVERING_FIELDS]
    return [tuple(path) for path in paths if path is not None] if all(map(_is_path, paths)) else []


def _bounds(description: Mapping[str, Any]) -> Mapping[str, Any]:
    covering = description.get("covering")
    box = covering.get("bbox") if isinstance(covering, dict) else None
    return box if isinstance(box, dict) else {}


def _is_path(path: Any) -> bool:
    return isinstance(path, list) and all(isinstance(part, str) for part in path)


def metadata(
    columns: Sequence[tuple[WrittenColumn, GeometryStorage]], version: Literal["1.1", "2.0"],
    input_metadata: str | None, options: WriteOptions,
) -> str:
    """Return the GeoParquet JSON that describes ``columns``, the top-level geometry columns of a file.

    ``input_metadata`` is the JSON of the file that the rows were read from: its primary column and epochs are retained,
    as are coverings and orientation unless options of the column may change its values. Raises ValueError if
    ``options.primary_geometry`` is not one of the columns.
    """
    names = [column.node.name for column, _ in columns]
    primary = options.primary_geometry
    if primary is not None and primary not in names:
        known = ", ".join(names)
        raise ValueError(f"primary_geometry: {primary!r} is not a geometry column; the geometry columns are {known}")
    if primary is None:
        primary = primary_column(input_metadata) if input_metadata else None
        primary = primary if primary in names else names[0]
    stated = _columns(input_metadata)
    about = {}
    for name, (column, storage) in zip(names, columns, strict=True):
        retained = ("epoch",) if name in options.geometry else _OF_VALUES
        about[name] = {key: value for key, value in stated.get(name, {}).items() if key in retained}
        about[name] |= _column(column, storage, options.key_value_metadata)
    document = {"version": VERSIONS[version], "primary_column": primary, "columns": about}
    return json.dumps(document, separators=(",", ":"))


def _column(column: WrittenColumn, storage: GeometryStorage, properties: Mapping[str, str]) -> dict[str, Any]:
    box, codes = (None, []) if column.encrypted else _statistics(column.chunks, storage.type)
    description = {**describe_type(storage.type, properties), "geometry_types": [NAMES[code] for code in codes]}
    if storage.is_oriented:
        description["orientation"] = "counterclockwise"
    if storage.epoch is not None:
        description["epoch"] = storage.epoch
    if box is not None:
        description["bbox"] = numbers(box)
    if column.derived is not None:  # not part of 2.0, but readers of 1.1 prune with it
        description["covering"] = {"bbox": {bound: [column.derived, bound] for bound in COVERING_FIELDS}}
    return description


def _statistics(chunks: Sequence[ColumnMetaData], type: GeospatialType) -> tuple[BoundingBox | None, list[int]]:
    """Return the box and the types of the geometries in all chunks. Chunks with only nulls are ignored."""
    statistics = [
        chunk.geospatial_statistics
        for chunk in chunks
        if chunk.geospatial_statistics is not None
        or chunk.statistics is None
        or chunk.statistics.null_count != chunk.num_values
    ]
    if not statistics:
        return None, []
    merged_statistics = merge(statistics, type.crs)
    box = BoundingBox.from_metadata(merged_statistics.bbox) if merged_statistics.bbox is not None else None
    return box, list(merged_statistics.geospatial_types or [])
