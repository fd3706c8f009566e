"""Prune row groups and pages with a predicate on a variant path (Variant Shredding, "Data Skipping").

A row group or page is pruned using two columns: the leaf's ``typed_value`` and its sibling ``value``. The layout
guarantees that these suffice. Consider a row and a path ``$.a.b``:

- A value that is an object has a non-null ``typed_value`` group if there is one, and its shredded fields
  are never in the sibling ``value`` of that group. So ``a.b`` is in the columns of ``b``, whatever the
  residuals of the root and of ``a`` contain.
- If the group of the root or of ``a`` is null, the value is not an object (or is missing) and has no
  ``b``: the result is null. Both columns of ``b`` are null in this row, and count as nulls.
- So in every row the result is the cast ``typed_value`` if it is not null, else the cast ``value``, else
  null. If ``value`` is all null, or contains only variant nulls, which cast to null, each result that is
  not null comes from ``typed_value`` and lies within its bounds.

``IS NULL`` also matches values that cannot be cast, so it is pruned only by a leaf without nulls whose values can all
be cast. Unknown results are True.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.base.lru import LRU
from pqext.core.base.text import escape_text
from pqext.core.format.predicate import Bounds, IsNull, Predicate
from pqext.core.format.predicate import may_match as core_may_match
from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.row_ranges import RowRanges, merge_ranges, union
from pqext.variant.access.path import Path, as_path, format_path
from pqext.variant.access.targets import target_type
from pqext.variant.monotone import MonotoneCast, always_casts, monotone_cast
from pqext.variant.shredding.schema import leaf_type
from pqext.variant.types import is_variant_type

VARIANT_NULL = b"\0"
_KEPT = 64
"""Number of pairs of a column and a predicate whose evidence is cached."""


@dataclass(frozen=True, slots=True, init=False)
class VariantPredicate:
    """Predicate on the value at ``path``, cast to ``type`` like ``pqext.variant.get`` does.

    The predicate's literals are in the comparison form of ``type`` (see ``pqext.core.format.predicate``).
    """

    path: Path
    type: pa.DataType
    predicate: Predicate
    timezone: str | None
    """Zone of local times; None for UTC."""

    def __init__(
        self,
        path: str | Sequence[str | int],
        type: str | pa.DataType,
        predicate: Predicate,
        timezone: str | None = None,
    ) -> None:
        object.__setattr__(self, "path", as_path(path))
        object.__setattr__(self, "type", target_type(type))
        object.__setattr__(self, "predicate", predicate)
        object.__setattr__(self, "timezone", timezone)

    def __str__(self) -> str:
        return escape_text(f"{format_path(self.path)} as {self.type}: {self.predicate}")


def find_group(node: SchemaNode, path: Path) -> SchemaNode | None:
    """Return the group with the ``value`` and ``typed_value`` of ``path``; None if it does not exist."""
    for step in path:
        typed = node.child("typed_value")
        if typed is None or typed.is_leaf or not isinstance(step, str) or typed.logical_name:
            return None
        member = typed.child(step)
        if member is None or member.is_leaf:
            return None
        node = member
    return node


def may_match(node: SchemaNode, row_group: RowGroupFacts, predicate: VariantPredicate) -> bool:
    """Return whether a row of ``row_group`` may match ``predicate`` on the VARIANT ``node``.

    ``False`` is definitive.
    """
    evidence = _find_evidence(node, predicate)
    if evidence is None:
        return True
    try:
        residual = row_group.chunk(evidence.value).bounds() if evidence.value is not None else _NOTHING
        bounds = row_group.chunk(evidence.typed).bounds() if evidence.typed is not None else _NOTHING
    except ParquetError:
        return True  # unreadable statistics cannot prune; reading the column reports the error
    if isinstance(predicate.predicate, IsNull):
        return evidence.may_be_null(bounds)
    if not evidence.is_clean(residual):
        return True
    return evidence.typed_test()(bounds) and _bloom_may_match(evidence, row_group)


def matching_rows(node: SchemaNode, row_group: RowGroupFacts, predicate: VariantPredicate) -> RowRanges | None:
    """Return the rows of the row group that may match ``predicate``, from page indexes; None for all rows.

    A row is pruned if both its page of ``typed_value`` and its page of the sibling ``value`` exclude a match. Pages of
    the columns can have different boundaries. A chunk without a page index is treated as one page with the statistics
    of the chunk.
    """
    evidence = _find_evidence(node, predicate)
    if evidence is None or not row_group.trust_statistics:
        return None
    try:
        asks_for_null = isinstance(predicate.predicate, IsNull)
        value = None if asks_for_null else evidence.value
        if value is not None and evidence.is_clean(row_group.chunk(value).bounds()):
            value = None  # facts about the chunk apply to each page
        row_group.load_page_indexes([leaf for leaf in (value, evidence.typed) if leaf is not None])
        typed = _bounded_rows(row_group, evidence.typed)
        if asks_for_null:
            return _matching_ranges(typed, evidence.may_be_null)
        residual = _matching_ranges(_bounded_rows(row_group, value), lambda bounds: not evidence.is_clean(bounds))
        if not _bloom_may_match(evidence, row_group):
            return residual
        return union(residual, _matching_ranges(typed, evidence.typed_test()))
    except ParquetError:
        return None


@dataclass(frozen=True)
class _Evidence:
    """Columns ``value`` and ``typed_value`` of a path. Their bounds determine whether a predicate can match."""

    value: SchemaNode | None
    typed: SchemaNode | None
    predicate: VariantPredicate

    @cached_property
    def leaf(self) -> pa.DataType | None:
        """Leaf type of the typed column; None if it is missing or invalid for a variant."""
        if self.typed is None:
            return None
        try:
            return leaf_type(self.typed.leaf_type.arrow_type())
        except (ParquetError, ValueError):
            return None

    @cached_property
    def cast(self) -> MonotoneCast | None:
        """Cast of the typed column's values, if it preserves their order."""
        return monotone_cast(self.leaf, self.predicate.type, self.predicate.timezone)

    def is_clean(self, residual: Bounds) -> bool:
        """Return whether the bounds of the residual prove that all its values cast to null.

        Variant nulls cast to null unless the target is variant. A maximum of ``00`` proves that all values are variant
        nulls, because only the empty string sorts below ``00``, and the empty string is not a value.
        """
        only_nulls = residual.maximum == VARIANT_NULL and not is_variant_type(self.predicate.type)
        return residual.all_null or only_nulls

    def may_be_null(self, bounds: Bounds) -> bool:
        """Return whether the cast value can be null in a row if the typed column has these bounds."""
        return self.typed is None or bounds.null_count != 0 or not always_casts(self.leaf, self.predicate.type)

    def typed_test(self) -> Callable[[Bounds], bool]:
        """Return a function that tests whether a typed value within given bounds may match the predicate.

        Types are checked only once, when the function is created.
        """
        if self.typed is None:
            return lambda bounds: False
        cast, requested = self.cast, self.predicate.predicate
        if cast is None:
            return lambda bounds: not bounds.all_null
        return lambda bounds: not bounds.all_null and core_may_match(requested, cast.bounds(bounds))


def _find_evidence(node: SchemaNode, predicate: VariantPredicate) -> _Evidence | None:
    """Return the columns of the predicate's path; None if the path has no columns. Row groups share the result."""
    key = id(node), id(predicate)
    known = _recent.get(key)
    if known is None or known[0] is not node or known[1] is not predicate:
        known = node, predicate, _read_evidence(node, predicate)
        _recent.put(key, known)
    return known[2]


def _read_evidence(node: SchemaNode, predicate: VariantPredicate) -> _Evidence | None:
    if node.max_repetition_level:
        return None  # a variant in a list: columns do not have one value per row
    group = find_group(node, predicate.path)
    if group is None:
        return None
    value, typed = group.child("value"), group.child("typed_value")
    return None if typed is not None and not typed.is_leaf else _Evidence(value, typed, predicate)


def _bloom_may_match(evidence: _Evidence, row_group: RowGroupFacts) -> bool:
    """Return whether the Bloom filter of the typed column may contain a match; True if the filter cannot be queried.

    Zero has two encodings, and other values have one.
    """
    if evidence.typed is None:
        return False
    cast = evidence.cast
    asked = evidence.predicate.predicate
    return cast is None or not cast.may_query_bloom_filter(asked) or row_group.chunk(evidence.typed).may_contain(asked)


_recent: LRU[tuple[int, int], tuple[SchemaNode, VariantPredicate, _Evidence | None]] = LRU(_KEPT)

_BoundedRows = list[tuple[range, Bounds]]


def _bounded_rows(row_group: RowGroupFacts, leaf: SchemaNode | None) -> _BoundedRows:
    """Return the rows and the bounds of each page of a column.

    Without a page index, the chunk is treated as one page.
    """
    if leaf is None:
        return [(range(row_group.num_rows), _NOTHING)]
    chunk = row_group.chunk(leaf)
    pages = chunk.pages
    if pages is None:
        return [(range(row_group.num_rows), chunk.bounds())]
    whole = chunk.bounds()
    return [(pages.rows(page), _narrow_bounds(bounds, whole)) for page, bounds in enumerate(pages.bounds)]


def _narrow_bounds(page: Bounds, chunk: Bounds) -> Bounds:
    """Return the bounds of a page. Values that the page index does not state come from the chunk."""
    if page.all_null:
        return page
    if page.null_count is None and chunk.all_null:
        return replace(page, null_count=page.num_values)
    if page.null_count is None and chunk.null_count == 0:
        page = replace(page, null_count=0)
    if page.minimum is not None and page.maximum is not None and (page.has_nan is False or chunk.has_nan is not False):
        return page
    return replace(
        page,
        minimum=chunk.minimum if page.minimum is None else page.minimum,
        maximum=chunk.maximum if page.maximum is None else page.maximum,
        has_nan=False if chunk.has_nan is False else page.has_nan,
    )


def _matching_ranges(pages: _BoundedRows, may_match: Callable[[Bounds], bool]) -> RowRanges:
    """Return the rows of the pages whose bounds may match."""
    return merge_ranges(rows for rows, bounds in pages if may_match(bounds))


_NOTHING = Bounds(null_count=0, num_values=0)
"""Bounds of a column that does not exist."""
