"""What the fuzzers call of FlatBuffers footers: tables whose checksums are mended, and footers that become tables."""

from __future__ import annotations

import warnings

import pqext
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import alone, tables_of
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import Struct, decode

LIMITS = Limits(footer_bytes=1 << 20, metadata_elements=100_000, memory_bytes=1 << 24, memory_expansion=0)


def flat_footer(data: bytes) -> None:
    """Behind a byte that says which: the tables of a file's only footer, or a serialised Thrift footer."""
    if not data:
        return
    how, data = data[0], data[1:]
    if how & 1:
        _both_ways(data)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pqext.open(b"PAR1" + alone(data), limits=LIMITS) as file:
                for group in file.row_groups:
                    for chunk in group.chunks():
                        chunk.bounds()
                _seen(file.footer.complete)
        except ParquetError:
            return


def _both_ways(data: bytes) -> None:
    """A footer that is read by its tables says what it says by itself."""
    try:
        expected, _ = decode(FileMetaData, data, limits=LIMITS)
        _seen(expected)
        tables = tables_of(data)
    except (ParquetError, ValueError):
        return
    assert _seen(FlatLookup(tables, Limits(), None).complete()) == expected


def _seen(struct: FileMetaData) -> FileMetaData:
    """``struct`` with all that is lazy decoded."""
    waiting: list[Struct] = [struct]
    while waiting:
        one = waiting.pop()
        for field in one.fields:
            value = getattr(one, field.name)
            for inner in [value] if isinstance(value, Struct) else value if field.is_list and value else ():
                if isinstance(inner, Struct):
                    waiting.append(inner)
    return struct
