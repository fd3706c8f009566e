"""What is asked of many files, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.dataset.execution.top_rows import OrderKey
from pqext.dataset.expressions import Expression, bases
from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.planner import RowsWanted
from pqext.dataset.planning.projection import Computed
from pqext.dataset.skipping import Skipping
from pqext.dataset.table.partitions import NO_PARTITIONS, Partitions
from pqext.variant.timezones import DEFAULT

SchemaRule: TypeAlias = Literal["union"] | pa.Schema | None
"""How the columns of files become those of one table."""


@dataclass(frozen=True, eq=False)
class ScanRequest:
    """The rows of ``files`` for which ``filter`` is true, and of them ``result``: names, and values within VARIANTs.

    Raises ``ValueError`` for what excludes each other.
    """

    files: FileSet
    result: tuple[str | Computed, ...] | None
    filter: Expression | None
    partitions: Partitions = NO_PARTITIONS
    rule: SchemaRule = None
    """The columns of the result: those of the first file, with which all must agree, ``"union"`` for those of all files
    by name, or a schema to which they conform."""
    order: tuple[OrderKey, ...] = ()
    """What the rows are sorted by; without keys they are in the order of files and rows."""
    offset: int = 0
    """Rows that match and are skipped before the first that is returned."""
    limit: int | None = None
    """Rows that are returned at most."""
    skipping: Skipping | None = None
    """The data-skipping store that refuses files before they are opened."""
    timezone: str = DEFAULT
    """The zone of local times in casts of the result, the filter and the order."""
    is_count: bool = False
    """Whether the rows are only counted: batches have no columns, and of files that must agree on those of the result
    only what the filter needs is planned and read."""

    def __post_init__(self) -> None:
        for name in ("result", "filter", "order"):
            object.__setattr__(self, name, in_timezone(getattr(self, name), self.timezone))
        for column in self.result or ():
            if isinstance(column, Computed):
                for base in bases(column.field):
                    self.partitions.check(base, is_computed=True)
        if self.rule is not None and self.files.options.shredded:
            raise ValueError("shredded=True gives VARIANT columns as each file stores them, which schema= cannot unify")
        if self.partitions.rows is not None and self.files.options.on_corrupt == "skip":
            raise ValueError('rows cannot be numbered where damage is passed over: leave out on_corrupt="skip"')

    @property
    def sources(self) -> tuple[Any, ...]:
        """The files."""
        return self.files.sources

    @property
    def limits(self) -> Limits:
        """What reading may take."""
        return self.files.limits

    @property
    def is_local_file(self) -> bool:
        """Is there one file, on this machine?"""
        return len(self.sources) == 1 and isinstance(self.sources[0], str) and "://" not in self.sources[0]

    @property
    def wanted(self) -> RowsWanted | None:
        """How many rows suffice; None for all, and with an order, since the first rows may be in any row group."""
        return None if self.limit is None or self.order else RowsWanted(self.offset + self.limit)
