"""The stored Arrow schema of an open file: parsed when it is first asked for, and passed over where it is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property

import pyarrow as pa

from pqext.core.base.errors import AnnotationWarning, warn_of_file
from pqext.core.format.metadata import KeyValue
from pqext.core.schema.arrow_schema.hints import Contradiction, hinted
from pqext.core.schema.arrow_schema.serialization import KEY, Unreadable, parse
from pqext.core.schema.arrow_schema.strings import with_wide_indices
from pqext.core.schema.arrow_schema.types import has_narrow_indices
from pqext.core.schema.shape import Shape

_WIDE = 16 << 10
"""Characters of a text of which single fields are made; less is read as a whole."""
_TIMES_FEW = 4
"""How often a text is decoded for some of its fields, before the whole schema is made and kept."""


class StoredSchema:
    """What a file's key-value metadata says of the Arrow types of its columns; nothing without ``pairs``.

    Warnings name the file's ``path``.
    """

    def __init__(self, pairs: Iterable[KeyValue] = (), path: str | None = None) -> None:
        self._text = next((pair.value for pair in pairs if pair.key == KEY), None)
        self._path = path
        self._is_shared = False
        self._told: set[str] = set()
        self._few: dict[int, pa.Field] = {}
        self._times_few = 0

    @property
    def is_empty(self) -> bool:
        """Is nothing noted?"""
        return self._text is None

    @property
    def has_told(self) -> bool:
        """Was there anything to warn of so far?"""
        return bool(self._told)

    @property
    def counts_few(self) -> bool:
        """Has a dictionary among the types indices that may not count the values of other files?"""
        held = () if self._text is None or self._schema is None else self._schema
        return any(has_narrow_indices(field.type) for field in held)

    def shared(self) -> StoredSchema:
        """What is noted for several files: indices of dictionaries count the values of any of them."""
        other = StoredSchema((), self._path)
        other._text, other._told, other._is_shared = self._text, self._told, True
        return other

    def notes_the_same(self, other: StoredSchema) -> bool:
        """Is the text that of ``other``?"""
        return self._text == other._text

    def apply(self, shape: Shape, index: int | None = None) -> Shape:
        """The shape of a top-level column with what is noted of it, by its number and name or by its name alone.

        Warns once of a column whose note contradicts its Parquet type, and of a text that is no schema.
        """
        if self._text is None:
            return shape
        name = shape.node.name
        try:
            field = self._field(name, index)
            if field is None:
                return shape
            found = hinted(shape, field)
            return with_wide_indices(found) if self._is_shared else found
        except (Contradiction, UnicodeDecodeError) as error:
            self._tell(f"the type of column {name!r} in the file's {KEY} is passed over: {error}")
        return shape

    def expect(self, positions: Sequence[int]) -> None:
        """The columns at ``positions``, which ascend, are asked for next: of a wide schema no other fields are made."""
        if self._text is None or len(self._text) < _WIDE or self._times_few == _TIMES_FEW or "_schema" in self.__dict__:
            return
        missing = [position for position in positions if position not in self._few]
        if missing:
            self._times_few += 1
            with suppress(Unreadable):  # told where the whole schema is looked at
                self._few.update(zip(missing, parse(self._text, missing), strict=True))

    def _field(self, name: str, index: int | None) -> pa.Field | None:
        """What is noted of a column."""
        if index in self._few and self._few[index].name == name:
            return self._few[index]
        if self._schema is None:
            return None
        if index is None or index >= len(self._schema) or self._schema.field(index).name != name:
            index = self._places.get(name)
        return None if index is None else self._schema.field(index)

    @cached_property
    def _schema(self) -> pa.Schema | None:
        try:
            return parse(self._text or "")
        except Unreadable as error:
            self._tell(f"the file's {KEY} is passed over: {error}")
            return None

    @cached_property
    def _names(self) -> list[str]:
        try:
            return [] if self._schema is None else list(self._schema.names)
        except UnicodeDecodeError:
            self._tell(f"the file's {KEY} is passed over: a name in it is not UTF-8")
            return []

    @cached_property
    def _places(self) -> dict[str, int]:
        counts = Counter(self._names)
        return {name: place for place, name in enumerate(self._names) if counts[name] == 1}

    def _tell(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            warn_of_file(self._path, message, AnnotationWarning)
