"""Read the framed extension of a file from its end, without parsing the Thrift footer.

Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.footer.thrift_footer import MAGIC, TRAILER_BYTES
from pqext.core.format.extension.framed import FRAME_BYTES, checked_payload, payload_size
from pqext.core.io.sources.locations import open_source


def find_framed(source: Any, uuid: UUID, limits: Limits = DEFAULT_LIMITS) -> bytes | None:
    """Return the payload of the framed extension at the end of a file's footer, reading backwards from the end.

    ``source`` is any input of :func:`pqext.open`. No Thrift is parsed. If the footer does not end in a frame of
    ``uuid``, only 37 bytes are read and None is returned. Raises ``CorruptFileError`` if the file is not a Parquet file
    or the frame is corrupt, and ``LimitError`` if the frame exceeds ``footer_bytes``.
    """
    opened = open_source(source)
    try:
        tail_bytes = min(opened.size, FRAME_BYTES + 1 + TRAILER_BYTES)
        tail = opened.read(opened.size - tail_bytes, tail_bytes).tobytes()
        if tail[-4:] != MAGIC:
            raise CorruptFileError(f"the file ends in {tail[-4:]!r} instead of {MAGIC!r}", path=opened.path)
        footer_bytes = int.from_bytes(tail[-TRAILER_BYTES:-4], "little")
        # The stop byte of FileMetaData is between the extension and the trailer.
        result = tail[: -TRAILER_BYTES - 1]
        whole = min(footer_bytes, opened.size - len(MAGIC) - TRAILER_BYTES) - 1
        if len(result) < FRAME_BYTES or whole < FRAME_BYTES or tail[-TRAILER_BYTES - 1] or result[-16:] != uuid.bytes:
            return None
        size = payload_size(result, whole, uuid)
        if size > limits.footer_bytes:
            raise LimitError(
                f"extension {uuid} has {size} bytes, more than footer_bytes={limits.footer_bytes}; "
                "raise the limit with limits=Limits(footer_bytes=...)"
            )
        start = opened.size - tail_bytes - size
        return checked_payload(opened.read(start, size).tobytes(), result[:4], uuid)
    except (CorruptFileError, LimitError) as error:
        error.locate(path=opened.path)
        raise
    finally:
        if opened is not source:
            opened.close()
