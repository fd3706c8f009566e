"""How far pages fit a schema, leaf by leaf from where a row group begins, and why they fit no further."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pqext.core.metadata import Encoding, FieldRepetitionType, SchemaElement, Type
from pqext.core.schema import SchemaNode
from pqext.recovery.footers import Effort
from pqext.recovery.leaves import DICTIONARY, Chunks, may_hold
from pqext.recovery.pages import Page

_SIZES = 4096
"""Sizes of one row group that are tried."""
_OPENED = 100
"""Pages that are looked at in the time in which one is opened."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A leaf in one of its physical forms: ``node`` is it in a schema of its own, ``elements``, which ``chunks`` opens.

    ``path`` leads to it from its column. ``changed`` holds what is otherwise than in the schema that was given, by the
    number of the element, ``contradicts`` what the schema could have told to be so: groups, and groups of leaves.
    """

    node: SchemaNode
    elements: Sequence[SchemaElement]
    chunks: Chunks
    path: Sequence[SchemaNode]
    changed: dict[int, SchemaElement]
    contradicts: frozenset[tuple[int, bool]]


Column = Sequence[Sequence[Sequence[Form]]]
"""The shapes that a top-level column may have, of each its leaves, and of each leaf its forms, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The page, by its number, at which pages no longer fit a leaf of the schema, and how it differs."""

    page: int
    leaf: int
    reason: str


Chunk = tuple[Sequence[Form], int, int]
"""The forms of a leaf that the headers of pages allow, and where these pages begin and end."""


@dataclass(frozen=True, slots=True)
class Walked:
    """A row group that fits by the headers of its pages, up to page ``end``: each column's chunks in its shapes."""

    rows: int
    end: int
    columns: Sequence[Sequence[Sequence[Chunk]]]


class Walker:
    """Walks over ``pages`` by columns with several forms.

    ``furthest`` is the last place where no form fitted. ``breaks_off``: pages fitted up to the end, within a row group.
    """

    def __init__(self, pages: Sequence[Page], columns: Sequence[Column], effort: Effort) -> None:
        self._pages = pages
        self._columns = columns
        self._effort = effort
        self._opened: dict[tuple[Form, int], bool] = {}
        self.furthest: Misfit | None = None
        self.breaks_off = False

    def groups(self, at: int) -> Iterator[Walked]:
        """The row groups that can begin at page ``at``, by the headers."""
        for rows in self._sizes(at):
            found = self._group(at, rows)
            if found is not None:
                yield found

    def reach(self) -> None:
        """Go as far as row groups from the first page on do, for :attr:`furthest`."""
        waiting, seen = [0], {0}
        while waiting:
            for walked in self.groups(waiting.pop()):
                if walked.end not in seen and walked.end < len(self._pages):
                    seen.add(walked.end)
                    waiting.append(walked.end)

    def _sizes(self, at: int) -> list[int]:
        """How many rows a row group can have that begins at page ``at``, by the pages that its first leaf can have."""
        sizes: list[int] = []
        for form in (form for shape in self._columns[0] for form in shape[0]):
            rows, place = 0, at
            while place < len(self._pages) and len(sizes) < _SIZES and self._effort.take(1):
                page = self._pages[place]
                if page.is_dictionary and place > at:
                    break
                if (why := self._misfit(form, place, self._pages[at].is_dictionary)) is not None:
                    if place == at:
                        self._note(place, 0, why)
                    break
                place += 1
                counted = form.chunks.rows(form.node, page)
                if counted is None:
                    break
                rows += counted[0]
                if not page.is_dictionary and rows and rows not in sizes:
                    sizes.append(rows)
        return sizes

    def _group(self, at: int, rows: int) -> Walked | None:
        columns: list[list[list[Chunk]]] = []
        leaf = 0
        for column in self._columns:
            shapes = [found for shape in column if (found := self._shape(shape, leaf, at, rows)) is not None]
            if not shapes:
                return None
            end = shapes[0][-1][2]
            columns.append([one for one in shapes if one[-1][2] == end])
            leaf += len(column[0])
            at = end
        return Walked(rows, at, columns)

    def _shape(self, shape: Sequence[Sequence[Form]], leaf: int, at: int, rows: int) -> list[Chunk] | None:
        """The chunks of a column in one of its shapes, ``None`` where pages do not fit."""
        chunks: list[Chunk] = []
        for number, forms in enumerate(shape):
            ends = [(form, self._end(form, leaf + number, at, rows)) for form in forms]
            end = next((end for _, end in ends if end is not None), None)
            if end is None:
                return None
            chunks.append(([form for form, one in ends if one == end], at, end))
            at = end
        return chunks

    def _end(self, form: Form, leaf: int, at: int, rows: int) -> int | None:
        """Where the chunk of a form ends that begins at page ``at``."""
        begin, found = at, 0
        has_dictionary = at < len(self._pages) and self._pages[at].is_dictionary
        while found < rows or at == begin:
            if at >= len(self._pages):
                self.breaks_off = True
            if at >= len(self._pages) or not self._effort.take(1):
                return None
            page = self._pages[at]
            if page.is_dictionary and at > begin:
                self._note(at, leaf, f"a dictionary, although its chunk lacks {rows - found} of {rows} rows")
                return None
            if (why := self._misfit(form, at, has_dictionary)) is not None:
                self._note(at, leaf, why)
                return None
            counted = form.chunks.rows(form.node, page)
            if counted is None:
                self._note(at, leaf, f"{_size(page)} whose levels cannot be read")
                return None
            found += counted[0]
            at += 1
        if found > rows:
            self._note(at - 1, leaf, f"pages of more than {rows} rows, which its row group has")
            return None
        while at < len(self._pages) and form.node.max_repetition_level and not self._pages[at].is_dictionary:
            counted = form.chunks.rows(form.node, self._pages[at]) if self._misfit(form, at, True) is None else None
            if counted is None or counted[1] or counted[0]:
                break  # else the page goes on with the last row
            at += 1
        return at

    def _misfit(self, form: Form, at: int, has_dictionary: bool) -> str | None:
        page = self._pages[at]
        if not may_hold(form.node, page, has_dictionary=has_dictionary):
            return _difference(form, page, has_dictionary)
        key = form, at
        if key not in self._opened:
            is_free = self._effort.take(_OPENED)
            self._opened[key] = not is_free or form.chunks.fits_exactly(form.node, page, form.path)
        return None if self._opened[key] else f"{_size(page)} that cannot be read as {told_type(form.elements[-1])}"

    def _note(self, page: int, leaf: int, reason: str) -> None:
        if self.furthest is None or page > self.furthest.page:
            self.furthest = Misfit(page, leaf, reason)


def told_type(element: SchemaElement) -> str:
    """What an element is: required or not, and the physical type of a leaf, with its width."""
    repetition = FieldRepetitionType(element.repetition_type or 0).name.lower()
    if element.type is None:
        return f"{repetition} group"
    width = f"({element.type_length})" if element.type == Type.FIXED_LEN_BYTE_ARRAY else ""
    return f"{repetition} {Type(element.type).name}{width}"


def _difference(form: Form, page: Page, has_dictionary: bool) -> str:
    """How a page differs from those of ``form``, by its header."""
    wanted, width = told_type(form.elements[-1]), form.node.leaf_type.width
    if page.is_dictionary:
        return f"a dictionary of {page.count} values in {page.unpacked} bytes, which are not of type {wanted}"
    if page.encoding in DICTIONARY and not has_dictionary:
        return "values that are in a dictionary which is not there"
    if page.encoding not in (*DICTIONARY, Encoding.PLAIN):
        known = {int(one): one.name for one in Encoding}
        return f"{_size(page)} encoded as {known.get(page.encoding)}, which are not of type {wanted}"
    each = f", of {width} bytes each" if width else ""
    return f"{_size(page)} that are not of type {wanted}{each}"


def _size(page: Page) -> str:
    return f"{page.count} entries in {page.unpacked} bytes"
