"""Newline-delimited JSON: lines, their numbers, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.json.faults import LineFault


def texts(given: Any, **options: Any) -> tuple[list[str | None], list[LineFault]]:
    array, faults = variant.parse_json_lines(given, **options)
    assert array.type == variant.variant_type()
    return variant.to_json(array).to_pylist(), faults


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", []),
        (b"\n\n \r\n\t\n", []),
        (b"1", ["1"]),
        (b"1\n", ["1"]),
        (b"1\r\n2\r\n", ["1", "2"]),
        (b"1\n\n  \n2", ["1", "2"]),
        (b' {"a": 1} \n[1]\n', ['{"a":1}', "[1]"]),
        (b"null\n", ["null"]),
    ],
)
def test_each_nonblank_line_is_a_document(given: bytes, expected: list[str]) -> None:
    assert texts(given) == (expected, [])


def test_any_buffer_is_accepted() -> None:
    for buffer in (bytearray(b"1\n2"), memoryview(b"1\n2"), pa.py_buffer(b"1\n2"), np.frombuffer(b"1\n2", np.uint8)):
        assert texts(buffer)[0] == ["1", "2"]


def test_error_names_line_byte_and_reason() -> None:
    with pytest.raises(VariantError, match="line 4: a comma or the closing bracket") as caught:
        variant.parse_json_lines(b"1\n\n2\n[1 2]\nnot read")
    assert caught.value.offset == 3
    with pytest.raises(VariantError, match="line 103"):
        variant.parse_json_lines(b"1\n\n2\n[1 2]", base_line=100)


def test_invalid_lines_become_null_rows_and_are_reported() -> None:
    found, faults = texts(b'1\nx\n\n{"a":1,"a":2}\r\n"\xff"\n2\n', on_error="null", base_line=11)
    assert found == ["1", None, None, None, "2"]
    assert [(fault.line, fault.offset) for fault in faults] == [(12, 0), (14, 0), (15, 1)]
    assert "duplicate key: 'a'" in faults[1].reason
    assert texts(b'{"a":1,"a":2}', duplicate_keys="last") == (['{"a":2}'], [])


def test_line_break_in_a_string_ends_the_line() -> None:
    with pytest.raises(VariantError, match="line 1: the text ends within a string"):
        variant.parse_json_lines(b'"a\nb"\n')


@given(
    st.lists(st.sampled_from(["1", '{"a":[1,2]}', "", "  ", '"é"', "oops"])),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_line_numbers_include_blank_lines(lines: list[str], ending: str, last: bool) -> None:
    text = ending.join(lines) + (ending if last else "")
    found, faults = texts(text.encode(), on_error="null")
    assert found == [None if line == "oops" else line for line in lines if line.strip()]
    assert [fault.line for fault in faults] == [i for i, line in enumerate(lines, 1) if line == "oops"]


def test_unknown_options_are_rejected() -> None:
    with pytest.raises(ValueError, match="on_error"):
        variant.parse_json_lines(b"", on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        variant.parse_json_lines("text")


def test_lines_must_be_a_buffer() -> None:
    with pytest.raises(TypeError, match="contiguous buffer, not StringArray; parse_json parses arrays"):
        variant.parse_json_lines(pa.array(["1"]))


@pytest.mark.parametrize(
    ("data", "is_utf16"),
    [
        ('{"a": 1}\n'.encode("utf-16"), True),
        ('{"a": 1}\n'.encode("utf-16-be"), True),
        ('{"a": 1}\n'.encode("utf-32"), False),
        ('{"a": 1}\n'.encode("utf-32-le"), False),
        (b'\0{"a":1}\n', False),
        (b'{\0"a":1}\n', False),
        (b"1\0\n", False),
    ],
)
def test_only_text_with_regular_zeros_or_a_mark_is_called_utf16(data: bytes, is_utf16: bool) -> None:
    with pytest.raises(VariantError) as caught:
        variant.parse_json_lines(data)
    assert ("UTF-16" in str(caught.value)) == is_utf16
