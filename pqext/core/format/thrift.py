"""Structures of Thrift's compact protocol, declared as tables of fields, and its unsigned LEB128 integers.

A structure is a class whose body declares its fields. A field without a default is required::

    class KeyValue(Struct):
        key: str = field(1, "string")
        value: str | None = field(2, "string", default=None)

:func:`encode` and :func:`decode` are kernels driven by these tables; tests compare both with the ``thrift`` package.
Undeclared fields are retained in ``unknown`` and written back unchanged. Spec: "Metadata" (all structures are
serialised with the compact protocol).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform, overload

from pqext.core.base.errors import CorruptFileError
from pqext.core.kernels.thrift.reader import StructIndex, decode
from pqext.core.kernels.thrift.struct_plan import Plan, only_member
from pqext.core.kernels.thrift.writer import EXTENSION_IDS, encode

__all__ = ["EXTENSION_IDS", "Field", "LazyStructs", "Struct", "Union", "UnknownField", "decode", "encode", "field"]

Scalar = Literal["bool", "i8", "i16", "i32", "i64", "double", "binary", "string"]
UnknownField = tuple[int, int, bytes]
"""Field id, wire type in the compact protocol, and serialised value of an undeclared field."""

T = TypeVar("T", bound="Struct")


def uleb(value: int) -> bytes:
    """Encode ``value`` as LEB128 in the minimum number of bytes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def struct_list_header(count: int) -> bytes:
    """Return the shortest header of a list of ``count`` structures."""
    return bytes([count << 4 | 0x0C]) if count < 15 else b"\xfc" + uleb(count)


def read_uleb(data: bytes, position: int) -> tuple[int, int]:
    """Decode the integer at ``position``; return the integer and the offset after it.

    Raises ``CorruptFileError`` if the integer is truncated, longer than necessary, or has more than 32 bits.
    """
    value = 0
    for i in range(5):
        if position + i >= len(data):
            raise CorruptFileError("LEB128 integer is truncated")
        byte = data[position + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if value >= 1 << 32 or (i and not byte):
                break
            return value, position + i + 1
    raise CorruptFileError("LEB128 integer is longer than necessary or exceeds 32 bits")


class Field(NamedTuple):
    """Declared field. ``type`` is a scalar's name, an enum or a structure; for a list, the type of its elements."""

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
    """Declare a field: ``type`` is a scalar's name, an ``IntEnum``, a ``Struct``, or a list with one of these.

    Without ``default=None`` the field is required. A ``lazy`` list of structures is indexed when it is read, and its
    elements are decoded on access.
    """
    if not 1 <= id <= 32766:
        raise TypeError(f"field id must be from 1 to 32766, not {id}")
    return _Declaration(id, type, default is _REQUIRED, lazy)


def _initialiser(name: str, fields: list[Field], *, is_union: bool) -> Callable[..., None]:
    """Generate a keyword constructor without loops, because a page header is created for every page."""
    names = [field.name for field in fields]
    lines = [f"def __init__(self, *, {''.join(f'{attribute}=None, ' for attribute in names)}unknown=()):"]
    lines += [
        f"    if {field.name} is None: raise TypeError('{name}.{field.name} is required')"
        for field in fields
        if field.required
    ]
    if is_union and len(names) > 1:
        lines.append(f"    if {' + '.join(f'({attribute} is not None)' for attribute in names)} > 1:")
        lines.append(f"        raise TypeError('{name} takes one member')")
    lines += [f"    self.{attribute} = {attribute}" for attribute in [*names, "unknown"]]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return cast("Callable[..., None]", scope["__init__"])


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructMeta(type):
    """Metaclass that converts the field declarations of a class to slots and to tables for encoding and decoding."""

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
        namespace.setdefault("__slots__", tuple(field.name for field in fields))
        is_union = any(getattr(base, "is_union", False) for base in bases)
        if fields or not any(getattr(base, "fields", ()) for base in bases):
            namespace["__init__"] = _initialiser(name, fields, is_union=is_union)
        cls = super().__new__(mcls, name, bases, namespace)
        cls.fields = tuple(fields)
        cls.plan = Plan(cls, LazyStructs)
        return cls


class LazyStructs(Sequence[T]):
    """List of structures that are decoded on access. Until then, only their positions in the buffer are known.

    Decoded elements are cached, so that changes to them are written. Other elements are written unchanged.
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
        element = self._decoded.get(position)
        if element is None:
            element = self._decoded[position] = self._index.decode(position)
        return element

    def peek(self, position: int) -> T:
        """Return an element without caching it, for scans over many elements. A cached element is not decoded again."""
        element = self._decoded.get(position)
        return self._index.decode(position) if element is None else element

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
    def undecoded_index(self) -> StructIndex | None:
        """Index of the serialised elements; None if any element was decoded, because the caller may have changed it."""
        return None if self._decoded else self._index

    def indexed_position(self, position: int) -> tuple[StructIndex, int] | None:
        """Return the index and the position of an element; None if any element was decoded."""
        return None if self._decoded else (self._index, position)

    def iter_positions(self, test: Callable[[bytes], bool]) -> Iterator[int]:
        """Yield the positions of all decoded elements, and of elements whose serialised bytes pass ``test``."""
        if not test(self._index.raw(0, len(self))):
            yield from sorted(self._decoded)
            return
        for position in range(len(self)):
            if position in self._decoded or test(self._index.raw(position, position + 1)):
                yield position

    def encoded(self) -> Iterator[bytes]:
        """Yield the serialised elements in order. Consecutive undecoded elements are yielded together."""
        done = 0
        for position in sorted(self._decoded):
            yield self._index.raw(done, position)
            yield encode(self._decoded[position])
            done = position + 1
        yield self._index.raw(done, len(self))


class Struct(metaclass=StructMeta):
    """Base of all structures: keyword constructor, equality by fields, and None for unset fields."""

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
        values = [(name, getattr(self, name)) for name in names]
        inside = ", ".join(f"{name}={_abridge(value)}" for name, value in values if value is not None and value != ())
        return f"{type(self).__name__}({inside})"


def _abridge(value: Any) -> str:
    """Return the repr of a value. Long text, such as an Arrow schema, is truncated."""
    if isinstance(value, str | bytes) and len(value) > _MAX_REPR:
        return f"{value[:_MAX_REPR]!r}... ({len(value):,} {'characters' if isinstance(value, str) else 'bytes'})"
    return repr(value)


_MAX_REPR = 80


class Union(Struct):
    """Structure with exactly one field set. ``member`` is its name, or None if the field is unknown."""

    __slots__ = ()
    is_union = True

    @property
    def member(self) -> str | None:
        """Name of the member that is set; None if it is unknown."""
        return only_member(self)
