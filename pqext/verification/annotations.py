"""Detect annotations of schema elements that no writer produces, for example after a bit flip in a footer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from pqext.core.format.metadata import ConvertedType, LogicalType, SchemaElement
from pqext.core.schema.types.logical import GROUP_MEMBERS

_STRUCT = 12
"""Wire type of every member of LogicalType, including members of later versions."""
_CONVERTED = frozenset(int(member) for member in ConvertedType)


def find_implausible_annotations(element: SchemaElement) -> Iterator[str]:
    """Yield a description of each implausible annotation of a schema element. Unknown logical types are plausible."""
    logical, converted = element.logicalType, element.converted_type
    if logical is not None and (reason := _placement_fault(element, logical)):
        yield reason
    if converted is not None and int(converted) not in _CONVERTED:
        yield f"the converted type {int(converted)}, which the format never defined"


def _placement_fault(element: SchemaElement, logical: LogicalType) -> str | None:
    if any(wire != _STRUCT for _, wire, _ in logical.unknown):
        return "a logical type that is not a structure"
    member = logical.member
    if member is not None and element.type is None and member not in GROUP_MEMBERS:
        return f"the logical type {member}, which is for values, on a group"
    if logical.INTEGER is not None and logical.INTEGER.bitWidth not in (8, 16, 32, 64):
        return f"an integer type of {logical.INTEGER.bitWidth} bits"
    return None


def without_implausible(elements: Sequence[SchemaElement]) -> list[SchemaElement]:
    """Return the elements without implausible annotations."""
    return [
        _without_implausible(element) if any(find_implausible_annotations(element)) else element
        for element in elements
    ]


def _without_implausible(element: SchemaElement) -> SchemaElement:
    result = copy(element)
    if result.logicalType is not None and _placement_fault(element, result.logicalType):
        result.logicalType = None
    if result.converted_type is not None and int(result.converted_type) not in _CONVERTED:
        result.converted_type = None
    return result
