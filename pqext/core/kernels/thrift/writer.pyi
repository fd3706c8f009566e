from typing import Any

EXTENSION_IDS: tuple[int, int]
"""Id of the reserved extension field, and the id that Thrift reads from the header in the format's text."""

def encode(struct: Any) -> bytes:
    """Serialise ``struct`` using its field table. Unknown fields are ordered by id; extensions are last.

    Raises ``ValueError`` or ``TypeError`` if a field is missing, is out of range or has the wrong type.
    """
