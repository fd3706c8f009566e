"""Compare the Thrift footer and the FlatBuffers footer of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pqext.core.base.buffers import Bytes
from pqext.core.base.limits import Limits
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import parse_frame, tables_of
from pqext.core.footer.writing import without_copies
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import Struct, decode, encode

_LISTS = ("schema", "row_groups", "columns")


def differences(footer: Bytes, limits: Limits) -> Iterator[str]:
    """Yield the paths of fields that differ between a Thrift footer and the FlatBuffers footer in it.

    The first item is a description instead if the tables contradict their extension. Raises ``ParquetError`` if the
    FlatBuffers footer cannot be read.
    """
    tables = parse_frame(footer).tables(limits)
    lookup = FlatLookup(tables, limits, None)
    flat = lookup.complete()
    thrift = without_copies(decode(FileMetaData, footer, limits=limits)[0])
    try:
        if tables_of(encode(thrift)) == tables:
            return
    except ValueError:
        pass  # the extension of another writer
    if contradicts_itself(lookup):
        yield "the tables without their extension, which other readers use"
    yield from _compare_structs(thrift, flat, "")


def contradicts_itself(lookup: FlatLookup) -> bool:
    """Return whether the tables, which other readers use, differ from the tables that pqext's extension implies."""
    try:
        return lookup.flat.is_ours and tables_of(bytes(lookup.raw())) != lookup.tables
    except ValueError:
        return False


def _compare_structs(thrift: Struct, flat: Struct, path: str) -> Iterator[str]:
    if thrift.unknown != flat.unknown:
        yield f"{path}unknown fields"
    for field in thrift.fields:
        mine, theirs = getattr(thrift, field.name), getattr(flat, field.name)
        name = f"{path}{field.name}"
        if field.name in _LISTS:
            yield from _list_differences(mine or (), theirs or (), name)
        elif isinstance(mine, Struct) and isinstance(theirs, Struct):
            yield from _compare_structs(mine, theirs, f"{name}.")
        elif mine != theirs:
            yield name


def _list_differences(mine: Any, theirs: Any, name: str) -> Iterator[str]:
    if len(mine) != len(theirs):
        yield name
        return
    for position in range(len(mine)):
        yield from _compare_structs(mine[position], theirs[position], f"{name}[{position}].")
