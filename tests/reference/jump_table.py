"""A jump table read slowly, by its description alone: every number of it is looked up in the footer it indexes."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from reference.compact import Reader

NAMES = """
    version thrift_bytes block_bytes columns row_groups tops elements schema_header schema_start schema_end
    groups_header groups_start groups_end orders_header orders_start orders_end order_bytes section_bytes crc_list
"""


def split(footer: bytes) -> tuple[dict[str, int], bytes, bytes, bytes]:
    """Of a footer that ends in a framed table: the root's numbers, the fields before it, the sections, the CRCs."""
    assert footer[-1] == 0
    extension = footer[:-29]  # before CRC, length, CRC of the length, UUID and stop byte
    assert extension[-84:-80] == b"PQXJ"
    assert zlib.crc32(extension[-84:-4]) == int.from_bytes(extension[-4:], "little")
    root = dict(zip(NAMES.split(), struct.unpack("<19I", extension[-80:-4]), strict=True))
    blocks = sum(-(-root[size] // root["block_bytes"]) for size in ("thrift_bytes", "section_bytes"))
    start = len(extension) - 84 - 4 * blocks - root["section_bytes"]
    sections, crcs = extension[start : start + root["section_bytes"]], extension[-84 - 4 * blocks : -84]
    return root, footer[: root["thrift_bytes"]], sections, crcs


def check(footer: bytes) -> None:
    """Raise ``AssertionError`` where anything in the table of a footer is not as the footer is."""
    root, thrift, sections, crcs = split(footer)
    assert zlib.crc32(crcs) == root["crc_list"]
    size = root["block_bytes"]
    blocks = [part[at : at + size] for part in (thrift, sections) for at in range(0, len(part), size)]
    assert [zlib.crc32(block) for block in blocks] == [number for (number,) in struct.iter_unpack("<I", crcs)]
    numbers = iter([number for (number,) in struct.iter_unpack("<I", sections)])
    names = [(next(numbers), next(numbers)) for _ in range(root["tops"])]
    tops = [(next(numbers), next(numbers), next(numbers)) for _ in range(root["tops"] + 1)]
    groups = [(next(numbers), next(numbers), next(numbers)) for _ in range(root["row_groups"])]
    places = [[next(numbers) for _ in groups] for _ in range(root["columns"] + 1)]
    assert not list(numbers)

    reader = Reader(thrift + b"\0")
    fields = {id: value for id, _, value in reader.struct()}
    elements = fields[2][2]
    assert len(elements) == root["elements"]
    found = list(_tops(elements))
    assert [(element, leaf) for _, element, leaf in tops] == found
    assert sorted(names) == names == sorted(
        (zlib.crc32(dict_of(elements[element])[4]), at) for at, (element, _) in enumerate(found[:-1])
    )
    starts = [*_walk(thrift, root["schema_header"], root["schema_start"], root["schema_end"], len(elements))]
    assert [place for place, _, _ in tops] == [starts[element] for element, _ in found]
    ends = [*_walk(thrift, root["groups_header"], root["groups_start"], root["groups_end"], len(groups))]
    for at, (start, header, stop) in enumerate(groups):
        assert (start, stop) == (ends[at], ends[at + 1])
        assert start < header < places[0][at]
        chunks = [*_walk(thrift, header, places[0][at], places[-1][at], root["columns"])]
        assert chunks == [column[at] for column in places]
    if root["order_bytes"]:
        orders = [*_walk(thrift, root["orders_header"], root["orders_start"], root["orders_end"], root["columns"])]
        assert orders == list(range(root["orders_start"], root["orders_end"] + 1, root["order_bytes"]))


def dict_of(fields: Any) -> dict[int, Any]:
    return {id: value for id, _, value in fields}


def _tops(elements: Any) -> Any:
    """The number of each top-level element and of its first leaf, and what comes behind."""
    leaves = 0

    def pass_over(at: int) -> int:
        nonlocal leaves
        below = dict_of(elements[at]).get(5, 0)
        leaves += not below
        at += 1
        for _ in range(below):
            at = pass_over(at)
        return at

    at = 1
    while at < len(elements):
        yield at, leaves
        at = pass_over(at)
    yield at, leaves


def _walk(thrift: bytes, header: int, start: int, stop: int, count: int) -> Any:
    """The places of the structures of a list, whose header must say how many there are."""
    assert thrift[header] == (count << 4 | 12 if count < 15 else 0xFC)
    reader = Reader(thrift, header + 1)
    if count >= 15:
        assert reader.varint() == count
    assert reader.at == start
    for _ in range(count):
        yield reader.at
        reader.struct()
    assert reader.at == stop
    yield stop
