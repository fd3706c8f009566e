"""FILE: a group that refers to bytes in this or another file, or contains them.

A FILE column is read and written as a struct. The bytes that it refers to are never fetched.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

FIELDS: dict[str, Callable[[pa.DataType], bool]] = {
    "uri": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    "offset": pa.types.is_int64,
    "size": pa.types.is_int64,
    "content_type": lambda kind: FIELDS["uri"](kind),
    "checksum": lambda kind: FIELDS["uri"](kind),
    "inline": lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind),
}
"""Fields of a FILE by name, all of them optional, with a test of the Arrow types that can store them."""


def check_file(path: str, struct: pa.StructType) -> None:
    """Raise ``ValueError`` if the struct at dotted ``path`` cannot be annotated as FILE."""
    fault = find_fault(struct)
    if fault is not None:
        raise ValueError(f"column {path!r} is marked FILE, {fault}")


def find_fault(struct: pa.StructType) -> str | None:
    """Return the reason that the struct cannot be annotated as FILE, or None if it can."""
    for field in struct:
        if field.name not in FIELDS:
            return f"but FILE has no field {field.name!r}"
        if not FIELDS[field.name](field.type):
            return f"but its field {field.name!r} cannot be {field.type}"
        if not field.nullable:
            return f"but its field {field.name!r} must be nullable"
    return None
