"""Geometry types that GeoParquet metadata gives to columns, compared with the types that the schema states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import around
from pqext.core.format.metadata import Type
from pqext.core.schema.annotations import Adopted
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo import native_encodings
from pqext.geo.geoparquet import crs_of, described
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.core.format.metadata import LogicalType
    from pqext.core.schema.nodes import SchemaNode


def adopted(text: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]) -> Adopted:
    """Return the types that GeoParquet metadata ``text`` gives to the columns that ``find`` returns.

    A plain column of WKB and a group in one of GeoParquet's native encodings become geometries. Of a column that the
    schema already types, metadata states the CRS and edges if the schema does not: GEOMETRY and GEOGRAPHY without a
    CRS. A CRS or edges that the schema states win over the metadata.

    Raises GeometryError unless ``text`` is GeoParquet's JSON.
    """
    types: dict[str, LogicalType] = {}
    contradictions: list[str] = []
    for name, about in described(text).items():
        node = find(name)
        if node is None:
            continue
        encoding = about.get("encoding")
        if node.logical_name in ("GEOMETRY", "GEOGRAPHY") and node.physical_type == Type.BYTE_ARRAY:
            stated = _stated(node, properties)
            if encoding != "WKB" or stated is None or _is_inline(about, node):
                continue
            described_type = type_of(name, about)
            combined = _combined(stated, described_type, states_crs(node))
            if combined != stated:
                types[name] = combined.logical_type()
            contradictions += contradicted(name, combined, described_type)
        elif _is_geometry(node, encoding):
            types[name] = type_of(name, about).logical_type()
    return Adopted(types, contradictions)


def contradicted(name: str, stated: GeospatialType, described: GeospatialType) -> list[str]:
    """Return in which ways GeoParquet metadata about column ``name`` contradicts its type, for messages."""
    found = []
    if not _same_crs(stated.crs, described.crs):
        found.append(
            f"column {name!r} has CRS {around(crs_label(stated.crs))} by its type, but GeoParquet metadata states "
            f"{around(crs_label(described.crs))}: the type's is used"
        )
    if stated.edges != described.edges:
        found.append(
            f"column {name!r} has {stated.edges} edges by its type, but GeoParquet metadata states {described.edges}: "
            "the type's are used"
        )
    return found


def states_crs(node: SchemaNode) -> bool:
    """Whether the logical type of a geometry column names a CRS; without one it is OGC:CRS84."""
    logical = node.declared_type if node.is_adopted else node.logical_type
    spatial = None if logical is None else logical.GEOMETRY or logical.GEOGRAPHY
    return spatial is not None and bool((spatial.crs or "").strip())


def type_of(name: str, about: Mapping[str, Any]) -> GeospatialType:
    """The type that GeoParquet metadata gives to a column. Raises GeometryError for a CRS or edges of no meaning."""
    edges = about.get("edges") or "planar"
    if not isinstance(edges, str):
        raise GeometryError(f"GeoParquet metadata gives column {name!r} the edges {edges!r}")
    return GeospatialType(crs_of(about["crs"]) if "crs" in about else None, edges)  # type: ignore[arg-type]


def _stated(node: SchemaNode, properties: Mapping[str, str]) -> GeospatialType | None:
    assert node.logical_type is not None
    try:
        return GeospatialType.from_logical_type(node.logical_type, properties)
    except GeometryError:  # an algorithm that is not known
        return None


def _combined(stated: GeospatialType, described: GeospatialType, has_crs: bool) -> GeospatialType:
    """The type of a column by its schema, completed by the metadata where the schema states nothing."""
    if has_crs:
        return stated
    if stated.planar and described.planar:
        return described
    # Edges of GEOGRAPHY lie on the globe, which a projected or unknown CRS does not describe.
    if crs_.is_geographic(described.crs) is not True:
        return GeospatialType(described.crs) if stated.planar else stated
    return GeospatialType(described.crs, described.edges if stated.planar else stated.edges)


def _is_inline(about: Mapping[str, Any], node: SchemaNode) -> bool:
    """Whether type and metadata state the same planar PROJJSON, which need not be parsed."""
    assert node.logical_type is not None
    spatial = node.logical_type.GEOMETRY
    crs = about.get("crs")
    if spatial is None or not isinstance(crs, dict) or not crs_.is_projjson(spatial.crs or ""):
        return False
    try:
        return about.get("edges", "planar") == "planar" and bool(json.loads(spatial.crs or "") == crs)
    except (ValueError, RecursionError):
        return False


def _is_geometry(node: SchemaNode, encoding: Any) -> bool:
    """Whether a column that the schema does not type as a geometry can hold the encoding."""
    if encoding == "WKB":
        return node.physical_type == Type.BYTE_ARRAY and node.logical_type is None
    return encoding in native_encodings.ENCODINGS and native_encodings.suits(node, encoding)


def _same_crs(stated: str | None, described: str | None) -> bool:
    """Whether both name one system, or both none that is known."""
    if crs_.equal(stated, described):
        return True
    return crs_.is_geographic(stated) is None and crs_.is_geographic(described) is None
