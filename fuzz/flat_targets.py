"""Fuzz target for FlatBuffers footers: their tables, with valid checksums, and Thrift footers converted to tables."""

from __future__ import annotations

import warnings

import pqext
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import build_file_end, encode_tables
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import Struct, decode

LIMITS = Limits(footer_bytes=1 << 20, metadata_elements=100_000, memory_bytes=1 << 24, memory_expansion=0)


def flat_footer(data: bytes) -> None:
    """Read a selector byte, then the tables of a FlatBuffers footer or a serialised Thrift footer."""
    if not data:
        return
    selector, data = data[0], data[1:]
    if selector & 1:
        _compare_footers(data)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(b"PAR1" + build_file_end(data), limits=LIMITS) as file:
                for group in file.row_groups:
                    for chunk in group.chunks():
                        chunk.bounds()
                _decode_all(file.footer.complete)
        except ParquetError:
            return


def _compare_footers(data: bytes) -> None:
    """Check that a Thrift footer and the tables converted from it contain the same metadata."""
    try:
        expected, _ = decode(FileMetaData, data, limits=LIMITS)
        _decode_all(expected)
        tables = encode_tables(data)
    except (ParquetError, ValueError):
        return
    assert _decode_all(FlatLookup(tables, Limits(), None).load_metadata()) == expected


def _decode_all(root: FileMetaData) -> FileMetaData:
    """Decode all lazy lists of a structure and return it."""
    remaining: list[Struct] = [root]
    while remaining:
        struct = remaining.pop()
        for field in struct.fields:
            value = getattr(struct, field.name)
            for inner in [value] if isinstance(value, Struct) else value if field.is_list and value else ():
                if isinstance(inner, Struct):
                    remaining.append(inner)
    return root
