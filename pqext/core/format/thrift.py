"""Structures of Thrift's compact protocol, declared as tables of fields.

A structure is a class whose body declares its fields; a field without a default is required::

    class KeyValue(Struct):
        key: str = field(1, "string")
        value: str | None = field(2, "string", default=None)

:func:`encode` and :func:`decode` are kernels driven by these tables; tests hold both against the ``thrift`` package.
What a structure does not declare is kept in ``unknown`` and written back as it came.
Spec: "Metadata" (all structures are serialised with the compact protocol).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform, overload

from pqext.core.kernels.thrift.reader import StructIndex, decode
from pqext.core.kernels.thrift.struct_plan import Plan, only_member
from pqext.core.kernels.thrift.writer import EXTENSION_IDS, encode

__all__ = ["EXTENSION_IDS", "Field", "LazyStructs", "Struct", "Union", "UnknownField", "decode", "encode", "field"]

Scalar = Literal["bool", "i8", "i16", "i32", "i64", "double", "binary", "string"]
UnknownField = tuple[int, int, bytes]
"""Field id, wire type of the compact protocol, and the value's bytes as they stand in the file."""

T = TypeVar("T", bound="Struct")


class Field(NamedTuple):
    """One declared field: ``type`` is a scalar's name, an enum or a structure; of the elements if ``is_list``."""

    id: int
    name: str
    type: Any
    is_list: bool
    required: bool
    lazy: bool


class _Declaration(NamedTuple):
    id: int
    type: Any
    required: bool
    lazy: bool


_REQUIRED: Any = object()


def field(id: int, type: Scalar | type | list[Any], *, default: Any = _REQUIRED, lazy: bool = False) -> Any:
    """Declare a field: ``type`` is a scalar's name, an ``IntEnum``, a ``Struct``, or a list of one of them.

    Without ``default=None`` the field is required. A ``lazy`` list of structures is indexed when it is
    read and decoded an element at a time.
    """
    if not 1 <= id <= 32766:
        raise TypeError(f"field ids run from 1 to 32766, and {id} is none")
    return _Declaration(id, type, default is _REQUIRED, lazy)


def _initialiser(name: str, fields: list[Field], *, is_union: bool) -> Callable[..., None]:
    """A keyword constructor for one class, written out so that it costs no loop: a page header is made a page."""
    names = [one.name for one in fields]
    lines = [f"def __init__(self, *, {''.join(f'{one}=None, ' for one in names)}unknown=()):"]
    lines += [
        f"    if {one.name} is None: raise TypeError('{name}.{one.name} is required')" for one in fields if one.required
    ]
    if is_union and len(names) > 1:
        lines.append(f"    if {' + '.join(f'({one} is not None)' for one in names)} > 1:")
        lines.append(f"        raise TypeError('{name} takes one member')")
    lines += [f"    self.{one} = {one}" for one in [*names, "unknown"]]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return cast("Callable[..., None]", scope["__init__"])


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructMeta(type):
    """Turns the declarations of a class body into slots and into the tables of both directions."""

    fields: tuple[Field, ...]
    plan: Plan

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> StructMeta:
        fields = []
        for attribute, declared in list(namespace.items()):
            if isinstance(declared, _Declaration):
                del namespace[attribute]
                is_list = isinstance(declared.type, list)
                element = declared.type[0] if is_list else declared.type
                fields.append(Field(declared.id, attribute, element, is_list, declared.required, declared.lazy))
        fields.sort()
        namespace.setdefault("__slots__", tuple(one.name for one in fields))
        is_union = any(getattr(base, "is_union", False) for base in bases)
        if fields or not any(getattr(base, "fields", ()) for base in bases):
            namespace["__init__"] = _initialiser(name, fields, is_union=is_union)
        cls = super().__new__(mcls, name, bases, namespace)
        cls.fields = tuple(fields)
        cls.plan = Plan(cls, LazyStructs)
        return cls


class LazyStructs(Sequence[T]):
    """A list of structures of which only the places in the buffer are known until an element is asked for.

    A decoded element is kept, so changes made to it are written; the others are written as they were read.
    """

    __slots__ = ("_decoded", "_index")

    def __init__(self, index: StructIndex) -> None:
        self._index = index
        self._decoded: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> list[T]: ...
    def __getitem__(self, position: int | slice) -> T | list[T]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        if position < 0:
            position += len(self)
        found = self._decoded.get(position)
        if found is None:
            found = self._decoded[position] = self._index.decode(position)
        return found

    def peek(self, position: int) -> T:
        """An element that is not kept, for those who look at many; one that was asked for before is that one."""
        found = self._decoded.get(position)
        return self._index.decode(position) if found is None else found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (LazyStructs, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} x {self._index.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @property
    def untouched(self) -> StructIndex | None:
        """The places of the elements, so long as none was decoded: a decoded one may have been changed."""
        return None if self._decoded else self._index

    def place(self, position: int) -> tuple[StructIndex, int] | None:
        """Where an element lies, so long as none was decoded."""
        return None if self._decoded else (self._index, position)

    def where(self, test: Callable[[bytes], bool]) -> Iterator[int]:
        """The positions of the elements of which the serialised bytes pass, and of all that were decoded."""
        if not test(self._index.raw(0, len(self))):
            yield from sorted(self._decoded)
            return
        for position in range(len(self)):
            if position in self._decoded or test(self._index.raw(position, position + 1)):
                yield position

    def encoded(self) -> Iterator[bytes]:
        """The serialised elements in order, those not decoded in runs."""
        done = 0
        for position in sorted(self._decoded):
            yield self._index.raw(done, position)
            yield encode(self._decoded[position])
            done = position + 1
        yield self._index.raw(done, len(self))


class Struct(metaclass=StructMeta):
    """Base of all structures: keyword constructor, equality by fields, and ``None`` for what is not set."""

    __slots__ = ("unknown",)
    fields: ClassVar[tuple[Field, ...]]
    plan: ClassVar[Plan]
    is_union: ClassVar[bool] = False
    if TYPE_CHECKING:
        unknown: tuple[UnknownField, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.unknown == other.unknown and all(
            getattr(self, declared.name) == getattr(other, declared.name) for declared in self.fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = [declared.name for declared in self.fields] + ["unknown"]
        shown = [(name, getattr(self, name)) for name in names]
        inside = ", ".join(f"{name}={_told(value)}" for name, value in shown if value is not None and value != ())
        return f"{type(self).__name__}({inside})"


def _told(value: Any) -> str:
    """A value, or the beginning of a long text, which a whole Arrow schema may be."""
    if isinstance(value, str | bytes) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}... ({len(value):,} {'characters' if isinstance(value, str) else 'bytes'})"
    return repr(value)


_SHOWN = 80


class Union(Struct):
    """A structure of which one field is set; ``member`` names it, or is None when this version does not know it."""

    __slots__ = ()
    is_union = True

    @property
    def member(self) -> str | None:
        """The name of the member that is set."""
        return only_member(self)
