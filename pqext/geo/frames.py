"""Convert tables with geometry columns to GeoDataFrames and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from pqext.core.base.errors import AnnotationWarning, GeometryError, warn
from pqext.core.base.suggestions import excerpt, join_names
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.data_frames import PANDAS_FAULTS, convert_table
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo import geoparquet
from pqext.geo.types import GeospatialType, geometry_field, type_of
from pqext.geo.wkb import from_shapely, holds_bytes, to_shapely

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

UNKNOWN_CRS = "srid:0"
_DESCRIBING = ("geoparquet", "primary_geometry")


def require_geopandas() -> ModuleType:
    """Import geopandas; raise ImportError with installation advice if it is missing."""
    try:
        import geopandas
    except ImportError as error:
        raise ImportError(f"geopandas is needed: pip install 'pqext[geopandas]' ({error})") from error
    result: ModuleType = geopandas
    return result


def geometry_columns(schema: pa.Schema) -> dict[str, GeospatialType]:
    """Return the types of the top-level geometry columns of a schema, from the metadata of the fields."""
    result = {field.name: type_of(field) for field in schema if holds_bytes(field.type)}
    return {name: type for name, type in result.items() if type is not None}


def active_geometry(schema: pa.Schema) -> str | None:
    """Return the primary column of GeoParquet metadata if it is a geometry, otherwise the first geometry column."""
    types, (primary, _) = geometry_columns(schema), geoparquet_columns(schema)
    return primary if primary in types else next(iter(types), None)


def bounds_of(bbox: Any, type: GeospatialType) -> tuple[float, ...]:
    """Return xmin, ymin, xmax and ymax of a ``bbox`` argument, in the CRS of a column of ``type``.

    The argument is four numbers, a shapely geometry, or a GeoSeries or GeoDataFrame, which is transformed to the
    column's CRS. Raises ValueError for a geometry without bounds.
    """
    if hasattr(bbox, "total_bounds"):
        if bbox.crs is not None and (crs := _known_crs(type.crs)) is not None:
            bbox = bbox.to_crs(crs)
        bbox = bbox.total_bounds
    elif hasattr(bbox, "bounds") and hasattr(bbox, "geom_type"):
        bbox = bbox.bounds
    else:
        return tuple(bbox)
    if len(bbox) != 4 or not all(map(isfinite, bbox)):
        raise ValueError("bbox is an empty geometry, which has no bounds; pass four numbers or a non-empty geometry")
    return tuple(map(float, bbox))


def _known_crs(crs: str | None) -> Any:
    try:
        return crs_.parse(crs)
    except GeometryError:
        return None


def geoparquet_columns(schema: pa.Schema) -> tuple[str | None, set[str]]:
    """Return the names of the primary column, or None, and of the covering columns in GeoParquet metadata."""
    text = (schema.metadata or {}).get(geoparquet.KEY.encode(), b"").decode("utf-8", "replace")
    result = geoparquet.coverings(text) if text else {}
    names = {path[0] for paths in result.values() for path in paths if path}
    return geoparquet.primary_column(text) if text else None, names


def to_geopandas(table: pa.Table, geometry: str | None = None) -> GeoDataFrame:
    """Convert ``table`` to a GeoDataFrame, with its geometry columns and their CRS.

    ``geometry`` is the name of the active column, by default the first geometry column. A plain column of WKB is
    accepted, without a CRS. Unknown CRSs are left unset. Edges that are not planar become straight lines, because
    geopandas supports no other edges. Other columns are converted as by ``Table.to_pandas``. Raises ValueError if the
    column is missing or names are duplicated, GeometryError with the row if WKB is invalid.

    >>> from pqext.geo import from_points
    >>> frame = to_geopandas(pa.table({"name": ["Suva"], "geometry": from_points([178.44], [-18.14])}))
    >>> frame.crs.to_string(), frame.geometry.to_wkt().tolist()
    ('OGC:CRS84', ['POINT (178.44 -18.14)'])
    """
    geopandas = require_geopandas()
    import pandas

    check_table(table)
    types = geometry_columns(table.schema)
    if geometry is None:
        geometry = next(iter(types), None)
    elif geometry not in types and geometry in table.column_names and holds_bytes(table.schema.field(geometry).type):
        types[geometry] = GeospatialType(UNKNOWN_CRS)
    if geometry not in types:
        if not types:
            raise ValueError("the table has no geometry column; create one with geo.from_wkt or geo.from_points")
        raise ValueError(f"the table has no geometry column {geometry!r}; it has {', '.join(map(repr, types))}")
    names = table.column_names
    duplicates = [repr(name) for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise ValueError(
            f"the table has duplicate column names: {join_names(duplicates)}; rename them to convert it to a "
            "GeoDataFrame"
        )
    others = [name for name in names if name not in types]
    frame = pandas.DataFrame(index=range(len(table)))
    if others:
        frame = convert_table(table.select(others), "pandas", pa.Table.to_pandas, *PANDAS_FAULTS)
    labels = {str(label): label for label in frame.columns}
    columns: dict[Any, Any] = {}
    for name in names:
        if name in types:
            crs = _pyproj_crs(name, types[name], table.schema)
            values = geopandas.array.from_shapely(to_shapely(table[name]), crs=crs)
            columns[name] = pandas.Series(values, index=frame.index)
        elif name in labels:  # otherwise it is the index
            columns[labels[name]] = frame[labels[name]]
    return geopandas.GeoDataFrame(pandas.DataFrame(columns, index=frame.index), geometry=geometry)


def _pyproj_crs(name: str, type: GeospatialType, schema: pa.Schema) -> Any:
    properties = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (schema.metadata or {}).items()
    }
    try:
        return crs_.parse(type.crs, properties)
    except GeometryError:
        if type.crs is not None and type.crs.lower() != UNKNOWN_CRS:
            unknown = excerpt(crs_label(type.crs), limit=80)
            warn(f"column {name!r}: the CRS {unknown!r} is unknown, so the frame has no CRS", AnnotationWarning)
        return None


def from_geopandas(frame: GeoDataFrame) -> pa.Table:
    """Convert a GeoDataFrame to a table with WKB geometry columns.

    The index is stored as by ``pyarrow.Table.from_pandas``.

    The CRS of a column without one is stored as unknown. Raises TypeError if ``frame`` is not a GeoDataFrame, and
    ValueError if column names are not unique strings.

    >>> import geopandas, shapely
    >>> from pqext.geo import to_wkt
    >>> frame = geopandas.GeoDataFrame({"name": ["Suva"]}, geometry=[shapely.Point(178.44, -18.14)], crs="OGC:CRS84")
    >>> table = from_geopandas(frame)
    >>> table.column_names, to_wkt(table["geometry"]).to_pylist()
    (['name', 'geometry'], ['POINT (178.44 -18.14)'])
    """
    geopandas = require_geopandas()
    import pandas

    if not isinstance(frame, geopandas.GeoDataFrame):
        raise TypeError(f"expected a GeoDataFrame, not {type(frame).__name__}")
    if not frame.columns.is_unique or not all(isinstance(name, str) for name in frame.columns):
        raise ValueError("the column names of the GeoDataFrame must be unique strings; rename the columns")
    geometries = [name for name in frame.columns if isinstance(frame[name].dtype, geopandas.array.GeometryDtype)]
    others = pa.Table.from_pandas(pandas.DataFrame(frame.drop(columns=geometries)))
    fields, arrays = [], []
    for name in frame.columns:
        if name in geometries:
            crs = frame[name].crs
            fields.append(geometry_field(name, UNKNOWN_CRS if crs is None else crs))
            arrays.append(from_shapely(frame[name].to_numpy()))
        else:
            fields.append(others.schema.field(name))
            arrays.append(others.column(name))
    for field in others.schema:
        if field.name not in frame.columns:  # the index columns
            fields.append(field)
            arrays.append(others.column(field.name))
    return pa.table(arrays, schema=pa.schema(fields, others.schema.metadata))


def _check_crs(table: pa.Table, choices: Mapping[str, Any]) -> None:
    """Raise ValueError if the option ``geometry`` states a CRS for a column that differs from the frame's."""
    for name, type in geometry_columns(table.schema).items():
        choice = choices.get(name)
        crs = choice.get("crs") if isinstance(choice, Mapping) and "type" not in choice else choice
        if crs is None or type.crs == UNKNOWN_CRS:
            continue
        other = crs_.require(crs)
        if not crs_.equal(type.crs, other):
            mine, theirs = crs_label(type.crs), crs_label(other)
            raise ValueError(
                f"column {name!r} has CRS {mine}, but the option geometry states {theirs}, which would relabel its "
                f"coordinates; transform them with frame.to_crs({theirs!r}), or correct the frame's CRS with set_crs"
            )


def write_geopandas(
    frame: GeoDataFrame, dest: Any, options: WriteOptions | None = None, **keywords: Unpack[WriteKeywords]
) -> None:
    """Write ``frame`` to ``dest``. Its active geometry is the default primary column of the GeoParquet metadata.

    Keywords are the fields of :class:`pqext.WriteOptions`; ``options`` has the values of the other fields. Raises the
    errors of :func:`from_geopandas` and :func:`pqext.write_table`, and ValueError if the option ``geometry`` states a
    CRS that differs from the frame's.

    >>> import geopandas, pqext, shapely
    >>> frame = geopandas.GeoDataFrame({"name": ["Suva"]}, geometry=[shapely.Point(178.44, -18.14)], crs="OGC:CRS84")
    >>> write_geopandas(frame, "towns.parquet", compression="zstd")
    >>> pqext.read_table("towns.parquet", filter="name = 'Suva'").column_names
    ['name', 'geometry']
    """
    table = from_geopandas(frame)
    _check_crs(table, keywords.get("geometry", options.geometry if options is not None else None) or {})
    active = frame.active_geometry_name
    stated = {**({} if options is None else {name: getattr(options, name) for name in _DESCRIBING}), **keywords}
    if stated.get("geoparquet") is not False and stated.get("primary_geometry") is None and active is not None:
        keywords["primary_geometry"] = str(active)
    from pqext.core.write.writer import write_table  # reading does not load the writer

    write_table(table, dest, options, **keywords)
