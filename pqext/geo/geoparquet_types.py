"""Derive the geometry types of columns from GeoParquet metadata, and compare them with the types in the schema.

The native encodings of GeoParquet 1.1, ``point`` to ``multipolygon``, are columns of coordinates that are read as WKB.
They have GeoArrow layouts: structs ``x, y[, z][, m]`` of doubles, or lists of 2 to 4 doubles, within up to three
levels of lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import excerpt
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.core.schema.annotations import AssignedTypes
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.geoarrow import check_layout, from_geoarrow
from pqext.geo.geoparquet import KEY, parse_crs, parse_metadata
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.core.format.metadata import LogicalType
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode

ENCODINGS = frozenset({"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"})

_TYPE_KEYS = ("encoding", "crs", "edges")


def has_encoding(node: SchemaNode, encoding: str) -> bool:
    """Return whether the columns below ``node`` have the layout of the native encoding ``encoding``."""
    if node.is_leaf:
        return False
    try:
        check_layout(_fixed_size_type(shape.from_node(node).field(ReadOptions()).type), _layout(encoding))
    except GeometryError:
        return False
    return True


def to_wkb(node: SchemaNode, array: pa.Array, encoding: str) -> pa.Array:
    """Convert a column to ISO WKB. Raises GeometryError for null coordinates and for types other than ``encoding``."""
    try:
        return from_geoarrow(_to_fixed_size(array), _layout(encoding))
    except GeometryError as error:
        error.locate(column=node.dotted_path)
        raise


def box(row_group: RowGroupFacts, node: SchemaNode) -> BoundingBox | None:
    """Return the box of a row group's planar geometries, from the bounds of its coordinate columns; None if unknown.

    Coordinates in lists form a single column for all dimensions, so its bounds cannot be used.
    """
    leaves = {leaf.name: leaf for leaf in node.leaves()}
    if not {"x", "y"} <= leaves.keys() or leaves["x"].physical_type != Type.DOUBLE:
        return None
    bounds = [row_group.bounds(leaves[name]) for name in ("x", "y")]
    ends = [(item.minimum, item.maximum) for item in bounds]
    (xmin, xmax), (ymin, ymax) = ends
    if not all(isinstance(end, float) for pair in ends for end in pair):
        return None
    result = BoundingBox(xmin, xmax, ymin, ymax)  # type: ignore[arg-type]
    return result if result.usable and not result.wraps else None


def _holds_coordinates(type: pa.DataType) -> bool:
    """Return whether arrays of ``type`` are lists of numbers, one list per coordinate."""
    return pa.types.is_list(type) and bool(pa.types.is_floating(type.value_type))


def _fixed_size_type(type: pa.DataType) -> pa.DataType:
    """Return ``type`` with coordinates as fixed-size lists of two numbers, because Parquet does not record the size."""
    if _holds_coordinates(type):
        return pa.list_(type.value_field, 2)
    return pa.list_(type.value_field.with_type(_fixed_size_type(type.value_type))) if pa.types.is_list(type) else type


def _to_fixed_size(array: pa.Array) -> pa.Array:
    """Convert coordinates to fixed-size lists.

    Raises GeometryError unless all lists of the column have the same size, from 2 to 4.
    """
    if _holds_coordinates(array.type):
        sizes = pc.unique(pc.list_value_length(array.drop_null())).to_pylist() or [2]
        if len(sizes) > 1 or not 2 <= sizes[0] <= 4:
            numbers = " and ".join(map(str, sorted(sizes)))
            raise GeometryError(
                f"coordinates have {numbers} dimensions; expected 2, 3 or 4, the same for all coordinates",
                rule="geo.geoarrow",
            )
        fixed = pa.FixedSizeListArray.from_arrays(array.flatten(), type=pa.list_(array.type.value_field, sizes[0]))
        if not array.null_count:
            return fixed
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return fixed.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
    if not pa.types.is_list(array.type):
        return array
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, _to_fixed_size(array.values), mask=mask)


def _layout(encoding: str) -> str:
    return f"geoarrow.{encoding}"


def assigned_types(text: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]) -> AssignedTypes:
    """Return the types that the GeoParquet metadata ``text`` assigns to the columns that ``find`` returns.

    A plain column of WKB and a group in a native encoding become geometries. For GEOMETRY and GEOGRAPHY columns, the
    metadata adds the CRS and edges if the schema states neither. A CRS or edges in the schema override the metadata.

    Raises GeometryError unless ``text`` is GeoParquet JSON.
    """
    types: dict[str, LogicalType] = {}
    contradictions: list[str] = []
    for name, about in parse_metadata(text).items():
        node = find(name)
        if node is None:
            continue
        encoding = about.get("encoding")
        if node.logical_name in ("GEOMETRY", "GEOGRAPHY") and node.physical_type == Type.BYTE_ARRAY:
            stated = _stated_type(node, properties)
            if encoding != "WKB" or stated is None or _is_inline(about, node):
                continue
            described_type = type_of(name, about)
            combined = _combine_types(stated, described_type, states_crs(node))
            if combined != stated:
                types[name] = combined.logical_type()
            contradictions += list_contradictions(name, combined, described_type)
        elif _is_geometry(node, encoding):
            types[name] = type_of(name, about).logical_type()
    return AssignedTypes(types, contradictions)


def type_text(text: str) -> str:
    """Return GeoParquet metadata reduced to the facts that determine column types: encodings, CRSs and edges.

    Text that is not GeoParquet JSON is returned unchanged.
    """
    try:
        columns = parse_metadata(text)
        parts = {name: {key: about[key] for key in _TYPE_KEYS if key in about} for name, about in columns.items()}
        return json.dumps({"columns": parts})
    except (GeometryError, RecursionError):
        return text


def strip_extents(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` without boxes and geometry types in GeoParquet metadata. They describe the rows of one file."""
    stored = (schema.metadata or {}).get(KEY.encode())
    if stored is None:
        return schema
    try:
        text = stored.decode()
        columns = {
            name: {key: [] if key == "geometry_types" else about[key] for key in about if key != "bbox"}
            for name, about in parse_metadata(text).items()
        }
        shared = json.dumps({**json.loads(text), "columns": columns}, separators=(",", ":"))
    except (GeometryError, RecursionError, UnicodeDecodeError):
        return schema  # readers ignore invalid metadata
    return schema.with_metadata({**schema.metadata, KEY.encode(): shared.encode()})


def list_contradictions(name: str, stated_type: GeospatialType, described_type: GeospatialType) -> list[str]:
    """Describe each contradiction between the GeoParquet metadata and the schema type of column ``name``."""
    results = []
    if not _same_crs(stated_type.crs, described_type.crs):
        results.append(
            f"column {name!r} has CRS {excerpt(crs_label(stated_type.crs))} by its type, "
            "but GeoParquet metadata states "
            f"{excerpt(crs_label(described_type.crs))}: the CRS of the type is used"
        )
    if stated_type.edges != described_type.edges:
        results.append(
            f"column {name!r} has {stated_type.edges} edges by its type, "
            f"but GeoParquet metadata states {described_type.edges}: "
            "the edges of the type are used"
        )
    return results


def states_crs(node: SchemaNode) -> bool:
    """Return whether the logical type of a geometry column states a CRS; the default is OGC:CRS84."""
    logical = node.declared_type if node.is_adopted else node.logical_type
    spatial = None if logical is None else logical.GEOMETRY or logical.GEOGRAPHY
    return spatial is not None and bool((spatial.crs or "").strip())


def type_of(name: str, description: Mapping[str, Any]) -> GeospatialType:
    """Return the type of a column in GeoParquet metadata. Raises GeometryError if its CRS or edges are invalid."""
    edges = description.get("edges") or "planar"
    if not isinstance(edges, str):
        raise GeometryError(f"column {name!r}: edges in GeoParquet metadata must be a string, not {edges!r}")
    return GeospatialType(parse_crs(description["crs"]) if "crs" in description else None, edges)  # type: ignore[arg-type]


def _stated_type(node: SchemaNode, properties: Mapping[str, str]) -> GeospatialType | None:
    assert node.logical_type is not None
    try:
        return GeospatialType.from_logical_type(node.logical_type, properties)
    except GeometryError:  # an algorithm that is not known
        return None


def _combine_types(stated_type: GeospatialType, described_type: GeospatialType, has_crs: bool) -> GeospatialType:
    """Combine the type in the schema with the type in the metadata, which adds a CRS or edges that the schema lacks."""
    if has_crs:
        return stated_type
    if stated_type.planar and described_type.planar:
        return described_type
    # Edges of GEOGRAPHY lie on the globe, which a projected or unknown CRS does not describe.
    if crs_.is_geographic(described_type.crs) is not True:
        return GeospatialType(described_type.crs) if stated_type.planar else stated_type
    return GeospatialType(described_type.crs, described_type.edges if stated_type.planar else stated_type.edges)


def _is_inline(description: Mapping[str, Any], node: SchemaNode) -> bool:
    """Return whether the schema and the metadata state the same PROJJSON and planar edges, without parsing the CRS."""
    assert node.logical_type is not None
    spatial = node.logical_type.GEOMETRY
    crs = description.get("crs")
    if spatial is None or not isinstance(crs, dict) or not crs_.is_projjson(spatial.crs or ""):
        return False
    try:
        return description.get("edges", "planar") == "planar" and bool(json.loads(spatial.crs or "") == crs)
    except (ValueError, RecursionError):
        return False


def _is_geometry(node: SchemaNode, encoding: Any) -> bool:
    """Return whether a column without a geometry type can contain geometries in ``encoding``."""
    if encoding == "WKB":
        return node.physical_type == Type.BYTE_ARRAY and node.logical_type is None
    return encoding in ENCODINGS and has_encoding(node, encoding)


def _same_crs(stated_crs: str | None, described_crs: str | None) -> bool:
    """Return whether two CRSs identify the same system or are both unknown."""
    if crs_.equal(stated_crs, described_crs):
        return True
    return crs_.is_geographic(stated_crs) is None and crs_.is_geographic(described_crs) is None
