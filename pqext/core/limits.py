"""What a file may ask of the reader before it is refused.

Nothing read from a file sizes an allocation before it was compared with the bytes that exist and with
these limits. Each limit is an argument of ``pqext.open(..., limits=Limits(...))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


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
    schema_depth: int = 256
    """Nesting of groups in the schema."""
    page_header_bytes: int = 16 << 20
    """Length of one page header."""
    page_index_bytes: int = 128 << 20
    """Length of one column index or offset index."""
    bloom_filter_bytes: int = 128 << 20
    """Bytes of one Bloom filter's bits."""
    page_bytes: int = (1 << 31) - 1
    """Uncompressed size of one page."""
    page_values: int = 1 << 28
    """Values in one page: a run of a few bytes can stand for any number of them."""
    byte_array_bytes: int = (1 << 31) - 1
    """Bytes of the byte arrays of one column in one batch: a dictionary entry or a shared prefix of a few bytes in
    the file can stand for any number of values. Larger numbers than the default mean the default."""
    column_bytes: int = 8 << 30
    """Decoded bytes of one column in one batch, and bytes that its pages decompress to; reading fewer rows at a time
    needs less."""

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Limits({', '.join(f'{f.name}={getattr(self, f.name)}' for f in changed)})"


DEFAULT_LIMITS = Limits()
