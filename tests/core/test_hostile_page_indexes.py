"""Page indexes that lie: what is read is right, or an error, wherever pages or the chunk's metadata contradict them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import CorruptDataWarning, ParquetError
from pqext.core.format.metadata import BoundaryOrder, OffsetIndex
from pqext.core.format.thrift import encode
from pqext.core.indexes.reading import DamagedIndexWarning
from reference.effort import some

ROWS, GROUP, PAGE = 96, 48, 6
LISTS = ("null_pages", "min_values", "max_values", "null_counts", "nan_counts")
HISTOGRAMS = ("repetition_level_histograms", "definition_level_histograms")


def table() -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "i": pa.array(rows, pa.int64()),
            "n": pa.array([None if k % 5 == 0 or 18 <= k < 24 else k for k in rows], pa.int32()),
            "d": pa.array([f"w{k // 5:03}" for k in rows]),
            "l": pa.array([None if k % 9 == 0 else [k] * (k % 4) for k in rows], pa.list_(pa.int32())),
        }
    )


def stored(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table(), out, row_group_rows=GROUP, page_rows=PAGE, **options)
    return out.getvalue()


TRUTH = table()
FILES = {1: stored(), 2: stored(page_version=2, dictionary=False, compression="uncompressed", checksums=False)}
LEAVES = {"i": "i", "n": "n", "d": "d", "l": "l.list.element"}
FILTERS: dict[str, list[tuple[Any, Callable[[Any], bool]]]] = {
    "i": [(col("i") == 20, lambda v: v == 20), (col("i") < 3, lambda v: v < 3), (col("i") > 44, lambda v: v > 44)],
    "n": [
        (col("n") == 31, lambda v: v == 31), (col("n") < 14, lambda v: v is not None and v < 14),
        (col("n").is_null(), lambda v: v is None),
    ],
    "d": [(col("d") == "w003", lambda v: v == "w003"), (col("d") >= "w008", lambda v: v >= "w008")],
    "l": [],
}
CHOSEN = [[range(14, 16)], [range(3), range(30, 43)], [range(46, 48)]]


class Indexes:
    """The indexes of a chunk, to be changed; ``size`` is that of the file."""

    def __init__(self, chunk: Any, size: int) -> None:
        self.offsets, self.columns = chunk.offset_index, chunk.column_index
        self.start, self.size = chunk.byte_range[0], size

    @property
    def pages(self) -> Any:
        return self.offsets.page_locations

    def drop(self, page: int, rows: int = 0) -> None:
        """Leave out a page everywhere; those behind it begin ``rows`` rows earlier."""
        count = len(self.pages)
        for index, names, one in ((self.columns, LISTS, True), (self.columns, HISTOGRAMS, False),
                                  (self.offsets, ("unencoded_byte_array_data_bytes",), True)):
            for name in names:
                values = getattr(index, name)
                if values:
                    step = 1 if one else len(values) // count
                    setattr(index, name, list(values[: page * step]) + list(values[(page + 1) * step :]))
        del self.pages[page]
        for location in self.pages[page:]:
            location.first_row_index -= rows

    def put(self, name: str, page: int, value: Any) -> None:
        """Set what the column index says of a page; a function gets the values of all."""
        values = list(getattr(self.columns, name))
        values[page] = value(values) if callable(value) else value
        setattr(self.columns, name, values)


Change = Callable[[Indexes], Any]


def rows(first: int, last: int | None, by: int) -> Change:
    def change(indexes: Indexes) -> None:
        for location in indexes.pages[first:last]:
            location.first_row_index += by

    return change


def move(page: int, offset: Any = None, size: Any = None, *, moved: int = 0, grown: int = 0) -> Change:
    def change(indexes: Indexes) -> None:
        location = indexes.pages[page]
        location.offset = (location.offset if offset is None else offset) + moved
        location.compressed_page_size = (location.compressed_page_size if size is None else size) + grown

    return change


def swap(one: int, other: int, *names: str) -> Change:
    def change(indexes: Indexes) -> None:
        first, second = indexes.pages[one], indexes.pages[other]
        for name in names:
            value = getattr(first, name)
            setattr(first, name, getattr(second, name))
            setattr(second, name, value)

    return change


def both(*changes: Change) -> Change:
    return lambda indexes: [change(indexes) for change in changes]


def bounds(page: int, of: int) -> Change:
    return lambda indexes: [indexes.put(name, page, lambda values: values[of]) for name in ("min_values", "max_values")]


def put(name: str, page: int, value: Any) -> Change:
    return lambda indexes: indexes.put(name, page, value)


def with_count(count: int) -> Change:
    """A list that says that it has so many pages."""

    def change(indexes: Indexes) -> None:
        length = bytearray()
        while count >> 7 * len(length) > 127:
            length.append(128 | count >> 7 * len(length) & 127)
        length.append(count >> 7 * len(length) & 127)
        indexes.offsets = b"\x19\xfc" + bytes(length) + encode(indexes.offsets)[2:]

    return change


def repeat_last(names: tuple[str, ...]) -> Change:
    def change(indexes: Indexes) -> None:
        for name in names:
            if (values := getattr(indexes.columns, name)) is not None:
                setattr(indexes.columns, name, [*values, values[-1]])

    return change


def point_one_on(indexes: Indexes) -> None:
    for one, following in zip(indexes.pages, indexes.pages[1:], strict=False):
        one.offset, one.compressed_page_size = following.offset, following.compressed_page_size
    indexes.drop(len(indexes.pages) - 1)


def merge(indexes: Indexes) -> None:
    size = indexes.pages[3].compressed_page_size
    indexes.drop(3)
    indexes.pages[2].compressed_page_size += size


def swallow_dictionary(indexes: Indexes) -> None:
    first = indexes.pages[0]
    first.compressed_page_size += first.offset - indexes.start
    first.offset = indexes.start


def all_in_one(indexes: Indexes) -> None:
    first, last = indexes.pages[0], indexes.pages[-1]
    first.compressed_page_size = last.offset + last.compressed_page_size - first.offset
    indexes.offsets, indexes.columns = OffsetIndex(page_locations=[first]), None


def exchange_bounds(indexes: Indexes) -> None:
    index = indexes.columns
    index.min_values, index.max_values = index.max_values, index.min_values


def no_bounds(indexes: Indexes) -> None:
    indexes.columns.min_values = indexes.columns.max_values = [b""] * len(indexes.pages)


def cut(indexes: Indexes) -> None:
    indexes.offsets = encode(indexes.offsets)[:-5]


def histograms(value: int) -> Change:
    def change(indexes: Indexes) -> None:
        for name in HISTOGRAMS:
            if values := getattr(indexes.columns, name):
                setattr(indexes.columns, name, [value] * len(values))

    return change


NULL = both(put("null_pages", 2, True), put("null_counts", 2, PAGE))
CHANGES: dict[str, Change] = {
    "one page later": rows(3, 4, 2), "one page earlier": rows(3, 4, -2), "two pages later": rows(3, 5, 2),
    "some pages a page later": rows(3, 7, PAGE), "all behind a page earlier": rows(3, None, -PAGE),
    "descending rows": rows(4, 5, -PAGE - 1), "negative row": rows(1, 2, -PAGE - 1), "first not 0": rows(0, 1, 1),
    "all later": rows(0, None, 1), "row beyond": rows(7, 8, 1000), "row 2^62": rows(7, 8, 1 << 62),
    "two pages of one row": rows(4, 5, -PAGE), "swapped rows": swap(2, 3, "first_row_index"),
    "swapped places": swap(2, 3, "offset", "compressed_page_size"),
    "swapped pages": swap(2, 3, "offset", "compressed_page_size", "first_row_index"),
    "no entry of a page": lambda indexes: indexes.pages.pop(3), "no entry of the first": lambda i: i.pages.pop(0),
    "no entry of the last": lambda indexes: indexes.pages.pop(),
    "first left out": lambda indexes: indexes.drop(0), "first left out, rows moved": lambda i: i.drop(0, PAGE),
    "page left out": lambda indexes: indexes.drop(3), "page left out, rows moved": lambda i: i.drop(3, PAGE),
    "last left out": lambda indexes: indexes.drop(7), "all a page on": point_one_on,
    "page twice": lambda indexes: indexes.pages.insert(3, indexes.pages[3]), "pages merged": merge,
    "page twice for two": lambda i: move(3, i.pages[2].offset, i.pages[2].compressed_page_size)(i),
    "border moved": both(move(2, grown=-3), move(3, moved=-3, grown=3)), "page and dictionary": swallow_dictionary,
    "all pages one": all_in_one, "no pages": lambda i: setattr(i, "offsets", OffsetIndex(page_locations=[])),
    "one page of many": lambda i: setattr(i, "offsets", OffsetIndex(page_locations=i.pages[:1])), "cut": cut,
    **{f"{count} pages": with_count(count) for count in (15, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 62)},
    **{f"size {by:+}": move(3, grown=by) for by in (-20, -1, 1)}, "last too long": move(7, grown=1),
    "last too short": move(7, grown=-1), **{f"size {n}": move(3, size=n) for n in (0, -1, 1, 2**31 - 1, -(2**31))},
    **{f"offset {n}": move(3, n) for n in (0, -1, 4, 1 << 62, (1 << 63) - 1)},
    "offset of the end": lambda indexes: move(7, indexes.size - 8)(indexes),
    "no column index": lambda indexes: setattr(indexes, "columns", None),
    "entries missing": lambda i: [setattr(i.columns, n, getattr(i.columns, n)[:-1]) for n in LISTS[:4]],
    "entries more": repeat_last(LISTS), "minima more": repeat_last(("min_values",)),
    "null page": put("null_pages", 2, True), "counted null page": NULL,
    "null page without bounds": both(NULL, put("min_values", 2, b""), put("max_values", 2, b"")),
    "value page": both(put("null_pages", 3, False), put("min_values", 3, b"x")),
    **{f"{n} nulls": put("null_counts", 2, n) for n in (-1, 5, PAGE, PAGE + 1, 1 << 62)},
    "no nulls": lambda i: setattr(i.columns, "null_counts", [0] * 8), "bounds of another": bounds(7, 0),
    "minimum above": put("min_values", 2, lambda values: values[5]), "bounds exchanged": exchange_bounds,
    "first as last": bounds(0, 7), "no bounds": no_bounds, "long bound": put("min_values", 2, b"\xff" * 5000),
    **{f"order {n}": lambda i, n=n: setattr(i.columns, "boundary_order", n) for n in (0, BoundaryOrder.DESCENDING, 99)},
    **{f"histograms of {n}": histograms(n) for n in (0, -1, 1 << 62, -(1 << 63))},
}
UNSEEN = {"i": ["pages merged: filter 0"]}
"""Two pages as one under the bounds of the first: only the page itself contradicts that, and none asks for it."""


def altered(version: int, column: str, change: Change) -> bytes:
    """The file with changed indexes of the first row group's ``column`` behind everything else."""
    data = FILES[version]
    with pqext.open(data) as file:
        node = file.schema.find(LEAVES[column])
        assert node is not None
        chunk = file.row_groups[0].chunk(node)
        indexes = Indexes(chunk, len(data))
        change(indexes)
        stored = file.metadata.row_groups[0].columns[node.leaf_start]
        raw = bytearray(data[: -8 - int.from_bytes(data[-8:-4], "little")])
        for kind, index in (("column", indexes.columns), ("offset", indexes.offsets)):
            serialised = index if isinstance(index, bytes) or index is None else encode(index)
            setattr(stored, f"{kind}_index_offset", None if serialised is None else len(raw))
            setattr(stored, f"{kind}_index_length", None if serialised is None else len(serialised))
            raw += serialised or b""
        footer = encode(file.metadata)
    return bytes(raw) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def outcome(read: Callable[[], pa.Table], expected: pa.Table) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)
        warnings.simplefilter("ignore", CorruptDataWarning)
        try:
            found = read()
        except ParquetError:
            return "error"
    return "right" if found.equals(expected) else "wrong"


def joined(batches: Callable[[], Iterable[pa.RecordBatch]]) -> pa.Table:
    return pa.Table.from_batches(batches())


@pytest.mark.parametrize(("column", "version"), [("i", 1), ("n", 2), ("d", 1), ("l", 2)])
@pytest.mark.spec("page-index.validation", "page-index.skipping")
def test_contradictory_index_never_loses_or_changes_rows(column: str, version: int) -> None:
    beside = TRUTH.select(["i", "n" if column == "i" else column])
    names = beside.column_names
    conditions = [
        (condition, beside.filter(pa.array([holds(value) for value in TRUTH[column].to_pylist()])))
        for condition, holds in FILTERS[column]
    ]
    parts = [(chosen, beside.take([row for one in chosen for row in one])) for chosen in CHOSEN]
    wrong = []

    def check(what: str, read: Callable[[], pa.Table], expected: pa.Table, *allowed: str) -> None:
        if outcome(read, expected) not in allowed:
            wrong.append(what)

    changes = dict(some(list(CHANGES.items()), 3))
    for name, change in changes.items():
        data = altered(version, column, change)
        for number, (condition, expected) in enumerate(conditions):
            what = f"{name}: filter {number}"
            check(what, partial(pqext.read_table, data, names, condition, threads=1), expected, "right", "error")
        for condition, expected in conditions[:1]:
            read = partial(pqext.read_table, data, names, condition, threads=1, on_corrupt="skip")
            check(f"{name}: skip", read, expected, "right")
        with pqext.open(data, threads=1) as file:
            for number, (chosen, expected) in enumerate(parts):
                check(f"{name}: rows {number}", partial(file.read, names, rows={0: chosen}), expected, "right", "error")
            batches = partial(file.iter_batches, 4, names, rows={0: CHOSEN[0]})
            check(f"{name}: batches", partial(joined, batches), parts[0][1], "right", "error")
    assert wrong == [what for what in UNSEEN.get(column, []) if what.partition(":")[0] in changes]
