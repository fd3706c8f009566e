"""Registry of logical types that packages above core implement.

Core only knows the name of an annotation and how its Arrow fields are marked. A handler implements the type. The
registry contains the dotted path of the handler, which is imported when a file or table needs it. Third parties add
types with :func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable
from uuid import UUID

import pyarrow as pa

from pqext.core.base.lazy_imports import load_object

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pqext.core.format.metadata import ColumnMetaData, GeospatialStatistics, LogicalType
    from pqext.core.options.read_write import ReadOptions, WriteOptions
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode
    from pqext.core.schema.row_ranges import RowRanges

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"

PAGE_BOXES = UUID("3fa80497-457c-4ddd-a5ca-f086c92581a1")
"""UUID of the extension with one box per page in a chunk's metadata; see :mod:`pqext.geo.page_boxes`."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Stored representation of an Arrow field: the annotation of its schema node, and a plain Arrow field.

    If ``is_declared`` is false, the type is not in the schema of the file, but in its key-value metadata.
    """

    logical_type: LogicalType
    field: pa.Field
    _: KW_ONLY
    is_declared: bool = True


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """Metadata that a handler adds to a written column chunk: geospatial statistics and extensions."""

    geospatial_statistics: GeospatialStatistics | None = None
    extensions: Mapping[UUID, bytes] = field(default_factory=dict)


Record = TypeVar("Record")


class WriteRecords:
    """Records about the values of a top-level column in a row group. Handlers add records while values are converted,
    and read them when chunk metadata is built.
    """

    def __init__(self) -> None:
        self._records: list[object] = []

    def add(self, record: object) -> None:
        """Add ``record``, whose type is defined by its handler."""
        self._records.append(record)

    def iter_type(self, record_type: type[Record]) -> Iterator[Record]:
        """Return an iterator over the records of type ``record_type``."""
        return (record for record in self._records if isinstance(record, record_type))


class AnnotationHandler(Protocol):
    """Interface for logical types outside ``pqext.core``: their conversion, storage, statistics and predicates."""

    def arrow_field(self, node: SchemaNode, storage: pa.Field, options: ReadOptions) -> pa.Field:
        """Return the Arrow field of ``node`` for readers. ``storage`` is its plain field."""

    def from_storage(self, node: SchemaNode, storage: pa.Array, options: ReadOptions) -> pa.Array:
        """Convert an array of the plain field to the type of ``arrow_field``. Rows keep their positions."""

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions) -> Storage:
        """Return the storage of ``field`` at dotted ``path``. ``sample`` contains the first values, or is None."""

    def inspects_data(self, choice: Any) -> bool:
        """Return whether :meth:`storage` requires a ``sample`` if the writer's option for a column is ``choice``."""

    def to_storage(
        self, field: pa.Field, storage: Storage, array: pa.Array, options: WriteOptions, records: WriteRecords
    ) -> pa.Array:
        """Convert an array of ``field``'s type to the type of the storage field. Rows keep their positions.

        Records that are added to ``records`` are passed to :meth:`chunk_facts`.
        """

    def chunk_facts(
        self, node: SchemaNode, values: pa.Array, starts: NDArray[np.int64], has_index: bool, options: WriteOptions,
        records: WriteRecords,
    ) -> ChunkFacts:
        """Return the facts to store about one column chunk of leaf ``node``.

        Args:
            node: The leaf.
            values: Values of all pages.
            starts: Position in ``values`` of each page's first value, followed by the number of values.
            has_index: Whether the chunk gets a page index, so that readers can distinguish its pages.
            options: Options of the writer.
            records: Records of the row group's top-level column, including those for other leaves and handlers.
        """

    def may_match(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> bool:
        """Return whether a row of the row group may satisfy the handler's ``predicate`` on ``node``. Only False is
        definitive.
        """

    def matching_rows(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> RowRanges | None:
        """Return the rows of the pages that may satisfy ``predicate``; None if no page can be skipped."""


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """Column that is derived from another column: its field, and the function that computes its values.

    If ``is_update`` is true, it replaces a column with the same name.
    """

    field: pa.Field
    values: Callable[[pa.ChunkedArray], pa.ChunkedArray]
    is_update: bool = False


@runtime_checkable
class DerivedColumnHandler(Protocol):
    """Optional interface of a handler that derives columns, such as bounding boxes, from columns of its type."""

    def derive_column(self, field: pa.Field, schema: pa.Schema, options: WriteOptions) -> DerivedColumn | None:
        """Return the column derived from top-level ``field`` of ``schema``; None without a derived column."""


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """Top-level column of a written file: storage, metadata by row group, and name of its derived column if any."""

    node: SchemaNode
    storage: Storage
    chunks: Sequence[ColumnMetaData]
    encrypted: bool
    derived: str | None


@dataclass(frozen=True, slots=True)
class AssignedTypes:
    """Logical types that key-value metadata assigns to columns, and messages about contradictions between metadata and
    schema.
    """

    types: Mapping[str, LogicalType]
    contradictions: Sequence[str] = ()


@runtime_checkable
class KeyValueMetadataHandler(Protocol):
    """Optional interface of a handler that describes columns of its type in the key-value metadata of a file."""

    def key_value_metadata(
        self, columns: Sequence[WrittenColumn], input_metadata: Mapping[str, str], options: WriteOptions
    ) -> Mapping[str, str]:
        """Return additional key-value metadata for a file with these columns.

        ``input_metadata`` is the metadata of the file that the rows were read from. The method is also called before
        the first row, with columns that have no chunks.
        """

    def assigned_types(
        self, value: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]
    ) -> AssignedTypes:
        """Return the logical types that ``value``, the handler's key-value metadata in a file, assigns to top-level
        columns.

        ``find`` returns the column with a name, if there is exactly one and it is not repeated. ``properties`` contains
        all key-value metadata of the file.
        """

    def type_text(self, value: str) -> str:
        """Return the part of ``value`` that ``assigned_types`` and ``from_storage`` use, without facts about rows.

        Files whose values differ only in such facts, like boxes, share a schema.
        """

    def retain_valid(
        self, value: str, find: Callable[[Sequence[str]], SchemaNode | None], *, is_subset: bool = False
    ) -> str | None:
        """Return the part of ``value`` that remains valid for a file with different rows; None if no part remains
        valid.

        ``find`` returns the file's column at a path. With ``is_subset``, the rows of the file are a subset of the rows
        that ``value`` describes.
        """

    def merge_values(self, values: Sequence[str | None]) -> str:
        """Merge the values of several files with the same columns. At least one value is not None.

        A value is None if the file does not have the property. Raises ``ValueError`` if the values cannot be combined
        for one file.
        """


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Existing column to which values are appended: schema node, plain Arrow field, and the file's key-value metadata.
    """

    node: SchemaNode
    field: pa.Field
    properties: Mapping[str, str]


@runtime_checkable
class AppendStorageHandler(Protocol):
    """Optional interface of a handler that can store appended values in the layout of an existing column."""

    def storage_for_append(self, field: pa.Field, path: str, column: StoredColumn, options: WriteOptions) -> Storage:
        """Return the storage of ``field`` at dotted ``path`` that matches ``column``, a column of the handler's type.

        Raises ``ValueError`` if the field or ``options`` contradict the column.
        """


@runtime_checkable
class TypeWarningHandler(Protocol):
    """Optional interface of a handler that warns readers if the type of a column is implausible."""

    def type_warning(self, node: SchemaNode, options: ReadOptions) -> str | None:
        """Return a warning for readers about the type of column ``node``; None if the type is plausible."""


@runtime_checkable
class SparkTypeHandler(Protocol):
    """Optional interface of a handler whose columns have a different Arrow type in Spark."""

    def spark_type(self, field: pa.Field) -> pa.DataType:
        """Return the Arrow type that arrays of ``field`` are cast to for Spark."""


@runtime_checkable
class RowLayoutHandler(Protocol):
    """Optional interface of a handler whose columns determine the order of rows and the boundaries of pages."""

    def orders_rows(self, storage: Storage) -> bool:
        """Return whether a column with this storage determines the order of rows."""

    def row_groups(
        self, storage: Storage, values: pa.ChunkedArray, max_count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row numbers in write order, and the start of each row group.

        A row group has at most ``max_count`` rows.
        """

    def pages(
        self, storage: Storage, values: pa.ChunkedArray, max_count: int, sort: bool
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the order of a row group's rows, and the position of the first row of each page.

        The order is None unless ``sort`` is set.
        """


@cache
def _load_handler(reference: str) -> AnnotationHandler:
    handler: AnnotationHandler = load_object(reference)
    return handler


@dataclass(frozen=True, slots=True)
class Annotation:
    """Description of a logical type that a handler implements.

    Args:
        logical: Member of the format's LogicalType union.
        handler: Dotted path of the handler, ``module:NAME``.
        extension_names: Arrow extension names of fields of the type.
        child_mark: Key in the field metadata of a struct's child that marks fields of the type.
        option: Name of the writer's option for columns of the type: a field of ``WriteOptions`` (``shredding``,
            ``geometry``) or a key of ``WriteOptions.annotations``.
        extensions: Names of the handler's extensions of chunk metadata, by UUID. They stay valid in copied chunks.
        property: Key of the key-value metadata that describes plain columns of the type.
    """

    logical: str
    handler: str
    extension_names: frozenset[str]
    child_mark: bytes | None = None
    option: str | None = None
    extensions: Mapping[UUID, str] = field(default_factory=dict)
    property: str | None = None

    def load(self) -> AnnotationHandler:
        """Import and return the handler."""
        return _load_handler(self.handler)

    def choices(self, options: WriteOptions) -> Mapping[str, Any]:
        """Return the writer's options for columns of this type, by dotted path."""
        if self.option is None:
            return {}
        chosen: Mapping[str, Any] | None = getattr(options, self.option, None)
        return options.annotations.get(self.option, {}) if chosen is None else chosen

    def claims(self, field: pa.Field, path: str, options: WriteOptions) -> bool:
        """Return whether ``field`` has this logical type according to its marks or the writer's options."""
        return path in self.choices(options) or self.marks(field)

    def marks(self, field: pa.Field) -> bool:
        """Return whether ``field`` is marked as this logical type."""
        if isinstance(field.type, pa.BaseExtensionType):
            return field.type.extension_name in self.extension_names
        marked = (field.metadata or {}).get(EXTENSION_NAME)
        if marked is not None and marked.decode("utf-8", "replace") in self.extension_names:
            return True
        if self.child_mark is None or not pa.types.is_struct(field.type):
            return False
        return any(self.child_mark in (child.metadata or {}) for child in field.type)


_REGISTRY: dict[str, Annotation] = {}
_generation = 0


def generation() -> int:
    """Return a number that changes whenever an annotation is registered."""
    return _generation


def extension_name(uuid: UUID) -> str | None:
    """Return the name of the chunk extension ``uuid``; None if no annotation declares this extension."""
    return next((a.extensions[uuid] for a in _REGISTRY.values() if uuid in a.extensions), None)


def register(annotation: Annotation) -> None:
    """Register ``annotation``.

    Its handler is used for its logical type in all files that are read or written afterwards.

    >>> import pqext, pyarrow
    >>> temperature = pqext.Annotation("BSON", "weather.handlers:TEMPERATURE", frozenset({"weather.temperature"}))
    >>> pqext.register(temperature)
    >>> marks = {"ARROW:extension:name": "weather.temperature"}
    >>> temperature.marks(pyarrow.field("noon", pyarrow.float64(), metadata=marks))
    True
    """
    global _generation
    _REGISTRY[annotation.logical] = annotation
    _generation += 1


def find_by_logical_type(name: str) -> Annotation | None:
    """Return the annotation of the LogicalType member ``name``; None if it is not registered."""
    return _REGISTRY.get(name)


def configured_annotations(options: WriteOptions) -> list[tuple[Annotation, Mapping[str, Any]]]:
    """Return the annotations that the writer's options configure, with their options by column.

    Raises ``ValueError`` if ``options.annotations`` has a key that is not the option of a registered annotation.
    """
    known = {annotation.option for annotation in _REGISTRY.values() if annotation.option}
    for option in options.annotations:
        if option not in known:
            raise ValueError(f"annotations has the key {option!r}, which is not the option of a registered annotation")
    return [(a, chosen) for a in _REGISTRY.values() if (chosen := a.choices(options))]


def find_by_mark(field: pa.Field) -> Annotation | None:
    """Return the annotation that an Arrow field is marked with; None without a mark."""
    return next((a for a in _REGISTRY.values() if a.marks(field)), None)


def find_by_property(key: str) -> Annotation | None:
    """Return the annotation whose columns the key-value metadata ``key`` describes; None for other keys."""
    return next((a for a in _REGISTRY.values() if a.property is not None and a.property == key), None)


def supports_extension(name: str) -> bool:
    """Return whether a handler supports fields of the Arrow extension type ``name``."""
    return any(name in annotation.extension_names for annotation in _REGISTRY.values())


def annotation_for_field(field: pa.Field, path: str, options: WriteOptions) -> Annotation | None:
    """Return the annotation of an Arrow field that is written at dotted ``path``; None for plain fields."""
    return next((a for a in _REGISTRY.values() if a.claims(field, path, options)), None)


register(
    Annotation(
        logical="VARIANT",
        handler="pqext.variant.annotation:HANDLER",
        extension_names=frozenset({"arrow.parquet.variant"}),
        child_mark=b"pqext:variant",
        option="shredding",
    )
)
_GEOARROW = (
    "wkb", "wkt", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometry", "geometrycollection", "box",
)  # fmt: skip
register(
    Annotation(
        logical="GEOMETRY",
        handler="pqext.geo.annotation:HANDLER",
        extension_names=frozenset({"ogc.wkb", *(f"geoarrow.{layout}" for layout in _GEOARROW)}),
        option="geometry",
        extensions={PAGE_BOXES: "page boxes"},
        property="geo",
    )
)
register(
    Annotation(logical="GEOGRAPHY", handler="pqext.geo.annotation:HANDLER", extension_names=frozenset())
)
