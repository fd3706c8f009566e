"""Contents of a report as plain data, independent of Parquet, Spark and HTML."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Box:
    """A box on the map; ``xmin > xmax`` wraps around the antimeridian."""

    xmin: float
    xmax: float
    ymin: float
    ymax: float

    def spans(self) -> tuple[tuple[float, float], ...]:
        """Return the x ranges of the box from west to east; there are two if it wraps around."""
        if self.xmin <= self.xmax:
            return ((self.xmin, self.xmax),)
        return ((-180.0, self.xmax), (self.xmin, 180.0))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: its sizes in bytes and its statistics."""

    compressed: int
    uncompressed: int
    encodings: tuple[str, ...]
    codec: str
    minimum: str | None = None
    maximum: str | None = None
    null_count: int | None = None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group; ``chunks`` are in the order of the file's columns."""

    index: int
    rows: int
    box: Box | None
    chunks: tuple[Chunk, ...]

    @property
    def bytes(self) -> int:
        """Stored bytes of all column chunks."""
        return sum(chunk.compressed for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class FilePicture:
    """Layout of a file. ``columns`` contains the dotted paths of the leaves, ``footer`` is the footer size in bytes.

    ``schema`` is the shredding schema of its VARIANT column as DDL.
    """

    label: str
    name: str
    size: int
    columns: tuple[str, ...]
    row_groups: tuple[RowGroup, ...]
    schema: str = ""
    footer: int = 0

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return sum(group.rows for group in self.row_groups)


@dataclass(frozen=True, slots=True)
class Reading:
    """Amount of data that a query read from a file: row groups, and bytes of column chunks and footer."""

    file: str
    row_groups: frozenset[int]
    row_groups_total: int
    bytes_read: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its result as text, and the amount of data read from each file."""

    title: str
    expression: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_rows: int
    readings: tuple[Reading, ...]
    box: Box | None = None
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Result of comparing another reader with pqext on one file. ``agrees`` is None if the reader could not be run."""

    reader: str
    file: str
    agrees: bool | None
    note: str
    pruned: str = ""


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Contents of the report. ``points`` are the positions of the rows, or of a sample of them."""

    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    files: tuple[FilePicture, ...]
    questions: tuple[Question, ...]
    agreements: tuple[Agreement, ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = field(default=())
