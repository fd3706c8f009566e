"""Annotations of schema elements that no writer makes, now or later: what a flipped bit in a footer leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from pqext.core.format.metadata import ConvertedType, LogicalType, SchemaElement
from pqext.core.schema.types.logical import GROUP_MEMBERS

_STRUCT = 12
"""The wire type of every member of LogicalType, those of later versions too."""
_CONVERTED = frozenset(int(one) for one in ConvertedType)


def implausible(element: SchemaElement) -> Iterator[str]:
    """What is wrong with the annotations of an element. Logical types that are not known are not."""
    logical, converted = element.logicalType, element.converted_type
    if logical is not None and (reason := _misplaced(element, logical)):
        yield reason
    if converted is not None and int(converted) not in _CONVERTED:
        yield f"the converted type {int(converted)}, to which none was ever added"


def _misplaced(element: SchemaElement, logical: LogicalType) -> str | None:
    if any(wire != _STRUCT for _, wire, _ in logical.unknown):
        return "a logical type that is no structure"
    member = logical.member
    if member is not None and element.type is None and member not in GROUP_MEMBERS:
        return f"the logical type {member} of values, although it is a group"
    if logical.INTEGER is not None and logical.INTEGER.bitWidth not in (8, 16, 32, 64):
        return f"an integer type of {logical.INTEGER.bitWidth} bits"
    return None


def without_implausible(elements: Sequence[SchemaElement]) -> list[SchemaElement]:
    """The elements without such annotations."""
    return [_mended(element) if any(implausible(element)) else element for element in elements]


def _mended(element: SchemaElement) -> SchemaElement:
    made = copy(element)
    if made.logicalType is not None and _misplaced(element, made.logicalType):
        made.logicalType = None
    if made.converted_type is not None and int(made.converted_type) not in _CONVERTED:
        made.converted_type = None
    return made
