"""Planning asks facts, whoever knows them: copies of what a file's footer and indexes say give the same plans."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext import geo
from pqext.core.format.predicate import Bounds, Comparison, IsIn, Predicate, may_match
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.read.row_groups import RowGroups
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.core.schema.facts import FileFacts
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.expressions import Expression, col
from pqext.dataset.planning.planner import FilePlanner
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import prune_reason, rows_that_may_match

UNKNOWN = Bounds(has_nan=None)
COMPLETE = {"use_page_indexes": True, "with_ranges": True}


@dataclass
class Pages:
    """Pages as plain lists, of which every one is looked at."""

    row_ranges: list[range]
    bounds: list[Bounds]
    places: list[tuple[int, int]]
    is_flat: bool

    @property
    def starts(self) -> list[int]:
        return [rows.start for rows in self.row_ranges]

    def __len__(self) -> int:
        return len(self.row_ranges)

    def rows(self, page: int) -> range:
        return self.row_ranges[page]

    def byte_range(self, page: int) -> tuple[int, int]:
        return self.places[page]

    def matching_pages(self, predicate: Predicate) -> list[int]:
        return [page for page, bounds in enumerate(self.bounds) if may_match(predicate, bounds)]


@dataclass
class Leaf:
    """What somebody wrote down of a column chunk."""

    node: SchemaNode
    row_group: int = 0
    num_values: int = 0
    codec: int = 0
    byte_range: tuple[int, int] = (4, 1 << 20)
    uncompressed_bytes: int = 1 << 20
    values: Bounds = UNKNOWN
    present: frozenset[Any] | None = None
    pages: Pages | None = None
    geospatial_statistics: Any = None
    extensions: dict[UUID, bytes] = field(default_factory=dict)

    @property
    def page_locations(self) -> Pages | None:
        return self.pages

    def bounds(self) -> Bounds:
        return self.values

    def may_contain(self, predicate: Predicate) -> bool:
        asked = predicate.values if isinstance(predicate, IsIn) else ()
        asked = (predicate.value,) if isinstance(predicate, Comparison) and predicate.operator == "==" else asked
        return self.present is None or not asked or any(value in self.present for value in asked)

    def extension(self, owner: UUID) -> bytes | None:
        return self.extensions.get(owner)


@dataclass
class Group:
    """What somebody wrote down of a row group."""

    index: int
    num_rows: int
    schema: Schema
    leaves: list[Leaf]
    properties: dict[str, str] = field(default_factory=dict)
    trust_statistics: bool = True

    def chunk(self, leaf: SchemaNode | int | str) -> Leaf:
        node = self.schema.find(leaf) if isinstance(leaf, str) else leaf
        assert node is not None
        return self.leaves[node if isinstance(node, int) else node.leaf_start]

    def bounds(self, leaf: SchemaNode) -> Bounds:
        return self.chunk(leaf).bounds()

    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        return sum(self.chunk(leaf).byte_range[1] for leaf in leaves)

    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Nothing is to be fetched."""

    def file_property(self, key: str) -> str | None:
        return self.properties.get(key)


@dataclass
class Told:
    """A file of which somebody told, and which need not be there."""

    path: str | None
    schema: Schema
    row_groups: Sequence[Group]
    round_trip_bytes: int = 0

    def fetch_ahead(self, request: Callable[[], object]) -> None:
        """Nothing is to be fetched."""


def copy_facts(file: ParquetFile, present: dict[str, frozenset[Any]]) -> Told:
    """The facts of an open file, copied."""

    def pages(chunk: ColumnChunk) -> Pages | None:
        found = chunk.pages
        if found is None:
            return None
        rows, places = zip(*((found.rows(page), found.byte_range(page)) for page in range(len(found))), strict=True)
        return Pages([*rows], list(found), [*places], found.is_flat)

    def group(one: RowGroup) -> Group:
        leaves = []
        for chunk in one.chunks():
            boxes = chunk.extension(PAGE_BOXES)
            leaves.append(
                Leaf(
                    chunk.node, one.index, chunk.num_values, chunk.codec, chunk.byte_range, chunk.uncompressed_bytes,
                    chunk.bounds(), present.get(chunk.node.dotted_path), pages(chunk), chunk.geospatial_statistics,
                    {} if boxes is None else {PAGE_BOXES: boxes},
                )
            )
        pairs = {pair.key: pair.value or "" for pair in file.metadata.key_value_metadata or ()}
        return Group(one.index, one.num_rows, file.schema, leaves, pairs)

    return Told(file.path, file.schema, [group(one) for one in file.row_groups])


@pytest.fixture(scope="module")
def data() -> bytes:
    """Plain, variant and geometry columns in three row groups of ten pages."""
    generator = np.random.default_rng(11)
    numbers = np.sort(generator.integers(0, 10_000, 3000)) * 2
    events = [f'{{"n": {n}, "user": {{"name": "u{n // 1000}"}}}}' for n in numbers.tolist()]
    table = pa.table(
        {
            "n": numbers,
            "s": [f"k{n:05}" if n % 10 else None for n in numbers.tolist()],
            "v": pqext.variant.parse_json(pa.array(events)),
            "g": geo.from_points(numbers / 200, generator.uniform(0, 1, 3000)),
        }
    )
    out = io.BytesIO()
    pqext.write_table(
        table, out, row_group_rows=1000, page_rows=100, shredding={"v": "infer"}, bloom_filters={"n": True},
        geometry={"g": {"crs": "OGC:CRS84", "covering": True}}, geoparquet=True,
    )
    return out.getvalue()


FILTERS: list[Expression] = [
    col("n") == 4002,
    col("n") == 4003,  # by the Bloom filter no row
    col("n").isin([3, 5, 19_998]),
    (col("n") > 18_000) | (col("s") < "k00100"),
    col("s").is_null() & (col("n") < 2000),
    col("v").variant("$.n", "int64") < 300,
    col("v").variant("$.user.name", "string") == "u7",
    col("v").is_null(),
    col("g").intersects((10, 0, 12, 1)),
    col("g").intersects((200, 0, 210, 1)),
    (col("g").intersects((10, 0, 60, 1))) & (col("v").variant("$.n", "int64") >= 9000),
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_supplied_facts_produce_the_plan_of_the_file(filter: Expression, data: bytes) -> None:
    with pqext.open(data) as file:
        numbers = file.read(["n"])["n"]
        told = copy_facts(file, {"n": frozenset(numbers.to_pylist())})
        known: FileFacts = file
        expected = list(FilePlanner(known, ReadOptions(), ["s"], (), filter).row_groups(**COMPLETE))
        bound = bind(filter, file.schema)
        verdicts = [(prune_reason(bound, group), rows_that_may_match(bound, group)) for group in file.row_groups]
    facts: FileFacts = told
    assert list(FilePlanner(facts, ReadOptions(), ["s"], (), filter).row_groups(**COMPLETE)) == expected
    assert [(prune_reason(bound, group), rows_that_may_match(bound, group)) for group in facts.row_groups] == verdicts
    assert any(rows != [range(1000)] for _, rows in verdicts)


def test_constructed_facts_plan_a_missing_file(data: bytes) -> None:
    with pqext.open(data) as file:
        schema = file.schema
    leaves = [Leaf(node) for node in schema.leaves]
    halves = [Bounds(0, 9, 0, 50), Bounds(10, 19, 0, 50)]
    leaves[0] = Leaf(
        schema.leaves[0], values=Bounds(0, 19, 0, 100), present=frozenset({3, 12}),
        pages=Pages([range(50), range(50, 100)], halves, [(100, 30), (130, 20)], True), byte_range=(100, 50),
    )
    facts = Told(None, schema, [Group(0, 100, schema, leaves)])

    def plan(filter: Expression) -> Any:
        (found,) = FilePlanner(facts, ReadOptions(), ["n"], (), filter).row_groups(**COMPLETE)
        return found

    assert plan(col("n") > 19).prune_reason == "n > 19 is true for no row: values lie between 0 and 19"
    assert plan(col("n") == 4).prune_reason == "n == 4 is true for no row: its Bloom filter does not hold the value"
    assert plan(col("n") == 12).rows == [range(50, 100)]
    assert plan(col("n") == 12).stages[0].byte_ranges == ((130, 20),)
    assert plan(col("s") == "x").rows is None  # nothing is known of it


def test_requested_chunks_are_cached_up_to_a_limit(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pqext.open(data) as file:
        group = file.row_groups[0]
        assert group.chunk("n") is group.chunk(0) is group.chunk(file.schema.leaves[0])
        assert group.chunk("n").bounds() is group.chunk("n").bounds()
    monkeypatch.setattr("pqext.core.read.row_groups._KEPT", 2 * 64 + 5)
    with pqext.open(data) as file:
        groups = file.row_groups
        assert isinstance(groups, RowGroups)
        first = groups[0]
        for leaf in range(6):
            first.chunk(leaf)
        assert groups[1] is groups[1]
        assert groups[0] is not first
        assert groups[0].chunk(0).bounds() == first.chunk(0).bounds()
