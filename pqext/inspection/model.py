"""What :func:`pqext.inspect` and :func:`pqext.inspection.layout` find in a file, as plain data."""

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

    ``minimum`` and ``maximum`` are written in the column's logical type and only where the statistics can
    be relied upon. ``encrypted`` chunks whose metadata is hidden have nothing else; ``file_path`` names the
    other file that a chunk lies in. ``geospatial_types`` are WKB's codes as the file has them, ``geometry_types`` their
    names. ``extensions`` names what the extension of its metadata is known to hold, like
    page boxes, and how many bytes each takes.
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

    ``columns`` holds those that were asked for, or the first of these ``num_chunks``.
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
    """Bytes in the field reserved for extensions: the structure they stand in, how many, the first 16 in hex.

    ``holds`` names what is known of their content and how many bytes each part takes.
    """

    place: str
    length: int
    beginning: str
    holds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """Where the footer lies and how many bytes it has, with what is in it beside the metadata.

    ``form`` is ``"flatbuffers"`` for a footer that is no Thrift footer. ``jump_table`` and ``flatbuffers`` are the
    bytes of a table and of a second footer in it, None without; ``agrees`` says whether that fits the footer.
    ``read_by`` is the footer that the file is read by, where it has two.
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

    ``row_groups`` holds those that were asked for, ``num_row_groups`` counts all.
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
        """The report as dictionaries, lists, strings, numbers and None, fit for JSON."""
        return asdict(self)


Kind = Literal[
    "dictionary", "data", "pages", "second copy", "metadata copy", "column index", "offset index", "Bloom filter",
    "checkpoint", "footer", "frame", "other",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Of ``pages`` it is known where they lie together, not where each does. ``second copy`` holds the pages of a column's
second encoding, ``metadata copy`` the ColumnMetaData that older writers repeat behind a chunk. ``frame`` is
the magic number at both ends and the footer's length, ``other`` bytes that nothing looked at describes."""


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
        """The offset behind it."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class PageSizes:
    """How many data pages have ``least`` bytes or more, but fewer than twice as many, and their bytes together."""

    least: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What lies where in a file of ``facts.size`` bytes, in the order of the file."""

    facts: FileFacts
    parts: tuple[Part, ...]
    page_sizes: tuple[PageSizes, ...]
    savings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The layout as dictionaries, lists, strings, numbers and None, fit for JSON."""
        return asdict(self)
