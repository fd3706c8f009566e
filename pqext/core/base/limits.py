"""Limits on the sizes, counts and memory that a file may require.

A size that is read from a file is compared with the available bytes and with these limits before memory is allocated
for it. Each limit is an argument of ``pqext.open(..., limits=Limits(...))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

ROW_GROUP_ROWS = 1 << 19
"""Default number of rows in a written row group."""


_MOST = (1 << 63) - 1
"""Maximum value that the kernels accept for every limit except ``rows``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds on the sizes and counts that a file declares. A file that exceeds a limit raises ``LimitError``."""

    footer_bytes: int = 512 << 20
    """Maximum length of the serialised footer."""
    metadata_elements: int = 100_000_000
    """Maximum number of structures, list elements and fields in one serialised metadata structure."""
    metadata_objects: int = 5_000_000
    """Maximum number of list elements and unknown fields of one metadata structure that become Python objects.

    An object takes about 100 bytes of memory, but two bytes in the file can declare an object. Row groups, columns and
    the schema become objects one at a time, on access.
    """
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
    """Maximum number of decoded bytes that one call holds.

    These are the levels, values, dictionaries and decompressed pages of all columns. A few bytes in a file can expand
    to any number of decoded bytes. ``read`` counts the complete table. ``iter_batches`` and scans count the rows that
    they have not returned yet, and end batches early to stay below the limit. Pages are decoded completely, except
    pages of a few runs and pages that repeat long strings of a dictionary. A page that exceeds the limit by itself is
    an error. The table of a scan counts in addition to its batches. In total, a call may decode 4 GiB, forty times this
    limit or 1,024 times the size of the file, whichever is more, because decoding 10 GiB takes several seconds.
    """
    memory_expansion: int = 256
    """Multiple of a file's own size that a call may hold, if this is more than ``memory_bytes``."""

    rows: int = 1 << 127
    """Maximum number of rows that the row groups of a file may declare.

    At least 1,024 rows are allowed for each byte of the file. A run of nulls takes a few bytes for any number of rows,
    and reading it takes about a second for each 200 million rows.
    """

    damaged_pieces: int = 1_000_000
    """Maximum number of corrupt pages or chunks that the reads of one open file skip with ``on_corrupt="skip"``.

    Skipping a page takes about a millisecond.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{field.name} must be a non-negative integer, not {value!r}")
            if field.name != "rows" and value > _MOST:
                raise ValueError(f"{field.name} must be at most {_MOST}, not {value}")

    @classmethod
    def untrusted(cls, **changes: int) -> Limits:
        """Return limits for untrusted files.

        A call may hold 100 MiB, or sixteen times the file's own size if that is more.

        The commands, Spark and :func:`pqext.verify` use these limits by default. ``changes`` overrides fields by name.
        If ``memory_bytes`` is passed, or ``memory_expansion=0``, the memory limit does not depend on the size of the
        file.
        """
        if "memory_bytes" in changes:
            changes = {"memory_expansion": 0, **changes}
        return cls(**{**_UNTRUSTED, **changes})

    def max_memory_bytes(self, file_bytes: int) -> int:
        """Return the maximum number of bytes that a call on a file of ``file_bytes`` bytes may hold in memory."""
        return max(self.memory_bytes, self.memory_expansion * file_bytes)

    def max_decoded_bytes(self, file_bytes: int) -> int:
        """Return the maximum number of bytes that a call on a file of ``file_bytes`` bytes may decode in total."""
        memory = _DECODED_PER_MEMORY * self.max_memory_bytes(file_bytes)
        return max(_DECODED_BYTES, memory, _DECODED_PER_BYTE * file_bytes)

    def max_declared_rows(self, file_bytes: int) -> int:
        """Return the maximum number of rows that a file of ``file_bytes`` bytes may declare."""
        return max(self.rows, _ROWS_PER_BYTE * file_bytes)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Limits({', '.join(f'{f.name}={getattr(self, f.name)}' for f in changed)})"


_ROWS_PER_BYTE = 1024
_DECODED_BYTES = 4 << 30
_DECODED_PER_BYTE = 1024
_DECODED_PER_MEMORY = 40
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
"""Limits for structures that this process has serialised itself. They may have any size."""
