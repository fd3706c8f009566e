"""Scans in stages: the columns besides the filter's are read of the rows that match, and the rows are the same."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.io.source import MemorySource
from pqext.dataset import scan_executor
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.execution import stages
from pqext.dataset.expressions import Expression, col
from pqext.dataset.planning import planner
from pqext.dataset.planning.plan import Task
from pqext.dataset.planning.planner import FilePlanner, byte_ranges
from reference.effort import share

ROWS, GROUP, PAGE = 6000, 2500, 100


class Recorded(MemorySource):
    """A file in memory that notes which bytes are asked for; only those come."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.fetched: list[tuple[int, int]] = []

    def _fetch(self, offset: int, length: int) -> Any:
        self.fetched.append((offset, length))
        return super()._fetch(offset, length)

    def pages(self) -> set[int]:
        """The bytes of pages that were fetched: those before the indexes and the footer."""
        with pqext.open(bytes(self._data)) as file:
            chunks = [chunk for group in file.row_groups for chunk in group.chunks()]
            end = max(sum(chunk.byte_range) for chunk in chunks)
        return {at for at in bytes_of(self.fetched) if len(b"PAR1") <= at < end}


def bytes_of(ranges: Any) -> set[int]:
    return {at for offset, length in ranges for at in range(offset, offset + length)}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages however few the bytes are, in windows of few rows."""
    set_small(monkeypatch, 64)


def set_small(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(planner, "WORTH_BYTES", 0)
    monkeypatch.setattr(stages, "_STAGE_ROWS", rows)
    monkeypatch.setattr(stages, "_FEWEST_ROWS", 2)


def table(rows: int = ROWS) -> pa.Table:
    chance = np.random.default_rng(5)
    numbers = chance.permutation(rows)
    return pa.table(
        {
            "k": pa.array(numbers),
            "n": pa.array(chance.integers(0, 50, rows), mask=chance.random(rows) < 0.2),
            "s": pa.array([f"text {n % 97}" if n % 5 else None for n in numbers.tolist()]),
            "t": [{"a": n % 13, "b": {"c": None if n % 3 else str(n)}} if n % 7 else None for n in range(rows)],
            "l": pa.array([None if n % 11 == 0 else list(range(n % 4)) for n in range(rows)]),
        }
    )


def stored(data: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(data, out, **{"row_group_rows": GROUP, "page_rows": PAGE, **options})
    return out.getvalue()


TABLE = table()
FILES = {
    "pages": stored(TABLE),
    "no page index": stored(TABLE, page_index=False),
    "no statistics": stored(TABLE, page_index=False, statistics=False),
    "pages of version 2": stored(TABLE, page_version=2, compression="zstd", dictionary=False),
}
QUESTIONS: dict[str, Expression] = {
    "one row": col("k") == 4321,
    "no row": col("n") > 100,
    "few rows": (col("n") == 7) & (col("s") == "text 5"),
    "most rows": col("k") > 100,
    "all rows": col("k") >= 0,
    "half of the rows, then few": (col("k") < 3000) & (col("n") < 3) & (col("t.a") > 6),
    "a clause of two columns": ((col("n") < 3) | (col("t.a") == 5)) & (col("k") < 5000),
    "where groups are null": col("t").is_null() & (col("n") < 10),
    "where lists are null": col("l").is_null() & col("t.b").is_not_null(),
}


def oracle(question: Expression) -> pa.Table:
    from pqext.dataset.evaluation.evaluate import evaluate

    return TABLE.filter(evaluate(question, TABLE.combine_chunks()))


@pytest.mark.spec("querying.late")
@pytest.mark.parametrize(
    "name", ["pages", "no page index", *(pytest.param(name, marks=pytest.mark.slow) for name in [*FILES][2:])]
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_rows_match_the_filter(name: str, question: str, small: None) -> None:
    expected = oracle(QUESTIONS[question])
    for columns in (None, ["s"], ["n", "k"], ["t.b.c", "l"], ["t"], []) if name == "pages" else (None, ["t.b.c", "l"]):
        scan = pqext.scan(FILES[name], columns, QUESTIONS[question])
        found = scan.to_table()
        assert found.num_rows == expected.num_rows, columns
        if columns is None or "." not in "".join(columns):
            assert found.equals(expected.select(columns or [] if columns is not None else TABLE.schema.names)), columns
        else:
            assert found.column("l").equals(expected.column("l"))
            inner = pc.struct_field(expected.column("t"), ["b", "c"])
            assert pc.struct_field(found.column("t"), ["b", "c"]).equals(inner)
    assert pqext.scan(FILES[name], ["s"], QUESTIONS[question]).count() == expected.num_rows


@pytest.mark.parametrize("strings", ["view", "dictionary"])
@pytest.mark.parametrize("question", ["few rows", "most rows", "half of the rows, then few", "where groups are null"])
def test_strings_in_every_layout_pass_through_stages(question: str, strings: str, small: None) -> None:
    filter = QUESTIONS[question] & (col("s") != "text 9")
    expected = oracle(filter)
    found = pqext.read_table(FILES["pages"], None, filter, strings=strings)
    assert found.to_pylist() == expected.to_pylist()
    assert pqext.scan(FILES["pages"], ["s"], filter, strings=strings).count() == expected.num_rows
    assert found.schema.field("s").type == pqext.open(FILES["pages"], strings=strings).arrow_schema.field("s").type


def test_pyarrow_duckdb_and_polars_return_the_same_rows(small: None, tmp_path: Any) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    path = tmp_path / "t.parquet"
    path.write_bytes(FILES["pages"])
    ours = pqext.read_table(path, ["k", "s"], (col("n") == 7) & (col("k") < 4000) & col("s").is_not_null())
    condition = (ds.field("n") == 7) & (ds.field("k") < 4000) & ds.field("s").is_valid()
    arrow = ds.dataset(path).to_table(["k", "s"], condition)
    assert ours.to_pylist() == arrow.to_pylist()
    where = "n = 7 AND k < 4000 AND s IS NOT NULL"
    assert ours.to_pylist() == [
        {"k": k, "s": s} for k, s in duckdb.sql(f"SELECT k, s FROM '{path}' WHERE {where}").fetchall()
    ]
    frame = polars.scan_parquet(path).filter(
        (polars.col("n") == 7) & (polars.col("k") < 4000) & polars.col("s").is_not_null()
    )
    assert ours.to_pylist() == frame.select("k", "s").collect().to_dicts()


@settings(max_examples=share(0.5))
@given(st.data())
def test_stages_do_not_change_rows(data: st.DataObject) -> None:
    batch = data.draw(tables())
    expression = data.draw(st.lists(expressions(batch), min_size=1, max_size=3))
    question = expression[0] if len(expression) == 1 else pqext.dataset.expressions.And(tuple(expression))
    content = stored(
        pa.table(batch), row_group_rows=data.draw(st.integers(1, 9)), page_rows=data.draw(st.integers(1, 4)),
        page_index=data.draw(st.booleans()), dictionary=data.draw(st.booleans()),
    )
    columns = data.draw(st.none() | st.lists(st.sampled_from(batch.schema.names), unique=True))
    whole = pqext.scan(content, columns, question)
    expected, count = whole.to_table(), whole.count()
    batch_rows = data.draw(st.integers(1, 6))
    with pytest.MonkeyPatch.context() as patch:
        set_small(patch, data.draw(st.integers(1, 5)))
        staged = pqext.scan(content, columns, question)
        # NaN is no value that equals itself.
        assert str(staged.to_table().to_pylist()) == str(expected.to_pylist())
        assert staged.to_table().schema.equals(expected.schema, check_metadata=True)
        assert staged.count() == count
        batches = list(staged.to_batches(batch_rows))
        assert all(0 < one.num_rows <= batch_rows for one in batches)
        assert sum(one.num_rows for one in batches) == count
        if columns != []:
            assert str(staged.head(3).to_pylist()) == str(expected.slice(0, 3).to_pylist())


def test_variant_values_are_read_for_matching_rows(small: None) -> None:
    values = [{"id": n * 7 % 500, "user": {"name": f"u{n % 9}"}, "odd": None if n % 2 else [1]} for n in range(500)]
    variants = pqext.variant.parse_json(pa.array(map(json.dumps, values)))
    for shredding in ("infer", None):
        options = {} if shredding is None else {"shredding": {"v": shredding}}
        content = stored(pa.table({"v": variants, "n": range(500)}), row_group_rows=200, page_rows=20, **options)
        name = col("v").variant("$.user.name", "string")
        filter = (col("v").variant("$.id", "int64") < 30) & (name == "u3")
        query = pqext.scan(content, ["n", ("who", name), "v"], filter)
        rows = [n for n in range(500) if n * 7 % 500 < 30 and n % 9 == 3]
        found = query.to_table()
        assert found.column("n").to_pylist() == rows
        assert found.column("who").to_pylist() == ["u3"] * len(rows)
        assert len(rows) == query.count() > 0
        expected = pqext.read_table(content, ["v"]).column("v").take(pa.array(rows))
        assert pqext.variant.to_json(found.column("v")).equals(pqext.variant.to_json(expected))


def test_variant_condition_reads_the_leaf_of_its_path(small: None) -> None:
    values = [{"id": n * 7 % 500, "name": f"u{n % 9}", "odd": n if n % 2 else "x"} for n in range(500)]
    variants = pqext.variant.parse_json(pa.array(map(json.dumps, values)))
    shredding = {"v": "id BIGINT, name STRING, odd BIGINT"}
    content = stored(pa.table({"v": variants}), shredding=shredding, page_index=False)
    number, name, odd = (col("v").variant(f"$.{key}", "int64") for key in ("id", "name", "odd"))
    text = col("v").variant("$.name", "string")
    cases: list[tuple[Expression, list[str]]] = [
        ((number < 90) & (text == "u3"), ["id.typed_value", "name.typed_value"]),
        (text.is_null() | (number == 7), ["id.typed_value", "name.typed_value"]),
        (name.is_null() & (number < 3), ["id.typed_value", "name.typed_value"]),
        ((odd > 400) & (number < 90), ["odd.value", "odd.typed_value", "id.typed_value"]),
    ]
    for filter, leaves in cases:
        source = Recorded(content)
        rows = [n for n, truth in enumerate(truths(filter, variants)) if truth]
        assert pqext.scan(source, None, filter).count() == len(rows)
        with pqext.open(content) as file:
            chunks = [file.row_groups[0].chunk(f"v.typed_value.{leaf}") for leaf in leaves]
        assert bytes_of(chunk.byte_range for chunk in chunks) <= source.pages()
        if "odd.value" not in leaves:
            assert source.pages() == bytes_of(chunk.byte_range for chunk in chunks)
        found = pqext.variant.to_json(pqext.read_table(content, None, filter)["v"]).to_pylist()
        assert [json.loads(one) for one in found] == [values[n] for n in rows]


def truths(filter: Expression, variants: pa.Array) -> list[bool | None]:
    from pqext.dataset.evaluation.evaluate import evaluate

    return evaluate(filter, pa.RecordBatch.from_arrays([variants], ["v"])).to_pylist()


def planned(source: Any, columns: Any, filter: Expression) -> Task:
    (task,) = pqext.scan(source, columns, filter).plan(pages=True)
    return task


@pytest.mark.spec("querying.late")
@pytest.mark.parametrize(
    "name", ["pages", "no statistics", *(pytest.param(name, marks=pytest.mark.slow) for name in [*FILES][1::2])]
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_only_planned_ranges_are_fetched(name: str, question: str, small: None) -> None:
    filter = QUESTIONS[question]
    task = planned(FILES[name], ["s", "l"], filter)
    kept = [group for group in task.row_groups if group.prune_reason is None and group.rows != []]
    source = Recorded(FILES[name])
    pqext.scan(source, ["s", "l"], filter).to_table()
    fetched = source.pages()
    first = {at for group in kept for at in bytes_of(group.stages[0].byte_ranges)}
    bound = {at for group in kept for stage in group.stages for at in bytes_of(stage.byte_ranges)}
    assert first <= fetched <= bound
    assert len(bound) == task.bytes_kept
    if not oracle(filter).num_rows:
        assert fetched == first


@pytest.mark.spec("querying.late", "querying.pages")
def test_row_lookup_reads_only_its_pages(small: None) -> None:
    source = Recorded(FILES["pages"])
    (row,) = pqext.scan(source, None, col("k") == 4321).to_table().to_pylist()
    assert row == TABLE.filter(pc.equal(TABLE["k"], 4321)).to_pylist()[0]
    with pqext.open(FILES["pages"]) as file:
        at = TABLE["k"].to_pylist().index(4321)
        group = file.row_groups[at // GROUP]
        expected = set()
        for plan in planned(FILES["pages"], None, col("k") == 4321).row_groups:
            if plan.prune_reason is None:
                expected |= bytes_of(plan.stages[0].byte_ranges)
        own = [range(at % GROUP, at % GROUP + 1)]
        expected |= bytes_of(byte_ranges(list(group.chunks())[1:], own))
    assert source.pages() == expected


@pytest.mark.spec("querying.projection")
def test_counting_reads_only_the_filter_columns(small: None) -> None:
    source = Recorded(FILES["pages"])
    assert pqext.scan(source, None, col("n") == 7).count() == oracle(col("n") == 7).num_rows
    with pqext.open(FILES["pages"]) as file:
        groups = [group.chunk("n").byte_range for group in file.row_groups]
    assert source.pages() == bytes_of(groups)


def test_plan_is_an_immutable_value(small: None) -> None:
    for question in QUESTIONS.values():
        task = planned(FILES["pages"], ["s"], question)
        again = Task.from_json(task.to_json())
        assert again == task
        with pqext.open(FILES["pages"]) as file:
            found = [batch for batch, _ in stages.iter_matching_batches(file, again.row_groups, (), 1000)]
        rows = pa.Table.from_batches([batch.select(["s"]) for batch in found], TABLE.select(["s"]).schema)
        assert rows.equals(oracle(question).select(["s"]))
    for text in ("", "[]", "{}", '{"path": "x"}', task.to_json().replace('"rows"', '"lines"')):
        with pytest.raises(ValueError, match=r"not a valid plan|Expecting value"):
            Task.from_json(text)


def test_explanation_lists_the_stages(small: None) -> None:
    text = pqext.scan(FILES["pages"], ["s"], (col("n") == 7) & (col("t.a") < 3)).explain()
    stages = planned(FILES["pages"], ["s"], (col("n") == 7) & (col("t.a") < 3)).row_groups[0].stages
    sizes = [f"{stage.num_bytes:,}" for stage in stages]
    assert sorted(stage.num_bytes for stage in stages[:-1]) == [stage.num_bytes for stage in stages[:-1]]
    names = [stage.columns[0] for stage in stages[:-1] if stage.columns]
    assert sorted(names) == ["n", "t.a"]
    assert (
        f"  row group 0: reads {names[0]} ({sizes[0]} bytes) for {stages[0].filter}; "
        f"then {names[1]} (at most {sizes[1]} bytes) for {stages[1].filter}; "
        f"then, of rows that match, s (at most {sizes[2]} bytes)"
    ) in text


def test_skipped_corruption_and_strict_reading_use_one_stage(small: None) -> None:
    for options in ({"on_corrupt": "skip"}, {"strict": True}):
        (task,) = pqext.scan(FILES["pages"], ["s"], col("n") == 7, **options).plan(pages=True)
        assert {len(group.stages) for group in task.row_groups} == {1}
        assert pqext.read_table(FILES["pages"], ["s"], col("n") == 7, **options).equals(
            oracle(col("n") == 7).select(["s"])
        )


def test_unselective_stages_are_abandoned(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most rows match, columns are read side by side: at once if statistics say so, or from the second window."""
    asked: list[tuple[str, ...] | None] = []
    read = pqext.core.read.reader.ParquetFile.iter_dictionary_batches

    def record(self: Any, batch_rows: int, columns: Any, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        asked.append(columns)
        return read(self, batch_rows, columns, *arguments, **options)

    monkeypatch.setattr(pqext.core.read.reader.ParquetFile, "iter_dictionary_batches", record)
    assert pqext.scan(FILES["no statistics"], ["s"], col("k") >= 0).to_table().num_rows == ROWS
    assert asked == [("k",), ("s",), ("k", "s"), ("k", "s"), ("k", "s")]
    asked.clear()
    assert pqext.scan(FILES["pages"], ["s"], col("k") >= 0).to_table().num_rows == ROWS
    assert asked == [("k", "s")] * 3


def test_pending_columns_are_bounded(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many bytes of the filter's own columns are not kept: what is left is read in one stage, or read again."""
    monkeypatch.setattr(stages, "_KEPT_BYTES", 100)
    text, number = col("s"), col("n")
    for question in (text == "text 5", (number < 25) & (text == "text 5"), (number < 9) & (text > "text 2")):
        for columns in (None, ["s"], ["n", "t", "s"]):
            expected = oracle(question).select(columns or TABLE.schema.names)
            assert pqext.read_table(FILES["pages"], columns, question).equals(expected)


def test_duplicate_columns_are_read_in_one_stage(small: None) -> None:
    twice = pa.Table.from_arrays([TABLE["k"], TABLE["s"], TABLE["s"]], names=["k", "s", "s"])
    content = stored(twice)
    with pqext.open(content) as file:
        planner = FilePlanner(file, file.options, None, (), col("k") == 3)
        plan = next(planner.row_groups(use_page_indexes=True, with_ranges=False))
    assert len(plan.stages) == 1


@pytest.mark.parametrize("options", [{}, {"include_row_numbers": "row"}, {"schema": "union"}], ids=str)
def test_few_selected_rows_do_not_shrink_filter_batches(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    numbers = pa.table({"n": range(30_000), "m": [0, 1] * 15_000})
    pqext.write_table(numbers, tmp_path / "n.parquet", row_group_rows=30_000)
    asked = 0

    def counted(*given: Any) -> pa.BooleanArray:
        nonlocal asked
        asked += 1
        return evaluate(*given)

    for module in (stages, scan_executor):
        monkeypatch.setattr(module, "evaluate", counted)
    scan = pqext.scan(tmp_path / "n.parquet", filter="m = 1 and n % 15000 = 14999", **options)
    assert scan.limit(1).to_table()["n"].to_pylist() == [14_999]
    assert scan.limit(1, offset=1).to_table()["n"].to_pylist() == [29_999]
    assert scan.head(1).num_rows == 1
    assert asked < 40
    assert [batch.num_rows for batch in scan.to_batches(1)] == [1, 1]
    assert asked < 60
