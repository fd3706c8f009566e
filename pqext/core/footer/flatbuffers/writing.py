"""Metadata as a FlatBuffers footer.

What the public schema cannot say stands in the footer's own extension, slot 99 of its root table, as a frame or, beside
others, an entry of a container: see :mod:`pqext.core.kernels.thrift_fields` for how, and
``specs/binary-protocol-extensions.md`` for the bytes.
"""

from __future__ import annotations

from uuid import UUID

from pqext.core.footer.flatbuffers.framing import framed
from pqext.core.format.extension.framed import frame
from pqext.core.format.extension.structure import append_readable, extensions
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.kernels.thrift_to_flat import convert

BESIDE = UUID("a1c6f0de-6f0f-4c1e-9a43-0f6a6f6f7b52")
"""Marks what stands beside the tables."""
_MOST_BYTES = (1 << 31) - 1
_DEPTH = 1000
"""Levels of a schema that is written."""


def tables_of(serialised: bytes) -> bytes:
    """The FlatBuffers footer that says what a serialised FileMetaData does.

    Raises ``ValueError`` for one that has no place in it (:func:`pqext.core.kernels.thrift_to_flat.convert`).
    """
    tables, about, at = convert(serialised, _DEPTH)
    extension = frame(about, BESIDE)
    if len(tables) + 4 + len(extension) > _MOST_BYTES:
        raise ValueError("the footer cannot be written as FlatBuffers: it would take more than 2 GiB")
    distance, size = (number.to_bytes(4, "little") for number in (len(tables) - at, len(extension)))
    return b"".join([tables[:at], distance, tables[at + 4 :], size, extension])


def with_flat_footer(metadata: FileMetaData) -> tuple[bytes, str | None]:
    """The serialised footer with a FlatBuffers one in its extension; if that is very long, without, and why.

    Raises ``ValueError`` where it has another extension, or no place in FlatBuffers.
    """
    if extensions(metadata) is not None:
        raise ValueError('footer="thrift+flatbuffers" takes the place of another extension of the footer')
    serialised = encode(metadata)
    extension = framed(tables_of(serialised), serialised[:-1])
    return append_readable(serialised, extension, "a FlatBuffers footer")
