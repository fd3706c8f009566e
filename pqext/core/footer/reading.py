"""Read the end of a file in any footer format.

Spec: "File format" (layout) and "Metadata". Files with an encrypted footer end in ``PARE``, files with only a
FlatBuffers footer in ``PAR3``.

Long footers are cached with their structures, for files that are opened again. All bytes of the footer are compared, so
outdated structures are never used for a changed file. The bytes of remote footers are cached too
(:mod:`pqext.core.io.sources.cache`). One limit applies to both caches.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, EncryptionError, LimitError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.lru import LRU
from pqext.core.encryption.reading import check_plaintext_allowed, open_encrypted, open_plaintext_footer
from pqext.core.footer.thrift_footer import (
    ENCRYPTED_MAGIC,
    FLAT_MAGIC,
    MAGIC,
    TRAILER_BYTES,
    Footer,
    SourceWithFooter,
    ends_in_flat_footer,
)
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import LazyStructs, decode
from pqext.core.io.local_writers import mention_unfinished
from pqext.core.io.source import Source
from pqext.core.io.sources.cache import CACHE, on_clear
from pqext.core.io.sources.locations import open_source
from pqext.core.kernels.thrift.footer_lists import equal_bytes
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions

LEAST_INDEXED = 64 << 10
"""Minimum size of footers that are read with a jump table. Smaller footers are read completely."""
_CONVERT = "convert it with pqext convert"
_RECOVER = "; `pqext recover` writes the remaining rows to a new file"
_MARKS = (
    (b"ARRO", "an Arrow or Feather file, which pyarrow.feather.read_table opens"),
    (b"ORC", "an ORC file, which pyarrow.orc.read_table opens"),
    (b"Obj\x01", "an Avro file"),
    (b"SQLi", "an SQLite database"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"\x1f\x8b", "a gzip-compressed file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard-compressed file"),
)


class _CachedFooter(NamedTuple):
    about: tuple[str, int, Limits]
    raw: Bytes
    metadata: FileMetaData
    end: int


_footer_cache: LRU[str, _CachedFooter] = LRU(CACHE.limit)


def decode_footer(raw: Bytes, limits: Limits, base: int, path: str | None) -> tuple[FileMetaData, int]:
    """Decode the footer at the start of ``raw``, from the cache if possible; return the footer and its end offset.

    For the arguments and errors, see :func:`pqext.core.format.thrift.decode`.
    """
    if path is None:  # the cache must not retain a caller's bytes in memory
        return decode(FileMetaData, raw, limits=limits, base=base)
    about = path, base, limits
    result = _footer_cache.get(path)
    if result is not None and result.about == about and equal_bytes(result.raw, raw):
        return _copy(result.metadata), result.end
    metadata, end = decode(FileMetaData, raw, limits=limits, base=base, path=path)
    if metadata.encryption_algorithm is None:
        _footer_cache.limit = CACHE.limit
        # The offsets of structures take about as much memory as the footer bytes.
        _footer_cache.put(path, _CachedFooter(about, raw, _copy(metadata), end), 2 * len(raw))
    return metadata, end


def _copy(metadata: FileMetaData) -> FileMetaData:
    """Return an independent copy of ``metadata``. The structures in its lists are decoded again from the same bytes."""
    made = copy(metadata)
    for name in ("schema", "row_groups", "column_orders"):
        structures = getattr(metadata, name)
        if isinstance(structures, LazyStructs):
            setattr(made, name, LazyStructs(structures._index))
    if metadata.key_value_metadata is not None:
        made.key_value_metadata = [copy(pair) for pair in metadata.key_value_metadata]
    return made


on_clear(_footer_cache.clear)


def read_footer(
    source: Source, limits: Limits = DEFAULT_LIMITS, decryption: FileDecryption | None = None,
    *, with_jump_table: bool = False,
) -> Footer:
    """Read and index the footer of ``source``. Row groups and columns are decoded on access.

    With ``with_jump_table``, a long footer with a jump table is read lazily. The table is then not among its
    extensions.

    Raises ``CorruptFileError`` if the file is not a complete Parquet file, ``EncryptionError`` for an encrypted footer
    that ``decryption`` cannot decrypt, ``LimitError`` if the footer exceeds ``limits``, and ``UnsupportedError`` for
    an unknown encryption algorithm.
    """
    if isinstance(source, SourceWithFooter):
        return source.footer
    size = source.size
    if size < len(MAGIC) + TRAILER_BYTES:
        head = bytes(source.read(0, len(MAGIC))) if size >= len(MAGIC) else b""
        file_type = "" if head in (MAGIC, ENCRYPTED_MAGIC) else describe_file_type(head)
        raise CorruptFileError(f"not a Parquet file: it has {size} bytes{file_type}", path=source.path)
    tail_bytes = min(size, max(source.tail_bytes, TRAILER_BYTES))
    if size - tail_bytes - len(MAGIC) <= source.merge_gap and not source.is_remote:
        tail_bytes = size
    if tail_bytes == size:
        tail = source.read(0, size, is_metadata=True)
        head = tail[: len(MAGIC)].tobytes()
    elif source.is_remote:  # reading its first bytes would cost a request
        tail = source.read(size - tail_bytes, tail_bytes, is_metadata=True)
        head = tail[-len(MAGIC) :].tobytes()
    else:
        head = source.read(0, len(MAGIC), is_metadata=True).tobytes()
        tail = source.read(size - tail_bytes, tail_bytes, is_metadata=True)
    trailer = tail[-TRAILER_BYTES:].tobytes()
    if trailer[4:] == FLAT_MAGIC and (head == MAGIC or (source.is_remote and tail_bytes < size)):
        from pqext.core.footer.flatbuffers.reading import read_standalone

        return _check_plaintext_footer(read_standalone(source, limits), decryption, source.path)
    if head != MAGIC or trailer[4:] != MAGIC:
        _check_magic(head, trailer[4:], source, source.is_remote and tail_bytes < size)
    length = int.from_bytes(trailer[:4], "little")
    offset = size - TRAILER_BYTES - length
    if length == 0 or offset < len(MAGIC):
        raise CorruptFileError(
            f"the file declares a footer of {length} bytes, but has {size} bytes: "
            "the end of the file is damaged, or parts of the file are missing",
            path=source.path,
            offset=size - TRAILER_BYTES,
        )
    if length > limits.footer_bytes:
        raise LimitError(
            f"the footer has {length} bytes, more than footer_bytes={limits.footer_bytes}; "
            "raise the limit with limits=Limits(footer_bytes=...)",
            path=source.path,
            offset=size - TRAILER_BYTES,
        )
    source.add_metadata(offset)
    is_plain = trailer[4:] == MAGIC and decryption is None
    if with_jump_table and is_plain and length >= LEAST_INDEXED and length + TRAILER_BYTES > tail_bytes:
        from pqext.core.footer.jump_table.footer import open_indexed

        result = open_indexed(source, offset, length, limits, tail)
        if result is not None:
            return result
    if length + TRAILER_BYTES <= tail_bytes:
        raw = tail[-TRAILER_BYTES - length : -TRAILER_BYTES]
    else:
        raw = source.read(offset, length, is_metadata=True)
    if trailer[4:] == ENCRYPTED_MAGIC:
        plaintext, decryptor = open_encrypted(raw, decryption, limits, offset, source.path)
        metadata, _ = decode(FileMetaData, plaintext, limits=limits, path=source.path)
        return Footer(metadata, offset, length, raw, decryptor)
    has_two = ends_in_flat_footer(raw)
    if has_two:
        from pqext.core.footer.flatbuffers.reading import choose_footer, open_fallback

        opened = choose_footer(raw, offset, limits, source.path)
        if opened is not None:
            return _check_plaintext_footer(opened, decryption, source.path)
    try:
        if is_plain and length >= LEAST_INDEXED:
            metadata, end = decode_footer(raw, limits, offset, source.path)
        else:
            metadata, end = decode(FileMetaData, raw, limits=limits, base=offset, path=source.path)
    except CorruptFileError as error:
        opened = open_fallback(error, raw, offset, limits, source.path) if has_two else None
        if opened is None:
            raise
        return _check_plaintext_footer(opened, decryption, source.path)
    return Footer(
        metadata, offset, length, raw, open_plaintext_footer(metadata, raw, end, decryption, offset, source.path)
    )


def _check_plaintext_footer(footer: Footer, decryption: FileDecryption | None, path: str | None) -> Footer:
    """Return ``footer`` unchanged if ``decryption`` allows plaintext files. Raises ``EncryptionError`` if not."""
    try:
        check_plaintext_allowed(decryption)
    except EncryptionError as error:
        error.locate(path=path, offset=footer.offset)
        raise
    return footer


def _check_magic(head: bytes, tail: bytes, source: Source, headless: bool) -> None:
    """Raise ``CorruptFileError`` if the magic numbers are not Parquet's. With ``headless``, ``head`` is not available.
    """
    if head == tail == ENCRYPTED_MAGIC:
        return
    if tail not in (MAGIC, FLAT_MAGIC):
        problem, advice = "not a Parquet file", "" if headless else describe_file_type(head)
        if head == MAGIC:
            problem, advice = "the file is truncated or still being written", _RECOVER
        reason = f"{problem}: it ends in {tail!r} instead of {MAGIC!r}{advice}"
        raise CorruptFileError(reason, path=source.path, offset=source.size - 4)
    if head != MAGIC:
        problem = f"the beginning of the file is damaged or missing: it starts with {head!r} instead of {MAGIC!r}"
        raise CorruptFileError(f"{problem}{_RECOVER}", path=source.path, offset=0)


def describe_file_type(head: bytes) -> str:
    """Describe the file type from its first four bytes, for messages. Return an empty string if it is unknown.

    >>> describe_file_type(b'{"a"')
    '; it looks like JSON: convert it with pqext convert'
    """
    for mark, file_type in _MARKS:
        if head.startswith(mark):
            return f"; it looks like {file_type}"
    if head.lstrip()[:1] in (b"{", b"["):
        return f"; it looks like JSON: {_CONVERT}"
    if len(head) == 4 and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head):
        return f"; it looks like text: if it is CSV, {_CONVERT}"
    return ""


def open_for_reading(source: Any, filesystem: Any, storage_options: Any, options: ReadOptions) -> Source:
    """Open the source, like :func:`pqext.core.io.sources.locations.open_source`.

    With ``options.recover``, the error for a missing file names an unfinished file that a crashed writer left.
    """
    try:
        return open_source(source, filesystem, storage_options)
    except FileNotFoundError as error:
        raise (mention_unfinished(error, source) if options.recover else error) from None


def read_footer_or_checkpoint(
    source: Source, limits: Limits, options: ReadOptions, *, with_jump_table: bool = True
) -> Footer:
    """Read the footer or, if it is invalid and ``options.recover`` is set, restore it.

    The footer is restored from the last checkpoint, or from the footer that precedes an interrupted append, with a
    ``RecoveredFileWarning``. Raises the error of the invalid footer if there is neither.
    """
    try:
        footer = read_footer(source, limits, options.decryption, with_jump_table=with_jump_table)
        if options.recover:
            from pqext.core.footer.checkpoints import resolve_columns

            resolve_columns(footer.schema(limits, source.path))
        return footer
    except (CorruptFileError, LimitError, UnsupportedError) as error:
        if not options.recover:
            raise
        from pqext.core.footer.checkpoints import restore_footer

        restored = restore_footer(source, limits, options, error)
        if restored is None:
            raise
        return restored
