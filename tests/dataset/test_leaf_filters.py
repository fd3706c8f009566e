"""Filters compare what is stored: a typed leaf in the place of a VARIANT, a dictionary once, not its rows."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from pqext.core.format.metadata import Encoding
from pqext.core.read.value_slots import IndexedSlots
from pqext.dataset.evaluation import evaluate
from pqext.dataset.planning.plan import Task
from reference.effort import share

event = col("v").variant("$.event", "string")
WORDS = ["view", "buy", "", "\u00e9"]


def written(documents: list[Any], **options: Any) -> bytes:
    events = variant.parse_json(pa.array([None if one is None else json.dumps(one) for one in documents], pa.string()))
    table = pa.table({"v": events, "n": range(len(documents)), "w": [str(i % 3) for i in range(len(documents))]})
    out = io.BytesIO()
    pqext.write_table(table, out, shredding={"v": "event STRING, id BIGINT"}, **options)
    return out.getvalue()


def leaves_read(source: bytes, filter: Any) -> list[tuple[str, ...]]:
    """What each stage of the first row group reads: what it asks the reader for, and leaves by their paths."""
    (task,) = pqext.scan(source, ["n"], filter=filter).plan()
    assert Task.from_json(task.to_json()) == task
    with pqext.open(source) as file:
        paths = [leaf.dotted_path for leaf in file.schema.leaves]
    return [
        (*(stage.columns or ()), *(paths[leaf] for _, leaf in stage.asked)) for stage in task.row_groups[0].stages
    ]


def test_only_the_leaf_is_read_if_it_contains_all_values() -> None:
    documents = [{"event": WORDS[i % 4], "id": i, "more": "x" * 50} for i in range(3000)]
    source = written(documents)
    (columns,) = leaves_read(source, event == "view")
    assert columns == ("n", "v.typed_value.event.typed_value")
    wanted = [i for i in range(3000) if WORDS[i % 4] == "view"]
    assert pqext.scan(source, ["n"], filter=event == "view").to_table()["n"].to_pylist() == wanted
    assert pqext.scan(source, filter=event == "view").to_table()["n"].to_pylist() == wanted
    price = [("id", col("v").variant("$.id", "int64"))]
    assert pqext.read_table(source, price, filter=event == "view")["id"].to_pylist() == wanted


def test_value_may_be_requested_twice() -> None:
    source = written([{"event": WORDS[i % 4], "id": i} for i in range(100)])
    low, high = (col("v").variant("$.id", "int64") for _ in range(2))
    wanted = list(range(6, 9))
    assert pqext.scan(source, ["n"], filter=(low > 5) & (high < 9)).to_table()["n"].to_pylist() == wanted
    again = [("x", col("v").variant("$.id", "int64")), ("y", col("v").variant("$.id", "int64"))]
    found = pqext.read_table(source, again, filter=(low > 5) & (high < 9) & (high != 7))
    assert found.to_pydict() == {"x": [6, 8], "y": [6, 8]}


def test_residual_of_the_leaf_is_also_read() -> None:
    documents: list[Any] = [{"event": "view"}] * 10 + [{"event": 5}]
    assert "v.typed_value.event.value" in leaves_read(written(documents), event == "view")[0]


documents = st.one_of(
    st.none(), st.fixed_dictionaries({}, optional={"event": st.sampled_from(WORDS), "id": st.integers(-3, 3)}),
    st.sampled_from([{"event": None}, {"event": 7}, {"id": "x"}, 5, [1]]),
)


@settings(max_examples=share(0.3), deadline=None)
@given(
    st.lists(documents, max_size=30), st.sampled_from(["==", "!=", "<", "in", "null", "not null"]),
    st.sampled_from([*WORDS, "zz"]), st.sampled_from([3, 1000]), st.booleans(),
    st.sampled_from([None, "event", "both"]),
)
def test_rows_match_the_documents(
    values: list[Any], operator: str, word: str, rows: int, dictionary: bool, other: str | None
) -> None:
    source = written(values, row_group_rows=rows, page_rows=2, dictionary=dictionary)
    asked = {
        "==": event == word, "!=": event != word, "<": event < word, "in": event.isin([word, "view"]),
        "null": event.is_null(), "not null": event.is_not_null(),
    }[operator]
    if other == "event":
        asked = asked & (col("w") == "1")
    elif other == "both":
        asked = asked | (col("v").variant("$.id", "int64") > 0)

    def as_text(one: Any) -> Any:
        found = one.get("event") if isinstance(one, dict) else None
        return str(found) if isinstance(found, int) else found

    def holds(at: int, one: Any) -> bool:
        found = as_text(one)
        is_true = {
            "==": found is not None and found == word, "!=": found is not None and found != word,
            "<": found is not None and found.encode() < word.encode(),
            "in": found is not None and found in (word, "view"), "null": found is None, "not null": found is not None,
        }[operator]
        if other == "event":
            return is_true and at % 3 == 1
        if other == "both":
            number = one.get("id") if isinstance(one, dict) else None
            return is_true or (isinstance(number, int) and number > 0)
        return is_true

    expected = [at for at, one in enumerate(values) if holds(at, one)]
    assert pqext.scan(source, ["n"], filter=asked).to_table()["n"].to_pylist() == expected
    assert pqext.scan(source, filter=asked).count() == len(expected)
    whole = pqext.scan(source, ["v", "n"], filter=asked).to_table()
    assert whole["n"].to_pylist() == expected


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the arrays that conditions compare. Strings are read as dictionaries only."""
    lengths: list[int] = []
    compare = evaluate.compare

    def counted(array: pa.Array, *arguments: Any) -> pa.Array:
        lengths.append(len(array))
        return compare(array, *arguments)

    monkeypatch.setattr(evaluate, "compare", counted)
    monkeypatch.setattr(IndexedSlots, "look_up", None)
    return lengths


def test_filter_only_strings_are_compared_once_per_dictionary(compared: list[int]) -> None:
    source = io.BytesIO()
    pqext.write_table(pa.table({"w": ["a", "b", None, "c"] * 5000, "n": range(20_000)}), source)
    assert pqext.scan(source.getvalue(), ["n"], filter=col("w") == "b").to_table()["n"].to_pylist()[:2] == [1, 5]
    assert set(compared) == {3}


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
@pytest.mark.parametrize("is_selective", [True, False])
def test_strings_of_the_result_are_compared_once_per_dictionary_in_a_single_stage(
    compared: list[int], type: pa.DataType, is_selective: bool
) -> None:
    words = ["a", "bb", None, "c"] * 5000
    values = pa.array(words).cast(type)
    source = io.BytesIO()
    pqext.write_table(pa.table({"w": values, "n": range(20_000)}), source, row_group_rows=6000)
    literal = b"bb" if type == pa.binary() else "bb"
    asked = col("w") == literal if is_selective else col("w") != literal
    expected = [at for at, word in enumerate(words) if word is not None and (word == "bb") is is_selective]
    for columns in (["w"], ["n", "w"], ["w", "n"], None):
        scan = pqext.scan(source.getvalue(), columns, filter=asked)
        assert {len(group.stages) for plan in scan.plan() for group in plan.row_groups} == {1}
        result = scan.to_table()
        assert result.schema.field("w").type == type
        assert result["w"].to_pylist() == [values[at].as_py() for at in expected]
        if "n" in result.schema.names:
            assert result["n"].to_pylist() == expected
    assert set(compared) == {3}


def test_strings_of_the_result_after_a_full_dictionary_are_compared_as_they_are() -> None:
    words = [f"w{n % 7}" for n in range(200_000)] + [f"{n:020}" for n in range(100_000)]
    source = io.BytesIO()
    pqext.write_table(pa.table({"w": words}), source)
    with pqext.open(source.getvalue()) as file:
        assert {Encoding.RLE_DICTIONARY, Encoding.PLAIN} <= {*file.row_groups[0].chunk(0).metadata.encodings}
    wanted = ["w3", f"{99_000:020}"]
    expected = [word for word in words if word in wanted]
    assert pqext.read_table(source.getvalue(), ["w"], col("w").isin(wanted))["w"].to_pylist() == expected
    assert pqext.read_table(source.getvalue(), filter=~col("w").isin(wanted)).num_rows == len(words) - len(expected)
