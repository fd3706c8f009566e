"""The schema of a file that has lost its own: that of a sibling, an Arrow schema, or DDL."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import Limits
from pqext.core.base.local_paths import scheme_of
from pqext.core.format.metadata import KeyValue, SchemaElement
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.recovery.claims import Claims
from pqext.recovery.ddl import columns
from pqext.recovery.writing import true_pairs

_MOST_TEXT = 1 << 20
_SUFFIXES = (".parquet", ".parq", ".ddl", ".sql", ".txt")
Given = tuple[Claims, list[int | None], bool]
"""A schema, the codec of each leaf where it is known, and are its physical types our own guess?"""


def given(schema: Any, limits: Limits) -> Given:
    """The schema that ``schema`` tells, and the codec of each of its leaves where it tells that too.

    ``schema`` is a Parquet file, an Arrow schema, or DDL, which may be in a file. Raises ``ValueError`` for text that
    is neither a file nor DDL.
    """
    if isinstance(schema, pa.Schema):
        return _of_arrow(schema, "the Arrow schema given")
    if isinstance(schema, str) and not _names_a_file(schema):
        try:
            named = columns(schema)
        except (ValueError, TypeError) as error:
            raise ValueError(f"schema is neither a file that is there nor DDL: {error}") from None
        return _of_arrow(named, "the DDL given")
    if (text := _text_of(schema)) is not None:
        try:
            return _of_arrow(columns(text), f"the DDL in {os.fspath(schema)}")
        except (ValueError, TypeError) as error:
            raise ValueError(f"schema is a text file, and its text is no DDL: {error}") from None
    if isinstance(schema, Mapping | list | tuple | set | int | float):
        raise TypeError(f"schema is a Parquet file, an Arrow schema or the text of DDL, not a {type(schema).__name__}")
    try:
        file = ParquetFile(schema, limits=limits)
    except CorruptFileError as error:
        message = f"the file given as schema cannot be read: {error.message.partition(': ')[0]}"
        raise CorruptFileError(message, path=error.path) from None
    with file:
        metadata = file.metadata
        codecs: list[int | None] = [None] * len(file.schema.leaves)
        for group in file.row_groups:
            codecs = [int(chunk.codec) for chunk in group.chunks()]
            break
        elements: Sequence[SchemaElement] = list(metadata.schema)
        pairs: list[KeyValue] | None = true_pairs(metadata.key_value_metadata)
        return Claims(elements, f"the file {file.path or 'given'}", [], pairs, None), codecs, False


def _names_a_file(text: str) -> bool:
    return os.path.exists(text) or scheme_of(text) is not None or text.endswith(_SUFFIXES)


def _text_of(schema: Any) -> str | None:
    """The text of a short local file that is none of Parquet."""
    if not isinstance(schema, str | os.PathLike) or scheme_of(os.fspath(schema)) is not None:
        return None
    try:
        with open(schema, "rb") as file:
            data = file.read(_MOST_TEXT + 1)
        if len(data) > _MOST_TEXT or data[:3] == b"PAR" or b"\0" in data:
            return None
        return data.decode()
    except (OSError, UnicodeDecodeError):
        return None


def _of_arrow(schema: pa.Schema, told: str) -> Given:
    if not schema.names:
        raise ValueError("schema has no columns")
    made = io.BytesIO()
    try:
        write_table(schema.empty_table(), made)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"schema has a column that Parquet cannot hold: {error}") from None
    with ParquetFile(made.getvalue()) as file:
        leaves = len(file.schema.leaves)
        claims = Claims(list(file.metadata.schema), told, [], file.metadata.key_value_metadata)
    return claims, [None] * leaves, True
