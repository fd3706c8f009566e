"""A value that few bytes repeat millions of times is judged once."""

from __future__ import annotations

import time

import pytest
from core.bombs import looked_up, prefixed

import pqext
from pqext.core.metadata import GeometryType, JsonType, LogicalType, Type


@pytest.mark.parametrize("text", ['{"a":' * 50 + "1" + "}" * 50, "{"])
def test_a_repeated_document_takes_no_time(text: str) -> None:
    count = 1 << 22
    data = looked_up(Type.BYTE_ARRAY, prefixed(text.encode()), count, logicalType=LogicalType(JSON=JsonType()))
    began = time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - began < 6
    assert [(one.rule, one.count) for one in report.counts] == ([] if text != "{" else [("logical.json", count)])


@pytest.mark.parametrize("value", [b"{", b"\1" + bytes(3)])
def test_a_repeated_value_that_is_no_geometry_takes_no_time(value: bytes) -> None:
    count = 1 << 22
    kind = LogicalType(GEOMETRY=GeometryType(crs=None))
    data = looked_up(Type.BYTE_ARRAY, prefixed(value), count, logicalType=kind)
    began = time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - began < 6
    assert sum(one.count for one in report.counts) == count
