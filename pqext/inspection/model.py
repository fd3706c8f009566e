"""Results of :func:`pqext.inspect` and :func:`pqext.inspection.layout` as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args


@dataclass(frozen=True, slots=True)
class Field:
    """A node of the schema. ``column`` is the index of a leaf's column chunks; None for a group."""

    path: tuple[str, ...]
    repetition: str
    physical_type: str | None
    logical_type: str | None
    max_definition_level: int
    max_repetition_level: int
    field_id: int | None
    column: int | None


@dataclass(frozen=True, slots=True)
class Column:
    """Description of a column chunk from the footer. Sizes are in bytes, and offsets are relative to the file start.

    ``minimum`` and ``maximum`` are formatted in the column's logical type, and only set if the statistics are reliable.
    ``encrypted`` chunks with hidden metadata have no other values. ``file_path`` is the other file that stores the
    chunk's data, if any. ``geospatial_types`` are the stored WKB codes, and ``geometry_types`` their names.
    ``extensions`` lists the known contents of the extension in the chunk's metadata, such as page boxes, with their
    sizes.
    """

    path: tuple[str, ...]
    column: int
    encodings: tuple[str, ...] = ()
    codec: str = ""
    num_values: int = 0
    compressed: int = 0
    uncompressed: int = 0
    offset: int = 0
    minimum: str | None = None
    maximum: str | None = None
    null_count: int | None = None
    nan_count: int | None = None
    distinct_count: int | None = None
    bounding_box: dict[str, float] | None = None
    geospatial_types: tuple[int, ...] | None = None
    geometry_types: tuple[str, ...] | None = None
    dictionary: bool = False
    column_index: bool = False
    offset_index: bool = False
    bloom_filter: bool = False
    encrypted: bool = False
    file_path: str | None = None
    extensions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group. ``compressed`` and ``uncompressed`` are the total sizes of its column chunks in bytes.

    ``columns`` lists the selected columns, or only the first of them. ``num_chunks`` is the number of selected columns.
    """

    index: int
    rows: int
    compressed: int
    uncompressed: int
    sorting: tuple[str, ...]
    num_chunks: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Extension:
    """Content of a Thrift field that the format reserves for extensions.

    ``place`` is the path of the structure with the field, and ``beginning`` the first 16 bytes in hex. ``holds`` lists
    the known contents with their sizes.
    """

    place: str
    length: int
    beginning: str
    holds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """Offset and length of the footer, and its contents other than the metadata.

    ``form`` is ``"flatbuffers"`` for a footer without Thrift. ``jump_table`` and ``flatbuffers`` are the sizes of a
    jump table and of a second footer in the footer, or None. ``agrees`` states whether the jump table or the
    second footer matches the footer; None if there is neither. ``read_by`` is the footer that is used to read the file
    if there are two.
    """

    offset: int
    length: int
    encrypted: bool = False
    form: str = "thrift"
    jump_table: int | None = None
    flatbuffers: int | None = None
    agrees: bool | None = None
    read_by: str | None = None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Description of a file by its footer: schema, row groups, extensions and metadata.

    ``row_groups`` lists the selected row groups; ``num_row_groups`` is the number of all row groups.
    """

    path: str | None
    size: int
    version: int
    created_by: str | None
    num_rows: int
    num_columns: int
    num_row_groups: int
    key_value_metadata: tuple[tuple[str, str | None], ...]
    schema: tuple[Field, ...]
    row_groups: tuple[RowGroup, ...]
    extensions: tuple[Extension, ...]
    footer: FooterFacts

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible dictionaries, lists and scalars."""
        return asdict(self)


Kind = Literal[
    "dictionary", "data", "pages", "second copy", "metadata copy", "column index", "offset index", "Bloom filter",
    "checkpoint", "footer", "frame", "other",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""``pages`` have a known common range but no separate offsets. ``second copy`` contains the pages of a column's second
encoding, ``metadata copy`` the ColumnMetaData that older writers repeat after a chunk. ``frame`` is the magic number at
both ends and the footer's length, ``other`` bytes that no inspected structure describes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the file: ``length`` bytes at ``offset``.

    ``row_group`` and ``column`` are indexes; None for a part that does not belong to one. Parts of the footer have
    names.
    """

    kind: Kind
    offset: int
    length: int
    row_group: int | None = None
    column: int | None = None
    name: str = ""

    @property
    def stop(self) -> int:
        """Offset of the end of the part."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class PageSizes:
    """Number and total size of the data pages with ``least`` or more bytes, but less than ``2 * least``."""

    least: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Layout of a file: its parts in file order, the sizes of data pages, possible savings, and notes."""

    facts: FileFacts
    parts: tuple[Part, ...]
    page_sizes: tuple[PageSizes, ...]
    savings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as JSON-compatible dictionaries, lists and scalars."""
        return asdict(self)
