SCHEMA: dict[str, str]

def verify(payload: bytes) -> None:
    """Raise ``CorruptFileError`` for bytes that are no whole FlatBuffers footer, whatever they are."""

def extension(payload: bytes) -> bytes | None:
    """The bytes of the extension of a footer that was verified."""
