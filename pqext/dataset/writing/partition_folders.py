"""Partition folders, named as in Spark and Hive: ``year=2020/city=S%3A1/``.

Null and empty text become ``__HIVE_DEFAULT_PARTITION__``, so both are read as null. Values with this text are rejected:
pyarrow and Spark write it unescaped and read it as null, and pyarrow and Polars read its escaped form as null too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import InvalidValueError, UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.schema.types.arrow_compute import take_positions
from pqext.dataset.files.folders import is_hidden
from pqext.dataset.table.partitions import NULL

_ESCAPED = frozenset('"#%\'*/:=?\\\x7f{[]^') | frozenset(map(chr, range(32)))
"""Characters that Hive and Spark escape in folder names, and NUL, which names cannot contain."""
_ADVICE = "cast it to text, a date or a whole number first"


def escape(text: str) -> str:
    """Escape ``text`` for use in the name of a partition folder."""
    return "".join(f"%{ord(item):02X}" if item in _ESCAPED else item for item in text)


def null_folder(columns: Sequence[str]) -> str:
    """Return the path, ending in ``/``, of the folder in which all ``columns`` are null; empty without columns."""
    return "".join(f"{escape(name)}={NULL}/" for name in columns)


def check_folder_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise an error unless the values of ``columns`` can name folders.

    Raises ``ValueError`` if columns do not exist, are named twice, would name hidden folders or are the only columns,
    and ``TypeError`` for a type without a text form that all readers interpret in the same way.
    """
    if len(set(columns)) < len(columns):
        raise ValueError(f"partition_by names a column twice: {', '.join(columns)}")
    for name in columns:
        if name not in schema.names:
            meant = did_you_mean(name, schema.names) or f"; the columns are {', '.join(schema.names)}"
            raise ValueError(f"partition_by: no column {name!r}{meant}")
        if is_hidden(f"{escape(name)}="):
            raise ValueError(f"partition_by: readers skip folders named after {name!r}; rename the column first")
        if schema.names.count(name) > 1:
            raise ValueError(f"partition_by: the data have several columns {name!r}: rename all but one")
        type = schema.field(name).type
        if not _names_folders(type):
            raise TypeError(f"partition_by: column {name!r} of type {type} cannot name folders: {_ADVICE}")
    if columns and len(columns) == len(schema.names):
        raise ValueError("partition_by names all columns; files need at least one other column")


def _names_folders(type: pa.DataType) -> bool:
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type)
    return bool(is_text or pa.types.is_integer(type) or pa.types.is_boolean(type) or pa.types.is_date32(type))


def split(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the path of each folder, ending in ``/``, with its rows in order, without ``columns``."""
    code = np.zeros(batch.num_rows, np.int64)
    for name in columns:
        result = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        # Each round renumbers the folders so far, so codes remain below the square of the number of rows.
        code = np.unique(code, return_inverse=True)[1] * len(result.dictionary) + result.indices.to_numpy()
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    rest = batch.select([index for index, name in enumerate(batch.schema.names) if name not in columns])
    sorted_rows = rest if len(starts) == 1 else _take_rows(rest, order)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        row = int(order[start])
        path = "".join(f"{escape(name)}={_text(name, batch.column(name)[row])}/" for name in columns)
        yield path, sorted_rows.slice(start, stop - start)


def _take_rows(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Return ``rows`` of a batch; also supports column types for which Arrow's take is not implemented."""
    return pa.RecordBatch.from_arrays([take_positions(column, rows) for column in batch.columns], schema=batch.schema)


def _text(name: str, scalar: pa.Scalar) -> str:
    try:
        value = scalar.as_py()
    except UnicodeDecodeError:
        raise InvalidValueError("a partition value is not valid UTF-8", column=name) from None
    except OverflowError:
        raise InvalidValueError("a partition value is a date outside the years 1 to 9999", column=name) from None
    if value is None or value == "":
        return NULL
    if value == NULL:
        raise UnsupportedError(
            f"the value {NULL} is the folder name of null, so readers would return null: replace it with another value",
            feature="the name of null as a partition value", column=name,
        )
    return escape(str(value).lower() if isinstance(value, bool) else str(value))
