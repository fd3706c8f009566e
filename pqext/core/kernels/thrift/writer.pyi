from typing import Any

EXTENSION_IDS: tuple[int, int]
"""The reserved field as Thrift numbers it, and as it reads the header that the format's text prints."""

def encode(struct: Any) -> bytes:
    """Serialise ``struct`` by its field table, unknown fields in order of their ids, extensions last.

    Raises ``ValueError`` or ``TypeError`` where a field is missing, out of range or of the wrong type.
    """
