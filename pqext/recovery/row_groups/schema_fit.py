"""How far pages fit a schema, leaf by leaf from where a row group begins, and why they fit no further."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, FieldRepetitionType, SchemaElement, Type
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.fragments.footers import Effort
from pqext.recovery.fragments.leaves import Chunks, may_hold
from pqext.recovery.fragments.pages import Page

_SIZES = 4096
"""Pages of a row group's first chunk behind which that chunk is tried to end."""
_OPENED, _BYTES = 100, 1000
"""What it costs to open a page, and one step more for so many bytes of it; to look at one costs a step."""
_COUNTED = 3
"""What it costs to count the rows of a page of lists."""
_PLACED = 8
"""What it costs to place a chunk among pages that were looked at."""
_KEPT = 64
"""Row groups that fit by the headers of their pages and are kept for whoever asks why they do not by their values."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A leaf in one of its physical forms: ``node`` is it in a schema of its own, ``elements``, which ``chunks`` opens.

    ``path`` leads to it from its column, ``kind`` is the same for all that can have the same pages. ``changed`` holds
    what is otherwise than in the schema that was given, by the number of the element, ``contradicts`` what the schema
    could have told to be so: groups, and groups of leaves.
    """

    node: SchemaNode
    elements: Sequence[SchemaElement]
    chunks: Chunks
    path: Sequence[SchemaNode]
    kind: int
    changed: dict[int, SchemaElement]
    contradicts: frozenset[tuple[int, bool]]


Column = Sequence[Sequence[Callable[[], Sequence[Form]]]]
"""The shapes that a top-level column may have, of each its leaves, and of each leaf its forms, the likeliest first.

Forms are made by the first call.
"""


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

    ``furthest`` is the last place where a form did not fit. ``breaks_off``: pages fitted up to the end, within a row
    group.
    """

    def __init__(self, pages: Sequence[Page], columns: Sequence[Column], effort: Effort) -> None:
        self._pages = pages
        self._columns = columns
        self._effort = effort
        self._entries = [0, *accumulate(0 if page.is_dictionary else page.count for page in pages)]
        self._opened: dict[tuple[int, int], bool] = {}
        self._runs: dict[tuple[int, bool], tuple[int, int]] = {}
        self._followers: dict[int, tuple[list[int], bool]] = {}
        self._lost: set[int] = set()
        self.furthest: Misfit | None = None
        self.breaks_off = False

    def groups(self, at: int) -> Iterator[Walked]:
        """The row groups that can begin at page ``at``, by the headers."""
        for rows in self._sizes(at):
            found = self._group(at, rows)
            if found is not None:
                yield found

    def goes_on(self, at: int, *, may_break_off: bool) -> bool:
        """Do row groups follow one another from page ``at`` on, until the last page is the last of one?

        ``may_break_off``: or is within one.
        """
        waiting = [at]
        seen = {at}
        while waiting:
            begin = waiting.pop()
            if begin not in self._followers:
                self.breaks_off = False
                ends = [walked.end for walked in self.groups(begin)] if begin < len(self._pages) else []
                self._followers[begin] = ends, self.breaks_off
            ends, breaks_off = self._followers[begin]
            if begin == len(self._pages) or (breaks_off and may_break_off):
                return True
            new = [end for end in ends if end not in seen and end not in self._lost]
            seen.update(new)
            waiting += new
        self._lost |= seen
        return False

    def reach(self) -> list[Walked]:
        """Go as far as row groups from the first page on do: some of them where they end with the last page, else none.

        Then :attr:`furthest` tells why.
        """
        waiting, seen = [0], {0}
        found: list[Walked] = []
        fits = False
        while waiting:
            for walked in self.groups(waiting.pop()):
                fits |= walked.end == len(self._pages)
                if len(found) < _KEPT:
                    found.append(walked)
                if walked.end not in seen and walked.end < len(self._pages):
                    seen.add(walked.end)
                    waiting.append(walked.end)
        return found if fits else []

    def _sizes(self, at: int) -> list[int]:
        """How many rows a row group can have that begins at page ``at``, by the pages that its first leaf can have."""
        sizes: dict[int, None] = {}
        has_dictionary = self._pages[at].is_dictionary
        for form in (form for shape in self._columns[0] for form in shape[0]()):
            rows, place = 0, at
            stop = self._run(form, at, min(at + _SIZES, len(self._pages)), has_dictionary)
            if stop == at:
                self._note_page(at, 0, form, has_dictionary)
            while place < stop and self._effort.take(1):
                counted = form.chunks.rows(form.node, self._pages[place])
                if counted is None:
                    break
                place += 1
                rows += counted[0]
                if rows:
                    sizes[rows] = None
        return [*sizes]

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

    def _shape(
        self, shape: Sequence[Callable[[], Sequence[Form]]], leaf: int, at: int, rows: int
    ) -> list[Chunk] | None:
        """The chunks of a column in one of its shapes, ``None`` where pages do not fit."""
        chunks: list[Chunk] = []
        for number, forms in enumerate(shape, leaf):
            ends = [(form, self._end(form, number, at, rows)) for form in forms()]
            end = next((end for _, end in ends if end is not None), None)
            if end is None:
                return None
            chunks.append(([form for form, one in ends if one == end], at, end))
            at = end
        return chunks

    def _end(self, form: Form, leaf: int, at: int, rows: int) -> int | None:
        """Where the chunk of a form ends that begins at page ``at``."""
        size = len(self._pages)
        if at >= size:
            self.breaks_off = True
            return None
        if not self._effort.take(_PLACED):
            return None
        has_dictionary = self._pages[at].is_dictionary
        if form.node.max_repetition_level:
            return self._end_of_lists(form, leaf, at, rows, has_dictionary)
        end = bisect_left(self._entries, self._entries[at] + rows, at + 1)
        stop = self._run(form, at, min(end, size), has_dictionary)
        found = self._entries[stop] - self._entries[at]
        if stop < min(end, size):
            self._note_within(stop, leaf, form, has_dictionary, at, rows, found)
            return None
        if end > size:
            self.breaks_off = True
            return None
        if found > rows:
            self._note(end - 1, leaf, _too_many(rows))
            return None
        return end

    def _end_of_lists(self, form: Form, leaf: int, at: int, rows: int, has_dictionary: bool) -> int | None:
        """As :meth:`_end`, of a leaf whose rows are told by the levels in its pages."""
        begin, size, found = at, len(self._pages), 0
        while found < rows or at == begin:
            if at >= size:
                self.breaks_off = True
            if at >= size or not self._effort.take(_COUNTED):
                return None
            if (self._pages[at].is_dictionary and at > begin) or not self._holds(form, at, has_dictionary):
                self._note_within(at, leaf, form, has_dictionary, begin, rows, found)
                return None
            counted = form.chunks.rows(form.node, self._pages[at])
            if counted is None:
                self._note(at, leaf, f"{_size(self._pages[at])} whose levels cannot be read")
                return None
            found += counted[0]
            at += 1
        if found > rows:
            self._note(at - 1, leaf, _too_many(rows))
            return None
        while at < size and not self._pages[at].is_dictionary:
            counted = form.chunks.rows(form.node, self._pages[at]) if self._holds(form, at, True) else None
            if counted is None or counted[1] or counted[0]:
                break  # else the page goes on with the last row
            at += 1
        return at

    def _run(self, form: Form, at: int, stop: int, has_dictionary: bool) -> int:
        """Up to which page, ``stop`` at most, pages can be a chunk of ``form`` that begins at page ``at``.

        Where no effort is left it goes no further.
        """
        if has_dictionary:
            if not self._effort.take(1) or not self._holds(form, at, True):
                return at
            at += 1
        begin, end = self._runs.get((form.kind, has_dictionary), (at, at))
        if not begin <= at <= end:
            begin = end = at
        while end < stop and self._effort.take(1):
            if self._pages[end].is_dictionary or not self._holds(form, end, has_dictionary):
                break
            end += 1
        self._runs[form.kind, has_dictionary] = begin, end
        return min(end, stop)

    def _holds(self, form: Form, at: int, has_dictionary: bool) -> bool:
        """Can page ``at`` be one of ``form``? What no effort is left to open can be."""
        page = self._pages[at]
        if not may_hold(form.node, page, has_dictionary=has_dictionary):
            return False
        found = self._opened.get((form.kind, at))
        if found is None:
            if not self._effort.take(_OPENED + page.unpacked // _BYTES):
                return True
            found = self._opened[form.kind, at] = form.chunks.fits_exactly(form.node, page, form.path)
        return found

    def _note_within(
        self, at: int, leaf: int, form: Form, has_dictionary: bool, begin: int, rows: int, found: int
    ) -> None:
        """Note that page ``at`` does not go on with a chunk of ``rows`` rows, of which ``found`` are before it."""
        if self._is_further(at) and at > begin and self._pages[at].is_dictionary:
            self._note(at, leaf, f"a dictionary, although its chunk lacks {rows - found} of {rows} rows")
        else:
            self._note_page(at, leaf, form, has_dictionary)

    def _note_page(self, at: int, leaf: int, form: Form, has_dictionary: bool) -> None:
        """Note why page ``at`` is none of ``form``, if it is none."""
        if not self._is_further(at):
            return
        page = self._pages[at]
        if not may_hold(form.node, page, has_dictionary=has_dictionary):
            self._note(at, leaf, _difference(form, page, has_dictionary))
        elif not self._holds(form, at, has_dictionary):
            self._note(at, leaf, f"{_size(page)} that cannot be read as {told_type(form.elements[-1])}")

    def _is_further(self, page: int) -> bool:
        return self.furthest is None or page > self.furthest.page

    def _note(self, page: int, leaf: int, reason: str) -> None:
        if self._is_further(page):
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
    if page.encoding in DICTIONARY_ENCODINGS and not has_dictionary:
        return "values that are in a dictionary which is not there"
    if page.encoding not in (*DICTIONARY_ENCODINGS, Encoding.PLAIN):
        known = {int(one): one.name for one in Encoding}
        return f"{_size(page)} encoded as {known.get(page.encoding)}, which are not of type {wanted}"
    each = f", of {width} bytes each" if width else ""
    return f"{_size(page)} that are not of type {wanted}{each}"


def _too_many(rows: int) -> str:
    return f"pages of more than {rows} rows, which its row group has"


def _size(page: Page) -> str:
    return f"{page.count} entries in {page.unpacked} bytes"
