"""Pickling of objects by their constructor's arguments."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Base
else:
    Base = object


class PickledByFields(Base):
    """A dataclass that is pickled as a call of its constructor.

    Caches, locks, open files and native objects are not fields of the constructor: a copy starts without them, at any
    time and while other threads use the original.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)
