"""What a file is that is no Parquet, as far as its first bytes tell, and what opens it."""

from __future__ import annotations

_CONVERT = "pqext convert makes Parquet of it"
_MARKS = (
    (b"ARRO", "an Arrow or Feather file, which pyarrow.feather.read_table opens"),
    (b"ORC", "an ORC file, which pyarrow.orc.read_table opens"),
    (b"Obj\x01", "an Avro file"),
    (b"SQLi", "an SQLite database"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"\x1f\x8b", "a file that gzip compressed"),
    (b"\x28\xb5\x2f\xfd", "a file that Zstandard compressed"),
)


def looks_like(head: bytes) -> str:
    """What follows "it is not a Parquet file" for a file with these first four bytes; nothing where they tell nothing.

    >>> looks_like(b'{"a"')
    '; it looks like JSON: pqext convert makes Parquet of it'
    """
    for mark, told in _MARKS:
        if head.startswith(mark):
            return f"; it looks like {told}"
    if head.lstrip()[:1] in (b"{", b"["):
        return f"; it looks like JSON: {_CONVERT}"
    if len(head) == 4 and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head):
        return f"; it looks like text: if it is CSV, {_CONVERT}"
    return ""
