"""Push columns and conditions of other engines down to a scan; the engines evaluate the conditions again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Protocol, Self

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.dataset.expressions import Expression


class ScanSource(Protocol):
    """Interface of a scan that the engines use."""

    @property
    def schema(self) -> pa.Schema: ...

    def select(self, *columns: Any) -> Self: ...

    def filter(self, *conditions: Any) -> Self: ...

    def limit(self, rows: int | None, offset: int = 0) -> Self: ...

    def to_batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]: ...


def batches_of(rows: ScanSource, condition: Expression | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of ``rows``. They are filtered by ``condition`` if the condition can be pushed down.

    The condition is not pushed down if the scan has a limit, or if the files' columns do not support it.
    """
    if condition is not None:
        try:
            batches = rows.filter(condition).to_batches(batch_rows)
            first = next(batches, None)
        except ParquetError:
            raise
        except (TypeError, ValueError):
            pass
        else:
            yield from () if first is None else chain([first], batches)
            return
    yield from rows.to_batches(batch_rows)
