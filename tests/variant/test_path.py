"""Paths into variants parse into steps, and steps print as paths."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.variant.access.path import (
    MAX_INDEX,
    Wildcard,
    as_path,
    as_wildcard_path,
    format_path,
    parse,
    parse_wildcard_path,
)
from reference.pace import SLOWER


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[0]['x.y']", ("a", "b", 0, "x.y")),
        ('$["it\'s"]', ("it's",)),
        (r"$['it\'s']", ("it's",)),
        (r"$['a\\b']", ("a\\b",)),
        (r"$['a\n']", (r"a\n",)),
        ("$['']", ("",)),
        ("$[12].x y.é", (12, "x y", "é")),
        ("$['*']", ("*",)),
        ('$."zip code"', ("zip code",)),
        ('$."a.b[0]".c."*"[1]', ("a.b[0]", "c", "*", 1)),
        (r'$."say \"hi\""', ('say "hi"',)),
        ("$.it's", ("it's",)),
        ("$['*'].日本['a?b']", ("*", "日本", "a?b")),
        (f"$[{MAX_INDEX}]", (MAX_INDEX,)),
        ("$[4294967295]", (4294967295,)),
        (f"$[{'0' * 30}7].a[00]", (7, "a", 0)),
    ],
)
@pytest.mark.spec("path.spark")
def test_path_is_a_tuple_of_names_and_indexes(text: str, steps: tuple[str | int, ...]) -> None:
    assert parse(text) == steps


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "starts with"),
        ("a.b", 0, "starts with"),
        ("$a", 1, "expected . or"),
        *((f"$[0]{mark}b", 4, "expected . or") for mark in " !\"#$%&'()*+,-/:;=?@]^|"),
        ("$.", 2, "empty"),
        ("$.a..b", 4, "empty"),
        ("$[", 2, "element index or a quoted"),
        ("$[x]", 2, "element index or a quoted"),
        ("$[-1]", 2, "must be 0 or more here, as in Spark; pqext.variant.get accepts"),
        ("$.a[*]", 3, r"variant\.explode"),
        ("$.a.*", 4, r"variant\.explode.*\['\*'\]"),
        ("$.*.a", 2, r"variant\.explode"),
        ("$[-]", 2, "element index or a quoted"),
        ("$[1", 3, "expected ]"),
        ("$['a'", 5, "expected ]"),
        ("$['a", 2, "not closed"),
        ('$."a', 2, "not closed"),
        ('$."a"b', 5, "expected . or"),
        ("$['a']b", 6, "expected . or"),
        ("$[99999999999]", 2, "out of range"),
        (f"$[{MAX_INDEX + 1}]", 2, "out of range"),
        (f"$[{'9' * 5000}]", 2, "out of range"),
    ],
)
@pytest.mark.spec("path.refused")
def test_invalid_path_is_rejected_with_its_position(text: str, position: int, reason: str) -> None:
    with pytest.raises(ValueError, match=f"position {position}: .*{reason}"):
        parse(text)


@pytest.mark.spec("path.refused")
@pytest.mark.parametrize("steps", [("a", -1), (2**32,), (True,), (1.0,), (None,)])
def test_invalid_sequence_of_steps_is_rejected(steps: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        as_path(steps)


def test_long_paths_take_linear_time_and_are_quoted_partially() -> None:
    started = time.process_time()
    assert parse("$" + ".a" * 100_000) == ("a",) * 100_000
    assert parse("$['" + r"\\\'a" * 200_000 + "']") == ("\\'a" * 200_000,)
    assert parse("$." + "a" * 1_000_000) == ("a" * 1_000_000,)
    for text in ("$['" + "a" * 1_000_000, "$['" + "\\" * 1_000_000, "$[" + "9" * 1_000_000, "$" + "." * 1_000_000):
        with pytest.raises(ValueError, match="position") as caught:
            parse(text)
        assert len(str(caught.value)) < 1000
    assert time.process_time() - started < 3 * SLOWER


@given(st.lists(st.one_of(st.text(), st.integers(0, MAX_INDEX))))
def test_every_path_prints_as_parseable_text(steps: list[str | int]) -> None:
    assert parse(format_path(steps)) == tuple(steps)


many = st.lists(st.one_of(st.text(), st.just("*"), st.integers(0, MAX_INDEX), st.sampled_from(Wildcard)))


@given(many)
def test_paths_with_wildcards_print_as_parseable_text(steps: list[str | int | Wildcard]) -> None:
    assert parse_wildcard_path(format_path(steps)) == tuple(steps)
    assert as_wildcard_path(steps) == tuple(steps)


@pytest.mark.spec("explode.wildcards")
def test_wildcards_match_every_element_and_field() -> None:
    assert parse_wildcard_path("$.a[*].b.*") == ("a", Wildcard.ELEMENTS, "b", Wildcard.FIELDS)
    assert parse_wildcard_path("$['*'].*x[0]") == ("*", "*x", 0)
    with pytest.raises(TypeError, match="path step"):
        as_path(["a", Wildcard.FIELDS])  # type: ignore[list-item]


def test_path_may_be_a_sequence_of_steps() -> None:
    assert as_path("$.a[1]") == as_path(["a", 1]) == ("a", 1)
    with pytest.raises(ValueError, match="out of range"):
        as_path([-1])
    with pytest.raises(TypeError, match="sequence of steps"):
        as_path(b"$")  # type: ignore[arg-type]
    for wrong in ([True], [1.5], [None]):
        with pytest.raises(TypeError, match="path step"):
            as_path(wrong)  # type: ignore[arg-type]


def test_negative_indexes_are_accepted_on_request() -> None:
    assert parse("$.a[-1]", from_end=True) == ("a", -1) == as_path(["a", -1], from_end=True)
    assert parse(format_path(("a", -3)), from_end=True) == ("a", -3)
    for index in (-MAX_INDEX - 1, MAX_INDEX + 1):
        with pytest.raises(ValueError, match="out of range"):
            parse(f"$[{index}]", from_end=True)
        with pytest.raises(ValueError, match="out of range"):
            as_path([index], from_end=True)
