"""What the fuzzers call: one function a target, which takes bytes and lets only unexpected errors out.

A ``ParquetError`` is the right answer to bytes that are no Parquet; whatever else is raised is a finding, and so is a
report of the sanitizers, more memory than the runner allows, or a call that takes longer than its time.
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
    footer_bytes=1 << 20, metadata_elements=100_000, page_bytes=1 << 22,
    memory_bytes=1 << 24, memory_expansion=0, bloom_filter_bytes=1 << 20, page_index_bytes=1 << 20,
)
"""Small enough that a file of some kilobytes which reaches them does so in a moment."""

DECRYPTION = pqext.encryption.FileDecryption(KEY, plaintext_files_allowed=True)


def reader(data: bytes) -> None:
    """A whole file: metadata, all values, indexes and filters. The first byte says how it is read."""
    if not data:
        return
    how, data = data[0], data[1:]
    options = pqext.ReadOptions(
        on_corrupt="skip" if how & 1 else "raise", checksums=not how & 8, threads=1,
        decryption=DECRYPTION if how & 4 else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(data, options, limits=LIMITS) as file:
                if how & 16:
                    ask(data, file.schema.root.children[:3], options)
                elif how & 2:
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


def ask(data: bytes, columns: Sequence[SchemaNode], options: pqext.ReadOptions) -> None:
    """Scan a file by each of its first columns, so that of the others only some rows are wanted."""
    for column in columns:
        for question in (pqext.col(column.name).is_null(), pqext.col(column.name).is_not_null()):
            try:
                pqext.scan(data, filter=question, options=options, limits=LIMITS).to_table().validate(full=True)
            except pa.ArrowException:
                raise
            except (ValueError, TypeError):  # questions about hostile names may be wrong ones
                continue


def footer(data: bytes) -> None:
    """A serialised footer: the metadata, its schema and what bounds it gives."""
    whole = b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(whole, limits=LIMITS) as file:
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
    """Encoded values or levels behind four bytes: encoding, physical type, number of values, width."""
    if len(data) < 4:
        return
    encoding, kind, count, width = data[:4]
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
            physical = Type(kind % 8)
            plain.read_dictionary(body, count, physical, _size(physical, width))
        else:
            _values(encoding, Type(kind % 8), count, width, body)
    except ParquetError:
        return


def _size(physical: Type, width: int) -> int | None:
    """Bytes of a value, as the reader has them of the schema; ``None`` for byte arrays."""
    return {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: None}.get(int(physical), width % 16 + 1)


def _values(encoding: int, physical: Type, count: int, width: int, body: Bytes) -> None:
    found = decoder(encoding)
    if found is None:
        return
    if physical == Type.BYTE_ARRAY:
        builder = ByteArrayBuilder(limit=1 << 22)
        slots = count + count // 3
        present = np.ones(slots, np.uint8)
        present[: slots - count] = 0
        flags = present if slots > count else EMPTY
        found.byte_arrays(PageRun([body], [count]), builder, flags, np.array([slots]), _DICTIONARIES["bytes"])
        builder.finish()
        return
    size = _size(physical, width)
    assert size is not None
    run = PageRun([body], [count])
    found.fixed(run, physical, size, _DICTIONARIES["fixed"], np.empty(count * size, np.uint8))


_STRUCTURES = (PageHeader, ColumnIndex, OffsetIndex, BloomFilterHeader)


def structures(data: bytes) -> None:
    """One of the structures that lie outside the footer, behind the byte that says which; read, written, read."""
    if not data:
        return
    structure = _STRUCTURES[data[0] % len(_STRUCTURES)]
    try:
        found, _ = decode(structure, data[1:], limits=LIMITS)
    except ParquetError:
        return
    again = encode(found)
    assert encode(decode(structure, again, limits=LIMITS)[0]) == again


TARGETS: dict[str, Callable[[bytes], None]] = {
    "reader": reader, "footer": footer, "pages": pages, "structures": structures, "variant": variant_targets.variant,
    "shredded": variant_targets.shredded, "geometry": geo_targets.geometry, "skipping": skipping_targets.skipping,
    "flat_footer": flat_targets.flat_footer,
}
