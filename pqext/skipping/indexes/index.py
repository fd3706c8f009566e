"""What an index is: a fact of each object about one operand, and the conditions that it refuses.

A kind is a subclass of :class:`Index` that :func:`register_index` makes known; a third party may add its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

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
from pqext.skipping.format.names import dotted, path_of
from pqext.variant.access.targets import target_type, type_name


class Collector(Protocol):
    """What gathers the cell of one object from the values of its rows."""

    def add(self, values: pa.Array) -> None:
        """Take the operand's values of further rows."""

    def cell(self) -> pa.Array:
        """The cell, an array of one."""


@dataclass(frozen=True)
class Index(ABC):
    """An index on ``operand``: a column by its name or :func:`pqext.col`, or a value within a VARIANT column."""

    operand: Base
    name: ClassVar[str]
    """The word that stands for the kind in stores."""
    is_original: ClassVar[bool] = False
    """Does the store's specification know the kind? Others are kept beside its files."""

    def __init__(self, operand: str | Base) -> None:
        given = col(operand) if isinstance(operand, str) else operand
        if not isinstance(given, Column | VariantField):
            raise TypeError(f"an index is on a column or a value within a VARIANT, not {type(operand).__name__}")
        object.__setattr__(self, "operand", one_spelling(given))

    @property
    def columns(self) -> tuple[str, ...]:
        """What the index is on, as stores name it: a column; of a value within a VARIANT its path and type too."""
        operand = self.operand
        if isinstance(operand, VariantField):
            return (dotted(operand.column.path), operand.path, operand.type)
        return (dotted(operand.path),)

    @property
    def stored_name(self) -> str:
        """The kind, and whether the index is on a value within a VARIANT."""
        return f"variant_{self.name}" if isinstance(self.operand, VariantField) else self.name

    @property
    def params(self) -> Mapping[str, str]:
        """Settings that the store keeps."""
        return {}

    def __str__(self) -> str:
        return f"{self.name} of {self.operand}"

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> Index:
        """The index that a store keeps."""
        return cls(operand)

    def on(self, operand: Base) -> Index:
        """The index on another operand, such as the column that a dotted name stands for."""
        if operand is self.operand:
            return self
        other = copy(self)
        object.__setattr__(other, "operand", operand)
        return other

    def of(self, field: pa.Field) -> Index:
        """The index for values of a field, with what the field's marks tell. Raises ``TypeError`` for a wrong one."""
        return self

    @abstractmethod
    def cell_type(self, values: pa.DataType) -> pa.DataType:
        """The Arrow type of cells, for values of a type. Raises ``TypeError`` for values that it is not made for."""

    def proved(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        """The cell of an object, an array of one, where its footer proves it; None where its rows must be read."""
        return None

    @abstractmethod
    def collector(self, values: pa.DataType) -> Collector:
        """What gathers the cell of one object, whose values have the type ``values``."""

    @abstractmethod
    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        """For each cell, can ``leaf`` be true of a row? False is a proof, null is not known; None proves nothing.

        ``leaf`` is a condition of a normalised filter (:func:`pqext.dataset.expressions.visitors.normal`) on the
        operand; a cell that is null is not known. Raises ``TypeError`` or ``ValueError`` for a literal that does not
        suit, which proves nothing either.
        """

    def is_asked(self, leaf: Expression) -> bool:
        """Is ``leaf`` a condition on the operand, and on nothing else?"""
        return is_on(leaf, self.operand)


def is_on(leaf: Expression, operand: Base) -> bool:
    """Does ``leaf``, a condition of a normalised filter, ask about ``operand`` and nothing else?"""
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    asked: Sequence[Base] = ()
    match inner:
        case Relation():
            asked = [*bases(inner.left), *bases(inner.right)]
        case Spatial():
            asked = [Column(inner.column.path)]
        case OneOperand():
            asked = bases(inner.operand)
    return bool(asked) and all(one.equals(operand) for one in asked)


def is_plain(leaf: Expression, operand: Base) -> bool:
    """Does ``leaf`` ask about the very values of ``operand``, of which nothing is computed?"""
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    return isinstance(inner, OneOperand) and inner.operand.equals(operand)


_OWN = {
    "bloomfilter": "bloomfilter.BloomFilter", "box": "box.Box", "count": "counts.RowCount", "minmax": "minmax.MinMax",
    "nulls": "counts.NullCount", "paths": "variant_paths.VariantPaths", "prefix": "prefix.Prefix",
    "valuelist": "valuelist.ValueList",
}  # fmt: skip
"""Where the kinds of pqext are, which are imported when a store has them."""
_added: dict[str, type[Index]] = {}
Kind = TypeVar("Kind", bound=type["Index"])


def register_index(kind: Kind) -> Kind:
    """Make a kind of index known by its ``name``, so that stores that hold it are understood; gives it back.

    Raises ``ValueError`` for a name that another kind has, or that is no word of lower-case letters, digits and ``_``.

    Example:
        >>> from pqext.skipping import Index, register_index
        >>> class Suffix(Index):
        ...     name = "suffix"
        >>> register_index(Suffix).name
        'suffix'
    """
    name = kind.name
    if not name.isidentifier() or name != name.lower() or name.startswith("variant_"):
        raise ValueError(f"{name!r} cannot stand for a kind of index: take a word in lower case")
    known = _added.get(name, kind)
    if name in _OWN or (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(f"another kind of index is called {name!r}")
    _added[name] = kind
    return kind


def kind_called(name: str) -> type[Index] | None:
    """The kind of index that ``name`` stands for; None for one that nobody has made known."""
    if name in _OWN:
        module, _, kind = _OWN[name].partition(".")
        found: type[Index] = getattr(import_module(f"pqext.skipping.indexes.{module}"), kind)
        return found
    return _added.get(name)


def own_kinds() -> list[str]:
    """The names of pqext's kinds."""
    return sorted(_OWN)


def restored(name: str, columns: Sequence[str], params: Mapping[str, str]) -> Index | None:
    """The index that a store keeps by these words; None for one that nothing here understands."""
    kind = kind_called(name.removeprefix("variant_"))
    if kind is None:
        return None
    try:
        if name.startswith("variant_"):
            column, path, type = columns
            return kind.restore(col(path_of(column)).variant(path, type), params)
        (column,) = columns
        return kind.restore(col(path_of(column)), params)
    except (TypeError, ValueError):
        return None


def one_spelling(node: Any) -> Any:
    """An operand or a condition with every type of a value within a VARIANT as :func:`pqext.variant.get` names it.

    >>> from pqext import col
    >>> print(one_spelling(col("event").variant("$.mag", "float64") > 5))
    event[$.mag: DOUBLE] > 5
    """
    match node:
        case VariantField():
            name = type_name(target_type(node.type))
            return node if name == node.type else replace(node, type=name)
        case And() | Or() | Arithmetic():
            changed: Any = {"operands": tuple(map(one_spelling, node.operands))}
            return replace(node, **changed)
        case Relation():
            return replace(node, left=one_spelling(node.left), right=one_spelling(node.right))
        case Not() | Cast() | OneOperand():
            return replace(node, operand=one_spelling(node.operand))
    return node


def spelled(filter: Expression) -> Expression:
    """A filter in this spelling."""
    found: Expression = one_spelling(filter)
    return found
