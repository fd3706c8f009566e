"""Frames of other libraries from Arrow tables, with errors that name the column that a library cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError

PANDAS_FAULTS = (pa.ArrowException,)
"""Errors of ``pyarrow.Table.to_pandas`` for types that pandas lacks and for text that is not UTF-8."""

Frame = TypeVar("Frame")


def convert_table(
    table: pa.Table, library: str, convert: Callable[[pa.Table], Frame], *faults: type[BaseException]
) -> Frame:
    """Return the frame that ``convert`` makes of the table.

    Raises ``UnsupportedError`` that names the column if ``convert`` raises one of ``faults``.
    """
    try:
        return convert(table)
    except faults as error:
        if isinstance(error, (ValueError, MemoryError)):
            raise
        for place, field in enumerate(table.schema):
            try:
                convert(table.select([place]))
            except faults as error:
                raise UnsupportedError(
                    f"column {field.name!r} of type {field.type} is not supported in {library}: {error}; select other "
                    "columns or use to_table()", feature=f"{field.type} in {library}",
                ) from error
        raise
