"""Errors for operations that tables and frames support and scans do not, with the equivalent to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn


class NotATable:
    """Rejects the use of a scan as a table, a frame or an array."""

    def __bool__(self) -> bool:
        return True

    if not TYPE_CHECKING:  # so that type checkers reject these operations

        def __array__(self, *_: Any, **__: Any) -> NoReturn:
            # pandas and numpy ask for this; without it they would take the batches for rows.
            raise TypeError(
                "a scan is not an array: scan.to_pandas() returns a pandas DataFrame, scan.to_table() a pyarrow table"
            )

        def __len__(self) -> NoReturn:
            raise TypeError(
                "a scan has no length before it runs: scan.count() gives the number of rows that match, and "
                "scan.to_pandas() or scan.to_table() the rows"
            )

        def __getitem__(self, key: Any) -> NoReturn:
            if isinstance(key, str):
                advice = f"scan.select({key!r}) chooses a column, and scan.to_table()[{key!r}] reads it"
            elif isinstance(key, (list, tuple)):
                advice = "scan.select(...) chooses columns"
            elif isinstance(key, (int, slice)):
                advice = "scan.limit(rows, offset) chooses rows, and scan.head(rows) reads the first ones"
            else:
                advice = "scan.filter(condition) chooses rows"
            raise TypeError(f"a scan has no items: {advice}")
