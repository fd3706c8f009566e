"""Immutable request of a scan: sources, result columns, filter, order and limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.dataset.column_names import NameResolver, substitute_computed
from pqext.dataset.execution.top_rows import OrderKey
from pqext.dataset.expressions import Expression, bases
from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.planner import RowTarget
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.skipping import Skipping
from pqext.dataset.table.partitions import NO_PARTITIONS, Partitions
from pqext.variant.timezones import DEFAULT

T = TypeVar("T")
SchemaRule: TypeAlias = Literal["union"] | pa.Schema | None
"""Rule that unifies the schemas of all files."""


@dataclass(frozen=True, eq=False)
class ScanRequest:
    """Query that returns the columns ``result`` of all rows in ``files`` that match ``filter``.

    A result column is a name or a computed column. Raises ``ValueError`` if options exclude each other.
    """

    files: FileSet
    result: tuple[str | ComputedColumn, ...] | None
    filter: Expression | None
    partitions: Partitions = NO_PARTITIONS
    rule: SchemaRule = None
    """The columns of the result: None for the columns of the first file, which all files must have, ``"union"``
    for the columns of all files by name, or a schema to cast to."""
    order: tuple[OrderKey, ...] = ()
    """The sort keys. Without any, rows keep the order of files and of rows within them."""
    offset: int = 0
    """The number of matching rows to skip."""
    limit: int | None = None
    """The maximum number of rows to return."""
    limit_method: Literal["limit", "nearest"] = "limit"
    """The method that set the limit first, for error messages."""
    table_statistics: Skipping | None = None
    """The statistics in the log of a table, in the types of its columns. They prune files before they are opened."""
    skipping: Skipping | None = None
    """The data-skipping store that prunes files before they are opened."""
    timezone: str = DEFAULT
    """The time zone of local times in casts."""
    earlier: tuple[ComputedColumn, ...] = ()
    """Computed columns of earlier selections that the result lacks. Conditions and values may still refer to them."""
    is_count: bool = False
    """Whether only the number of rows is needed. Batches then have no columns, and only the columns of the filter are
    planned and read; files still have to agree on the columns of the result."""

    def __post_init__(self) -> None:
        for name in ("result", "filter", "order", "earlier"):
            object.__setattr__(self, name, set_timezone(getattr(self, name), self.timezone))
        for column in self.result or ():
            if isinstance(column, ComputedColumn):
                for base in bases(column.field):
                    self.partitions.check(base, is_computed=True)
        if self.rule is not None and self.files.options.shredded:
            raise ValueError(
                "shredded=True and schema= are mutually exclusive, because files may shred a VARIANT differently; "
                "omit either option"
            )
        if self.partitions.rows is not None and self.files.options.skips_corrupt:
            raise ValueError('rows cannot be numbered if corrupt pages are skipped; remove on_corrupt="skip"')

    @property
    def computed_columns(self) -> tuple[ComputedColumn, ...]:
        """Computed columns of the result, followed by those that earlier selections defined under other names."""
        of_result = {item.name: item for item in self.result or () if isinstance(item, ComputedColumn)}
        return (*of_result.values(), *(item for item in self.earlier if item.name not in of_result))

    def resolve(self, node: T, names: NameResolver) -> T:
        """Replace the names of computed result columns in a condition or a value with the values of these columns.

        ``names`` resolves other names. Raises ``ValueError`` or ``TypeError`` for a field that a computed column does
        not have.
        """
        result_names = [item for item in self.result or () if isinstance(item, str)]
        return substitute_computed(node, self.computed_columns, result_names, names)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The sources of all files."""
        return self.files.sources

    @property
    def limits(self) -> Limits:
        """The limits of each file."""
        return self.files.limits

    @property
    def is_local_file(self) -> bool:
        """Whether the request names a single local file."""
        return len(self.sources) == 1 and isinstance(self.sources[0], str) and "://" not in self.sources[0]

    @property
    def row_target(self) -> RowTarget | None:
        """Number of rows after which reading can stop; None if there is no limit or the rows are sorted."""
        return None if self.limit is None or self.order else RowTarget(self.offset + self.limit)
