"""Checkpoints: footers inside a file being written, so that its rows can be read if the writer crashes.

A checkpoint is a frame (:mod:`pqext.core.format.extension.framing`) between row groups, whose payload is the compressed
footer of all row groups so far, and a tail:

    K bytes  the serialised FileMetaData, compressed with Zstandard
    1 byte   version, 1
    4 bytes  length of the FileMetaData
    8 bytes  offset of this frame in the file
        8 bytes  offset of the preceding frame, 0 for none
        4 bytes  length of the preceding frame
    4 bytes  CRC-32 of these 25 bytes

All numbers are little-endian. Each checkpoint contains a complete footer. Its tail refers to the preceding checkpoint,
which can therefore be found even if the footer is corrupt. Rules: ``specs/error-recovery.md``.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import ParquetError, warn_about_file
from pqext.core.base.limits import OWN_METADATA, Limits
from pqext.core.base.text import with_noun
from pqext.core.encryption.reading import open_plaintext_footer
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.flatbuffers.reading import TAIL_BYTES, read_standalone
from pqext.core.footer.structure_lookup import peek
from pqext.core.footer.thrift_footer import FLAT_MAGIC, MAGIC, Footer
from pqext.core.format.compression import compress, decompress
from pqext.core.format.extension.framing import FRAME_BYTES, frame, unframe
from pqext.core.format.metadata import CompressionCodec, FileMetaData
from pqext.core.format.thrift import LazyStructs, decode, encode, struct_list_header
from pqext.core.io.source import Source
from pqext.core.kernels.thrift.footer_lists import count_rows
from pqext.core.kernels.thrift.reader import scan_fields
from pqext.core.options.layout import Checkpoint
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema

CHECKPOINT = UUID("2f6a1c0e-8a3b-4d57-9b1e-5c7d3e9f0a64")
_TAIL = struct.Struct("<BIQQII")
_VERSION = 1
_LEVEL = 1
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""First bytes of a checkpoint's payload."""
_MOST_RATIO = 512
"""Maximum compression ratio of a checkpoint. The ratio of real footers is at most about 40."""
_BETWEEN = 64 << 10
"""Maximum gap that writers may leave between the last structure and the footer, for copies of metadata and for filters.
"""
_WINDOW = 16 << 20
_EFFORT = 4
_LEAST_EFFORT = 64 << 20
_ROW_GROUPS = 4
"""Field id of the row groups in FileMetaData."""


class RecoveredFileWarning(UserWarning):
    """Warning that a file without a complete footer was opened from a checkpoint; rows at its end may be missing."""


class Checkpoints:
    """Schedule and frames of the checkpoints of one file that is being written."""

    def __init__(self, interval: Checkpoint) -> None:
        self._every = interval
        self._row_groups = self._offset = 0
        self._time = time.monotonic()
        self._before = (0, 0)

    def is_due(self, row_groups: int, offset: int) -> bool:
        """Return whether a checkpoint is due after ``row_groups`` row groups and ``offset`` bytes."""
        every = self._every
        return (
            (every.row_groups is not None and row_groups - self._row_groups >= every.row_groups)
            or (every.bytes is not None and offset - self._offset >= every.bytes)
            or (every.seconds is not None and time.monotonic() - self._time >= every.seconds)
        )

    def build_frame(self, footer: bytes, row_groups: int, offset: int) -> bytes:
        """Build the frame of a checkpoint, to be written at ``offset``. ``footer`` is the serialised footer of
        ``row_groups`` row groups.

        Return empty bytes if the footer is too large for a frame.
        """
        body = bytes(compress(CompressionCodec.ZSTD, footer, _LEVEL))
        self._row_groups, self._time = row_groups, time.monotonic()
        if len(footer) >= 1 << 32 or len(body) + _TAIL.size + FRAME_BYTES >= 1 << 31:
            return b""
        about = _TAIL.pack(_VERSION, len(footer), offset, *self._before, 0)[:-4]
        made = frame(body + about + crc32(about).to_bytes(4, "little"), CHECKPOINT)
        self._before = offset, len(made)
        self._offset = offset + len(made)
        return made


def encode_with_row_groups(metadata: FileMetaData, groups: list[bytes]) -> bytes:
    """Serialise a footer: ``metadata``, which has no row groups, and the serialised row groups ``groups``."""
    raw = encode(metadata)
    fields, _ = scan_fields(raw, limits=OWN_METADATA)
    value, stop = next((value, stop) for id, _, _, value, stop in fields if id == _ROW_GROUPS)
    return b"".join([raw[:value], struct_list_header(len(groups)), *groups, raw[stop:]])


@dataclass(frozen=True, slots=True)
class SavedFooter:
    """Footer of a checkpoint, whose frame has ``length`` bytes and begins at ``offset``."""

    offset: int
    length: int
    metadata: FileMetaData
    raw: Bytes


def find_checkpoints(source: Source, limits: Limits) -> Iterator[SavedFooter]:
    """Yield the valid checkpoints of a file, from the last to the first.

    Invalid checkpoints are skipped. The search reads at most a few times the size of the file.
    """
    left = max(_EFFORT * source.size, _LEAST_EFFORT)
    stop = source.size
    while stop > 0 and left > 0:
        start = max(stop - _WINDOW, 0)
        data = source.read(start, min(stop + 15, source.size) - start).tobytes()
        at = len(data)
        left -= at
        while left > 0 and (at := data.rfind(CHECKPOINT.bytes, 0, at)) >= 0:
            at += 15  # the next frame ends before the end of this one
            position, length = start + at + 1, 0
            while position:  # follow the chain as long as it is valid
                result, before, length = _read_checkpoint(source, position, limits)
                left -= length
                if result is not None:
                    yield result
                if before is None or left <= 0:
                    break
                position = before
                stop = min(stop, position)
            if position <= start:
                break
            at = min(at, position - start)
        stop = min(stop, start)


def _read_checkpoint(source: Source, end: int, limits: Limits) -> tuple[SavedFooter | None, int | None, int]:
    """Return the checkpoint whose frame ends at ``end``, the end offset of the preceding checkpoint, and the number of
    bytes read. An invalid checkpoint is None. The end offset is 0 for the first checkpoint, and None if it is unknown.
    """
    least = FRAME_BYTES + _TAIL.size
    if end < least:
        return None, None, 0
    last = source.read(end - least, least).tobytes()
    size = int.from_bytes(last[-24:-20], "little")
    length = size + FRAME_BYTES
    start = end - length
    about = last[: _TAIL.size]
    version, raw_length, offset, before, before_length, crc = _TAIL.unpack(about)
    is_valid = crc32(about[:-4]) == crc and version == _VERSION and offset == start and size > _TAIL.size
    if not is_valid or crc32(last[-24:-20]) != int.from_bytes(last[-20:-16], "little"):
        return None, None, least
    chained = before + before_length if before_length else 0
    earlier = chained if chained <= start and before >= 0 else None
    if max(length, raw_length) > limits.footer_bytes or raw_length > _MOST_RATIO * length:
        return None, earlier, least
    try:
        data = source.read(start, length)
        if unframe(data.tobytes(), CHECKPOINT) is None:
            return None, earlier, length
        raw = decompress(CompressionCodec.ZSTD, data[: size - _TAIL.size], raw_length)
        metadata, _ = decode(FileMetaData, raw, limits=limits, base=start, path=source.path)
    except ParquetError:
        return None, earlier, length + raw_length
    return SavedFooter(start, length, metadata, raw), earlier, length + raw_length


def _footer_before_torn_checkpoint(source: Source, limits: Limits) -> SavedFooter | None:
    """Return the footer that precedes an incomplete checkpoint of an interrupted append; None if it does not exist."""
    start = max(source.size - _WINDOW, 0)
    data = source.read(start, source.size - start).tobytes()
    at, left = len(data), _LEAST_EFFORT
    while left > 0 and (at := max(data.rfind(magic, 4, at) for magic in (MAGIC, FLAT_MAGIC))) >= 0:
        if not _ZSTANDARD.startswith(data[at + 4 : at + 8]):
            continue
        is_flat = data[at : at + 4] == FLAT_MAGIC
        length = int.from_bytes(data[at - 8 : at - 4] if is_flat else data[at - 4 : at], "little")
        position = start + at - length - (TAIL_BYTES - 4 if is_flat else 4)
        if position < len(MAGIC) or length > limits.footer_bytes:
            continue
        left -= length
        try:
            if is_flat:
                alone = read_standalone(source, limits, start + at + 4)
                metadata, raw, stop = alone.complete, alone.raw, length
            else:
                raw = source.read(position, length)
                metadata, stop = decode(FileMetaData, raw, limits=limits, base=position, path=source.path)
            resolve_columns(from_elements(metadata.schema, limits, source.path))
        except ParquetError:
            continue
        if stop == length and structures_end(metadata) <= position and not is_embedded(source, metadata, position):
            return SavedFooter(position, length, metadata, raw)
    return None


def resolve_columns(schema: Schema) -> None:
    """Determine the types of all columns. Raises ``CorruptFileError`` or ``UnsupportedError`` if a column is invalid.
    """
    for leaf in schema.leaves:
        _ = leaf.leaf_type


def follows_data(source: Source, metadata: FileMetaData, position: int) -> bool:
    """Return whether the footer at ``position`` directly follows the data: the last structure that it refers to, or a
    checkpoint after that structure.

    If not, bytes before the footer are missing or were inserted, or its writer leaves a gap.
    """
    end = structures_end(metadata)
    if position - end < FRAME_BYTES:
        return position == end
    last = source.read(position - FRAME_BYTES, FRAME_BYTES).tobytes()
    return last[12:] == CHECKPOINT.bytes and int.from_bytes(last[4:8], "little") + FRAME_BYTES == position - end


def is_embedded(source: Source, metadata: FileMetaData, position: int) -> bool:
    """Return whether the footer at ``position`` belongs to a Parquet file that is stored as a value in this file.

    The embedded file begins with its magic number. The end of its last structure implies the distance from its start to
    the footer, apart from gaps that some writers leave.
    """
    begun = position - structures_end(metadata)
    first = max(begun - _BETWEEN, 1)
    return begun > 0 and MAGIC in source.read(first, begun + len(MAGIC) - first).tobytes()


def structures_end(metadata: FileMetaData) -> int:
    """Return the end offset of the last structure that a footer refers to. The footer usually begins at this offset."""
    end = len(MAGIC)
    for group in map(partial(peek, metadata.row_groups), range(len(metadata.row_groups))):
        for chunk in map(partial(peek, group.columns), range(len(group.columns))):
            about = chunk.meta_data
            if about is not None and chunk.file_path is None:
                start = start_of(about)
                bloom = (about.bloom_filter_offset or 0) + (about.bloom_filter_length or 0)
                end = max(end, start + about.total_compressed_size, bloom)
            column_index = (chunk.column_index_offset or 0) + (chunk.column_index_length or 0)
            offset_index = (chunk.offset_index_offset or 0) + (chunk.offset_index_length or 0)
            end = max(end, column_index, offset_index)
    return end


def restore_footer(source: Source, limits: Limits, options: ReadOptions, error: ParquetError) -> Footer | None:
    """Return the last checkpoint, or the footer that precedes an interrupted append; None if neither exists.

    Issues a ``RecoveredFileWarning`` with ``error``, the reason why the file has no valid footer.
    """
    saved = next(find_checkpoints(source, limits), None)
    torn = _footer_before_torn_checkpoint(source, limits)
    if torn is not None and (saved is None or torn.offset > saved.offset):
        saved = torn
    if saved is None:
        return None
    groups = saved.metadata.row_groups
    index = groups.undecoded_index if isinstance(groups, LazyStructs) else None
    rows = None if index is None else count_rows(index)
    rows = sum(group.num_rows for group in groups) if rows is None else rows
    if options.decryption is not None:
        open_plaintext_footer(saved.metadata, saved.raw, len(saved.raw), options.decryption, saved.offset, source.path)
    kind = "footer" if saved is torn else "checkpoint"
    covered = f"the {kind} at offset {saved.offset:,}, which covers {with_noun(rows, 'row')}"
    warn_about_file(source.path, f"{error.message}; opened from {covered}", RecoveredFileWarning)
    return Footer(saved.metadata, saved.offset, saved.length, saved.raw)
