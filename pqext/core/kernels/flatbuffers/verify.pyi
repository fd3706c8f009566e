SCHEMA: dict[str, str]

def verify(payload: bytes) -> None:
    """Raise ``CorruptFileError`` unless the bytes are a complete FlatBuffers footer."""

def extension(payload: bytes) -> bytes | None:
    """The bytes of the extension of a footer that was verified."""
