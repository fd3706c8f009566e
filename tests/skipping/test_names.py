"""Names of columns in a store, against the examples of the specification and a version written letter by letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.skipping.format import names
from reference import skipping_store

COLUMNS = st.lists(st.text(st.sampled_from("aB#.$_:é😀İ-1"), min_size=1, max_size=6), min_size=1, max_size=3)


@pytest.mark.spec("store.name.v0", "store.name.v1")
def test_old_versions_join_columns_with_one_character_each() -> None:
    assert names.index_column(["a", "b"], "SomeIndex", 0) == "a:b_someindex"
    assert names.index_column(["a", "b"], "SomeIndex", 1) == "a_b_someindex"
    assert names.index_column(["n.a"], "minmax", 1) == "n.a_minmax"


@pytest.mark.spec("store.name.escapes", "store.name.lengths")
@pytest.mark.parametrize("version", [2, 3, 4])
def test_example_of_the_specification_matches(version: int) -> None:
    made = names.index_column(["lat#_.$_new", "$_lng.#"], "SomeIndex", version)
    assert made == "lat##_$#$$_new_$_lng$#$##_someindex_14-10"
    assert names.index_column(["nest.a.B"], "minmax", version) == "nest$#$a$#$b_minmax_12"


@pytest.mark.spec("store.name.escapes", "store.name.lengths", "store.name.v0", "store.name.v1")
@given(COLUMNS, st.integers(0, 4))
def test_names_match_the_character_by_character_reference(columns: list[str], version: int) -> None:
    assert names.index_column(columns, "MinMax", version) == skipping_store.column_name(columns, "MinMax", version)


@pytest.mark.spec("store.name.lengths")
@given(COLUMNS, COLUMNS)
def test_names_of_version_2_are_unique_per_column(one: list[str], other: list[str]) -> None:
    lowered = [[column.lower() for column in columns] for columns in (one, other)]
    made = [names.index_column(columns, "minmax") for columns in (one, other)]
    assert (made[0] == made[1]) == (lowered[0] == lowered[1])


def test_index_without_columns_or_of_an_unknown_version_has_no_name() -> None:
    with pytest.raises(ValueError, match="no columns"):
        names.index_column([], "minmax")
    with pytest.raises(ValueError, match="version 5"):
        names.index_column(["a"], "minmax", 5)


@pytest.mark.spec("store.prefix-free")
def test_name_that_is_a_prefix_of_another_is_rejected() -> None:
    inner, outer = names.index_column(["a"], "minmax"), names.index_column(["a_minmax_1b"], "minmax")
    assert outer.startswith(inner)
    with pytest.raises(ValueError, match=r"'a_minmax_1' \(minmax of a\) is a prefix of 'a_minmax_1b_"):
        names.check_names([], {outer: "minmax of a_minmax_1b", inner: "minmax of a"})
    names.check_names(["a", "ab"], {inner: "minmax of a", names.index_column(["b"], "minmax"): "minmax of b"})


@pytest.mark.spec("store.name.unique")
def test_duplicate_column_names_are_rejected() -> None:
    taken = names.index_column(["virtual_a"], "minmax")
    with pytest.raises(ValueError, match=r"have the same store column 'virtual_a_minmax_9'"):
        names.check_names(["A_minmax_9"], {taken: "minmax of virtual_a"})
    with pytest.raises(ValueError, match=r"the partition column 'X' and the partition column 'x'"):
        names.check_names(["x", "X"], {})
    with pytest.raises(ValueError, match=r"the names of the objects"):
        names.check_names([], {"OBJ_NAME": "an index"})
