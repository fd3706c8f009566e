"""Metadata paths of extensions.

``file`` is the footer itself; other places are the fields and positions that lead from it to a structure:
``row_groups[0].columns[2].meta_data``, with ``[*]`` for every position. A leaf's dotted path is short for the
metadata of its column chunks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from pqext.core.format.extension.container import ExtensionContainer
from pqext.core.format.extension.structure import holds_header, set_extension, walk_extensions
from pqext.core.format.metadata import ColumnChunk, FileMetaData
from pqext.core.format.thrift import LazyStructs, Struct

Payload = bytes | Mapping[UUID, bytes]
"""Extension bytes, or several by their UUIDs to be put into a container."""
FILE = "file"
_STEP = re.compile(r"(\w+)(?:\[(\d+|\*)\])?")
_LISTS = {field.name for field in FileMetaData.fields if field.is_list and not isinstance(field.type, str)}


def check(extensions: Mapping[str, Payload]) -> None:
    """Raise ``TypeError`` for a payload that is neither bytes nor a mapping from UUIDs to bytes."""
    for place, payload in extensions.items():
        if not isinstance(place, str):
            raise TypeError(f"extensions are given by place, a string, not {type(place).__name__}")
        if not isinstance(payload, bytes):
            if not isinstance(payload, Mapping):
                raise TypeError(f"the extension at {place!r} must be bytes or a mapping, not {type(payload).__name__}")
            ExtensionContainer(payload)


def is_place(text: str) -> bool:
    """Whether ``text`` is a metadata path, not a column. A column's path takes precedence, except over ``file``."""
    first = _STEP.match(text)
    return text == FILE or (first is not None and first[1] in _LISTS and first[2] is not None)


def serialised(payload: Payload) -> bytes:
    """The bytes to be stored."""
    return payload if isinstance(payload, bytes) else ExtensionContainer(payload).encode()


def structures_at(metadata: FileMetaData, place: str) -> list[Struct]:
    """Return the structures at a metadata path: one, or with ``[*]`` any number.

    Raises ``ValueError`` if the path does not exist or leads into an encrypted column chunk.
    """
    found: list[Struct] = [metadata]
    for step in [] if place == FILE else place.split("."):
        parsed = _STEP.fullmatch(step)
        if parsed is None:
            raise ValueError(f"{place!r} is no place in the metadata: {step!r} is no field")
        found = [below for struct in found for below in _below(struct, place, parsed[1], parsed[2])]
    return found


def _below(struct: Struct, place: str, name: str, position: str | None) -> Sequence[Struct]:
    if isinstance(struct, ColumnChunk) and struct.crypto_metadata is not None:
        raise ValueError(f"{place!r} leads into an encrypted column chunk; name the column instead")
    value = getattr(struct, name, None) if name in {field.name for field in struct.fields} else None
    if isinstance(value, (list, tuple, LazyStructs)) and position is not None:
        if position == "*":
            return list(value)
        value = value[int(position)] if int(position) < len(value) else None
    elif position is not None:
        value = None
    if not isinstance(value, Struct):
        raise ValueError(f"{place!r} is no place in this file's metadata: there is no structure {name!r}")
    return [value]


def apply(metadata: FileMetaData, extensions: Mapping[str, Payload], columns: Collection[str]) -> None:
    """Set the extensions at metadata paths; those of ``columns``, leaf paths, are already in their chunks."""
    for place, payload in extensions.items():
        if place == FILE or place not in columns:
            for struct in structures_at(metadata, place):
                set_extension(struct, serialised(payload))


def listed(metadata: FileMetaData, raw: bytes | None) -> Iterator[tuple[str, bytes]]:
    """Yield every extension and its metadata path. ``raw``, the serialised footer if available, is searched first."""
    if raw is None or holds_header(raw):
        for place, payload in walk_extensions(metadata):
            yield place or FILE, payload
