"""What pages alone do not decide of physical forms, decided by the values of all row groups, or told."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from pqext.core.base.limits import Limits
from pqext.core.format.metadata import FieldRepetitionType, SchemaElement, Type
from pqext.core.io.source import Source
from pqext.recovery.claims import ClaimedGroup, Claims
from pqext.recovery.forms import largest, other_types
from pqext.recovery.placing import alone, lines

_FAR = {4: 1 << 12, 8: 1 << 16}
"""How many times smaller the largest value is in the other order, by the bytes of each, where that order is taken."""


def decimals(source: Source, claims: Claims, limits: Limits) -> tuple[dict[int, SchemaElement], list[str]]:
    """The decimals that are far smaller with their bytes in the other order, by their element's number.

    And the paths of those that fit in both orders, in neither by far smaller.

    Bytes in the wrong order are nearly always a very large number, or one of more digits than the decimals may have:
    many times larger than what they are, where this is not itself close to the most digits. A row group of zeros says
    nothing of it, so that all are looked at.
    """
    found: dict[int, SchemaElement] = {}
    unsure: list[str] = []
    for leaf, line in enumerate(lines(claims.elements)):
        own = claims.elements[line[-1]]
        twins = [one for one in other_types(own) if _are_twins(own, one)]
        if not twins or own.logicalType is None or own.logicalType.DECIMAL is None:
            continue
        sizes = [(_largest(source, claims, leaf, line, element, limits), element) for element in (own, *twins)]
        said, far = sizes[0][0], _FAR[_bytes_of(own) or 0]
        smaller = [
            (size, element)
            for size, element in sizes[1:]
            if size is not None and (said is None or size * far < said)
        ]
        if smaller:
            found[line[-1]] = min(smaller, key=lambda one: one[0])[1]
        elif said and any(size is not None and size <= said * far for size, _ in sizes[1:]):
            unsure.append(".".join(claims.elements[at].name for at in line[1:]))
    return found, unsure


def _largest(
    source: Source, claims: Claims, leaf: int, line: Sequence[int], element: SchemaElement, limits: Limits
) -> int | None:
    groups = []
    for group in claims.groups:
        chunk = copy(group.chunks[leaf])
        if chunk is not None:
            chunk.type = Type(element.type or 0)
            groups.append(ClaimedGroup(group.rows, [chunk], "pages"))
    elements = [element if number == line[-1] else one for number, one in enumerate(claims.elements)]
    return largest(source, alone([elements[at] for at in line]), groups, limits)


def _are_twins(one: SchemaElement, other: SchemaElement) -> bool:
    """Have both values of as many bytes, in another order?"""
    size = _bytes_of(one)
    return (
        size is not None
        and size == _bytes_of(other)
        and one.type != other.type
        and one.repetition_type == other.repetition_type
    )


def _bytes_of(element: SchemaElement) -> int | None:
    return {Type.INT32: 4, Type.INT64: 8, Type.FIXED_LEN_BYTE_ARRAY: element.type_length}.get(Type(element.type or 0))


def undecided(elements: Sequence[SchemaElement]) -> list[str]:
    """The top-level columns with lists of which pages do not tell which levels may be null."""
    names: list[str] = []
    for line in lines(elements):
        above = [elements[at].repetition_type for at in line[1:]]
        optional, required = FieldRepetitionType.OPTIONAL in above, FieldRepetitionType.REQUIRED in above
        name = elements[line[1]].name
        if FieldRepetitionType.REPEATED in above and optional and required and name not in names:
            names.append(name)
    return names
