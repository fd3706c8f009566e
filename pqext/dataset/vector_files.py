"""Write files in other geospatial formats through GDAL: GeoPackage, FlatGeobuf, shapefiles, PMTiles and more."""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pqext.core.base.errors import GeometryError, ParquetError, UnsupportedError
from pqext.core.base.local_paths import check_target
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.write.table_inputs import as_table
from pqext.dataset.reading import scan
from pqext.geo import crs as crs_
from pqext.geo.finite_geometries import finite_geometries
from pqext.geo.frames import from_geopandas, geometry_columns
from pqext.geo.summary import statistics
from pqext.geo.types import GeospatialType, unmark
from pqext.geo.vector_files import BATCH_ROWS, check_path, gdal_faults, require_pyogrio
from pqext.geo.wkb import binary_chunks, to_iso_wkb
from pqext.variant.conversion.arrow import from_arrow
from pqext.variant.json.text import to_json
from pqext.variant.types import is_variant_type

FORMATS = {
    ".gpkg": "GPKG", ".fgb": "FlatGeobuf", ".shp": "ESRI Shapefile", ".shz": "ESRI Shapefile", ".kml": "KML",
    ".gml": "GML", ".geojsonl": "GeoJSONSeq", ".geojsons": "GeoJSONSeq", ".geojson": "GeoJSON", ".gpx": "GPX",
    ".dxf": "DXF", ".gdb": "OpenFileGDB", ".pmtiles": "PMTiles", ".mvt": "MVT",
}  # fmt: skip
"""GDAL drivers by file extension."""
_TYPED_DRIVERS = frozenset({"ESRI Shapefile", "FlatGeobuf", "OpenFileGDB", "GPX"})
"""Drivers that require a single geometry type per layer; FlatGeobuf only if geometries have Z."""
_WKB_DRIVERS = frozenset({"GPKG", "SQLite", "PGDUMP", "MEM"})
"""Drivers that store empty parts and NaN. Others would drop them together with other coordinates, or write zeros."""
_Z_DRIVERS = frozenset({"ESRI Shapefile", "FlatGeobuf", "OpenFileGDB"})
"""Drivers that store Z if it is NaN, or reject it."""
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_FIXED_ZONE = re.compile(r"(Etc/)?UTC|[+-]\d\d:\d\d")
"""Time zones whose offset from UTC GDAL writes."""
_TYPES = {
    1: "Point", 2: "LineString", 3: "Polygon", 4: "MultiPoint", 5: "MultiLineString", 6: "MultiPolygon",
    7: "GeometryCollection",
}  # fmt: skip
_SIDECARS = {
    ".shp": (
        ".shx", ".dbf", ".prj", ".qpj", ".cpg", ".qix", ".sbn", ".sbx", ".idm", ".ind", ".fbn", ".fbx", ".ain", ".aih",
        ".shp.xml",
    ),
    ".gpkg": (".gpkg-journal", ".gpkg-wal", ".gpkg-shm"),
    ".gml": (".gfs", ".xsd"),
}  # fmt: skip
"""Extensions of files that GDAL reads together with a file, by its extension."""


def write_file(
    rows: Any,
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    driver: str | None = None,
    geometry: str | None = None,
    append: bool = False,
    **options: Any,
) -> None:
    """Write rows to a GeoPackage, FlatGeobuf file, shapefile, KML, PMTiles or another GDAL format, in batches.

    Args:
        rows: A table, a :class:`pqext.Scan`, a path to scan, a GeoDataFrame, or anything with an Arrow C stream.
        path: The file to write. An existing file is replaced, or extended with ``append``.
        layer: Name of the layer; by default the name of the file.
        driver: Name of GDAL's driver; by default chosen by the extension.
        geometry: The geometry column; by default the only one. VARIANT columns and maps become JSON text.
        append: Add the rows to an existing layer, if the format allows it.
        options: Creation options of GDAL's driver, such as ``SPATIAL_INDEX="NO"``.

    Raises:
        ImportError: If pyogrio is not installed.
        ValueError: If the extension or driver is unknown, or the rows have no geometry column or several.
        UnsupportedError: If the format cannot store a column or geometry.
        GeometryError: With the row, if WKB is invalid, or if a coordinate is NaN or infinite and the format is not
            GeoPackage.

    Edges of GEOGRAPHY become straight lines, because the formats do not support other edges. Formats other than
    GeoPackage cannot store all empty geometries: empty points become null, and empty parts of other geometries are
    removed. Coordinates keep their CRS, also in GeoJSON, which states it in the obsolete member ``crs`` unless
    ``RFC7946="YES"``. Line-delimited GeoJSON, KML and GPX store longitudes and latitudes; GDAL transforms the
    coordinates.

    Example:
        >>> import pyarrow as pa
        >>> from pqext import geo
        >>> towns = pa.table({"name": ["Suva"], "geometry": geo.from_points([178.4], [-18.1])})
        >>> geo.write_file(towns, "towns.gpkg", layer="towns")
    """
    pyogrio = require_pyogrio()
    check_target(path)
    target = check_path(os.fspath(path))
    driver = driver or _driver_of(target)
    if driver not in pyogrio.list_drivers(write=True):
        raise ValueError(f"GDAL has no driver {driver!r}{did_you_mean(driver, pyogrio.list_drivers(write=True))}")
    if isinstance(rows, str | os.PathLike):
        rows = scan(rows)
    elif type(rows).__module__.partition(".")[0] == "geopandas":
        rows = from_geopandas(rows)
    reader = rows if isinstance(rows, pa.Table) else as_table(rows)
    types = geometry_columns(reader.schema)
    if geometry is None and len(types) != 1:
        several = f"several geometry columns, {join_names(types)}: select one with geometry=, and remove the others"
        problem = several if types else "no geometry column: name a WKB column with geometry="
        raise ValueError(f"the rows have {problem}")
    name = geometry if geometry is not None else next(iter(types))
    if name not in reader.schema.names:
        raise ValueError(f"the rows have no column {name!r}; they have {join_names(reader.schema.names)}")
    others = [other for other in types if other != name]
    if others:
        raise ValueError(f"{driver} stores only one geometry column; remove {join_names(others)} from the rows")
    marked = types.get(name, GeospatialType(crs_.UNKNOWN))
    fields = [_storable_field(field, field.name == name) for field in reader.schema]
    schema = pa.schema(fields)
    batches = iter(reader.to_batches(BATCH_ROWS) if isinstance(reader, pa.Table) else reader)
    first_batches = [*islice(batches, 1)]
    layer_type = _geometry_type(driver, first_batches, name)
    top_code = math.inf if driver != "FlatGeobuf" else 1999 if layer_type.endswith(" Z") else 999
    stream = _Stream(_storable_batches(chain(first_batches, batches), schema, name, top_code, driver))
    with _replace_at_end(target, append) as staged_path, stream.raise_recorded_error(), gdal_faults(pyogrio, target):
        pyogrio.write_arrow(
            pa.RecordBatchReader.from_batches(schema, stream), staged_path, layer=layer, driver=driver, append=append,
            geometry_name=name, geometry_type=layer_type, crs=_crs_text(marked), **options,
        )


class _Stream:
    """Iterable of batches for GDAL. It records the exception that ends the iteration, because GDAL discards it."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except Exception as error:
            self._error = error
            raise

    @contextmanager
    def raise_recorded_error(self) -> Iterator[None]:
        """Context manager that replaces an error of GDAL with the recorded exception, if there is one."""
        try:
            yield
        except (RuntimeError, ParquetError, ValueError) as error:
            if self._error is None:
                raise
            raise self._error from error


@contextmanager
def _replace_at_end(target: str, append: bool) -> Iterator[str]:
    """Context manager that provides a temporary path, and moves the files from it to ``target`` if no error occurs.

    Some formats, such as shapefiles, consist of several files. With ``append`` and in GDAL's virtual file systems, the
    path is ``target``.
    """
    if append or target.startswith("/vsi"):
        yield target
        return
    folder, name = os.path.split(check_path(os.path.abspath(target)))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{target}: the folder does not exist; create it first")
    staging = tempfile.mkdtemp(prefix=f".{name}.", dir=folder)
    try:
        yield os.path.join(staging, name)
        names = sorted(os.listdir(staging))
        for stale in {*_sidecars(folder, os.path.basename(target))} - {*names}:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, stale))
        for name in names:
            final = os.path.join(folder, name)
            if os.path.isdir(final) and os.path.isdir(os.path.join(staging, name)):
                shutil.rmtree(final)
            os.replace(os.path.join(staging, name), final)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _sidecars(folder: str, name: str) -> list[str]:
    """Return the names of auxiliary files of the file ``name``, such as indexes. They are invalid for a new file."""
    stem, extension = os.path.splitext(name)
    suffixes = _SIDECARS.get(extension.lower(), ())
    return [other for other in os.listdir(folder) if other.startswith(stem) and other[len(stem) :].lower() in suffixes]


def _driver_of(path: str) -> str:
    extension = os.path.splitext(path)[1].lower()
    driver = FORMATS.get(extension)
    if driver is None:
        raise ValueError(f"{path}: unknown file extension; use one of {', '.join(FORMATS)}, or pass driver=")
    return driver


def _storable_field(field: pa.Field, is_geometry: bool) -> pa.Field:
    """Return a field as GDAL stores it: without extension types, and in a layout that GDAL supports."""
    if is_geometry:
        return pa.field(field.name, pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    if is_variant_type(field.type):
        return pa.field(field.name, pa.string(), field.nullable)
    if pa.types.is_map(field.type):
        if not pa.types.is_string(field.type.key_type):
            problem = f"JSON cannot represent a map whose keys are {field.type.key_type}; omit the column"
            raise UnsupportedError(problem, feature="GDAL", column=field.name)
        return pa.field(field.name, pa.string(), field.nullable, {"ARROW:extension:name": "arrow.json"})
    plain = unmark(field).with_metadata(None)
    type = plain.type.storage_type if isinstance(plain.type, pa.BaseExtensionType) else plain.type
    return plain.with_type(_storable_type(type))


def _storable_type(type: pa.DataType) -> pa.DataType:
    """Return a type that GDAL supports. Timestamps in named zones become UTC, because GDAL omits their UTC offset."""
    if pa.types.is_string_view(type) or pa.types.is_binary_view(type):
        return pa.large_string() if pa.types.is_string_view(type) else pa.large_binary()
    if pa.types.is_timestamp(type) and type.tz is not None and not _FIXED_ZONE.fullmatch(type.tz):
        return pa.timestamp(type.unit, "UTC")
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_storable_type(field.type)) for field in type])
    if pa.types.is_dictionary(type) and (values := _storable_type(type.value_type)) != type.value_type:
        return values
    return type


def _storable_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, geometry: str, top_code: float, driver: str
) -> Iterator[pa.RecordBatch]:
    """Convert batches to types that GDAL supports. Errors of geometries number the rows from the first batch."""
    row = 0
    for batch in batches:
        try:
            yield _storable_batch(batch, schema, geometry, top_code, driver)
        except GeometryError as error:
            raise error.shift_row(row) from None
        row += batch.num_rows


def _storable_batch(
    batch: pa.RecordBatch, schema: pa.Schema, geometry: str, top_code: float, driver: str
) -> pa.RecordBatch:
    """Convert a batch to types that GDAL supports, and its geometries to types that the format supports.

    Raises UnsupportedError if GDAL would drop Z or M, that is, for geometries with WKB codes above ``top_code``.
    """
    if top_code < math.inf and any(code > top_code for code in _type_codes([batch], geometry)):
        raise UnsupportedError(
            "FlatGeobuf does not support M, or Z for mixed geometry types; write a GeoPackage", feature="GDAL"
        )
    columns = []
    for column, own, field in zip(batch.columns, batch.schema, schema, strict=True):
        if field.name == geometry:
            (column,) = binary_chunks(to_iso_wkb(column))
            if driver not in _WKB_DRIVERS:
                column = finite_geometries(column, omit_z=driver not in _Z_DRIVERS)
        elif is_variant_type(own.type):
            column = to_json(column)
        elif pa.types.is_map(own.type):
            column = to_json(from_arrow(column, nulls="null"))
        elif any(test(own.type) for test in _LISTS) and pa.compute.list_flatten(column).null_count:
            raise UnsupportedError(
                "GDAL would write nulls in lists as 0 or empty text; remove the nulls, or write the column as JSON "
                "by converting it with pqext.variant.from_arrow",
                feature="GDAL", column=own.name,
            )
        elif isinstance(column, pa.ExtensionArray):
            column = column.storage
        columns.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _type_codes(batches: list[pa.RecordBatch], geometry: str) -> set[int]:
    """Return the ISO WKB codes of the geometry types in batches."""
    columns = [batch.column(batch.schema.names.index(geometry)) for batch in batches]
    return {code for column in columns for code in statistics(column).geospatial_types or ()}


def _geometry_type(driver: str, first_batches: list[pa.RecordBatch], geometry: str) -> str:
    """Return the geometry type of the layer: the type of the first rows if the format requires a single type."""
    codes = _type_codes(first_batches, geometry) if driver in _TYPED_DRIVERS else set()
    if not codes or (driver == "FlatGeobuf" and (len(codes) > 1 or not 1000 <= max(codes) < 2000)):
        return "Unknown"
    name = _TYPES.get(max(code % 1000 for code in codes), "Unknown")
    return f"{name} Z" if any(code // 1000 in (1, 3) for code in codes) and name != "Unknown" else name


def _crs_text(type: GeospatialType) -> str | None:
    """Return the CRS as WKT for GDAL; None if the CRS is unknown."""
    try:
        return str(crs_.parse(type.crs).to_wkt())
    except GeometryError:
        return None
