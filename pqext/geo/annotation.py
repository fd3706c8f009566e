"""Annotation handler for GEOMETRY and GEOGRAPHY columns: field metadata, validation, statistics and pruning.

Spec: "GEOMETRY", "GEOGRAPHY" (LogicalTypes.md), "Statistics" (Geospatial.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from sys import float_info
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import AnnotationWarning, GeometryError, warn
from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.schema.annotations import (
    PAGE_BOXES,
    AssignedTypes,
    ChunkFacts,
    DerivedColumn,
    Storage,
    StoredColumn,
    WriteRecords,
    WrittenColumn,
)
from pqext.core.schema.row_ranges import merge_ranges
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import coordinates, geoparquet, geoparquet_types, page_boxes
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import CheckRange, box_within_range, has_polygons, orient_rings, orients, within_range
from pqext.geo.geoarrow import ENCODINGS, as_wkb, check_layout, encoding_of
from pqext.geo.kernels.boxes import Summary
from pqext.geo.layout.order import OrdersRows, check_curve
from pqext.geo.predicates.predicate import HalfPlane, SpatialPredicate
from pqext.geo.storage import Covering, GeometryStorage
from pqext.geo.summary import EdgeBoxes, bounding_box, describe
from pqext.geo.types import GeospatialType, declared_names, mark, marked_type, unmark
from pqext.geo.wkb import binary_chunks, columns, holds_bytes, storage_type, summaries, to_iso_wkb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pqext.core.options.read_write import ReadOptions, WriteOptions
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode
    from pqext.core.schema.row_ranges import RowRanges

_OPTION_KEYS = frozenset({"crs", "edges", "check_range", "page_boxes", "covering", "order", "orientation", "epoch"})
_PROJJSON_KEYS = frozenset({"$schema", "type", "name"})


class GeospatialHandler(OrdersRows):
    """Handler for GEOMETRY and GEOGRAPHY; see :class:`pqext.core.schema.annotations.AnnotationHandler`."""

    def arrow_field(self, node: SchemaNode, storage: pa.Field, options: ReadOptions) -> pa.Field:
        """Return the binary field with the ``geoarrow.wkb`` extension metadata, including the file's CRS and edges.

        The field has no extension metadata if the file names an unknown edge algorithm.
        """
        try:
            type = _type_of_node(node, options.properties)
        except GeometryError:
            return storage
        return mark(storage if node.is_leaf else storage.with_type(pa.binary()), type)

    def type_warning(self, node: SchemaNode, options: ReadOptions) -> str | None:
        """Explain why a column's CRS is unknown; None for a known CRS, for a code, and if the edges are unknown."""
        try:
            return crs_.explain_unknown(_type_of_node(node).crs, options.properties)
        except GeometryError:
            return None

    def from_storage(self, node: SchemaNode, storage: pa.Array, options: ReadOptions) -> pa.Array:
        """Return the values as WKB. Only columns in GeoParquet's native encodings are converted."""
        if node.is_leaf:
            return storage
        encoding = geoparquet.encoding_of(options.properties.get(geoparquet.KEY, ""), node.name)
        return geoparquet_types.to_wkb(node, storage, encoding)

    def inspects_data(self, choice: Any) -> bool:
        """Return False, because the type of a column is chosen without reading its data."""
        return False

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions) -> GeometryStorage:
        """Return the storage of a GEOMETRY or GEOGRAPHY column, from the field's metadata and ``options.geometry``.

        The option is a CRS, or a mapping with any of ``crs``, ``edges``, ``check_range``, ``page_boxes``, ``covering``,
        ``order``, ``orientation`` and ``epoch``. It overrides the field's metadata. In a geographic CRS, longitudes
        must lie within -180 to 180 and latitudes within -90 to 90, with a tolerance of 1e-9 degrees. ``check_range``
        controls how coordinates out of range are handled: True, the default, rejects them, ``"clamp"`` clamps them to
        the range, and False, for GEOMETRY only, writes them unchanged. Fields in other GeoArrow layouts
        (:mod:`pqext.geo.geoarrow`) are converted to WKB.

        Raises:
            GeometryError: If the field is neither binary nor in a GeoArrow layout, a CRS in the option is unknown, or
                GEOGRAPHY has a CRS that is not known to be geographic.
            ValueError: If the option has an unknown key, or an invalid order, orientation, epoch or covering.
        """
        option = _option(options.geometry.get(path))
        properties = options.key_value_metadata
        stored = _storage(field, path, _type_to_write(field, path, option, properties), option, properties)
        version = geoparquet.version(options)
        stored = _merge_description(stored, option, path, version is not None and path == field.name)
        if version is None or path != field.name:
            if version is not None and options.geoparquet:
                warn(
                    f"column {path!r}: GeoParquet metadata cannot describe nested columns; move the column to the top "
                    "level, or write without GeoParquet metadata",
                    AnnotationWarning,
                )
            return stored
        if version == "1.1":
            geoparquet.check_edges(stored.type, path)
            return replace(stored, is_declared=False)
        if options.profile == "spark":
            return stored  # Spark rejects columns with PROJJSON
        # GeoParquet 2.0 stores the same CRS in the type and in the metadata.
        inline = replace(stored.type, crs=crs_.inline(stored.type.crs, properties))
        return replace(stored, logical_type=inline.logical_type())

    def storage_for_append(
        self, field: pa.Field, path: str, column: StoredColumn, options: WriteOptions
    ) -> GeometryStorage:
        """Return storage with the type of ``column``. Raises ``ValueError`` if the field or its option contradicts it.
        """
        option = _option(options.geometry.get(path))
        existing = _type_of_node(column.node, column.properties)
        properties = {**column.properties, **options.key_value_metadata}
        _check_same_type(field, path, option, existing, properties)
        storage = _storage(field, path, existing, option, properties)
        is_described = geoparquet.version(options) is not None and path == field.name
        assert column.node.logical_type is not None
        return replace(_merge_description(storage, option, path, is_described), logical_type=column.node.logical_type)

    def to_storage(
        self, field: pa.Field, storage: Storage, array: pa.Array, options: WriteOptions, records: WriteRecords
    ) -> pa.Array:
        """Return the values as a binary array of ISO WKB, and record the summary of values that are unchanged.

        Raises:
            GeometryError: With the row and byte if WKB is invalid. With the row if an SRID contradicts the CRS, or if
                coordinates in a geographic CRS are out of range.
        """
        stored = GeometryStorage.from_storage(storage)
        (plain,) = binary_chunks(stored.wkb(array))
        (summary,) = summaries(plain, strict=True)
        if stored.is_oriented and has_polygons(summary.types):
            plain = orient_rings(plain, stored.type)
            (summary,) = summaries(plain, strict=True)
        if not stored.is_declared:
            geoparquet.check_dimensions(summary)
        _check_srid(summary, stored.type, options.key_value_metadata)
        if not _is_in_range(summary, plain, stored.check_range):
            plain = coordinates.clamp(plain)
            coordinates.check(plain)  # infinities are not clamped
        elif summary.extended:
            plain = to_iso_wkb(plain)
        elif not plain.null_count and plain.type == storage.field.type:  # otherwise the buffers of the chunks differ
            records.add(summary)
        return plain.cast(storage.field.type)

    def derive_column(self, field: pa.Field, schema: pa.Schema, options: WriteOptions) -> DerivedColumn | None:
        """Return the covering column that options or GeoParquet 1.1 require, or None. It replaces any old covering."""
        option = _option(options.geometry.get(field.name))
        existing = geoparquet.covering_field(schema, field.name)
        default = None
        if geoparquet.version(options) == "1.1":
            default = {"type": "float"}
            if existing is not None:
                default = {"name": existing.name, "type": str(existing.type[0].type)}
        covering = Covering.from_option(option.get("covering", default), field.name)
        if covering is None:
            return None
        type = _type_to_write(field, field.name, option, options.key_value_metadata)
        clamps = option.get("check_range") == "clamp" and crs_.is_geographic(type.crs, options.key_value_metadata)

        def values(geometries: pa.ChunkedArray) -> pa.ChunkedArray:
            geometries = as_wkb(geometries, encoding_of(field))
            return covering.values(coordinates.clamp(geometries) if clamps else geometries, type)

        is_update = existing is not None and covering.name == existing.name
        return DerivedColumn(covering.field(field), values, is_update=is_update)

    def key_value_metadata(
        self, columns: Sequence[WrittenColumn], input_metadata: Mapping[str, str], options: WriteOptions
    ) -> Mapping[str, str]:
        """Return the GeoParquet metadata that describes the columns; empty if the options disable the metadata."""
        version = geoparquet.version(options)
        if version is None:
            return {}
        geometries = [(column, column.storage) for column in columns if isinstance(column.storage, GeometryStorage)]
        return {geoparquet.KEY: geoparquet.metadata(geometries, version, input_metadata.get(geoparquet.KEY), options)}

    def assigned_types(
        self, value: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]
    ) -> AssignedTypes:
        """Return the types that GeoParquet metadata assigns to columns."""
        return geoparquet_types.assigned_types(value, find, properties)

    def type_text(self, value: str) -> str:
        """Return GeoParquet metadata reduced to the members that determine column types."""
        return geoparquet_types.type_text(value)

    def retain_valid(
        self, value: str, find: Callable[[Sequence[str]], SchemaNode | None], *, is_subset: bool = False
    ) -> str | None:
        """Return the metadata without facts about the rows; see :func:`pqext.geo.geoparquet.filter_columns`."""
        return geoparquet.filter_columns(value, find, is_subset=is_subset)

    def merge_values(self, values: Sequence[str | None]) -> str:
        """Merge GeoParquet metadata of files, as :func:`pqext.geo.geoparquet.merge_metadata` does."""
        return geoparquet.merge_metadata(values)

    def chunk_facts(
        self, node: SchemaNode, values: pa.Array, starts: NDArray[np.int64], has_index: bool, options: WriteOptions,
        records: WriteRecords,
    ) -> ChunkFacts:
        """Return the box, type codes and page boxes of a column chunk; no facts if values are invalid or all null."""
        try:
            type = _type_of_node(node, options.key_value_metadata)
            summary = _summary(values, records)
            pages = page_boxes.summarize_pages(summary, starts)
            edges = EdgeBoxes(values, type)
            statistics = describe(values, type, [summary], edges)
        except GeometryError:
            return ChunkFacts()
        if not statistics.geospatial_types:
            return ChunkFacts()
        option = _option(options.geometry.get(node.dotted_path))
        has_boxes = has_index and len(starts) > 2 and option.get("page_boxes", True)
        payload = page_boxes.encode(page_boxes.build_boxes(pages, statistics, edges)) if has_boxes else None
        return ChunkFacts(statistics, {} if payload is None else {PAGE_BOXES: payload})

    def matching_rows(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> RowRanges | None:
        """Return the rows of the pages whose boxes may match ``predicate``; None if page boxes cannot be used."""
        if not isinstance(predicate, SpatialPredicate) or node.max_repetition_level or not row_group.trust_statistics:
            return None
        if not node.is_leaf or _has_other_edges(node):
            return None
        chunk, type = row_group.chunk(node), _known_type(node)
        pages, boxes = chunk.pages, page_boxes.read(chunk)
        if type is None or pages is None or boxes is None:
            return None
        statistics = chunk.geospatial_statistics
        if statistics is not None:
            predicate = predicate.for_types(statistics.geospatial_types)
        may_match = page_boxes.may_match(boxes, predicate, type)
        edges = np.flatnonzero(np.diff(may_match, prepend=False, append=False)).tolist()
        return merge_ranges(
            range(pages.rows(first).start, pages.rows(stop - 1).stop)
            for first, stop in zip(edges[::2], edges[1::2], strict=True)
        )

    def may_match(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> bool:
        """Return whether a row may satisfy ``predicate``, using the box of its chunk, covering or file."""
        if not isinstance(predicate, SpatialPredicate):
            return True
        chunk = row_group.chunk(node)
        statistics, type = chunk.geospatial_statistics, _known_type(node)
        has_geometries = statistics is not None and (statistics.bbox or statistics.geospatial_types)
        if node.is_leaf and chunk.bounds().all_null and not has_geometries:
            return False
        if type is None or not row_group.trust_statistics:
            return True
        if not node.is_leaf and type.planar:
            coordinates = geoparquet_types.box(row_group, node)
            if coordinates is not None:
                return predicate.may_match(coordinates, type)
        if statistics is not None and statistics.bbox is not None:
            predicate = predicate.for_types(statistics.geospatial_types)
            box = BoundingBox.from_metadata(statistics.bbox)
            if not type.planar:
                clamped = box_within_range(box)
                if clamped is None:
                    return True
                box = clamped
            return predicate.may_match(box, type) or page_boxes.extend_beyond(box, chunk)
        if not type.planar or isinstance(predicate, HalfPlane):
            return True
        stated = geoparquet.covering_box(row_group, node, type.geographic) or geoparquet.file_box(row_group, node)
        return stated is None or predicate.may_match(stated, type)


def _summary(values: pa.Array, records: WriteRecords) -> Summary:
    """Return the summary of an array, from ``records`` if it was computed before from the same buffers."""
    (column,) = columns(values)
    recorded = (note for note in records.iter_type(Summary) if note.is_of(column))
    return next(recorded, None) or Summary(column)


def _known_type(node: SchemaNode) -> GeospatialType | None:
    """Return the type of a column; None if the edge algorithm is unknown, which prevents pruning with boxes."""
    try:
        return _type_of_node(node)
    except GeometryError:
        return None


def _has_other_edges(node: SchemaNode) -> bool:
    """Return whether key-value metadata declares edges that differ from the edges of the stored boxes."""
    return node.is_adopted and node.declared_type is not None and node.declared_type.member != node.logical_name


def _type_of_node(node: SchemaNode, properties: Mapping[str, str] | None = None) -> GeospatialType:
    if node.logical_type is None:
        raise ValueError(f"{node.dotted_path} is not a geometry")
    return GeospatialType.from_logical_type(node.logical_type, properties)


def _storage(
    field: pa.Field, path: str, type: GeospatialType, option: Mapping[str, Any], properties: Mapping[str, str]
) -> GeometryStorage:
    """Return the storage of a field that is written as ``type``."""
    encoding = encoding_of(field)
    if encoding in ENCODINGS:
        try:
            check_layout(field.type, encoding)
        except GeometryError as error:
            error.locate(column=path)
            raise
    elif not holds_bytes(field.type):
        hint = "; geo.from_wkt converts WKT" if str(field.type) in ("string", "large_string") else ""
        hint = "; geo.from_geoarrow converts GeoArrow layouts" if pa.types.is_nested(field.type) else hint
        raise GeometryError(f"{path!r}: a geometry column must contain WKB in a binary array, not {field.type}{hint}")
    if option.get("covering") and path != field.name:
        raise ValueError(f"column {path!r}: covering requires a top-level column; omit the option")
    geographic = crs_.is_geographic(type.crs, properties)
    if not type.planar and not geographic:
        problem = f"column {path!r}: GEOGRAPHY needs a geographic CRS, not {excerpt(crs_label(type.crs))}"
        raise GeometryError(f"{problem}; transform to OGC:CRS84, or use edges='planar'", rule="geography.crs")
    if geographic is None and type.crs is not None and type.crs.lower() != crs_.UNKNOWN:
        hint = "" if (reason := crs_.explain_mistake(type.crs)) is None else f": {reason}"
        unknown = excerpt(crs_label(type.crs))
        warn(f"column {path!r}: CRS {unknown!r} is unknown, so readers may not recognise it{hint}", UserWarning)
    return GeometryStorage(
        logical_type=type.logical_type(),
        field=unmark(field).with_type(_plain_type(field.type)),
        type=type,
        check_range=geographic is True and (option.get("check_range", True) or not type.planar),
        order=check_curve(option["order"]) if option.get("order") is not None else None,
        encoding=encoding,
    )


def _merge_description(
    storage: GeometryStorage, option: Mapping[str, Any], path: str, is_described: bool
) -> GeometryStorage:
    """Return ``storage`` with the orientation and epoch from the options, which only GeoParquet metadata can express.

    Raises:
        ValueError: If the orientation is unknown, or the epoch is not a year or there is no metadata to store it in.
    """
    epoch = option.get("epoch")
    if epoch is not None:
        if isinstance(epoch, bool) or not isinstance(epoch, int | float) or not abs(epoch) <= float_info.max:
            raise ValueError(f"epoch must be a decimal year such as 2021.47, not {epoch!r}")
        if not is_described:
            raise ValueError(f"column {path!r}: epoch requires GeoParquet metadata and a top-level column; omit epoch")
    oriented = orients(option.get("orientation"), storage.type, is_described)
    return replace(storage, is_oriented=oriented, epoch=epoch)


def _check_same_type(
    field: pa.Field, path: str, option: Mapping[str, Any], stored_type: GeospatialType, properties: Mapping[str, str]
) -> None:
    """Raise ``ValueError`` if the option or the field's metadata states a CRS or edges that differ from the file."""
    marked = declared_names(field) if encoding_of(field) is not None else frozenset()
    options = {name for name, value in option.items() if value is not None}
    own = _type_to_write(field, path, option, properties)
    for name in ("crs", "edges"):
        ours, theirs = (type.crs or crs_.DEFAULT if name == "crs" else type.edges for type in (own, stored_type))
        same = ours == theirs or (name == "crs" and crs_.equal(own.crs, stored_type.crs, properties))
        if name in options | marked and not same:
            source = "option 'geometry'" if name in options else "the table"
            raise ValueError(
                f"{source} states {name} {crs_label(ours)} for column {path!r}, but the file has {crs_label(theirs)}; "
                f"omit the {name}, or write a new file"
            )


def _type_to_write(
    field: pa.Field, path: str, option: Mapping[str, Any], properties: Mapping[str, str]
) -> GeospatialType:
    """Return the type to write for a field, from the option or the field's metadata.

    Raises:
        GeometryError: If the CRS of the option is unknown.
    """
    marked = GeospatialType() if encoding_of(field) is None else marked_type(field)
    try:
        crs = marked.crs if option.get("crs") is None else crs_.require(option["crs"], properties)
    except GeometryError as error:
        error.locate(column=path)
        raise
    return GeospatialType(crs, option.get("edges", marked.edges))


def _plain_type(type: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_large_binary(storage_type(type)) else pa.binary()


def _option(option: Any) -> Mapping[str, Any]:
    """Return a column's entry in ``options.geometry`` as a mapping; a CRS becomes the value of the key ``crs``.

    Raises:
        ValueError: If a key is unknown.
        TypeError: If a flag is not a bool.
    """
    if isinstance(option, Mapping):
        unknown = sorted(map(str, option.keys() - _OPTION_KEYS))
        if unknown and not option.keys() & _PROJJSON_KEYS:
            hint, known = did_you_mean(unknown[0], _OPTION_KEYS), ", ".join(sorted(_OPTION_KEYS))
            raise ValueError(f"unknown geometry option {unknown[0]!r}{hint or ';'} known options: {known}")
        if not unknown:
            for name in ("check_range", "page_boxes"):
                words = ("clamp",) if name == "check_range" else ()
                if not isinstance(option.get(name, True), bool) and option[name] not in words:
                    expected = 'a bool or "clamp"' if words else "a bool"
                    raise TypeError(f"{name} must be {expected}, not {option[name]!r}")
            return option
    return {"crs": option}


def _check_srid(summary: Summary, type: GeospatialType, properties: Mapping[str, str]) -> None:
    for srid, row in summary.srids:
        if not crs_.equal(f"srid:{srid}", type.crs, properties):
            raise GeometryError(
                f"EWKB has SRID {srid}, but the column has CRS {type.crs or crs_.DEFAULT}", rule="geo.wkb.ewkb", row=row
            )


def _is_in_range(summary: Summary, array: pa.Array, check: CheckRange) -> bool:
    """Return whether the coordinates can be written without clamping.

    Raises GeometryError if coordinates are out of range and ``check`` is True.
    """
    box = bounding_box([summary])
    if not check or (box is not None and within_range(box, 0.0)):
        return True
    if check == "clamp":
        return False
    if box is None or not within_range(box):
        coordinates.check(array)
    return True


HANDLER = GeospatialHandler()
