"""Serialise the end of a file in any of the footer formats, and rewrite footers without modifying pages.

Spec: "File format" (metadata is separate from data) and "Extensibility".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from pqext.core.base.errors import CorruptFileError, ParquetError, UnsupportedError, warn
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.footer.flatbuffers.reading import build_file_end, encode_tables, encode_with_flat_footer
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, encode_with_jump_table
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import FLATBUFFERS, Footer, serialise_footer
from pqext.core.format.extension.paths import list_extensions, structures_at
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import decode, encode
from pqext.core.io.local_writers import exclude_appends
from pqext.core.io.sink import Sink
from pqext.core.io.source import Source
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FooterFormat, check_format
from pqext.core.schema.lazy_tree import from_elements

_DERIVED_FORMATS = {JUMP_TABLE.bytes: "thrift+index", FLATBUFFERS.bytes: "thrift+flatbuffers"}
"""Footer formats by the UUID of the extension that they derive from the other fields of the footer."""
COPIED_BYTES = 8 << 20
"""Number of bytes that are copied at a time."""


def tail(metadata: FileMetaData, footer_format: FooterFormat) -> tuple[bytes, str | None]:
    """Return the bytes that end a file, and a warning if a second footer was omitted, otherwise None.

    The caller issues the warning after writing. Raises ``ValueError`` if the format cannot represent the metadata.
    """
    plain = drop_derived_extension(metadata)
    if footer_format == "flatbuffers":
        return build_file_end(encode_tables(encode(plain))), None
    if footer_format == "thrift":
        return serialise_footer(plain), None
    serialise = encode_with_jump_table if footer_format == "thrift+index" else encode_with_flat_footer
    serialised, warning = serialise(plain)
    return serialise_footer(serialised), warning


def drop_derived_extension(metadata: FileMetaData) -> FileMetaData:
    """Return the footer without an extension that is derived from its fields, such as a jump table."""
    stored = extensions(metadata)
    if stored is None or stored[-16:] not in _DERIVED_FORMATS:
        return metadata
    plain = copy(metadata)
    set_extension(plain, None, replace=True)
    return plain


def footer_format_of(source: Source) -> FooterFormat:
    """Return the format of a file's footer according to its last bytes. The footer is not validated."""
    last = source.read(max(source.size - 25, 0), min(25, source.size)).tobytes()
    if last[-4:] == b"PAR3":
        return "flatbuffers"
    return _DERIVED_FORMATS.get(last[:16], "thrift")  # type: ignore[return-value]


def rewrite_footer(
    source: Any,
    change: Callable[[FileMetaData], FileMetaData | None] | None = None,
    dest: Any = None,
    *,
    footer: FooterFormat = "thrift",
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Replace the footer of a file. All bytes before the footer remain unchanged.

    ``change`` modifies the metadata that it receives, or returns a replacement. If it is None, the metadata stays
    unchanged. The result is written to ``dest``, a path or a binary file object. Without ``dest`` it atomically
    replaces ``source``, which must then be a path. Unknown fields and extensions are preserved
    (:func:`pqext.core.format.extension.structure.set_extension` adds an extension). Jump tables and FlatBuffers footers
    are removed, and created again if ``footer`` selects a format with one.

    Raises ``ValueError`` or ``TypeError`` if the changed metadata is invalid or its row groups contradict its schema,
    ``CorruptFileError`` if the file's own metadata is invalid or contradicts itself, ``UnsupportedError`` for encrypted
    files, and ``BlockingIOError`` if a writer is appending to the ``source`` that would be replaced.

    >>> import pqext
    >>> pqext.write_table({"id": [1, 2]}, "ids.parquet")
    >>> pqext.rewrite_footer("ids.parquet", lambda metadata: setattr(metadata, "created_by", "nightly export"))
    >>> pqext.read_metadata("ids.parquet").created_by
    'nightly export'
    """
    check_format(footer)
    if dest is None and not isinstance(source, (str, os.PathLike)):
        raise TypeError("dest is required unless source is a path")
    target = source if dest is None else dest
    with exclude_appends(source, target):
        warning = _write_result(source, change, target, footer, limits)
    if warning is not None:
        warn(warning, UserWarning)


def _write_result(
    source: Any,
    change: Callable[[FileMetaData], FileMetaData | None] | None,
    target: Any,
    footer: FooterFormat,
    limits: Limits,
) -> str | None:
    """Write the file with the changed footer to ``target``. Return a warning if the second footer was omitted,
    otherwise None.
    """
    with open_input(source) as opened:
        result = read_unencrypted_footer(opened, limits)
        changed = None if change is None else change(result.metadata)
        try:
            serialised = _serialise(result.metadata if changed is None else changed, limits)
        except ValueError:
            _check_consistency(opened, limits)  # before the change
            raise
        ending, warning = tail(decode(FileMetaData, serialised, limits=limits)[0], footer)
        with Sink(target) as sink:
            copy_bytes(opened, 0, result.offset, sink)
            sink.write(ending)
            if opened is not source:
                opened.close()  # Windows cannot replace an open file
    return warning


@contextmanager
def open_input(source: Any) -> Iterator[Source]:
    """Open ``source`` until the context exits, unless it is already open. Errors name its path."""
    opened = open_source(source)
    try:
        yield opened
    except ParquetError as error:
        error.locate(path=opened.path)
        raise
    finally:
        if opened is not source:
            opened.close()


def _check_consistency(source: Source, limits: Limits) -> None:
    try:
        _serialise(read_unencrypted_footer(source, limits).metadata, limits)
    except ValueError as error:
        message = f"the footer contradicts itself: {error}; run `pqext verify` for details"
        raise CorruptFileError(message, path=source.path) from None


def drop_extensions(metadata: FileMetaData) -> None:
    """Remove all extensions from the metadata. Unknown fields are preserved."""
    for place, _ in list(list_extensions(metadata, None)):
        for struct in structures_at(metadata, place):
            set_extension(struct, None, replace=True)


def read_unencrypted_footer(source: Source, limits: Limits) -> Footer:
    """Read the footer of a file without encryption, and drop its derived extension. Raises ``UnsupportedError`` for
    encrypted files.
    """
    ending = source.read(max(0, source.size - 4), min(4, source.size)).tobytes()
    # A signed footer is rejected before its signature is checked, which would require a key.
    footer = read_footer(source, limits) if ending != b"PARE" else None
    if footer is None or footer.metadata.encryption_algorithm is not None:
        raise UnsupportedError(
            "encrypted files cannot be merged, and their footers cannot be replaced; rewrite their rows instead",
            feature="rewriting encrypted files",
            path=source.path,
        )
    return Footer(drop_derived_extension(footer.complete), footer.offset, footer.length, footer.raw)


def copy_bytes(source: Source, start: int, stop: int, sink: Sink) -> None:
    """Append the bytes from ``start`` to ``stop`` of ``source`` to ``sink``."""
    while start < stop:
        length = min(COPIED_BYTES, stop - start)
        sink.write(source.read(start, length).data)
        start += length


def _serialise(metadata: FileMetaData, limits: Limits) -> bytes:
    """Serialise the metadata. Raises ``ValueError`` if its schema, row groups and number of rows are inconsistent."""
    if not isinstance(metadata, FileMetaData):
        raise TypeError(f"change must return FileMetaData or None, not {type(metadata).__name__}")
    serialised = encode(metadata)
    again, _ = decode(FileMetaData, serialised, limits=limits)
    try:
        leaves = len(from_elements(again.schema, limits).leaves)
    except CorruptFileError as error:
        raise ValueError(f"the schema cannot be read: {error}") from None
    for index, group in enumerate(again.row_groups):
        if len(group.columns) != leaves:
            message = f"row group {index} has {len(group.columns)} column chunks, but the schema has {leaves} columns"
            raise ValueError(message)
    rows = sum(group.num_rows for group in again.row_groups)
    if rows != again.num_rows:
        raise ValueError(f"the row groups have {rows} rows, but num_rows is {again.num_rows}")
    return serialised
