"""Count the rows of an ordinary local file from its Thrift footer, without numpy and without building the schema."""

from __future__ import annotations

import os

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import Limits
from pqext.core.format.thrift import Struct, decode, field

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8
_ENCRYPTION_ALGORITHM = 8
"""Id of the field of FileMetaData that only files with encrypted columns have."""


class _SchemaElement(Struct):
    name: str = field(4, "string")
    num_children: int | None = field(5, "i32", default=None)


class _RowGroup(Struct):
    num_rows: int = field(3, "i64")


class _FileMetaData(Struct):
    schema: list[_SchemaElement] = field(2, [_SchemaElement])
    num_rows: int = field(3, "i64")
    row_groups: list[_RowGroup] = field(4, [_RowGroup])


def count_rows(path: str, limits: Limits) -> int | None:
    """Return the number of rows that the footer of a local file states.

    Return None if the footer must be read by :func:`pqext.core.footer.reading.read_footer`: if it is encrypted, has
    only the FlatBuffers format, exceeds ``limits`` or is invalid, if its schema is not one tree, or if the rows of the
    row groups do not add up to the rows of the file. Return None too if the file does not start like a Parquet file.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
        >>> count_rows("ids.parquet", pqext.Limits())
        3
    """
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size - _TRAILER_BYTES
        if end < len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
            return None
        file.seek(end)
        trailer = file.read(_TRAILER_BYTES)
        size = int.from_bytes(trailer[:4], "little")
        if trailer[4:] != _MAGIC or size > min(end - len(_MAGIC), limits.footer_bytes):
            return None
        file.seek(end - size)
        footer = file.read(size)
    try:
        metadata, _ = decode(_FileMetaData, footer, limits=limits)
    except (CorruptFileError, LimitError):
        return None
    if sum(element.num_children or 0 for element in metadata.schema) != len(metadata.schema) - 1:
        return None
    counts = [group.num_rows for group in metadata.row_groups]
    is_encrypted = any(id == _ENCRYPTION_ALGORITHM for id, _, _ in metadata.unknown)
    if is_encrypted or min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        return None
    return metadata.num_rows
