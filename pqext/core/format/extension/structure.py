"""Binary protocol extensions: arbitrary bytes under field id 32767 of any structure.

Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``. Thrift parses the header
that the specification prints as field -16384; its own header for 32767 differs. Both headers are read, and the one in
the specification is written by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from pqext.core.base.limits import OWN_METADATA
from pqext.core.format.thrift import EXTENSION_IDS, LazyStructs, Struct, UnknownField, uleb
from pqext.core.kernels.thrift.reader import scan_fields

HeaderForm = Literal["spec", "thrift"]
HEADERS: dict[HeaderForm, bytes] = {"spec": b"\x08\xff\xff\x01", "thrift": b"\x08\xfe\xff\x03"}
_BINARY = 8
_MAX_BYTES = (1 << 31) - 1
MOST_READ = 100_000_000
"""Maximum size of a binary that Arrow reads in Thrift by default."""


def append_extension(
    serialised_footer: bytes, payload: bytes, *, header: HeaderForm = "spec", replace: bool = False
) -> bytes:
    """Add ``payload`` as the extension of a serialised structure of any class.

    Other fields keep their bytes. Raises ``ValueError`` if the structure already has an extension and ``replace`` is
    not set, if the payload is too long, or if ``serialised_footer`` is not exactly one structure.
    """
    if len(payload) > _MAX_BYTES:
        raise ValueError(f"an extension of {len(payload)} bytes exceeds the maximum of {_MAX_BYTES} in Thrift")
    fields, end = scan_fields(serialised_footer, limits=OWN_METADATA)
    if end != len(serialised_footer):
        raise ValueError(f"{len(serialised_footer) - end} bytes follow the end of the structure")
    parts = []
    follows_gap = False
    for id, wire, start, value, stop in fields:
        if _is_extension(id, wire):
            if not replace:
                raise ValueError("the structure already has an extension; pass replace=True to overwrite it")
            follows_gap = True
        elif follows_gap:
            # A short header is relative to the removed preceding field, so write the complete id.
            parts += [bytes([wire]), uleb((id << 1 ^ id >> 15) & 0xFFFF), serialised_footer[value:stop]]
            follows_gap = False
        else:
            parts.append(serialised_footer[start:stop])
    return b"".join([*parts, HEADERS[header], uleb(len(payload)), payload, b"\x00"])


def append_readable(serialised_footer: bytes, payload: bytes, payload_description: str) -> tuple[bytes, str | None]:
    """Append ``payload`` to ``serialised_footer`` as its extension, unless the extension is too large for Arrow.

    Returns the bytes and None or, if Arrow could not read the result, ``serialised_footer`` unchanged and the reason.
    """
    if len(payload) > MOST_READ:
        limit = f"its size of {len(payload):,} bytes exceeds the {MOST_READ:,} bytes that Arrow supports"
        return serialised_footer, f"the file is written without {payload_description}: {limit}"
    return append_extension(serialised_footer, payload), None


def set_extension(
    struct: Struct, payload: bytes | None, *, header: HeaderForm = "spec", replace: bool = False
) -> None:
    """Set ``payload`` as the extension of ``struct``, or remove its extension if ``payload`` is None.

    Raises ``ValueError`` if the structure already has an extension and ``replace`` is not set, or if the payload is too
    long.
    """
    if payload is not None and len(payload) > _MAX_BYTES:
        raise ValueError(f"an extension of {len(payload)} bytes exceeds the maximum of {_MAX_BYTES} in Thrift")
    others = tuple(field for field in struct.unknown if not _is_extension(field[0], field[1]))
    if len(others) < len(struct.unknown) and not replace:
        raise ValueError("the structure already has an extension; pass replace=True to overwrite it")
    if payload is not None:
        others += ((EXTENSION_IDS[header == "spec"], _BINARY, uleb(len(payload)) + payload),)
    struct.unknown = others


def extensions(struct: Struct) -> bytes | None:
    """Return the bytes of the structure's extension; None if it has no extension.

    If the structure has several extensions, which the format forbids, return the last.
    """
    payloads = [_payload(field) for field in struct.unknown if _is_extension(field[0], field[1])]
    return payloads[-1] if payloads else None


def may_contain_extension(data: bytes) -> bool:
    """Return whether these serialised structures may contain an extension. False is definitive."""
    return any(header[1:] in data for header in HEADERS.values())


def walk_extensions(struct: Struct, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield path and payload of every extension of ``struct`` and the structures nested in it.

    A path is, for example, ``row_groups[0].columns[2].meta_data``.

    ``path`` is the path of ``struct``. Elements of lazy lists without extensions are not decoded.
    """
    payload = extensions(struct)
    if payload is not None:
        yield path, payload
    prefix = f"{path}." if path else ""
    for field in struct.fields:
        value = getattr(struct, field.name)
        if isinstance(value, Struct):
            yield from walk_extensions(value, f"{prefix}{field.name}")
        elif isinstance(value, (list, tuple, LazyStructs)):
            positions: Iterable[int] = range(len(value))
            if isinstance(value, LazyStructs):
                positions = value.iter_positions(may_contain_extension)
            for position in positions:
                element = value[position]
                if isinstance(element, Struct):
                    yield from walk_extensions(element, f"{prefix}{field.name}[{position}]")


def _is_extension(id: int, wire_type: int) -> bool:
    return wire_type == _BINARY and id in EXTENSION_IDS


def _payload(field: UnknownField) -> bytes:
    """Return the payload of an extension field without its length prefix. The kernel has checked the length."""
    raw = field[2]
    start = 0
    while raw[start] & 0x80:
        start += 1
    return raw[start + 1 :]
