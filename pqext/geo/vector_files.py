"""Read files of other geospatial formats through GDAL: GeoPackage, FlatGeobuf, shapefiles, KML and more.

The files are read by the library pyogrio, which the extra ``gdal`` installs. This module adds the types of columns.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute
import shapely

from pqext.core.base.errors import CorruptFileError, GeometryError, UnsupportedError, warn
from pqext.core.base.suggestions import did_you_mean
from pqext.geo import crs as crs_
from pqext.geo.linearization import linearize
from pqext.geo.predicates.query import as_box
from pqext.geo.text.times import UTC_OFFSET
from pqext.geo.types import GeospatialType, mark
from pqext.geo.wkb import binary_chunks, to_iso_wkb

BATCH_ROWS = 1 << 16
_GENERIC_STREAM = "OGR_FLATGEOBUF_STREAM_BASE_IMPL"
"""Option of GDAL to read FlatGeobuf like other formats; its own reader returns wrong offsets after null geometries."""


def require_pyogrio() -> ModuleType:
    """Import pyogrio; raise ImportError with installation advice if it is missing."""
    try:
        import pyogrio
    except ImportError as error:
        raise ImportError(f"pyogrio is needed: pip install 'pqext[gdal]' ({error})") from error
    result: ModuleType = pyogrio
    if result.get_gdal_config_option(_GENERIC_STREAM) is None:
        result.set_gdal_config_options({_GENERIC_STREAM: True})
    return result


def read_file(
    path: str | os.PathLike[str],
    *,
    layer: str | int | None = None,
    columns: Sequence[str] | None = None,
    bbox: Sequence[float] | None = None,
    mask: Any = None,
    where: str | None = None,
    curves: Literal["linearize", "raise"] = "linearize",
) -> pa.Table:
    """Read a layer of a GeoPackage, FlatGeobuf file, shapefile, KML or another format of GDAL into a table.

    Args:
        path: A local path, or a path of GDAL such as ``/vsizip/a.zip/b.shp`` or ``/vsicurl/https://...``.
        layer: Name or number of the layer; by default the first.
        columns: Columns to read in addition to the geometry; by default all.
        bbox: Read only geometries that intersect the box ``(xmin, ymin, xmax, ymax)``, in the CRS of the layer. A box
            whose ``xmin`` is above ``xmax`` crosses the antimeridian.
        mask: Read only geometries that intersect this shapely geometry. It cannot be combined with ``bbox``.
        where: Condition in GDAL's SQL, such as ``"population > 1000"``.
        curves: ``"linearize"`` replaces circular arcs as :func:`linearize` does, ``"raise"`` rejects them.

    Returns:
        A table whose column ``geometry`` (``geom`` if an attribute has that name) is WKB with the CRS of the layer, so
        that :func:`pqext.write_table` writes a GEOMETRY column. Warns if the file has several layers.

    Raises:
        ImportError: If pyogrio is not installed.
        FileNotFoundError: If the file does not exist.
        UnsupportedError: If GDAL cannot read the format.
        ValueError: If the layer, a column or the condition is unknown.
        GeometryError: With the row, if a geometry is invalid, or is a curve and ``curves`` is ``"raise"``.

    Example:
        >>> import pyarrow as pa
        >>> from pqext import geo
        >>> towns = pa.table({"name": ["Suva"], "geometry": geo.from_points([178.4], [-18.1])})
        >>> geo.write_file(towns, "towns.fgb")
        >>> table = geo.read_file("towns.fgb")
        >>> table["name"].to_pylist(), geo.to_wkt(table["geometry"]).to_pylist()
        (['Suva'], ['POINT (178.4 -18.1)'])
    """
    with open_file(path, layer=layer, columns=columns, bbox=bbox, mask=mask, where=where, curves=curves) as reader:
        return reader.read_all()


@contextmanager
def open_file(
    path: str | os.PathLike[str],
    *,
    layer: str | int | None = None,
    columns: Sequence[str] | None = None,
    bbox: Sequence[float] | None = None,
    mask: Any = None,
    where: str | None = None,
    curves: Literal["linearize", "raise"] = "linearize",
) -> Iterator[pa.RecordBatchReader]:
    """Open a layer like :func:`read_file`. The context manager yields a reader of its rows in batches.

    Example:
        >>> import pyarrow as pa
        >>> from pqext import geo
        >>> geo.write_file(pa.table({"geometry": geo.from_points([1.0, 2.0], [3.0, 4.0])}), "points.fgb")
        >>> with geo.open_file("points.fgb") as reader:
        ...     sum(batch.num_rows for batch in reader)
        2
    """
    pyogrio = require_pyogrio()
    if curves not in ("linearize", "raise"):
        raise ValueError(f"curves must be 'linearize' or 'raise', not {curves!r}")
    source = os.fspath(path)
    if not source.startswith("/vsi") and "://" not in source:
        if not os.path.exists(source):
            raise FileNotFoundError(f"{source}: the file does not exist")
        check_path(source)
    box = _bounds(bbox)
    if box is not None and box[0] > box[2] and mask is None:
        mask = _split_box(box)
        box = None
    if layer is None:
        with gdal_faults(pyogrio, source):
            layers = [str(name) for name, _ in pyogrio.list_layers(source)]
        if len(layers) > 1:
            warn(
                f"{source} has {len(layers)} layers; reading layer {layers[0]!r}; select another layer with layer=",
                UserWarning,
            )
            layer = layers[0]
    with gdal_faults(pyogrio, source):
        selection = {"layer": layer, "bbox": box, "mask": mask, "where": where, **_stream_options(pyogrio)}
        opened = pyogrio.open_arrow(source, columns=None if columns is None else [*columns], **selection)
        meta, reader = opened.__enter__()
    try:
        missing = [name for name in columns or () if name not in reader.schema.names]
        if missing:
            names = pyogrio.read_info(source, layer=layer)["fields"].tolist()
            raise ValueError(f"{source} has no column {missing[0]!r}{did_you_mean(missing[0], names)}")
        with gdal_faults(pyogrio, source):
            first_batches = [*islice(reader, 2)]
            time_types = _time_types(pyogrio, source, reader.schema, first_batches, selection)
        layout = _Layout.from_schema(reader.schema, meta, time_types)
        batches = layout.batches(chain(first_batches, reader), curves == "linearize", pyogrio, source)
        yield pa.RecordBatchReader.from_batches(layout.schema, batches)
    finally:
        opened.__exit__(None, None, None)


class _Layout:
    """Columns of a layer, and the position of its geometry."""

    def __init__(self, schema: pa.Schema, position: int | None) -> None:
        self.schema = schema
        self.position = position

    @classmethod
    def from_schema(cls, schema: pa.Schema, meta: dict[str, Any], types: Mapping[str, pa.DataType]) -> _Layout:
        """Create the layout of a layer that GDAL has opened. ``types`` contains the types of the time columns."""
        name = meta.get("geometry_name") or "wkb_geometry"
        position = schema.names.index(name) if name in schema.names and meta.get("geometry_type") is not None else None
        fields = [field.remove_metadata().with_type(types.get(field.name, field.type)) for field in schema]
        if position is not None:
            attributes = {field.name for number, field in enumerate(schema) if number != position}
            own = next(choice for choice in ("geometry", "geom", "geom_") if choice not in attributes)
            crs = meta.get("crs")
            type = GeospatialType(crs_.UNKNOWN if crs is None else crs_.require(crs))
            fields[position] = mark(pa.field(own, pa.binary()), type)
        return cls(pa.schema(fields), position)

    def batches(
        self, reader: Iterator[pa.RecordBatch], is_linear: bool, pyogrio: ModuleType, source: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the layer with geometries as ISO WKB. Warn once about each column of mixed times."""
        row = 0
        mixed_columns: set[str] = set()
        while True:
            with gdal_faults(pyogrio, source):
                batch = next(reader, None)
            if batch is None:
                return
            columns = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in batch.columns]
            if self.position is not None:
                try:
                    plain = columns[self.position]
                    (columns[self.position],) = binary_chunks(to_iso_wkb(linearize(plain) if is_linear else plain))
                except GeometryError as error:
                    raise error.shift_row(row) from None
            columns = [
                _as_type(column, field, source, mixed_columns)
                for column, field in zip(columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            row += batch.num_rows


def _stream_options(pyogrio: ModuleType) -> dict[str, Any]:
    """Return the keyword arguments with which pyogrio opens an Arrow stream.

    Times are read as text, because GDAL's timestamps of some formats lack the offset from UTC. pyogrio supports this
    from version 0.12.
    """
    options = {"batch_size": BATCH_ROWS, "use_pyarrow": True}
    has_text = "datetime_as_string" in inspect.signature(pyogrio.open_arrow).parameters
    return {**options, "datetime_as_string": True} if has_text else options


def _time_types(
    pyogrio: ModuleType, source: str, schema: pa.Schema, first_batches: list[pa.RecordBatch], options: dict[str, Any]
) -> dict[str, pa.DataType]:
    """Return the types of time columns: in UTC if any time has an offset from UTC, otherwise without a zone.

    If a layer has more than one batch, columns without an offset in the first batches are read in full.
    """
    local = []
    for field in schema:
        if (field.metadata or {}).get(b"GDAL:OGR:type") == b"DateTime":
            local.append(field.name)
        elif pa.types.is_timestamp(field.type):
            warn(
                f"{source}: column {field.name!r} may have wrong times, because this version of GDAL ignores offsets "
                "from UTC; update pyogrio to 0.12 or later with GDAL 3.11 or later",
                UserWarning,
            )
    names = [*local]
    for batch in first_batches:
        local = [name for name in local if not _has_offset(batch.column(name))]
    if local and len(first_batches) > 1:
        has_filter = options["bbox"] is not None or options["mask"] is not None
        with pyogrio.open_arrow(source, columns=local, read_geometry=has_filter, **options) as (_, reader):
            for batch in reader:
                local = [name for name in local if not _has_offset(batch.column(name))]
                if not local:
                    break
    return {name: pa.timestamp("ms", None if name in local else "UTC") for name in names}


def _has_offset(texts: pa.Array) -> bool:
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, UTC_OFFSET)).as_py())


def _as_type(column: pa.Array, field: pa.Field, source: str, mixed_columns: set[str]) -> pa.Array:
    """Cast a column to the type of ``field``, and parse times.

    Warn if only some times have an offset from UTC, and add the column to ``mixed_columns`` to warn only once.

    Raises:
        CorruptFileError: If a text is not a time.
    """
    if not pa.types.is_timestamp(field.type) or not pa.types.is_string(column.type):
        return column.cast(field.type)
    compute = pa.compute
    texts = compute.replace_substring_regex(column, r"(\.\d{3})\d+", r"\1")
    if field.type.tz is not None:
        has_offset = compute.match_substring_regex(texts, UTC_OFFSET)
        if not compute.all(has_offset, min_count=0).as_py():
            if field.name not in mixed_columns:
                mixed_columns.add(field.name)
                warn(
                    f"{source}: column {field.name!r} has times with and without an offset from UTC; times without an "
                    "offset are read as UTC",
                    UserWarning,
                )
            local = compute.replace_substring_regex(texts, "^(.{10})$", r"\1T00:00")
            texts = compute.if_else(has_offset, texts, compute.binary_join_element_wise(local, "Z", ""))
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(
            f"a value is not a time: {error}; omit the column with columns=", path=source, column=field.name
        ) from None


@contextmanager
def gdal_faults(pyogrio: ModuleType, source: str) -> Iterator[None]:
    """Context manager that converts GDAL's errors to errors of this package, with the path."""
    errors = pyogrio.errors
    try:
        yield
    except (errors.DataLayerError, errors.FieldError, errors.FeatureError) as error:
        if "could not be opened" in str(error):
            raise ValueError(f"{source}: {error}") from None
        has_null = "not supported with spatial index" in str(error)
        remedy = '; pass SPATIAL_INDEX="NO" to store null and empty geometries' if has_null else ""
        raise UnsupportedError(f"{error}{remedy}", feature="GDAL", path=source) from None
    except errors.DataSourceError as error:
        raise UnsupportedError(f"GDAL cannot open the file: {error}", feature="GDAL", path=source) from None
    except OSError as error:  # from the Arrow stream
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{source}: {error}") from None
    except (errors.GeometryError, errors.CRSError) as error:
        raise GeometryError(f"{source}: {error}", rule="geo.gdal") from None


def check_path(path: str) -> str:
    """Return ``path``. Raises ValueError if pyogrio would interpret the path of a local file as a different file."""
    is_local = not path.startswith("/vsi") and "://" not in path
    if is_local and ("!" in path or ";" in os.path.basename(path)):
        raise ValueError(f"{path}: GDAL does not support '!' in paths or ';' in file names; rename the file or folder")
    return path


def _split_box(box: tuple[float, float, float, float]) -> Any:
    """Return a box that crosses the antimeridian as two polygons, because GDAL does not support such boxes."""
    xmin, ymin, xmax, ymax = box
    return shapely.union(shapely.box(xmin, ymin, 180, ymax), shapely.box(-180, ymin, xmax, ymax))


def _bounds(bbox: Any) -> tuple[float, float, float, float] | None:
    """Return a box, or the bounds of a shapely geometry or GeoSeries, as xmin, ymin, xmax, ymax; None for None."""
    if bbox is None:
        return None
    box = as_box(getattr(bbox, "total_bounds", getattr(bbox, "bounds", bbox)))
    return box.xmin, box.ymin, box.xmax, box.ymax
