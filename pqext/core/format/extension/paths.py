"""Metadata paths of extensions.

``file`` is the footer itself. Other paths list the fields and positions from the footer to a structure, such as
``row_groups[0].columns[2].meta_data``; ``[*]`` selects every position. The dotted path of a leaf selects the metadata
of its column chunks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from pqext.core.format.extension.framing import ExtensionContainer
from pqext.core.format.extension.structure import may_contain_extension, set_extension, walk_extensions
from pqext.core.format.metadata import ColumnChunk, FileMetaData
from pqext.core.format.thrift import LazyStructs, Struct

Payload = bytes | Mapping[UUID, bytes]
"""Extension bytes, or a mapping from UUIDs to bytes that is stored as a container."""
FILE = "file"
_STEP = re.compile(r"(\w+)(?:\[(\d+|\*)\])?")
_LISTS = {field.name for field in FileMetaData.fields if field.is_list and not isinstance(field.type, str)}


def check_extensions(extensions: Mapping[str, Payload]) -> None:
    """Raise ``TypeError`` for a path that is not text, or a payload other than bytes or a mapping of UUIDs to bytes."""
    for path, payload in extensions.items():
        if not isinstance(path, str):
            raise TypeError(f"keys of extensions must be metadata paths (strings), not {type(path).__name__}")
        if not isinstance(payload, bytes):
            if not isinstance(payload, Mapping):
                raise TypeError(f"the extension at {path!r} must be bytes or a mapping, not {type(payload).__name__}")
            ExtensionContainer(payload)


def is_metadata_path(text: str) -> bool:
    """Return whether ``text`` is a metadata path rather than a column.

    Callers check first whether a column has this path, unless it is ``file``.
    """
    first = _STEP.match(text)
    return text == FILE or (first is not None and first[1] in _LISTS and first[2] is not None)


def serialise_payload(payload: Payload) -> bytes:
    """Return the bytes that store the payload."""
    return payload if isinstance(payload, bytes) else ExtensionContainer(payload).encode()


def structures_at(metadata: FileMetaData, path: str) -> list[Struct]:
    """Return the structures at a metadata path: one structure, or any number if the path contains ``[*]``.

    Raises ``ValueError`` if the path does not exist or leads into an encrypted column chunk.
    """
    results: list[Struct] = [metadata]
    for step in [] if path == FILE else path.split("."):
        parsed = _STEP.fullmatch(step)
        if parsed is None:
            raise ValueError(f"unknown metadata path {path!r}: {step!r} is not a field")
        results = [below for struct in results for below in _select_structs(struct, path, parsed[1], parsed[2])]
    return results


def _select_structs(struct: Struct, path: str, name: str, position: str | None) -> Sequence[Struct]:
    if isinstance(struct, ColumnChunk) and struct.crypto_metadata is not None:
        raise ValueError(f"{path!r} refers to an encrypted column chunk; use the column's dotted path")
    value = getattr(struct, name, None) if name in {field.name for field in struct.fields} else None
    if isinstance(value, (list, tuple, LazyStructs)) and position is not None:
        if position == "*":
            return list(value)
        value = value[int(position)] if int(position) < len(value) else None
    elif position is not None:
        value = None
    if not isinstance(value, Struct):
        raise ValueError(f"unknown metadata path {path!r}: the file has no structure {name!r}")
    return [value]


def apply_extensions(metadata: FileMetaData, extensions: Mapping[str, Payload], columns: Collection[str]) -> None:
    """Set the extensions at metadata paths.

    The leaf paths ``columns`` are skipped, since their chunks already have them.
    """
    for path, payload in extensions.items():
        if path == FILE or path not in columns:
            for struct in structures_at(metadata, path):
                set_extension(struct, serialise_payload(payload))


def list_extensions(metadata: FileMetaData, raw: bytes | None) -> Iterator[tuple[str, bytes]]:
    """Yield the metadata path and payload of every extension.

    ``raw`` is the serialised footer if available, for a quick check.
    """
    if raw is None or may_contain_extension(raw):
        for path, payload in walk_extensions(metadata):
            yield path or FILE, payload
