"""Limits on what a file may require of the reader.

Nothing read from a file sizes an allocation before it was compared with the bytes that exist and with
these limits. Each limit is an argument of ``pqext.open(..., limits=Limits(...))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

ROW_GROUP_ROWS = 1 << 19
"""Default number of rows in a written row group."""


_MOST = (1 << 63) - 1
"""Maximum that kernels accept for any limit but ``rows``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds on sizes and counts taken from a file; exceeding one raises ``LimitError``."""

    footer_bytes: int = 512 << 20
    """Maximum length of the serialised footer."""
    metadata_elements: int = 100_000_000
    """Maximum number of structures, list elements and fields in one serialised metadata structure."""
    metadata_objects: int = 5_000_000
    """Maximum number of list elements and unknown fields of one metadata structure that become Python objects. Each
    takes some 100 bytes and may come from as few as two bytes in the file. Row groups, columns and the schema become
    objects one at a time, on access."""
    metadata_depth: int = 64
    """Maximum nesting of structures and lists in the metadata."""
    schema_depth: int = 100
    """Maximum levels of the schema, including the root; the default is pyarrow's."""
    page_header_bytes: int = 16 << 20
    """Maximum length of one page header."""
    page_index_bytes: int = 128 << 20
    """Maximum length of one column index or offset index."""
    bloom_filter_bytes: int = 128 << 20
    """Maximum size of one Bloom filter's bit set."""
    page_bytes: int = (1 << 31) - 1
    """Maximum uncompressed size of one page."""
    memory_bytes: int = 1 << 30
    """Maximum decoded bytes that one call holds: all columns' levels, values, dictionaries and decompressed pages. A
    few bytes in the file can expand to any number of them. ``read`` counts the complete table; ``iter_batches`` and
    scans count what they have not returned yet, and end batches early to stay below the limit. Pages are decoded
    completely, except those of a few runs and those that repeat long strings of a dictionary; a page that exceeds the
    limit by itself is an error. A scan's table counts in addition to the batches."""
    memory_expansion: int = 256
    """A larger file may take more than ``memory_bytes``: this multiple of its own size."""

    rows: int = 1 << 127
    """Maximum number of rows that the row groups of a file may claim; at least 1,024 for each byte of the file. A run
    of nulls takes a few bytes for any number of rows, and about a second for each 200 million."""

    damaged_pieces: int = 1_000_000
    """Maximum number of corrupt pages or chunks that the reads of one open file skip with ``on_corrupt="skip"``. Each
    takes about a millisecond."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{field.name} must be a non-negative integer, got {value!r}")
            if field.name != "rows" and value > _MOST:
                raise ValueError(f"{field.name} must be at most {_MOST}, got {value}")

    @classmethod
    def untrusted(cls, **changes: int) -> Limits:
        """Return limits for untrusted files: 100 MiB, or sixteen times the file's own size if that is more.

        The commands, Spark and :func:`pqext.verify` use them by default. ``changes`` overrides fields by name;
        ``memory_expansion=0`` makes the bound the same for files of any size.
        """
        return cls(**{**_UNTRUSTED, **changes})

    def memory_for(self, file_bytes: int) -> int:
        """Return the number of bytes that a call on a file of this size may hold."""
        return max(self.memory_bytes, self.memory_expansion * file_bytes)

    def rows_for(self, file_bytes: int) -> int:
        """Return the number of rows that a file of this size may claim."""
        return max(self.rows, _ROWS_PER_BYTE * file_bytes)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Limits({', '.join(f'{f.name}={getattr(self, f.name)}' for f in changed)})"


_ROWS_PER_BYTE = 1024
_UNTRUSTED = {
    "footer_bytes": 128 << 20,
    "metadata_elements": 50_000_000,
    "metadata_objects": 500_000,
    "page_index_bytes": 16 << 20,
    "bloom_filter_bytes": 32 << 20,
    "memory_bytes": 100 << 20,
    "memory_expansion": 16,
    "rows": 1 << 27,
    "damaged_pieces": 5_000,
}

DEFAULT_LIMITS = Limits()
OWN_METADATA = Limits(metadata_elements=1 << 62, metadata_objects=1 << 62)
"""Limits for structures that this process has serialised itself, of any size."""
