"""Apply the column names and deleted rows of a table to its data files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import UnsupportedError
from pqext.core.read.reader import ParquetFile
from pqext.dataset.files.sources import source_name
from pqext.tables.renaming import Renaming


@dataclass(frozen=True)
class FileView:
    """View that applies the column names and deleted rows of a table version to its files.

    ``deleted`` contains the ascending numbers of deleted rows by file name.
    """

    table: str
    renaming: Renaming | None
    deleted: Mapping[str, NDArray[np.int64]]

    def restrict(self, names: Collection[str]) -> FileView:
        """Return a copy that is restricted to the files ``names``."""
        return replace(self, deleted={name: self.deleted[name] for name in names if name in self.deleted})

    def apply(self, source: Any, file: ParquetFile) -> None:
        """Rename the columns of ``file`` and exclude its deleted rows. Raises the errors of :func:`exclude_rows`."""
        if self.renaming is not None:
            file.rename_columns(self.renaming.schema(file.schema))
        positions = self.deleted.get(source_name(source))
        if positions is not None:
            exclude_rows(file, positions)


def exclude_rows(file: ParquetFile, positions: NDArray[np.int64]) -> None:
    """Exclude rows from scans of ``file``. ``positions`` are row numbers in ascending order.

    Raises ``UnsupportedError`` with ``on_corrupt="skip"``, because row numbers are unknown after a skipped page, and
    ``CorruptFileError`` if a number exceeds the number of rows.
    """
    if not len(positions):
        return
    if file.options.skips_corrupt:
        raise UnsupportedError(
            'on_corrupt="skip" is not supported for this file, because its deleted rows are identified by row number; '
            "omit on_corrupt",
            feature="deleted rows in corrupt files",
        )
    file.delete_rows(positions)
