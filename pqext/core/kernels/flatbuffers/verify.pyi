SCHEMA: dict[str, str]

def verify(payload: bytes) -> None:
    """Raise ``CorruptFileError`` unless the bytes are a complete FlatBuffers footer."""

def extension(payload: bytes) -> bytes | None:
    """Return the bytes of the extension of a verified footer; None if the footer has no extension."""
