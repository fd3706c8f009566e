def convert(serialised: bytes, max_depth: int) -> tuple[bytes, bytes, int]:
    """Convert a serialised FileMetaData to FlatBuffers tables.

    Return (tables, differences, offset slot). The tables are padded to four bytes. Raises ``ValueError`` if tables
    cannot represent the footer: it is encrypted, a row group and the schema have different numbers of columns, a field
    is repeated, or the tables would exceed 2 GiB.
    """
