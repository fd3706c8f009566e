def convert(serialised: bytes, max_depth: int) -> tuple[bytes, bytes, int]:
    """A serialised FileMetaData as FlatBuffers tables, what stands beside them, and where the offset to that belongs.

    The tables are padded to four bytes. Raises ``ValueError`` for a footer that has no place in the tables: one that
    speaks of encryption, whose row groups have another number of columns than the schema, that holds a field twice, or
    that would take 2 GiB.
    """
