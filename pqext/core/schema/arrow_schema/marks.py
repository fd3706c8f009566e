"""The extension type that the metadata of an Arrow field names."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.schema.annotations import EXTENSION_METADATA, EXTENSION_NAME


def marks(field: pa.Field) -> dict[str, str]:
    """The extension type that a field's metadata names, with its parameters."""
    metadata = field.metadata or {}
    return {
        key.decode(): metadata[key].decode("utf-8", "replace")
        for key in (EXTENSION_NAME, EXTENSION_METADATA)
        if key in metadata
    }
