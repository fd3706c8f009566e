"""GEOMETRY and GEOGRAPHY columns for core's reader and writer: marks, validation, statistics, pruning.

Spec: "GEOMETRY", "GEOGRAPHY" (000 §5.2), "Statistics" (000 §5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import GeometryError, warn
from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.schema.annotations import (
    PAGE_BOXES,
    Adopted,
    ChunkFacts,
    Derived,
    Notes,
    Storage,
    StoredColumn,
    WrittenColumn,
)
from pqext.core.schema.row_ranges import merged
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import coordinate_range, geoparquet, geoparquet_types, page_boxes
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.coordinate_range import CheckRange, box_within_range, within_range
from pqext.geo.covering import Covering
from pqext.geo.geoarrow import ENCODINGS, as_wkb, check_layout, encoding_of
from pqext.geo.kernels.boxes import Summary
from pqext.geo.layout.curves import check_curve
from pqext.geo.layout.order import OrdersRows
from pqext.geo.predicates.predicate import SpatialPredicate
from pqext.geo.storage import GeometryStorage
from pqext.geo.summary import EdgeBoxes, bounding_box, describe
from pqext.geo.types import GeospatialType, mark, marked_type, names_of_marks, unmark
from pqext.geo.wkb import binary_chunks, columns, holds_bytes, storage_type, summaries, to_iso_wkb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pqext.core.options.read_write import ReadOptions, WriteOptions
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode
    from pqext.core.schema.row_ranges import RowRanges

_OPTION_KEYS = frozenset({"crs", "edges", "check_range", "page_boxes", "covering", "order"})
_PROJJSON_KEYS = frozenset({"$schema", "type", "name"})


class GeospatialHandler(OrdersRows):
    """The handler of GEOMETRY and GEOGRAPHY; see :class:`pqext.core.schema.annotations.AnnotationHandler`."""

    def arrow_field(self, node: SchemaNode, storage: pa.Field, options: ReadOptions) -> pa.Field:
        """The binary field under the marks of ``geoarrow.wkb``, with the file's crs and edges.

        Without marks when the file names an algorithm for its edges that is not known.
        """
        try:
            type = _type_of_node(node, options.properties)
        except GeometryError:
            return storage
        return mark(storage if node.is_leaf else storage.with_type(pa.binary()), type)

    def doubt(self, node: SchemaNode, options: ReadOptions) -> str | None:
        """Return why the CRS of a column is not known, if it is not."""
        try:
            return crs_.doubt(_type_of_node(node).crs, options.properties)
        except GeometryError:
            return None

    def from_storage(self, node: SchemaNode, storage: pa.Array, options: ReadOptions) -> pa.Array:
        """The values as WKB, in which all columns but those of GeoParquet's native encodings are stored."""
        if node.is_leaf:
            return storage
        encoding = geoparquet.encoding_of(options.properties.get(geoparquet.KEY, ""), node.name)
        return geoparquet_types.to_wkb(node, storage, encoding)

    def looks_at_data(self, choice: Any) -> bool:
        """No: the choice is whole."""
        return False

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions) -> GeometryStorage:
        """GEOMETRY or GEOGRAPHY over plain bytes, by the field's marks and what ``options.geometry`` says.

        An option is a crs, or a mapping with any of ``crs``, ``edges``, ``check_range``, ``page_boxes`` and
        ``order``; it wins over the marks. In a geographic CRS longitudes lie in -180 to 180 and latitudes in -90 to
        90, up to 1e-9 degrees, which are rounding. ``check_range`` is what becomes of other coordinates: True, the
        default, refuses them, ``"clamp"`` writes all with the ends of the range in their place, and False, for
        GEOMETRY alone, writes them as they are. Fields in GeoArrow's other layouts (:mod:`pqext.geo.geoarrow`) become
        WKB; without their marks they are written as the structs, lists and texts that they are.

        Raises GeometryError for a field that holds no bytes and for GEOGRAPHY in a CRS that is not known to be
        geographic, ValueError for an unknown order.
        """
        option = _option(options.geometry.get(path))
        properties = options.key_value_metadata
        stored = _storage(field, path, _type_to_write(field, path, option, properties), option, properties)
        if not options.geoparquet:
            return stored
        # GeoParquet 2.0 has the CRS in the type as it is in the metadata.
        inline = replace(stored.type, crs=crs_.inline(stored.type.crs, options.key_value_metadata))
        return replace(stored, logical_type=inline.logical_type())

    def storage_like(self, field: pa.Field, path: str, like: StoredColumn, options: WriteOptions) -> GeometryStorage:
        """As :meth:`storage`, with the kind, crs and edges of ``like``.

        Raises ValueError where the option or the field's marks name a crs or edges, and others than ``like`` has.
        """
        option = _option(options.geometry.get(path))
        there = _type_of_node(like.node, like.properties)
        properties = {**like.properties, **options.key_value_metadata}
        _check_told(field, path, option, there, properties)
        found = _storage(field, path, there, option, properties)
        assert like.node.logical_type is not None
        return replace(found, logical_type=like.node.logical_type)

    def to_storage(
        self, field: pa.Field, storage: Storage, array: pa.Array, options: WriteOptions, notes: Notes
    ) -> pa.Array:
        """The values as ISO WKB in plain bytes, their summary noted.

        Raises GeometryError with row and byte on bad WKB, with the row on an SRID that is not the column's
        and on coordinates that are no longitude and latitude where the CRS is geographic.
        """
        stored = GeometryStorage.of(storage)
        (plain,) = binary_chunks(stored.wkb(array))
        (whole,) = summaries(plain, strict=True)
        _check_srid(whole, stored.type, options.key_value_metadata)
        if not _in_range(whole, plain, stored.check_range):
            plain = coordinate_range.clamp(plain)
            coordinate_range.check(plain)  # infinities are not moved
        elif whole.extended:
            plain = to_iso_wkb(plain)
        elif not plain.null_count and plain.type == storage.field.type:  # else chunks are made of other memory
            notes.add(whole)
        return plain.cast(storage.field.type)

    def derived(self, field: pa.Field, options: WriteOptions) -> Derived | None:
        """The column of boxes that the option ``covering`` asks for."""
        covering = Covering.of_option(_option(options.geometry.get(field.name)).get("covering"), field.name)
        if covering is None:
            return None
        option = _option(options.geometry.get(field.name))
        type = _type_to_write(field, field.name, option, options.key_value_metadata)
        clamps = option.get("check_range") == "clamp" and crs_.is_geographic(type.crs, options.key_value_metadata)

        def values(geometries: pa.ChunkedArray) -> pa.ChunkedArray:
            geometries = as_wkb(geometries, encoding_of(field))
            return covering.values(coordinate_range.clamp(geometries) if clamps else geometries, type)

        return Derived(covering.field(field), values)

    def key_value_metadata(self, columns: Sequence[WrittenColumn], options: WriteOptions) -> Mapping[str, str]:
        """GeoParquet's description of the columns if ``options.geoparquet`` requests it."""
        if not options.geoparquet:
            return {}
        told = [(one, one.storage.type) for one in columns if isinstance(one.storage, GeometryStorage)]
        return {geoparquet.KEY: geoparquet.metadata(told, options.geoparquet, options.key_value_metadata)}

    def adopted(self, value: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]) -> Adopted:
        """The types that GeoParquet metadata gives to columns."""
        return geoparquet_types.adopted(value, find, properties)

    def of_other_rows(self, value: str, find: Callable[[Sequence[str]], SchemaNode | None]) -> str | None:
        """GeoParquet metadata of the columns that are there, without boxes and types."""
        return geoparquet.of_columns(value, find)

    def of_all_rows(self, values: Sequence[str | None]) -> str:
        """GeoParquet metadata with the boxes and types of all files, where all tell of them."""
        return geoparquet.merged(values)

    def chunk_facts(
        self, node: SchemaNode, values: pa.Array, starts: NDArray[np.int64], indexed: bool, options: WriteOptions,
        notes: Notes,
    ) -> ChunkFacts:
        """Box and type codes of one column chunk, and a box for each page; nothing of values that are not WKB."""
        try:
            type = _type_of_node(node, options.key_value_metadata)
            whole = _summary(values, notes)
            pages = page_boxes.summarized(whole, starts)
            edges = EdgeBoxes(values, type)
            found = describe(values, type, [whole], edges)
        except GeometryError:
            return ChunkFacts()
        if not found.geospatial_types:
            return ChunkFacts()
        wanted = indexed and len(starts) > 2 and _option(options.geometry.get(node.dotted)).get("page_boxes", True)
        payload = page_boxes.encode(page_boxes.of_pages(pages, found, edges)) if wanted else None
        return ChunkFacts(found, {} if payload is None else {PAGE_BOXES: payload})

    def matching_rows(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> RowRanges | None:
        """The rows of the pages that may match, by their boxes; all where pages have none."""
        if not isinstance(predicate, SpatialPredicate) or node.max_repetition_level or not row_group.trust_statistics:
            return None
        if not node.is_leaf or _has_other_edges(node):
            return None
        chunk, type = row_group.chunk(node), _known_type(node)
        pages, boxes = chunk.pages, page_boxes.read(chunk)
        if type is None or pages is None or boxes is None:
            return None
        kept = page_boxes.may_match(boxes, predicate, type)
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False)).tolist()
        return merged(
            range(pages.rows(first).start, pages.rows(stop - 1).stop)
            for first, stop in zip(edges[::2], edges[1::2], strict=True)
        )

    def may_match(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> bool:
        """Can a row satisfy a :class:`SpatialPredicate`? By the chunk's box, or by that of GeoParquet's covering."""
        if not isinstance(predicate, SpatialPredicate):
            return True
        chunk = row_group.chunk(node)
        found, type = chunk.geospatial_statistics, _known_type(node)
        if node.is_leaf and chunk.bounds().all_null and (found is None or not (found.bbox or found.geospatial_types)):
            return False
        if type is None or not row_group.trust_statistics:
            return True
        if not node.is_leaf and type.planar:
            coordinates = geoparquet_types.box(row_group, node)
            if coordinates is not None:
                return predicate.may_match(coordinates, type)
        if found is not None and found.bbox is not None:
            box = BoundingBox.from_metadata(found.bbox)
            if not type.planar:
                inside = box_within_range(box)
                if inside is None:
                    return True
                box = inside
            return predicate.may_match(box, type) or page_boxes.leave(box, chunk)
        covered = geoparquet.covering_box(row_group, node, type.geographic) if type.planar else None
        return covered is None or predicate.may_match(covered, type)


def _summary(values: pa.Array, notes: Notes) -> Summary:
    """What the values have in common: as it was noted of their very memory, else found now."""
    (column,) = columns(values)
    known = (note for note in notes.of(Summary) if note.is_of(column))
    return next(known, None) or Summary(column)


def _known_type(node: SchemaNode) -> GeospatialType | None:
    """The column's type; None where its edges are of an algorithm that is not known, and boxes prove nothing."""
    try:
        return _type_of_node(node)
    except GeometryError:
        return None


def _has_other_edges(node: SchemaNode) -> bool:
    """Whether key-value metadata gives the column edges other than those by which its boxes were made."""
    return node.is_adopted and node.declared_type is not None and node.declared_type.member != node.logical_name


def _type_of_node(node: SchemaNode, properties: Mapping[str, str] | None = None) -> GeospatialType:
    if node.logical_type is None:
        raise ValueError(f"{node.dotted} is not a geometry")
    return GeospatialType.from_logical_type(node.logical_type, properties)


def _storage(
    field: pa.Field, path: str, type: GeospatialType, option: Mapping[str, Any], properties: Mapping[str, str]
) -> GeometryStorage:
    """How a field that is written as ``type`` is stored."""
    encoding = encoding_of(field)
    if encoding in ENCODINGS:
        try:
            check_layout(field.type, encoding)
        except GeometryError as error:
            error.locate(column=path)
            raise
    elif not holds_bytes(field.type):
        hint = "; geo.from_wkt makes it of WKT" if str(field.type) in ("string", "large_string") else ""
        hint = "; geo.from_geoarrow makes it of GeoArrow's layouts" if pa.types.is_nested(field.type) else hint
        raise GeometryError(f"{path!r}: a geometry column holds WKB in a binary array, not {field.type}{hint}")
    if option.get("covering") and path != field.name:
        raise ValueError(f"covering is for top-level columns, which {path!r} is not")
    geographic = crs_.is_geographic(type.crs, properties)
    if not type.planar and not geographic:
        raise GeometryError(f"GEOGRAPHY needs a geographic CRS, not {type.crs}", rule="geography.crs")
    if geographic is None and type.crs is not None and type.crs.lower() != crs_.UNKNOWN:
        hint = "" if (reason := crs_.mistake(type.crs)) is None else f": {reason}"
        unknown = excerpt(crs_label(type.crs))
        warn(f"column {path!r}: CRS {unknown!r} is not known, so readers will not know it{hint}", UserWarning)
    return GeometryStorage(
        logical_type=type.logical_type(),
        field=unmark(field).with_type(_plain_type(field.type)),
        type=type,
        check_range=geographic is True and (option.get("check_range", True) or not type.planar),
        order=check_curve(option["order"]) if option.get("order") is not None else None,
        encoding=encoding,
    )


def _check_told(
    field: pa.Field, path: str, option: Mapping[str, Any], there: GeospatialType, properties: Mapping[str, str]
) -> None:
    """Refuse a crs or edges that the option or the field's marks name and that are not those of the file."""
    marked = names_of_marks(field) if encoding_of(field) is not None else frozenset()
    given = {name for name, value in option.items() if value is not None}
    own = _type_to_write(field, path, option, properties)
    for name in ("crs", "edges"):
        mine, theirs = (one.crs or crs_.DEFAULT if name == "crs" else one.edges for one in (own, there))
        same = mine == theirs or (name == "crs" and crs_.equal(own.crs, there.crs, properties))
        if name in given | marked and not same:
            source = "option 'geometry'" if name in given else "the table"
            raise ValueError(
                f"{source} says that column {path!r} has {name} {excerpt(mine)}, but in the file it has "
                f"{excerpt(theirs)}: leave it out to take the file's, or write another file"
            )


def _type_to_write(
    field: pa.Field, path: str, option: Mapping[str, Any], properties: Mapping[str, str]
) -> GeospatialType:
    """The type that a field is written as: what the option states, else what the field's marks state.

    Raises GeometryError for a CRS of the option that is not known.
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
    """A column's entry in ``options.geometry`` as a mapping of our keys; PROJJSON is a mapping with others.

    Raises ValueError for a mapping that is neither, TypeError for a switch that is no bool.
    """
    if isinstance(option, Mapping):
        strange = sorted(map(str, option.keys() - _OPTION_KEYS))
        if strange and not option.keys() & _PROJJSON_KEYS:
            meant, known = did_you_mean(strange[0], _OPTION_KEYS), ", ".join(sorted(_OPTION_KEYS))
            raise ValueError(f"{strange[0]!r} is no geometry option{meant or '.'} There are {known}")
        if not strange:
            for name in ("check_range", "page_boxes"):
                words = ("clamp",) if name == "check_range" else ()
                if not isinstance(option.get(name, True), bool) and option[name] not in words:
                    expected = 'a bool or "clamp"' if words else "a bool"
                    raise TypeError(f"{name} must be {expected}, not {option[name]!r}")
            return option
    return {"crs": option}


def _check_srid(whole: Summary, type: GeospatialType, properties: Mapping[str, str]) -> None:
    for srid, row in whole.srids:
        if not crs_.equal(f"srid:{srid}", type.crs, properties):
            raise GeometryError(
                f"SRID {srid} is not the column's CRS, {type.crs or crs_.DEFAULT}", rule="geo.wkb.ewkb", row=row
            )


def _in_range(whole: Summary, array: pa.Array, check: CheckRange) -> bool:
    """Do all coordinates stay as they are? False where they are to be clamped; refuses those that must not be."""
    box = bounding_box([whole])
    if not check or (box is not None and within_range(box, 0.0)):
        return True
    if check == "clamp":
        return False
    if box is None or not within_range(box):
        coordinate_range.check(array)
    return True


HANDLER = GeospatialHandler()
