"""What a file may ask of the reader before it is refused.

Nothing read from a file sizes an allocation before it was compared with the bytes that exist and with
these limits. Each limit is an argument of ``pqext.open(..., limits=Limits(...))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

ROW_GROUP_ROWS = 1 << 19
"""Rows of a row group that is written, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds on sizes and counts taken from a file; exceeding one raises ``LimitError``."""

    footer_bytes: int = 512 << 20
    """Length of the serialised footer."""
    metadata_elements: int = 100_000_000
    """Structures, list elements and fields in one serialised metadata structure."""
    metadata_objects: int = 5_000_000
    """List elements and unknown fields of one metadata structure that become Python objects, some 100 bytes each from
    as few as two in the file. Row groups, columns and the schema do so one by one, when they are asked for."""
    metadata_depth: int = 64
    """Nesting of structures and lists in the metadata."""
    schema_depth: int = 100
    """Levels of the schema, the root's among them; the default is pyarrow's."""
    page_header_bytes: int = 16 << 20
    """Length of one page header."""
    page_index_bytes: int = 128 << 20
    """Length of one column index or offset index."""
    bloom_filter_bytes: int = 128 << 20
    """Bytes of one Bloom filter's bits."""
    page_bytes: int = (1 << 31) - 1
    """Uncompressed size of one page."""
    memory_bytes: int = 1 << 30
    """Bytes that one call holds decoded: all columns' levels, values, dictionaries and decompressed pages. A few bytes
    in the file can stand for any number of them. ``read`` counts the whole table, ``iter_batches`` and scans what is
    not handed over yet; their batches end early so as to stay below. Pages are decoded whole, but for
    those of a few runs and those that repeat long strings of a dictionary: one that exceeds the limit alone is an
    error. A scan's table counts in addition to the batches."""
    memory_expansion: int = 256
    """A larger file may take more than ``memory_bytes``: so many times its own size."""

    damaged_pieces: int = 1_000_000
    """Pieces of damage, pages or chunks, that the reads of one open file pass over with ``on_corrupt="skip"``. Each
    takes about a millisecond."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{one.name} must be a whole number, not negative, not {value!r}")

    @classmethod
    def untrusted(cls, **changes: int) -> Limits:
        """Limits for files of strangers: 100 MiB, or sixteen times the file's own size where that is more.

        The commands, Spark and :func:`pqext.verify` take them by default. ``changes`` are fields by their names;
        ``memory_expansion=0`` makes the bound the same for files of any size.
        """
        return cls(**{**_UNTRUSTED, **changes})

    def memory_of(self, file_bytes: int) -> int:
        """What a call on a file of this size may hold."""
        return max(self.memory_bytes, self.memory_expansion * file_bytes)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Limits({', '.join(f'{f.name}={getattr(self, f.name)}' for f in changed)})"


_UNTRUSTED = {
    "footer_bytes": 128 << 20,
    "metadata_elements": 50_000_000,
    "metadata_objects": 500_000,
    "page_index_bytes": 16 << 20,
    "bloom_filter_bytes": 32 << 20,
    "memory_bytes": 100 << 20,
    "memory_expansion": 16,
    "damaged_pieces": 5_000,
}

DEFAULT_LIMITS = Limits()
OWN_METADATA = Limits(metadata_elements=1 << 62, metadata_objects=1 << 62)
"""For structures that this process has serialised itself, however large."""
