"""Seeds for the targets: small files with every encoding and codec, and their pages, footers and indexes.

``python fuzz/seeds.py FOLDER`` writes one folder per target. The files have no checksums, so mutated pages are decoded.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geo_seeds
import numpy as np
import pyarrow as pa
import skipping_seeds
import variant_seeds

import pqext
from pqext.core.footer.flatbuffers.reading import encode_tables
from pqext.core.format.encodings import dictionary
from pqext.core.format.encodings.table import encoder
from pqext.core.format.metadata import BloomFilterHeader, ColumnIndex, Encoding, OffsetIndex, PageHeader, Type
from pqext.core.format.thrift import decode

KEY = b"0123456789012345"
TABLE = pa.table(
    {
        "b": pa.array([True, None, False, True, True]),
        "i": pa.array([1, None, -3, 3, 5], pa.int32()),
        "l": pa.array([1 << 40, 7, 7, 7, -1], pa.int64()),
        "f": pa.array([1.5, None, float("nan"), -0.0, 2.25], pa.float32()),
        "d": pa.array([1.25, 2.5, None, 0.0, 1e300]),
        "s": ["a", "bb", None, "a", "dddd"],
        "x": pa.array([b"12345", None, b"abcde", b"12345", b"\0\0\0\0\0"], pa.binary(5)),
        "n": pa.array([[1, None], [], None, [2, 3], [4]], pa.list_(pa.int16())),
        "m": pa.array([[("k", 1)], None, [], [("k", 2), ("j", None)], []], pa.map_(pa.string(), pa.int32())),
        "t": pa.array([0, 1, None, 3, 4], pa.timestamp("us", "UTC")),
    }
)
"""Every physical type, nulls and nesting."""

ENCODINGS = {
    "b": "rle",
    "i": "delta_binary_packed",
    "l": "delta_binary_packed",
    "f": "byte_stream_split",
    "d": "alp",
    "s": "delta_byte_array",
    "x": "byte_stream_split",
    "m.key_value.key": "delta_length_byte_array",
}
FILES: dict[str, dict[str, Any]] = {
    "plain": {"dictionary": False, "compression": "uncompressed", "page_index": False, "statistics": False},
    "dictionary": {"compression": "uncompressed"},
    "encodings": {"encodings": ENCODINGS, "compression": "uncompressed", "row_group_rows": 3},
    "pages of version 2": {"page_version": 2, "page_rows": 2, "encodings": ENCODINGS, "compression": "uncompressed"},
    "snappy": {"compression": "snappy", "page_version": 2},
    "zstd": {"compression": "zstd"},
    "gzip": {"compression": "gzip", "page_rows": 2},
    "lz4_raw": {"compression": "lz4_raw"},
    "brotli": {"compression": "brotli"},
    "bloom filters": {"bloom_filters": {"i": {"ndv": 5}, "s": {"ndv": 5}}, "compression": "uncompressed"},
}


def write_file(table: pa.Table, **options: Any) -> bytes:
    """Write a file without checksums."""
    out = io.BytesIO()
    pqext.write_table(table, out, checksums=False, **options)
    return out.getvalue()


def readers() -> Iterator[tuple[str, bytes]]:
    """Yield complete files, after the byte that selects how the target reads them."""
    for name, options in FILES.items():
        data = write_file(TABLE, **options)
        for mode in (0, 1, 2):
            yield f"{name} {mode}", bytes([mode]) + data
    ctr = pqext.encryption.FileEncryption(KEY, algorithm="AES_GCM_CTR_V1", plaintext_footer=True)
    yield "encrypted", b"\4" + write_file(TABLE, encryption=pqext.encryption.FileEncryption(KEY))
    yield "encrypted, signed", b"\4" + write_file(TABLE, encryption=ctr)


def footers() -> Iterator[tuple[str, bytes]]:
    """Yield serialised footers, without their length and magic."""
    for name, options in FILES.items():
        data = write_file(TABLE, **options)
        yield name, data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    wide = pa.table({f"c{at}": pa.array([], pa.int8()) for at in range(40)})
    data = write_file(wide)
    yield "wide", data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def flat_footers() -> Iterator[tuple[str, bytes]]:
    """Yield FlatBuffers footers and equal Thrift footers, after the byte that selects the format."""
    for name in TABLE.column_names:
        for rows in (2, 5):
            plain = write_file(TABLE.select([name]), row_group_rows=rows, bloom_filters=name == "i", arrow_schema=False)
            serialised = plain[-8 - int.from_bytes(plain[-8:-4], "little") : -8]
            yield f"{name} {rows} Thrift", b"\1" + serialised
            yield f"{name} {rows}", b"\0" + encode_tables(serialised)


def pages() -> Iterator[tuple[str, bytes]]:
    """Yield encoded values after the four bytes that describe them."""
    columns = {
        Type.BOOLEAN: TABLE["b"],
        Type.INT32: TABLE["i"],
        Type.INT64: TABLE["l"],
        Type.FLOAT: TABLE["f"],
        Type.DOUBLE: TABLE["d"],
        Type.BYTE_ARRAY: TABLE["s"].cast(pa.binary()),
        Type.FIXED_LEN_BYTE_ARRAY: TABLE["x"],
    }
    for physical, column in columns.items():
        dense = pa.concat_arrays(column.drop_null().chunks * 3)
        for encoding in (0, 3, 5, 6, 7, 9, 10):
            try:
                body = bytes(encoder(Encoding(encoding)).encode(dense))
            except Exception:
                continue  # the encoding does not apply to the type
            yield f"{physical.name} {Encoding(encoding).name}", bytes([encoding, physical, len(dense), 5]) + body
        indices = dictionary.encode(np.array([0, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0], np.int32), 3)
        yield f"{physical.name} RLE_DICTIONARY", bytes([8, physical, 12, 5]) + indices
    yield "levels", bytes([4, 0, 8, 3]) + b"\x05\x00\x00\x00\x0c\x02\x03\x1b\x1b"


def structures() -> Iterator[tuple[str, bytes]]:
    """Yield page headers, indexes and Bloom filter headers, after the byte that selects the structure."""
    data = write_file(TABLE, page_version=2, page_rows=2, bloom_filters={"i": True})
    with pqext.open(data) as file:
        for chunk in file.row_groups[0].chunks():
            raw = file.row_groups[0].metadata.columns[chunk.node.leaf_start]
            start = chunk.byte_range[0]
            offsets = [(0, PageHeader, start), (1, ColumnIndex, raw.column_index_offset)]
            offsets.append((2, OffsetIndex, raw.offset_index_offset))
            offsets.append((3, BloomFilterHeader, chunk.metadata.bloom_filter_offset))
            for selector, structure, at in offsets:
                if at is not None:
                    _, end = decode(structure, data[at:])
                    yield f"{chunk.node.dotted_path} {structure.__name__}", bytes([selector]) + data[at : at + end]


TARGETS = {
    "reader": readers,
    "footer": footers,
    "pages": pages,
    "structures": structures,
    "variant": variant_seeds.variants,
    "shredded": variant_seeds.rows,
    "geometry": geo_seeds.geometries,
    "skipping": skipping_seeds.stores,
    "flat_footer": flat_footers,
}


def main(folder: Path) -> None:
    """Write the seeds of all targets."""
    for target, seeds in TARGETS.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds():
            (folder / target / name.replace(" ", "-")).write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
