"""Fuzz targets: functions of bytes that raise unexpected errors only.

A ``ParquetError`` is the expected result for invalid bytes. Any other exception is a finding, as are sanitizer reports,
excessive memory and timeouts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import flat_targets
import geo_targets
import numpy as np
import pyarrow as pa
import skipping_targets
import variant_targets

import pqext
from pqext.core.base.buffers import EMPTY, Bytes, view
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format.encodings import bit_packed, plain, rle
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.encodings.table import decoder
from pqext.core.format.metadata import BloomFilterHeader, ColumnIndex, OffsetIndex, PageHeader, Type
from pqext.core.format.thrift import decode, encode
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.schema.nodes import SchemaNode

KEY = b"0123456789012345"
LIMITS = Limits(
    footer_bytes=1 << 20,
    metadata_elements=100_000,
    page_bytes=1 << 22,
    memory_bytes=1 << 24,
    memory_expansion=0,
    bloom_filter_bytes=1 << 20,
    page_index_bytes=1 << 20,
)
"""Limits that a file of some kilobytes can reach within milliseconds."""

DECRYPTION = pqext.encryption.FileDecryption(KEY, plaintext_files_allowed=True)


def reader(data: bytes) -> None:
    """Read a byte of flags that select how to read, then a file: its metadata, values, indexes and filters."""
    if not data:
        return
    flags, data = data[0], data[1:]
    options = pqext.ReadOptions(
        on_corrupt="skip" if flags & 1 else "raise",
        checksums=not flags & 8,
        threads=1,
        decryption=DECRYPTION if flags & 4 else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(data, options, limits=LIMITS) as file:
                if flags & 16:
                    scan_columns(data, file.schema.root.children[:3], options)
                elif flags & 2:
                    for batch in file.iter_batches(3):
                        batch.validate(full=True)
                else:
                    file.read().validate(full=True)
                _ = file.extensions
                for group in file.row_groups:
                    for chunk in group.chunks():
                        chunk.bounds()
                        chunk.page_bounds()
                        _ = chunk.bloom_filter
        except ParquetError:
            return


def scan_columns(data: bytes, columns: Sequence[SchemaNode], options: pqext.ReadOptions) -> None:
    """Filter a file by each of its first columns, so that only some rows of the other columns are read."""
    for column in columns:
        for condition in (pqext.col(column.name).is_null(), pqext.col(column.name).is_not_null()):
            try:
                pqext.scan(data, filter=condition, options=options, limits=LIMITS).to_table().validate(full=True)
            except pa.ArrowException:
                raise
            except (ValueError, TypeError):  # hostile names may not be valid in filters
                continue


def footer(data: bytes) -> None:
    """Read a serialised footer: its metadata, schema and bounds."""
    file_bytes = b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(file_bytes, limits=LIMITS) as file:
                encode(file.metadata)
                _ = file.extensions
                _ = file.arrow_schema
                for group in file.row_groups:
                    for chunk in group.chunks():
                        chunk.bounds()
        except ParquetError:
            return


_DICTIONARIES = {
    "fixed": Dictionary(3, view(bytes(range(48)))),
    "bytes": Dictionary(3, view(b"abcdef"), np.array([0, 1, 3, 6], np.int32)),
}


def pages(data: bytes) -> None:
    """Decode values or levels after four bytes: encoding, physical type, number of values and width."""
    if len(data) < 4:
        return
    encoding, type, count, width = data[:4]
    count = count * 300 if width & 0x80 else count
    width &= 0x7F
    body = view(data[4:])
    try:
        if encoding == 4:
            highest = width % 5 + 1
            bit_packed.decode_levels(body, count, highest)
        elif encoding == 11:
            out = np.empty(count, np.int16)
            rle.decode_levels(PageRun([body], [count]), width % 5 + 1, out)
            rle.decode_flags(PageRun([body], [count]))
        elif encoding == 12:
            physical = Type(type % 8)
            plain.read_dictionary(body, count, physical, _size(physical, width))
        else:
            _values(encoding, Type(type % 8), count, width, body)
    except ParquetError:
        return


def _size(physical: Type, width: int) -> int | None:
    """Return the bytes of a value as the schema defines them; None for byte arrays."""
    return {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: None}.get(int(physical), width % 16 + 1)


def _values(encoding: int, physical: Type, count: int, width: int, body: Bytes) -> None:
    selected = decoder(encoding)
    if selected is None:
        return
    if physical == Type.BYTE_ARRAY:
        builder = ByteArrayBuilder(limit=1 << 22)
        slots = count + count // 3
        present = np.ones(slots, np.uint8)
        present[: slots - count] = 0
        flags = present if slots > count else EMPTY
        selected.decode_byte_arrays(PageRun([body], [count]), builder, flags, np.array([slots]), _DICTIONARIES["bytes"])
        builder.finish()
        return
    size = _size(physical, width)
    assert size is not None
    run = PageRun([body], [count])
    selected.decode_fixed_width(run, physical, size, _DICTIONARIES["fixed"], np.empty(count * size, np.uint8))


_STRUCTURES = (PageHeader, ColumnIndex, OffsetIndex, BloomFilterHeader)


def structures(data: bytes) -> None:
    """Read a byte that selects a structure outside the footer, then the structure; write it and read it again."""
    if not data:
        return
    structure = _STRUCTURES[data[0] % len(_STRUCTURES)]
    try:
        struct, _ = decode(structure, data[1:], limits=LIMITS)
    except ParquetError:
        return
    encoded = encode(struct)
    assert encode(decode(structure, encoded, limits=LIMITS)[0]) == encoded


TARGETS: dict[str, Callable[[bytes], None]] = {
    "reader": reader,
    "footer": footer,
    "pages": pages,
    "structures": structures,
    "variant": variant_targets.variant,
    "shredded": variant_targets.shredded,
    "geometry": geo_targets.geometry,
    "skipping": skipping_targets.skipping,
    "flat_footer": flat_targets.flat_footer,
}
