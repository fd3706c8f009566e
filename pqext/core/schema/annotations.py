"""The registry through which logical types above core take part in reading and writing.

Core knows an annotation by its name and by the marks that its Arrow fields carry; everything else is
asked of its handler, which is named here by a dotted path and imported when a file or a table needs it.
A third party adds a type with :func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable
from uuid import UUID

import pyarrow as pa

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
"""Whose extension of a chunk's metadata holds a box a page: that of :mod:`pqext.geo.page_boxes`."""


@dataclass(frozen=True, slots=True)
class Storage:
    """How an Arrow field is stored: the annotation of its node and the plain Arrow field below it."""

    logical_type: LogicalType
    field: pa.Field


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What a handler tells of a written column chunk: geospatial statistics, and extensions of its metadata."""

    geospatial_statistics: GeospatialStatistics | None = None
    extensions: Mapping[UUID, bytes] = field(default_factory=dict)


Note = TypeVar("Note")


class Notes:
    """What handlers note of the values of one top-level column on their way into a row group's chunks."""

    def __init__(self) -> None:
        self._noted: list[object] = []

    def add(self, note: object) -> None:
        """Keep ``note``, an object of a type that only its handler knows."""
        self._noted.append(note)

    def of(self, kind: type[Note]) -> Iterator[Note]:
        """The notes that are of type ``kind``."""
        return (note for note in self._noted if isinstance(note, kind))


class AnnotationHandler(Protocol):
    """The four jobs of a logical type that lives above core, and the choice of its storage."""

    def arrow_field(self, node: SchemaNode, storage: pa.Field, options: ReadOptions) -> pa.Field:
        """The Arrow field that readers see for ``node``, whose plain form is ``storage``."""

    def from_storage(self, node: SchemaNode, storage: pa.Array, options: ReadOptions) -> pa.Array:
        """Turn an array of the plain form into one of ``arrow_field``'s type, row by row."""

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions) -> Storage:
        """Choose how ``field`` at dotted ``path`` is stored; ``sample`` holds the first values, when known."""

    def looks_at_data(self, choice: Any) -> bool:
        """Does ``choice``, what the annotation's option says of a column, need a ``sample``?"""

    def to_storage(
        self, field: pa.Field, storage: Storage, array: pa.Array, options: WriteOptions, notes: Notes
    ) -> pa.Array:
        """Turn an array of ``field``'s type into one of the storage field's type, row by row.

        What it adds to ``notes`` it finds again in :meth:`chunk_facts`.
        """

    def chunk_facts(
        self, node: SchemaNode, values: pa.Array, starts: NDArray[np.int64], indexed: bool, options: WriteOptions,
        notes: Notes,
    ) -> ChunkFacts:
        """What is to be noted of one column chunk of leaf ``node``.

        ``values`` are those of all pages, ``starts`` where in them each page begins, and last the number of values.
        ``indexed``: the chunk gets a page index, so that readers can tell its pages apart. ``notes`` are those of the
        row group's top-level column, perhaps with ones of other leaves and handlers.
        """

    def may_match(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> bool:
        """Can a row of the row group satisfy the handler's own ``predicate`` on ``node``? Unknown is True."""

    def matching_rows(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> RowRanges | None:
        """The rows that may satisfy ``predicate``, by the pages of the row group; ``None`` when all may."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A column that is derived from another: its field, and what makes its values from the other's."""

    field: pa.Field
    values: Callable[[pa.ChunkedArray], pa.ChunkedArray]


@runtime_checkable
class DerivesColumns(Protocol):
    """What a handler has besides when a file can get further columns for those of its type."""

    def derived(self, field: pa.Field, options: WriteOptions) -> Derived | None:
        """The column that top-level ``field`` gets beside it, if any."""


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A top-level column of a file as it was written: its metadata by row groups, whether it is encrypted, and the
    name of the column derived from it."""

    node: SchemaNode
    storage: Storage
    chunks: Sequence[ColumnMetaData]
    encrypted: bool
    derived: str | None


@dataclass(frozen=True, slots=True)
class Adopted:
    """Logical types that key-value metadata gives to columns, and its contradictions to the schema."""

    types: Mapping[str, LogicalType]
    contradictions: Sequence[str] = ()


@runtime_checkable
class DescribesFile(Protocol):
    """What a handler has besides when a file's key-value metadata tells of columns of its type."""

    def key_value_metadata(self, columns: Sequence[WrittenColumn], options: WriteOptions) -> Mapping[str, str]:
        """Further pairs for a file with these columns of its type; asked before the first row too, without chunks."""

    def adopted(self, value: str, find: Callable[[str], SchemaNode | None], properties: Mapping[str, str]) -> Adopted:
        """Return the logical types that a file's ``property``, ``value``, gives to top-level columns.

        ``find`` returns the column of a name, if there is exactly one and it is not repeated. ``properties`` are all
        of the file's.
        """

    def of_other_rows(self, value: str, find: Callable[[Sequence[str]], SchemaNode | None]) -> str | None:
        """Return what of ``value`` is true of a file with other rows; ``find`` returns its column at a path, if any."""

    def of_all_rows(self, values: Sequence[str | None]) -> str:
        """What holds for the rows of several files of the same columns together, of which one at least says something.

        None stands for a file that says nothing. Raises ``ValueError`` when what they say cannot be true of one file.
        """


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a file that rows are appended to: its node, the plain Arrow field of what is stored, and the file's
    key-value metadata."""

    node: SchemaNode
    field: pa.Field
    properties: Mapping[str, str]


@runtime_checkable
class StoresAlike(Protocol):
    """What a handler has besides when its columns take the layout of those in a file that rows are appended to."""

    def storage_like(self, field: pa.Field, path: str, like: StoredColumn, options: WriteOptions) -> Storage:
        """How ``field`` at dotted ``path`` is stored as the column ``like`` is, which is of the handler's type.

        Raises ``ValueError`` where the field or ``options`` contradict the column.
        """


@runtime_checkable
class DoubtsTypes(Protocol):
    """Optional part of a handler: check of the types that files state."""

    def doubt(self, node: SchemaNode, options: ReadOptions) -> str | None:
        """Return what readers should know about the type of column ``node``, for a warning; None if nothing."""


@runtime_checkable
class SeenInSpark(Protocol):
    """What a handler has besides when Spark sees columns of its type as another type than their Arrow type's."""

    def spark_type(self, field: pa.Field) -> pa.DataType:
        """The Arrow type that ``field``'s arrays are cast to for Spark, which sees its own counterpart of that."""


@runtime_checkable
class ArrangesRows(Protocol):
    """What a handler has besides when a column of its type can say how the rows of a file are laid out."""

    def orders_rows(self, storage: Storage) -> bool:
        """Does the column stored so order the rows?"""

    def row_groups(
        self, storage: Storage, values: pa.ChunkedArray, at_most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows' numbers in their order, and where in it row groups of ``at_most`` rows begin, 0 first."""

    def pages(
        self, storage: Storage, values: pa.ChunkedArray, at_most: int, sort: bool
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """The order and the page boundaries of a row group's rows; without ``sort`` the rows keep their order."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """How core recognises a logical type that a handler serves.

    ``logical`` is the member of the format's LogicalType union, ``extension_names`` the Arrow extension
    names that mark such fields, ``child_mark`` the key in a struct child's field metadata that does,
    ``option`` what the writer calls its choices for such columns: a field of ``WriteOptions`` (``shredding``,
    ``geometry``) or else a key of ``WriteOptions.annotations``. ``extensions`` names the handler's
    extensions of a chunk's metadata, which stay true wherever the chunk is copied to, ``property`` the key-value
    metadata that tells of plain columns of its type.
    """

    logical: str
    handler: str
    extension_names: frozenset[str]
    child_mark: bytes | None = None
    option: str | None = None
    extensions: Mapping[UUID, str] = field(default_factory=dict)
    property: str | None = None

    def load(self) -> AnnotationHandler:
        """Import the handler."""
        module, _, name = self.handler.partition(":")
        handler: AnnotationHandler = getattr(import_module(module), name)
        return handler

    def choices(self, options: WriteOptions) -> Mapping[str, Any]:
        """What the writer's options choose for columns of this type, by their dotted paths."""
        if self.option is None:
            return {}
        chosen: Mapping[str, Any] | None = getattr(options, self.option, None)
        return options.annotations.get(self.option, {}) if chosen is None else chosen

    def claims(self, field: pa.Field, path: str, options: WriteOptions) -> bool:
        """Is ``field`` of this logical type, by its marks or by the writer's options?"""
        return path in self.choices(options) or self.marks(field)

    def marks(self, field: pa.Field) -> bool:
        """Is ``field`` marked as one of this logical type?"""
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
    """A number that changes with what is registered."""
    return _generation


def extension_name(uuid: UUID) -> str | None:
    """What the extension of this owner holds, when it is an annotation's; such a one moves with its chunk."""
    return next((a.extensions[uuid] for a in _REGISTRY.values() if uuid in a.extensions), None)


def register(annotation: Annotation) -> None:
    """Let ``annotation``'s handler serve its logical type in every file read and written from now on."""
    global _generation
    _REGISTRY[annotation.logical] = annotation
    _generation += 1


def for_logical(name: str) -> Annotation | None:
    """The annotation that serves the LogicalType member ``name``, if any."""
    return _REGISTRY.get(name)


def with_choices(options: WriteOptions) -> list[tuple[Annotation, Mapping[str, Any]]]:
    """The annotations for whose columns the writer's options choose something, and what.

    Raises ``ValueError`` when ``options.annotations`` names an option that no registered annotation has.
    """
    known = {annotation.option for annotation in _REGISTRY.values() if annotation.option}
    for option in options.annotations:
        if option not in known:
            raise ValueError(f"annotations names {option!r}, which no registered annotation has as its option")
    return [(a, chosen) for a in _REGISTRY.values() if (chosen := a.choices(options))]


def for_mark(field: pa.Field) -> Annotation | None:
    """The annotation that an Arrow field is marked with, if any."""
    return next((a for a in _REGISTRY.values() if a.marks(field)), None)


def for_property(key: str) -> Annotation | None:
    """The annotation whose columns the key-value metadata ``key`` tells of, if any."""
    return next((a for a in _REGISTRY.values() if a.property is not None and a.property == key), None)


def serves_extension(name: str) -> bool:
    """Do fields of the Arrow extension type ``name`` become columns that a handler serves?"""
    return any(name in annotation.extension_names for annotation in _REGISTRY.values())


def for_field(field: pa.Field, path: str, options: WriteOptions) -> Annotation | None:
    """The annotation that claims an Arrow field to be written at dotted ``path``, if any."""
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
    "geometry", "geometrycollection",
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
