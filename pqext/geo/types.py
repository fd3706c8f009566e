"""Geometry types: CRS and edges, as the logical type of a file and as the extension metadata of an Arrow field.

In Arrow, a geometry column is a binary field with the extension name ``geoarrow.wkb`` in its metadata. GEOMETRY has
planar edges; GEOGRAPHY has edges that an algorithm interpolates. Spec: "GEOMETRY", "GEOGRAPHY" (LogicalTypes.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.core.base.lazy_imports import load_object
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.core.schema.annotations import EXTENSION_METADATA, EXTENSION_NAME
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo.wkb import holds_bytes, storage_type

if TYPE_CHECKING:
    from pqext.core.format.metadata import LogicalType

Edges = Literal["planar", "spherical", "vincenty", "thomas", "andoyer", "karney"]
EDGES: tuple[Edges, ...] = get_args(Edges)

GEOARROW = "geoarrow.wkb"
EXTENSION_NAMES = frozenset({GEOARROW, "ogc.wkb"})


@dataclass(frozen=True, slots=True)
class GeospatialType:
    """Type of a GEOMETRY (planar edges) or GEOGRAPHY column. ``crs`` is the string in the file, None for OGC:CRS84."""

    crs: str | None = None
    edges: Edges = "planar"

    def __post_init__(self) -> None:
        if self.edges not in EDGES:
            meant = did_you_mean(self.edges, EDGES) if isinstance(self.edges, str) else ""
            message = f"edges must be one of {', '.join(EDGES)}, not {self.edges!r}{meant}"
            raise GeometryError(message, rule="geo.edges.algorithm")

    @property
    def planar(self) -> bool:
        """Whether the type is GEOMETRY, not GEOGRAPHY."""
        return self.edges == "planar"

    @property
    def geographic(self) -> bool:
        """Whether the coordinates are known to be longitudes and latitudes."""
        return crs_.is_geographic(self.crs) is True

    def logical_type(self) -> LogicalType:
        """Return the logical type, GEOMETRY(crs) or GEOGRAPHY(crs, algorithm), with defaults unset."""
        from pqext.core.format.metadata import EdgeInterpolationAlgorithm, GeographyType, GeometryType, LogicalType

        if self.planar:
            return LogicalType(GEOMETRY=GeometryType(crs=self.crs))
        algorithm = None if self.edges == "spherical" else EdgeInterpolationAlgorithm[self.edges.upper()]
        return LogicalType(GEOGRAPHY=GeographyType(crs=self.crs, algorithm=algorithm))

    @classmethod
    def from_logical_type(cls, logical: LogicalType, properties: Mapping[str, str] | None = None) -> GeospatialType:
        """Create the type that a file declares. Raises GeometryError if the edge algorithm is unknown.

        If the CRS names one of ``properties``, the key-value metadata, the PROJJSON stored there is used. Raises
        ValueError if ``logical`` is another type.
        """
        if logical.GEOMETRY is not None:
            return cls(crs_.inline_crs(logical.GEOMETRY.crs, properties))
        if logical.GEOGRAPHY is None:
            raise ValueError("the logical type is neither GEOMETRY nor GEOGRAPHY")
        algorithm = logical.GEOGRAPHY.algorithm
        number = 0 if algorithm is None else int(algorithm)
        if not 0 <= number < len(EDGES) - 1:
            raise GeometryError(f"unknown edge interpolation algorithm {number}", rule="geo.edges.algorithm")
        return cls(crs_.inline_crs(logical.GEOGRAPHY.crs, properties), EDGES[number + 1])

    def extension_metadata(self) -> str:
        """Return the metadata of the Arrow extension type ``geoarrow.wkb``, as JSON."""
        marks: dict[str, Any] = crs_.to_geoarrow(self.crs)
        if not self.planar:
            marks["edges"] = self.edges
        return json.dumps(marks, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_extension_metadata(cls, text: bytes | str | None) -> GeospatialType:
        """Create a type from the metadata of ``geoarrow.wkb``. The default CRS is OGC:CRS84, as in pyarrow.

        Raises GeometryError if the metadata is not valid for the extension type.
        """
        try:
            marks = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise GeometryError(f"the field's geoarrow.wkb metadata is not JSON: {error}") from None
        if not isinstance(marks, dict):
            raise GeometryError("the field's geoarrow.wkb metadata is not a JSON object")
        crs = marks.get("crs")
        if not isinstance(crs, str | dict | int | None) or isinstance(crs, bool):
            raise GeometryError("the crs in the field's geoarrow.wkb metadata is neither a string nor PROJJSON")
        if crs is not None and str(marks.get("crs_type", "")) == "srid":
            crs = f"srid:{crs}"
        return cls(crs_.normalize(crs), marks.get("edges") or "planar")


def geometry_field(name: str, crs: Any = None, edges: Edges = "planar", nullable: bool = True) -> pa.Field:
    """Return a binary field with the extension name ``geoarrow.wkb``.

    It is written as GEOMETRY or, depending on ``edges``, GEOGRAPHY.

    ``crs`` is a CRS string as in files, an EPSG code, PROJJSON or a ``pyproj.CRS``. None means OGC:CRS84, and
    ``"srid:0"`` an unknown CRS. Raises GeometryError if pyproj does not recognise the CRS.

    >>> geometry_field("at", 4326, "spherical").metadata[b"ARROW:extension:metadata"]
    b'{"crs":"EPSG:4326","crs_type":"authority_code","edges":"spherical"}'
    """
    return mark(pa.field(name, pa.binary(), nullable=nullable), GeospatialType(crs_.require(crs), edges))


def mark(field: pa.Field, type: GeospatialType) -> pa.Field:
    """Return ``field`` with the extension metadata of ``type`` added to its metadata."""
    marks = {EXTENSION_NAME: GEOARROW.encode(), EXTENSION_METADATA: type.extension_metadata().encode()}
    return field.with_metadata({**(field.metadata or {}), **marks})


def unmark(field: pa.Field) -> pa.Field:
    """Return ``field`` without extension metadata."""
    retained = {k: v for k, v in (field.metadata or {}).items() if k not in (EXTENSION_NAME, EXTENSION_METADATA)}
    return field.with_metadata(retained or None)


def type_of(field: pa.Field) -> GeospatialType | None:
    """Return the type of an Arrow field from its extension type or metadata, or None if it is not a geometry."""
    if isinstance(field.type, pa.BaseExtensionType):
        return array_type(field.type)
    metadata = field.metadata or {}
    if metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace") not in EXTENSION_NAMES:
        return None
    return GeospatialType.from_extension_metadata(metadata.get(EXTENSION_METADATA))


def marked_type(field: pa.Field) -> GeospatialType:
    """Return the CRS and edges that the extension type or metadata of a geometry field states, or the defaults."""
    return GeospatialType.from_extension_metadata(_marks(field))


def declared_names(field: pa.Field) -> frozenset[str]:
    """Return the names, ``crs`` or ``edges``, that a field's extension type or metadata states.

    Raises the errors of :func:`marked_type`.
    """
    marked_type(field)
    marks = json.loads(_marks(field) or "{}")
    return frozenset(name for name in ("crs", "edges") if marks.get(name))


def _marks(field: pa.Field) -> bytes | str | None:
    if isinstance(field.type, pa.BaseExtensionType):
        serialize = getattr(field.type, "__arrow_ext_serialize__", None)
        return serialize() if serialize else None
    return (field.metadata or {}).get(EXTENSION_METADATA)


def array_type(type: pa.DataType) -> GeospatialType | None:
    """Return the geospatial type of an Arrow type; None if it is not the extension type of WKB geometries."""
    if not isinstance(type, pa.BaseExtensionType) or type.extension_name not in EXTENSION_NAMES:
        return None
    serialize = getattr(type, "__arrow_ext_serialize__", None)
    return GeospatialType.from_extension_metadata(serialize() if serialize else None)


def describe_difference(first: GeospatialType, second: GeospatialType) -> tuple[str, str]:
    """Return descriptions of two different types, such as ``CRS EPSG:4326 and planar edges``, for messages.

    PROJJSON is shortened to the identifier or name of the CRS, unless both types then have the same description.
    """
    types = first, second
    short, full = (
        tuple(f"CRS {escape_text(label(type.crs))} and {type.edges} edges" for type in types)
        for label in (crs_label, lambda crs: crs or crs_.DEFAULT)
    )
    one, other = full if short[0] == short[1] else short
    return one, other


class _WkbArray(pa.ExtensionArray):  # type: ignore[misc]
    """Geometry array that notebooks display with a small map."""

    def _repr_html_(self) -> str:
        array_html = load_object("pqext.geo.layout.map_content:array_html")
        html: str = array_html(self, GeospatialType.from_extension_metadata(self.type.__arrow_ext_serialize__()))
        return html


class _WkbType(pa.ExtensionType):  # type: ignore[misc]
    """Extension type ``geoarrow.wkb``. It is not registered with Arrow, because a name can be registered only once."""

    def __init__(self, storage: pa.DataType, metadata: str) -> None:
        self._metadata = metadata
        super().__init__(storage, GEOARROW)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._metadata.encode()

    def __arrow_ext_class__(self) -> type[_WkbArray]:
        return _WkbArray

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _WkbType:
        return cls(storage, serialized.decode())


def mark_array(array: pa.Array | pa.ChunkedArray, type: GeospatialType) -> Any:
    """Return the WKB ``array`` as a ``geoarrow.wkb`` extension array of ``type``, chunked if ``array`` is."""
    extension = _WkbType(array.type, type.extension_metadata())
    if isinstance(array, pa.ChunkedArray):
        chunks = [pa.ExtensionArray.from_storage(extension, chunk) for chunk in array.chunks]
        return pa.chunked_array(chunks, type=extension)
    return pa.ExtensionArray.from_storage(extension, array)


def as_extension(table: pa.Table) -> pa.Table:
    """Return ``table`` with its geometry columns as real ``geoarrow.wkb`` extension arrays.

    pyarrow's own Parquet writer then annotates these columns and writes their bounding boxes.

    >>> from pqext.geo import read_geojson
    >>> table = read_geojson('{"type": "Point", "coordinates": [1, 2]}')
    >>> table["geometry"].type, as_extension(table)["geometry"].type.extension_name
    (DataType(binary), 'geoarrow.wkb')
    """
    check_table(table)
    for index, field in enumerate(table.schema):
        result = type_of(field)
        if result is None or isinstance(field.type, pa.BaseExtensionType) or not holds_bytes(field.type):
            continue
        storage = storage_type(field.type)
        column = mark_array(table.column(index).cast(storage), result)
        table = table.set_column(index, unmark(field).with_type(column.type), column)
    return table
