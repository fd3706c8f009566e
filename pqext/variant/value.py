"""Single variant values."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pqext.core.base.suggestions import excerpt
from pqext.variant import encoding, faults
from pqext.variant.binary_value import MAX_DEPTH, BinaryVariant, walk
from pqext.variant.encoding import BasicType, Container, PrimitiveType, ScaledDecimal
from pqext.variant.kernels.binary import Fault
from pqext.variant.python import decode, encode
from pqext.variant.types import variant_type

_T = PrimitiveType
_SHOWN = 2000


class Variant(BinaryVariant):
    """Variant value as bytes, with the metadata that contains its field names. Nested values share the metadata.

    Two variants are equal if they belong to the same equivalence class (Variant Encoding, primitive types) and have the
    same data. An int8 1 equals a decimal 1.00, and a short string equals a long string with the same text, but a float
    never equals a double. NaN equals NaN, and 0.0 equals -0.0. Raises :class:`~pqext.core.base.errors.VariantError` on
    access if bytes violate a rule, because bytes are validated only when they are needed (see
    :func:`pqext.variant.validate`).

    >>> v = Variant.from_json('{"a": {"b": [1, 2.50]}}')
    >>> v["a"]["b"][1].to_python()
    Decimal('2.50')
    """

    __slots__ = ()

    @classmethod
    def from_json(cls, text: str | bytes, **options: Any) -> Variant:
        """Parse one JSON document. Options are as for :func:`pqext.variant.parse_json`."""
        from pqext.variant.json.parser import parse_json

        array = parse_json(pa.array([text], pa.string() if isinstance(text, str) else pa.binary()), **options)
        return cls(array.field("value")[0].as_py(), array.field("metadata")[0].as_py())

    @classmethod
    def from_python(cls, obj: Any) -> Variant:
        """Encode None, bool, int, float, Decimal, str, bytes, date, datetime, time, UUID, dict, list, tuple,
        numpy scalars, :class:`~pqext.variant.python.Timestamp` and variants.

        Integers have the narrowest possible type, or decimal16 beyond int64. A datetime with a time zone becomes a
        timestamp in UTC; a datetime without one becomes a timestamp without time zone. Raises ``ValueError`` for a
        number with more than 38 digits, and ``TypeError`` for other types.
        """
        return cls(*encode(obj, MAX_DEPTH))

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the value as JSON text; see :func:`pqext.variant.to_json`."""
        from pqext.variant.json.text import to_json

        array = pa.array([{"metadata": self.metadata, "value": self.value}], variant_type())
        text: str = to_json(array, indent=indent)[0].as_py()
        return text

    def to_python(self, *, json_types: bool = False) -> Any:
        """Convert the value to Python objects, the inverse of :meth:`from_python`.

        Exact numbers become int or Decimal, doubles float, floats ``numpy.float32``, objects dict and arrays list.
        Timestamps that ``datetime`` cannot represent, because of nanoseconds or the year, become
        :class:`~pqext.variant.python.Timestamp`, and dates that ``date`` cannot represent become ``numpy.datetime64``.
        :meth:`from_python` converts the result to an equal value.

        With ``json_types=True``, the objects contain only types that ``json.dumps`` accepts, as in
        :func:`pqext.variant.to_python`; ``json.dumps(value, default=lambda v: v.to_python(json_types=True))`` accepts
        variants anywhere in Python objects.

        Raises ``UnsupportedError`` for a primitive type added to the format later.
        """
        if json_types:
            return json.loads(self.to_json())
        return decode(self)

    @property
    def type(self) -> str:
        """Name of the type: ``"object"``, ``"array"``, ``"boolean"``, or the primitive type's name in lower case."""
        basic = self._basic_type
        if basic == BasicType.SHORT_STRING:
            return "string"
        if basic != BasicType.PRIMITIVE:
            return basic.name.lower()
        type_id = self.value[0] >> 2
        if type_id > _T.UUID:
            return f"unknown primitive {type_id}"
        return "boolean" if type_id in (_T.TRUE, _T.FALSE) else _T(type_id).name.lower()

    @property
    def _basic_type(self) -> BasicType:
        return BasicType(self.value[0] & 3)

    def get(self, path: str) -> Variant | None:
        """Return the value at ``path`` (``"$.a.b[0]"``, ``"$.a[-1]"`` for the last element); None if it is missing."""
        from pqext.variant.access.path import as_path

        if isinstance(path, str) and not path.lstrip().startswith("$"):
            raise ValueError(f"a path must start with $, as in $.name or $[0]; use v[{excerpt(path)!r}] for a field")
        result: Variant | None = self
        for step in as_path(path, from_end=True):
            result = result._child(step) if result is not None else None
        return result

    def _child(self, step: str | int) -> Variant | None:
        basic = self._basic_type
        if basic == BasicType.OBJECT and isinstance(step, str):
            return self._field(step)
        if basic == BasicType.ARRAY and isinstance(step, int):
            container = self._container()
            step += len(container) if step < 0 else 0
            return self._element(container, step) if 0 <= step < len(container) else None
        return None

    def _container(self) -> Container:
        return encoding.open_container(self.value, 0, len(self.value))

    def _field(self, name: str) -> Variant | None:
        container = self._container()
        for i, field_id in enumerate(container.ids or ()):
            if self.dictionary.name(field_id) == name:
                return self._element(container, i)
        return None

    def _element(self, container: Container, i: int) -> Variant:
        start = container.values + container.offsets[i]
        if start >= container.end:
            faults.fail(Fault.FAULT_CHILD_OFFSET, offset=start)
        later = [offset for offset in container.offsets if offset > container.offsets[i]]
        limit = container.values + min(later) if later else container.end
        size = encoding.value_size(self.value, start, container.end, unknown_size=limit - start)
        return self._nested_variant(start, start + size)

    def _nested_variant(self, start: int, end: int) -> Variant:
        nested = Variant(self.value[start:end], self.metadata)
        nested._dictionary = self._dictionary
        return nested

    def __getitem__(self, key: str | int) -> Variant:
        """Return a field of an object or an element of an array.

        Raises ``KeyError`` or ``IndexError`` if it does not exist, and ``TypeError`` if ``key`` has the wrong type or
        the value is neither an object nor an array.
        """
        basic = self._basic_type
        if basic == BasicType.OBJECT:
            if not isinstance(key, str):
                raise TypeError(f"object fields are accessed by name, not by {type(key).__name__}")
            result = self._field(key)
            if result is None:
                raise KeyError(key)
            return result
        if basic == BasicType.ARRAY:
            if not isinstance(key, int):
                raise TypeError(f"array elements are accessed by integer index, not by {type(key).__name__}")
            container = self._container()
            index = key + len(container) if key < 0 else key
            if not 0 <= index < len(container):
                raise IndexError(f"index {key} is out of range for an array of {len(container)} elements")
            return self._element(container, index)
        raise TypeError(f"a variant {self.type} has no elements")

    def __len__(self) -> int:
        if self._basic_type not in (BasicType.OBJECT, BasicType.ARRAY):
            raise TypeError(f"a variant {self.type} has no length")
        return len(self._container())

    def __bool__(self) -> bool:
        return True  # even an empty value is a value; Variant.get() returns None for missing values

    def keys(self) -> list[str]:
        """Return the names of an object's fields, in field order. Raises ``TypeError`` for other types."""
        if self._basic_type != BasicType.OBJECT:
            raise TypeError(f"a variant {self.type} has no keys")
        return [self.dictionary.name(field_id) for field_id in self._container().ids or ()]

    def values(self) -> list[Variant]:
        """Return the values of an object's fields or an array's elements. Raises ``TypeError`` for other types."""
        if self._basic_type not in (BasicType.OBJECT, BasicType.ARRAY):
            raise TypeError(f"a variant {self.type} has no values")
        return [self._nested_variant(start, end) for start, end in encoding.children(self.value, self._container())]

    def items(self) -> list[tuple[str, Variant]]:
        """Return the names and values of an object's fields. Raises ``TypeError`` for other types."""
        return list(zip(self.keys(), self.values(), strict=True))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over an object's field names, or an array's elements."""
        return iter(self.keys() if self._basic_type == BasicType.OBJECT else self.values())

    def __contains__(self, item: object) -> bool:
        """Return whether an object has a field named ``item``, or an array has an element equal to ``item``."""
        return item in list(self)

    def __eq__(self, other: object) -> bool:
        return self._comparison_key() == other._comparison_key() if isinstance(other, Variant) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def _comparison_key(self) -> tuple[Any, ...]:
        """Return a flat tuple that is equal for equal variants."""
        parts: list[Any] = []
        for event, data in walk(self, sort_fields=True):
            parts.append(event if isinstance(event, str) else _equivalence_class(event, data))
            if isinstance(event, str):
                parts.append(data)
        return tuple(parts)

    def __repr__(self) -> str:
        try:
            text = self.to_json()
        except ValueError as fault:
            return f"<Variant {self.value[:16].hex()}: {fault}>"
        return f"Variant({text if len(text) <= 80 else text[:77] + '...'})"

    def _repr_html_(self) -> str:
        """Return the value as indented JSON, truncated after 2,000 characters, for notebooks."""
        try:
            text = self.to_json(indent=2)
        except ValueError:
            text = repr(self)
        return f"<pre>{html.escape(text if len(text) <= _SHOWN else text[:_SHOWN] + ' ...')}</pre>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Variant, (self.value, self.metadata)


_NANOSECONDS = {_T.TIMESTAMP: 1000, _T.TIMESTAMP_NTZ: 1000, _T.TIMESTAMP_NANOS: 1, _T.TIMESTAMP_NTZ_NANOS: 1}
_CLASSES = {
    **dict.fromkeys((_T.INT8, _T.INT16, _T.INT32, _T.INT64, *encoding.DECIMAL_BYTES), "exact"),
    **dict.fromkeys((_T.TRUE, _T.FALSE), "boolean"),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMP_NANOS), "timestamp"),
    **dict.fromkeys((_T.TIMESTAMP_NTZ, _T.TIMESTAMP_NTZ_NANOS), "timestamp_ntz"),
}


def _equivalence_class(type: PrimitiveType, data: Any) -> tuple[Any, ...]:
    """Return a key for a primitive. Equal values of types in one equivalence class have equal keys."""
    if isinstance(data, ScaledDecimal):
        unscaled, scale = data.unscaled, data.scale
        while scale and unscaled % 10 == 0:
            unscaled, scale = unscaled // 10, scale - 1
        return "exact", unscaled, scale
    if _CLASSES.get(type) == "exact":
        return "exact", data, 0
    if isinstance(data, float) and math.isnan(data):
        return type, "NaN"
    return _CLASSES.get(type, type), data * _NANOSECONDS[type] if type in _NANOSECONDS else data
