def convert(serialised: bytes, max_depth: int) -> tuple[bytes, bytes, int]:
    """Convert a serialised FileMetaData to FlatBuffers tables; returns them, their differences and an offset slot.

    The tables are padded to four bytes. Raises ``ValueError`` for a footer that tables cannot represent: one with
    encryption, whose row groups have another number of columns than the schema, with a repeated field, or
    that would take 2 GiB.
    """
