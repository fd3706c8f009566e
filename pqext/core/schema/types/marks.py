"""Metadata of Arrow fields for properties that an Arrow type cannot express.

``PARQUET:logical_type`` names the annotation of an ENUM, JSON, BSON or UUID column or of a FILE struct.
``PARQUET:physical_type`` selects the physical type of a decimal or a timestamp (INT96). ``PARQUET:is_adjusted_to_utc``
is ``true`` for a TIME that is normalised to UTC. ``PARQUET:field_id`` is the field's id, as in pyarrow. JSON and UUID
can also be marked with Arrow's extension names, ``arrow.json`` and ``arrow.uuid``. A reader adds the metadata that a
writer needs to store the same types again.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pqext.core.format.metadata import LogicalType
from pqext.core.schema.annotations import EXTENSION_METADATA, EXTENSION_NAME

FIELD_ID = b"PARQUET:field_id"
PHYSICAL_TYPE = b"PARQUET:physical_type"
LOGICAL_TYPE = b"PARQUET:logical_type"
ADJUSTED_TO_UTC = b"PARQUET:is_adjusted_to_utc"
UNREADABLE = b"PARQUET:unreadable"
"""Key for the reason that a column cannot be read. The field has the physical type of the column."""

_EXTENSION = b"ARROW:extension:name"
_EXTENSIONS = {"JSON": b"arrow.json", "UUID": b"arrow.uuid"}
UUID_MARK = {_EXTENSION: b"arrow.uuid", b"ARROW:extension:metadata": b""}
NAMES = ("ENUM", "JSON", "BSON", "UUID", "FILE")


def logical_marks(logical: LogicalType | None, member: str) -> dict[bytes, bytes]:
    """Return the field metadata that preserves the logical type ``logical``.

    ``member`` is the name of the type that the reader uses.
    """
    if member in _EXTENSIONS:
        return {_EXTENSION: _EXTENSIONS[member], b"ARROW:extension:metadata": b""}
    if member in NAMES:
        return {LOGICAL_TYPE: member.encode()}
    if member == "TIME" and logical is not None and logical.TIME is not None and logical.TIME.isAdjustedToUTC:
        return {ADJUSTED_TO_UTC: b"true"}
    return {}


def logical_name(metadata: Mapping[bytes, bytes]) -> str:
    """Return the name of the logical type in a field's metadata; an empty string if it is missing.

    Raises ``ValueError`` if the name in the metadata is not supported.
    """
    if LOGICAL_TYPE in metadata:
        name = metadata[LOGICAL_TYPE].decode("utf-8", "replace")
        if name not in NAMES:
            raise ValueError(f"PARQUET:logical_type must be one of {', '.join(NAMES)}, not {name!r}")
        return name
    extension = metadata.get(_EXTENSION)
    return next((name for name, mark in _EXTENSIONS.items() if mark == extension), "")


def marks(field: pa.Field) -> dict[str, str]:
    """Return the metadata of the field's extension type: its name and parameters."""
    metadata = field.metadata or {}
    return {
        key.decode(): metadata[key].decode("utf-8", "replace")
        for key in (EXTENSION_NAME, EXTENSION_METADATA)
        if key in metadata
    }
