"""Base class of data-skipping indexes.

For each object, an index stores an entry that summarises the values of one operand. Scans use entries to skip objects.

An index type is a subclass of :class:`Index` registered with :func:`register_index`. Third parties may add types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from pqext.core.base.lazy_imports import load_object
from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import (
    And,
    Arithmetic,
    Base,
    Cast,
    Column,
    Expression,
    Not,
    OneOperand,
    Or,
    Relation,
    Spatial,
    VariantField,
    bases,
    col,
)
from pqext.skipping.format.names import format_path, parse_path
from pqext.variant.access.targets import target_type, type_name


class Collector(Protocol):
    """Interface to compute the index entry of one object from the values in its rows."""

    def add(self, values: pa.Array) -> None:
        """Add the operand's values in the next rows of the object."""

    def cell(self) -> pa.Array:
        """Return the entry, an array of length 1."""


@dataclass(frozen=True)
class Index(ABC):
    """Index on ``operand``: a column, by its name or :func:`pqext.col`, or a value within a VARIANT column."""

    operand: Base
    name: ClassVar[str]
    """Name of the type in stores."""
    is_original: ClassVar[bool] = False
    """Whether the store's specification defines the type; other types are stored in extra parts."""

    def __init__(self, operand: str | Base) -> None:
        base = col(operand) if isinstance(operand, str) else operand
        if not isinstance(base, Column | VariantField):
            raise TypeError(f"an index needs a column or a value within a VARIANT, not {type(operand).__name__}")
        object.__setattr__(self, "operand", normalize_types(base))

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of the indexed column in stores. For a value within a VARIANT, its path and type follow."""
        operand = self.operand
        if isinstance(operand, VariantField):
            return (format_path(operand.column.path), operand.path, operand.type)
        return (format_path(operand.path),)

    @property
    def stored_name(self) -> str:
        """The type name in stores, with the prefix ``variant_`` for an index on a value within a VARIANT."""
        return f"variant_{self.name}" if isinstance(self.operand, VariantField) else self.name

    @property
    def params(self) -> Mapping[str, str]:
        """Settings of the index, as stored in the metadata of the store."""
        return {}

    def __str__(self) -> str:
        return f"{self.name} of {self.operand}"

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> Index:
        """Create the index from its stored settings."""
        return cls(operand)

    def for_operand(self, operand: Base) -> Index:
        """Return a copy of the index for another operand, such as the column to which a dotted name was resolved."""
        if operand is self.operand:
            return self
        other = copy(self)
        object.__setattr__(other, "operand", operand)
        return other

    def for_field(self, field: pa.Field) -> Index:
        """Return the index configured for ``field``. Raises ``TypeError`` if the field is not supported."""
        return self

    @abstractmethod
    def cell_type(self, values: pa.DataType) -> pa.DataType:
        """Return the Arrow type of index entries for values of type ``values``.

        Raises ``TypeError`` for unsupported types.
        """

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        """Compute an object's index entry, an array of length 1, from the footer; None if rows must be read."""
        return None

    @abstractmethod
    def collector(self, values: pa.DataType) -> Collector:
        """Return a collector that computes the index entry of one object from values of type ``values``."""

    @abstractmethod
    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        """Return, for each entry, False if no row of the object matches ``leaf``; otherwise True, or null if unknown.

        ``leaf`` is a condition on the operand in a normalised filter
        (:func:`pqext.dataset.expressions.visitors.push_down_not`). The result is null for null entries, and None if the
        index
        proves nothing. Raises ``TypeError`` or ``ValueError`` for an unsuitable literal, which proves nothing either.
        """

    def applies_to(self, leaf: Expression) -> bool:
        """Return whether ``leaf`` is a condition on the operand and on no other column."""
        return is_condition_on(leaf, self.operand)


def is_condition_on(leaf: Expression, operand: Base) -> bool:
    """Return whether ``leaf``, a condition of a normalised filter, refers to ``operand`` and to no other column."""
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    columns: Sequence[Base] = ()
    match inner:
        case Relation():
            columns = [*bases(inner.left), *bases(inner.right)]
        case OneOperand() | Spatial():
            columns = bases(inner.operand)
    return bool(columns) and all(column.equals(operand) for column in columns)


def is_direct_condition(leaf: Expression, operand: Base) -> bool:
    """Return whether ``leaf`` tests the values of ``operand`` itself, and not values computed from it."""
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    return isinstance(inner, OneOperand) and inner.operand.equals(operand)


_BUILT_IN = {
    "bloomfilter": "values:BloomFilter", "box": "box:Box", "count": "statistics:RowCount",
    "minmax": "statistics:MinMax", "nulls": "statistics:NullCount", "paths": "variant_paths:VariantPaths",
    "prefix": "values:Prefix", "valuelist": "values:ValueList",
}  # fmt: skip
"""Classes of the built-in index types, imported on first use."""
_registered: dict[str, type[Index]] = {}
IndexType = TypeVar("IndexType", bound=type["Index"])


def register_index(index_type: IndexType) -> IndexType:
    """Register an index type by its ``name`` and return the type. Queries then use indexes of the type.

    Raises ``ValueError`` if another type has the name, or if the name starts with ``variant_`` or is not an identifier
    in lower case.

    Example:
        >>> from pqext.skipping import Index, register_index
        >>> class Suffix(Index):
        ...     name = "suffix"
        >>> register_index(Suffix).name
        'suffix'
    """
    name = index_type.name
    if not name.isidentifier() or name != name.lower() or name.startswith("variant_"):
        raise ValueError(f"invalid name {name!r} for an index type: use a lower-case word without the prefix variant_")
    known = _registered.get(name, index_type)
    if name in _BUILT_IN or (known.__module__, known.__qualname__) != (index_type.__module__, index_type.__qualname__):
        raise ValueError(f"another index type has the name {name!r}; choose another name")
    _registered[name] = index_type
    return index_type


def index_type_named(name: str) -> type[Index] | None:
    """Return the index type named ``name``; None if it is not registered."""
    if name in _BUILT_IN:
        built_in: type[Index] = load_object(f"pqext.skipping.indexes.{_BUILT_IN[name]}")
        return built_in
    return _registered.get(name)


def built_in_types() -> list[str]:
    """Return the names of all built-in index types."""
    return sorted(_BUILT_IN)


def restore_index(name: str, columns: Sequence[str], params: Mapping[str, str]) -> Index | None:
    """Create an index from its stored metadata. Returns None if the type is unknown or the settings are invalid."""
    index_type = index_type_named(name.removeprefix("variant_"))
    if index_type is None:
        return None
    try:
        if name.startswith("variant_"):
            column, path, type = columns
            return index_type.restore(col(parse_path(column)).variant(path, type), params)
        (column,) = columns
        return index_type.restore(col(parse_path(column)), params)
    except (TypeError, ValueError):
        return None


def normalize_types(node: Any) -> Any:
    """Replace the types of values within a VARIANT by the type names of :func:`pqext.variant.get`.

    >>> from pqext import col
    >>> print(normalize_types(col("event").variant("$.mag", "float64") > 5))
    event[$.mag: DOUBLE] > 5
    """
    match node:
        case VariantField():
            name = type_name(target_type(node.type))
            return node if name == node.type else replace(node, type=name)
        case And() | Or() | Arithmetic():
            changed: Any = {"operands": tuple(map(normalize_types, node.operands))}
            return replace(node, **changed)
        case Relation():
            return replace(node, left=normalize_types(node.left), right=normalize_types(node.right))
        case Not() | Cast() | OneOperand():
            return replace(node, operand=normalize_types(node.operand))
    return node
