"""Pickling of objects as calls of their constructor."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Base
else:
    Base = object


class PickledByFields(Base):
    """Base of dataclasses that are pickled as a call of their constructor.

    Caches, locks, open files and native objects are not arguments of the constructor, so a copy starts without them. An
    object can be pickled while other threads use it.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)
