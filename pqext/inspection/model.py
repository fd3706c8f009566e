"""Results of :func:`pqext.inspect` and :func:`pqext.inspection.layout` as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args


@dataclass(frozen=True, slots=True)
class Field:
    """One node of the schema, in depth-first order; ``column`` is the index of a leaf's column chunks."""

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
    """One column chunk, as the footer describes it; sizes and offsets are bytes of the file.

    ``minimum`` and ``maximum`` are formatted in the column's logical type, and only set if the statistics are reliable.
    ``encrypted`` chunks with hidden metadata have nothing else; ``file_path`` is the other file of the chunk's data.
    ``geospatial_types`` are WKB's codes as stored, ``geometry_types`` their names. ``extensions`` has the known
    contents of the extension of its metadata, such as page boxes, with their bytes.
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
    """One row group; ``compressed`` and ``uncompressed`` sum all of its column chunks.

    ``columns`` has the selected columns, or the first of these ``num_chunks``.
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
    """Bytes in a field reserved for extensions: the structure of the field, the length, the first 16 bytes in hex.

    ``holds`` names the known contents with their bytes.
    """

    place: str
    length: int
    beginning: str
    holds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """Offset and length of the footer, with its contents in addition to the metadata.

    ``form`` is ``"flatbuffers"`` for a footer without Thrift. ``jump_table`` and ``flatbuffers`` are the bytes of a
    jump table and of a second footer in it, None without one; ``agrees`` states whether that matches the footer.
    ``read_by`` is the footer that is used to read the file, if it has two.
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
    """A file's layout.

    ``row_groups`` has the selected row groups, ``num_row_groups`` counts all.
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
    """``length`` bytes at ``offset``, of the row group and column with these indexes; the footer's have names."""

    kind: Kind
    offset: int
    length: int
    row_group: int | None = None
    column: int | None = None
    name: str = ""

    @property
    def stop(self) -> int:
        """End offset of the part."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class PageSizes:
    """Number and total bytes of the data pages with at least ``least`` bytes and fewer than twice as many."""

    least: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Parts of a file of ``facts.size`` bytes, in file order."""

    facts: FileFacts
    parts: tuple[Part, ...]
    page_sizes: tuple[PageSizes, ...]
    savings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as JSON-compatible dictionaries, lists and scalars."""
        return asdict(self)
