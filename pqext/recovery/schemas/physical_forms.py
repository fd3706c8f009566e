"""The physical forms that a column of a logical type may have: an Arrow schema and DDL state one of them, pqext's.

Another writer stores decimals as other physical types, timestamps as INT96, and has fields required that may be null.
What pages alone do not decide is decided by the values of all row groups, or reported.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Context
from functools import cache, partial
from itertools import groupby, islice, pairwise, takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import FieldRepetitionType, SchemaElement, Type
from pqext.core.io.source import Source
from pqext.core.read.leaf_runs import has_empty, is_byte_array_decimal
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.claims.chunk_locations import alone, lines
from pqext.recovery.claims.claims import ClaimedGroup, Claims
from pqext.recovery.claims.verdicts import opened, quiet
from pqext.recovery.fragments.codecs import Codecs
from pqext.recovery.fragments.footers import Effort
from pqext.recovery.fragments.leaves import Chunks, kind_of, metadata_of
from pqext.recovery.fragments.pages import Page, Segment
from pqext.recovery.row_groups.schema_fit import Column, Form, Walked, Walker, told_type

_STEPS, _STEPS_PER_ELEMENT = 3_000_000, 1_500
_READ, _READ_PAGE, _ENTRIES, _BYTES = 1_000, 100, 400, 1000
"""What it costs to read a chunk, a page of it, and one step more for so many entries and bytes; to look at one costs a
step."""
_MADE = 30
"""What it costs to make a form, for each element that leads to its leaf."""
_SHAPES = 16
"""Shapes of one top-level column that are tried."""
_READABLE = 16
"""Row groups of several sizes that are read from one place on."""
_TRIED = 4
"""Ways to read all columns that are tried on the whole file."""
_BATCH = 1 << 16
_ANY_DIGITS = Context(prec=100)
_OPTIONAL, _REQUIRED = FieldRepetitionType.OPTIONAL, FieldRepetitionType.REQUIRED
_FAR = {4: 1 << 12, 8: 1 << 16}
"""How many times smaller the largest value is in the other order, by the bytes of each, where that order is taken."""


def likely(
    source: Source,
    segments: Sequence[Segment],
    schema: Claims,
    codecs: Codecs,
    limits: Limits,
    known: int | None = None,
    *,
    may_fit: bool = False,
) -> Iterator[tuple[Claims, list[str]]]:
    """The schema in other physical forms, in which all pages of some row group can be read; and what is otherwise.

    ``known`` is where a row group begins that can be read by the schema as it is: then it alone is looked at.
    ``may_fit``: nothing comes where the schema fits as it is.
    """
    effort = Effort(0)
    effort.left = _STEPS + min(_STEPS_PER_ELEMENT * len(schema.elements), _STEPS // 4)
    looks = Effort(0)
    looks.left = effort.left // 4
    columns = columns_of(source, schema.elements, codecs, limits, effort, vary=True)
    seen: list[dict[int, SchemaElement]] = []
    for segment in segments:
        walker = Walker(segment.pages, columns, effort)
        ahead = Walker(segment.pages, columns, looks)
        for at, page in enumerate(segment.pages):
            if known not in (None, page.offset):
                continue
            begun: Iterable[Walked] = walker.groups(at)
            if known is None:
                begun = _going_on(begun, ahead, may_break_off=not segment.at_end)
            read = (_readable(source, segment.pages, walked, effort, limits) for walked in begun)
            found = [
                {number: element for form in forms for number, element in form.changed.items()}
                for forms in islice((forms for forms in read if forms is not None), _READABLE)
            ]
            if may_fit and {} in found:
                return
            for changed in found:
                if changed and changed not in seen:
                    seen.append(changed)
                    yield with_elements(schema, changed), told(schema.elements, changed)
                if len(seen) == _TRIED:
                    return
            if effort.left < 0:
                return


def _going_on(found: Iterable[Walked], ahead: Walker, *, may_break_off: bool) -> Sequence[Walked]:
    """The row groups behind which row groups go on, by the headers, or else all: few pages fit by chance, many do not.
    """
    every = list(found)
    if len(every) == 1:
        return every
    return [walked for walked in every if ahead.goes_on(walked.end, may_break_off=may_break_off)] or every


def columns_of(
    source: Source, elements: Sequence[SchemaElement], codecs: Codecs, limits: Limits, effort: Effort, *, vary: bool
) -> list[Column]:
    """The top-level columns of a schema, with other forms where they may ``vary``, each made when it is asked for."""
    made: dict[tuple[int, ...], Form] = {}
    kinds: dict[Hashable, int] = {}

    def form(line: Sequence[int], changed: Mapping[int, SchemaElement]) -> Form:
        # Shapes differ in groups that most leaves are not below.
        own = {number: changed[number] for number in line if number in changed}
        key = (line[-1], *(id(element) for element in own.values()))
        if key not in made:
            effort.take(_MADE * len(line))
            made[key] = _form(source, elements, line, own, codecs, limits, kinds)
        return made[key]

    def leaf_forms(line: Sequence[int], groups: dict[int, SchemaElement]) -> list[Form]:
        return [form(line, ChainMap(leaf, groups)) for leaf in leaves(line[-1])]

    @cache
    def leaves(leaf: int) -> list[dict[int, SchemaElement]]:
        return _leaves(elements, leaf) if vary else [{}]

    found: list[Column] = []
    for _, group in groupby(lines(elements), key=lambda line: line[1]):
        of_column = list(group)
        groups = sorted({at for line in of_column for at in line[1:-1]})
        shapes = _shapes(elements, groups) if vary else [{}]
        found.append([[cache(partial(leaf_forms, line, changed)) for line in of_column] for changed in shapes])
    return found


def _form(
    source: Source,
    elements: Sequence[SchemaElement],
    line: Sequence[int],
    own: dict[int, SchemaElement],
    codecs: Codecs,
    limits: Limits,
    kinds: dict[Hashable, int],
) -> Form:
    varied = alone([own.get(number, elements[number]) for number in line])
    tree = from_elements(varied, limits)
    node = tree.root.children[0]
    path = [node]
    while not node.is_leaf:
        node = node.children[0]
        path.append(node)
    # DDL does not tell whether elements of lists may be null, nor of which physical type a column is. Leaves of a group
    # that are all required are one contradiction, like the group would be.
    contradicts = frozenset(
        (above, True) if number == line[-1] else (number, False)
        for above, number in pairwise(line)
        if number in own
        and own[number].repetition_type != elements[number].repetition_type
        and elements[above].repetition_type != FieldRepetitionType.REPEATED
    )
    chunks = Chunks(source, tree, codecs, [None], limits)
    kind = kinds.setdefault((kind_of(next(shape.of(path[0]).leaves())), *(one.repetition for one in path)), len(kinds))
    return Form(node, varied, chunks, path, kind, own, contradicts)


def _shapes(elements: Sequence[SchemaElement], groups: Sequence[int]) -> list[dict[int, SchemaElement]]:
    """Groups of a column as they are, one of them the other way, all required and all optional."""
    # The innermost first: DDL does not tell whether elements of lists may be null.
    free = [at for at in reversed(groups) if elements[at].repetition_type in (_OPTIONAL, _REQUIRED)]
    flipped = {at: _flipped(elements[at]) for at in free}
    found: list[dict[int, SchemaElement]] = [{}, *({at: flipped[at]} for at in free[:_SHAPES])]
    for wanted in (_REQUIRED, _OPTIONAL):
        every = {at: one for at, one in flipped.items() if one.repetition_type == wanted}
        if len(every) > 1:
            found.append(every)
    return found


def _flipped(element: SchemaElement) -> SchemaElement:
    made = copy(element)
    made.repetition_type = _REQUIRED if element.repetition_type == _OPTIONAL else _OPTIONAL
    return made


def _leaves(elements: Sequence[SchemaElement], leaf: int) -> list[dict[int, SchemaElement]]:
    """A leaf as it is, in other physical types, and all these required or optional the other way."""
    types = [elements[leaf], *other_types(elements[leaf])]
    if elements[leaf].repetition_type in (_OPTIONAL, _REQUIRED):
        types += [_flipped(one) for one in types]
    return [{}, *({leaf: one} for one in types[1:])]


def other_types(element: SchemaElement) -> list[SchemaElement]:
    logical = element.logicalType
    if logical is None:
        return []
    if logical.DECIMAL is not None:
        precision = logical.DECIMAL.precision
        kinds: list[tuple[Type, int | None]] = [(Type.INT32, None)] * (precision <= 9)
        kinds += [(Type.INT64, None)] * (precision <= 18)
        kinds += [(Type.FIXED_LEN_BYTE_ARRAY, width) for width in sorted({_width(precision), 16})]
        kinds += [(Type.BYTE_ARRAY, None)]
        own = (element.type, element.type_length)
        return [_retyped(element, kind, width) for kind, width in kinds if (kind, width) != own]
    if logical.TIMESTAMP is not None:
        made = _retyped(element, Type.INT96, None)
        made.logicalType = made.converted_type = None
        return [made]
    return []


def _retyped(element: SchemaElement, kind: Type, width: int | None) -> SchemaElement:
    made = copy(element)
    made.type, made.type_length = kind, width
    return made


def _width(precision: int) -> int:
    """The fewest bytes that hold all decimals of so many digits."""
    return int(10**precision - 1).bit_length() // 8 + 1


def _readable(
    source: Source, pages: Sequence[Page], walked: Walked, effort: Effort, limits: Limits
) -> list[Form] | None:
    """The form of each leaf in which the pages of its chunk can be read; ``None`` where one has none.

    Of the shapes of a column the one is taken that contradicts the schema least.
    """
    found: list[Form] = []
    for shapes in walked.columns:
        best: tuple[int, list[Form]] | None = None
        for chunks in shapes:
            read = [
                first_read(source, forms, pages[start:stop], walked.rows, effort, limits)
                for forms, start, stop in chunks
            ]
            sound = [form for form in read if form is not None]
            if len(sound) < len(read):
                continue
            doubts = _doubts(sound, [pages[start:stop] for _, start, stop in chunks])
            if doubts is not None and (best is None or doubts < best[0]):
                best = doubts, sound
            if best is not None and not best[0]:
                break
        if best is None:
            return None
        found += best[1]
    return found


def _doubts(forms: Sequence[Form], chunks: Sequence[Sequence[Page]]) -> int | None:
    """How much the forms of the leaves of a column contradict the schema; ``None`` where they contradict each other.

    Groups are null in the same rows by the levels of all leaves below them. Where two leaves are null in the same rows,
    it is likely that the group is.
    """
    coincide = False
    for (form, pages), (other, others) in pairwise(zip(forms, chunks, strict=True)):
        both = zip(form.path, other.path, strict=False)
        shared = [one for one, _ in takewhile(lambda pair: pair[0].name == pair[1].name, both)]
        if len({form.node.max_repetition_level, other.node.max_repetition_level, shared[-1].max_repetition_level}) > 1:
            continue
        highest = shared[-1].max_definition_level
        mine, its = form.chunks.definition(form.node, pages), other.chunks.definition(other.node, others)
        if not np.array_equal(np.minimum(mine, highest), np.minimum(its, highest)):
            return None
        optional = min(form.node.max_definition_level, other.node.max_definition_level) > highest
        coincide |= optional and np.array_equal(mine, its) and bool((mine == highest).any())
    return len({one for form in forms for one in form.contradicts}) + coincide


def first_read(
    source: Source, forms: Sequence[Form], pages: Sequence[Page], rows: int, effort: Effort, limits: Limits
) -> Form | None:
    """The first form in which pages can be read."""
    for form in forms:
        entries, unpacked = sum(page.count for page in pages), sum(page.unpacked for page in pages)
        if not effort.take(_READ + _READ_PAGE * len(pages) + entries // _ENTRIES + unpacked // _BYTES):
            break
        if _largest(source, form, pages, rows, limits) is not None:
            return form
    return None


def _largest(source: Source, form: Form, pages: Sequence[Page], rows: int, limits: Limits) -> int | None:
    """As :func:`largest`, of the pages of one chunk."""
    codec = form.chunks.codec(0, pages)
    if codec is None:
        return None
    group = ClaimedGroup(rows, [metadata_of(form.node, codec, pages)], "pages")
    return largest(source, form.elements, [group], limits)


def largest(
    source: Source, elements: Sequence[SchemaElement], groups: Sequence[ClaimedGroup], limits: Limits
) -> int | None:
    """The largest value of chunks of decimals, without its sign and point, 0 for others.

    ``None`` where one cannot be read, or has decimals of no bytes or of more digits than they may have. The bytes
    of a decimal in the wrong order are nearly always a very large number.
    """
    found = 0
    try:
        with quiet(), opened(source, Claims(elements, ""), groups, limits) as file:
            for batch in file.iter_batches(_BATCH):
                for column in batch.columns:
                    found = max(found, _most(column))
            if _has_empty_decimals(file):
                return None
    except (ParquetError, ValueError):
        return None
    logical = elements[-1].logicalType
    decimal = logical.DECIMAL if logical is not None else None
    return None if decimal is not None and found >= 10**decimal.precision else found


def _has_empty_decimals(file: ParquetFile) -> bool:
    """Are there values of no bytes in the place of decimals? Text has them; of decimals no writer makes them."""
    return any(
        has_empty(file, group, leaf, group.chunk(leaf.node))
        for group in file.row_groups
        for top in file.shapes
        for leaf in top.leaves()
        if is_byte_array_decimal(leaf.node)
    )


def _most(column: pa.Array) -> int:
    while pa.types.is_nested(column.type):
        column = column.flatten()[0] if pa.types.is_struct(column.type) else column.flatten()
    if not pa.types.is_decimal(column.type):
        return 0
    scale = column.type.scale
    bounds = [value for value in pc.min_max(column).as_py().values() if value is not None]
    return max((abs(int(value.scaleb(scale, _ANY_DIGITS))) for value in bounds), default=0)


def with_elements(schema: Claims, changed: dict[int, SchemaElement]) -> Claims:
    elements = [changed.get(number, element) for number, element in enumerate(schema.elements)]
    return Claims(elements, schema.schema_from, [], schema.pairs, schema.created_by)


def told(elements: Sequence[SchemaElement], changed: dict[int, SchemaElement]) -> list[str]:
    paths = {line[depth]: line[1 : depth + 1] for line in lines(elements) for depth in range(1, len(line))}
    notes = []
    for number, element in sorted(changed.items()):
        name = ".".join(elements[at].name for at in paths[number])
        own = elements[number]
        notes.append(f"column {name} was read as {told_type(element)}, not {told_type(own)}: so its pages can be read")
    return notes


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
        sizes = [(_largest_of_leaf(source, claims, leaf, line, element, limits), element) for element in (own, *twins)]
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


def _largest_of_leaf(
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
