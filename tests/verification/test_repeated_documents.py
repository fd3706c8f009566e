"""A value that few bytes repeat millions of times is judged once."""

from __future__ import annotations

import struct
import time

import pytest
from core.bombs import looked_up, prefixed

import pqext
from pqext.core.format.metadata import GeographyType, GeometryType, JsonType, LogicalType, Type
from reference.pace import SLOWER


@pytest.mark.parametrize("text", ['{"a":' * 50 + "1" + "}" * 50, "{"])
def test_repeated_document_takes_no_extra_time(text: str) -> None:
    count = 1 << 22
    data = looked_up(Type.BYTE_ARRAY, prefixed(text.encode()), count, logicalType=LogicalType(JSON=JsonType()))
    began = time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - began < 3 * SLOWER
    assert [(one.rule, one.count) for one in report.counts] == ([] if text != "{" else [("logical.json", count)])


@pytest.mark.parametrize("value", [b"{", b"\1" + bytes(3)])
def test_repeated_invalid_geometry_takes_no_extra_time(value: bytes) -> None:
    count = 1 << 22
    kind = LogicalType(GEOMETRY=GeometryType(crs=None))
    data = looked_up(Type.BYTE_ARRAY, prefixed(value), count, logicalType=kind)
    began = time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - began < 3 * SLOWER
    assert sum(one.count for one in report.counts) == count


def test_repeated_coordinates_out_of_range_take_no_extra_time() -> None:
    count = 1 << 21
    kind = LogicalType(GEOGRAPHY=GeographyType(crs=None, algorithm=None))
    point = struct.pack("<BIdd", 1, 1, 999.0, 999.0)
    data = looked_up(Type.BYTE_ARRAY, prefixed(point), count, logicalType=kind)
    began = time.process_time()
    report = pqext.verify(data)
    assert time.process_time() - began < 3 * SLOWER
    assert [(one.rule, one.count) for one in report.counts] == [("geography.range", count)]
