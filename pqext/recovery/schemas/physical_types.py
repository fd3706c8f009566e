"""Try other physical types of columns, because Arrow schemas and DDL state only logical types.

pqext guesses the physical types. Other writers store decimals with other physical types, timestamps as INT96, and make
nullable fields required. If pages alone do not determine the types, the values of all row groups decide, or the report
states the guess.
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
from pqext.core.read.leaf_runs import has_empty_value, is_byte_array_decimal
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.candidates.assessments import open_candidates, suppress_warnings
from pqext.recovery.candidates.candidates import CandidateGroup, Candidates
from pqext.recovery.candidates.chunk_locations import leaf_paths, single_leaf_schema
from pqext.recovery.detection.codecs import CodecDetector
from pqext.recovery.detection.footers import Effort
from pqext.recovery.detection.page_matching import PageMatcher, chunk_metadata, type_key
from pqext.recovery.detection.pages import Page, Segment
from pqext.recovery.row_groups.schema_fit import Column, MatchedGroup, PhysicalLeaf, SchemaMatcher, describe_element

_STEPS, _STEPS_PER_ELEMENT = 3_000_000, 1_500
_READ, _READ_PAGE, _ENTRIES, _BYTES = 1_000, 100, 400, 1000
"""Steps to read a chunk and a page of it, and entries and bytes per additional step. Inspecting a page takes one
step.
"""
_CREATE_COST = 30
"""Steps to create a physical type, per element on the path to its leaf."""
_SHAPES = 16
"""Maximum number of shapes of one top-level column to try."""
_READABLE = 16
"""Maximum number of row groups of different sizes to read at one position."""
_TRIED = 4
"""Maximum number of combinations of types to try on the whole file."""
_BATCH = 1 << 16
_ANY_DIGITS = Context(prec=100)
_OPTIONAL, _REQUIRED = FieldRepetitionType.OPTIONAL, FieldRepetitionType.REQUIRED
_FAR = {4: 1 << 12, 8: 1 << 16}
"""Minimum ratio of the largest values in both byte orders, by bytes per value, to prefer the order with smaller
values.
"""


def iter_likely_schemas(
    source: Source,
    segments: Sequence[Segment],
    schema: Candidates,
    codecs: CodecDetector,
    limits: Limits,
    readable_offset: int | None = None,
    *,
    may_fit: bool = False,
) -> Iterator[tuple[Candidates, list[str]]]:
    """Yield schemas that can read all pages of a row group, each with descriptions of its changes.

    If ``readable_offset`` is passed, the offset of a row group that the schema can read, only this row group is tried.
    If ``may_fit``, nothing is yielded if the unchanged schema can read a row group.
    """
    effort = Effort(0)
    effort.remaining = _STEPS + min(_STEPS_PER_ELEMENT * len(schema.elements), _STEPS // 4)
    lookahead = Effort(0)
    lookahead.remaining = effort.remaining // 4
    columns = build_columns(source, schema.elements, codecs, limits, effort, vary_types=True)
    seen: list[dict[int, SchemaElement]] = []
    for segment in segments:
        matcher = SchemaMatcher(segment.pages, columns, effort)
        ahead = SchemaMatcher(segment.pages, columns, lookahead)
        for at, page in enumerate(segment.pages):
            if readable_offset not in (None, page.offset):
                continue
            starting: Iterable[MatchedGroup] = matcher.groups(at)
            if readable_offset is None:
                starting = _continuable_groups(starting, ahead, may_break_off=not segment.at_end)
            read = (_find_readable(source, segment.pages, group, effort, limits) for group in starting)
            changes = [
                {number: element for leaf in leaves for number, element in leaf.changed.items()}
                for leaves in islice((leaves for leaves in read if leaves is not None), _READABLE)
            ]
            if may_fit and {} in changes:
                return
            for changed in changes:
                if changed and changed not in seen:
                    seen.append(changed)
                    yield replace_elements(schema, changed), describe_changes(schema.elements, changed)
                if len(seen) == _TRIED:
                    return
            if effort.remaining < 0:
                return


def _continuable_groups(
    groups: Iterable[MatchedGroup], matcher: SchemaMatcher, *, may_break_off: bool
) -> Sequence[MatchedGroup]:
    """Return the row groups after which other row groups can reach the last page; all of them if there are none."""
    every = list(groups)
    if len(every) == 1:
        return every
    return [group for group in every if matcher.reaches_end(group.end, may_break_off=may_break_off)] or every


def build_columns(
    source: Source, elements: Sequence[SchemaElement], codecs: CodecDetector, limits: Limits, effort: Effort, *,
    vary_types: bool,
) -> list[Column]:
    """Return the top-level columns of a schema with their possible physical types.

    If ``vary_types``, alternative physical types are created on demand; otherwise each leaf has only its own type.
    """
    created: dict[tuple[int, ...], PhysicalLeaf] = {}
    types: dict[Hashable, int] = {}

    def physical_leaf(path: Sequence[int], changes: Mapping[int, SchemaElement]) -> PhysicalLeaf:
        # Shapes differ in groups that are not above most leaves.
        own = {number: changes[number] for number in path if number in changes}
        key = (path[-1], *(id(element) for element in own.values()))
        if key not in created:
            effort.spend(_CREATE_COST * len(path))
            created[key] = _physical_leaf(source, elements, path, own, codecs, limits, types)
        return created[key]

    def physical_leaves(path: Sequence[int], groups: dict[int, SchemaElement]) -> list[PhysicalLeaf]:
        return [physical_leaf(path, ChainMap(leaf, groups)) for leaf in leaves(path[-1])]

    @cache
    def leaves(leaf: int) -> list[dict[int, SchemaElement]]:
        return _leaves(elements, leaf) if vary_types else [{}]

    columns: list[Column] = []
    for _, group in groupby(leaf_paths(elements), key=lambda path: path[1]):
        paths = list(group)
        groups = sorted({at for path in paths for at in path[1:-1]})
        shapes = _shapes(elements, groups) if vary_types else [{}]
        columns.append([[cache(partial(physical_leaves, path, changed)) for path in paths] for changed in shapes])
    return columns


def _physical_leaf(
    source: Source,
    elements: Sequence[SchemaElement],
    path: Sequence[int],
    own: dict[int, SchemaElement],
    codecs: CodecDetector,
    limits: Limits,
    types: dict[Hashable, int],
) -> PhysicalLeaf:
    """Create the leaf at ``path``. ``own`` contains elements that replace elements of the schema."""
    varied = single_leaf_schema([own.get(number, elements[number]) for number in path])
    tree = from_elements(varied, limits)
    node = tree.root.children[0]
    nodes = [node]
    while not node.is_leaf:
        node = node.children[0]
        nodes.append(node)
    # DDL does not state whether elements of lists are nullable, or the physical type of a column. A group whose leaves
    # are all required is one contradiction, like the required group.
    contradicts = frozenset(
        (above, True) if number == path[-1] else (number, False)
        for above, number in pairwise(path)
        if number in own
        and own[number].repetition_type != elements[number].repetition_type
        and elements[above].repetition_type != FieldRepetitionType.REPEATED
    )
    matcher = PageMatcher(source, tree, codecs, [None], limits)
    key = (type_key(next(shape.from_node(nodes[0]).leaves())), *(item.repetition for item in nodes))
    return PhysicalLeaf(node, varied, matcher, nodes, types.setdefault(key, len(types)), own, contradicts)


def _shapes(elements: Sequence[SchemaElement], groups: Sequence[int]) -> list[dict[int, SchemaElement]]:
    """Return possible sets of groups with toggled nullability: none, one, all required or all optional groups."""
    # The innermost first: DDL does not state whether elements of lists are nullable.
    free = [at for at in reversed(groups) if elements[at].repetition_type in (_OPTIONAL, _REQUIRED)]
    flipped = {at: _toggle_nullability(elements[at]) for at in free}
    shapes: list[dict[int, SchemaElement]] = [{}, *({at: flipped[at]} for at in free[:_SHAPES])]
    for repetition in (_REQUIRED, _OPTIONAL):
        every = {at: element for at, element in flipped.items() if element.repetition_type == repetition}
        if len(every) > 1:
            shapes.append(every)
    return shapes


def _toggle_nullability(element: SchemaElement) -> SchemaElement:
    result = copy(element)
    result.repetition_type = _REQUIRED if element.repetition_type == _OPTIONAL else _OPTIONAL
    return result


def _leaves(elements: Sequence[SchemaElement], leaf: int) -> list[dict[int, SchemaElement]]:
    """Return possible changes to a leaf: none, other physical types, and each type with its nullability toggled."""
    types = [elements[leaf], *alternative_types(elements[leaf])]
    if elements[leaf].repetition_type in (_OPTIONAL, _REQUIRED):
        types += [_toggle_nullability(element) for element in types]
    return [{}, *({leaf: element} for element in types[1:])]


def alternative_types(element: SchemaElement) -> list[SchemaElement]:
    """Return elements with the other physical types that can store the logical type of ``element``."""
    logical = element.logicalType
    if logical is None:
        return []
    if logical.DECIMAL is not None:
        precision = logical.DECIMAL.precision
        types: list[tuple[Type, int | None]] = [(Type.INT32, None)] * (precision <= 9)
        types += [(Type.INT64, None)] * (precision <= 18)
        types += [(Type.FIXED_LEN_BYTE_ARRAY, width) for width in sorted({_decimal_width(precision), 16})]
        types += [(Type.BYTE_ARRAY, None)]
        own = (element.type, element.type_length)
        return [_replace_type(element, type, width) for type, width in types if (type, width) != own]
    if logical.TIMESTAMP is not None:
        int96 = _replace_type(element, Type.INT96, None)
        int96.logicalType = int96.converted_type = None
        return [int96]
    return []


def _replace_type(element: SchemaElement, type: Type, width: int | None) -> SchemaElement:
    result = copy(element)
    result.type, result.type_length = type, width
    return result


def _decimal_width(precision: int) -> int:
    """Return the minimum number of bytes that can store every decimal of ``precision`` digits."""
    return int(10**precision - 1).bit_length() // 8 + 1


def _find_readable(
    source: Source, pages: Sequence[Page], group: MatchedGroup, effort: Effort, limits: Limits
) -> list[PhysicalLeaf] | None:
    """Return, for each leaf, a physical type that can decode the pages of its chunk; None if a leaf lacks such a type.

    If a column is readable in several shapes, the shape with the fewest contradictions to the schema is used.
    """
    result: list[PhysicalLeaf] = []
    for shapes in group.columns:
        best: tuple[int, list[PhysicalLeaf]] | None = None
        for chunks in shapes:
            read = [
                find_readable_type(source, types, pages[start:stop], group.rows, effort, limits)
                for types, start, stop in chunks
            ]
            readable = [leaf for leaf in read if leaf is not None]
            if len(readable) < len(read):
                continue
            contradictions = _count_contradictions(readable, [pages[start:stop] for _, start, stop in chunks])
            if contradictions is not None and (best is None or contradictions < best[0]):
                best = contradictions, readable
            if best is not None and not best[0]:
                break
        if best is None:
            return None
        result += best[1]
    return result


def _count_contradictions(leaves: Sequence[PhysicalLeaf], chunks: Sequence[Sequence[Page]]) -> int | None:
    """Count the contradictions between the leaves of a column and the schema.

    The levels of all leaves below a group must agree on the rows with a null group. Returns None if they do not. If two
    leaves are null in the same rows, the group is likely null.
    """
    coincide = False
    for (leaf, pages), (other, other_pages) in pairwise(zip(leaves, chunks, strict=True)):
        both = zip(leaf.path, other.path, strict=False)
        shared = [node for node, _ in takewhile(lambda pair: pair[0].name == pair[1].name, both)]
        if len({leaf.node.max_repetition_level, other.node.max_repetition_level, shared[-1].max_repetition_level}) > 1:
            continue
        highest = shared[-1].max_definition_level
        levels = leaf.matcher.definition_levels(leaf.node, pages)
        other_levels = other.matcher.definition_levels(other.node, other_pages)
        if not np.array_equal(np.minimum(levels, highest), np.minimum(other_levels, highest)):
            return None
        optional = min(leaf.node.max_definition_level, other.node.max_definition_level) > highest
        coincide |= optional and np.array_equal(levels, other_levels) and bool((levels == highest).any())
    return len({group for leaf in leaves for group in leaf.contradicts}) + coincide


def find_readable_type(
    source: Source, types: Sequence[PhysicalLeaf], pages: Sequence[Page], rows: int, effort: Effort, limits: Limits
) -> PhysicalLeaf | None:
    """Return the first of ``types`` that can decode the pages; None if none can, or if no effort remains."""
    for leaf in types:
        entries, unpacked = sum(page.count for page in pages), sum(page.uncompressed_bytes for page in pages)
        if not effort.spend(_READ + _READ_PAGE * len(pages) + entries // _ENTRIES + unpacked // _BYTES):
            break
        if _largest_in_pages(source, leaf, pages, rows, limits) is not None:
            return leaf
    return None


def _largest_in_pages(
    source: Source, leaf: PhysicalLeaf, pages: Sequence[Page], rows: int, limits: Limits
) -> int | None:
    """Return the :func:`largest_magnitude` of the values in one chunk."""
    codec = leaf.matcher.detect_codec(0, pages)
    if codec is None:
        return None
    group = CandidateGroup(rows, [chunk_metadata(leaf.node, codec, pages)], "pages")
    return largest_magnitude(source, leaf.elements, [group], limits)


def largest_magnitude(
    source: Source, elements: Sequence[SchemaElement], groups: Sequence[CandidateGroup], limits: Limits
) -> int | None:
    """Return the largest absolute unscaled value in chunks of decimals; 0 for other types.

    Returns None if a chunk cannot be read, or has empty decimals or decimals with too many digits. A decimal read in
    the wrong byte order is almost always a very large number.
    """
    result = 0
    try:
        with suppress_warnings(), open_candidates(source, Candidates(elements, ""), groups, limits) as file:
            for batch in file.iter_batches(_BATCH):
                for column in batch.columns:
                    result = max(result, _largest_magnitude_in(column))
            if _has_empty_decimals(file):
                return None
    except (ParquetError, ValueError):
        return None
    logical = elements[-1].logicalType
    decimal = logical.DECIMAL if logical is not None else None
    return None if decimal is not None and result >= 10**decimal.precision else result


def _has_empty_decimals(file: ParquetFile) -> bool:
    """Return whether a decimal column contains empty values, which are valid as strings but not as decimals."""
    return any(
        has_empty_value(file, group, leaf, group.chunk(leaf.node))
        for group in file.row_groups
        for top in file.shapes
        for leaf in top.leaves()
        if is_byte_array_decimal(leaf.node)
    )


def _largest_magnitude_in(column: pa.Array) -> int:
    """Return the largest absolute unscaled value of an array; 0 if its leaf is not a decimal."""
    while pa.types.is_nested(column.type):
        column = column.flatten()[0] if pa.types.is_struct(column.type) else column.flatten()
    if not pa.types.is_decimal(column.type):
        return 0
    scale = column.type.scale
    bounds = [value for value in pc.min_max(column).as_py().values() if value is not None]
    return max((abs(int(value.scaleb(scale, _ANY_DIGITS))) for value in bounds), default=0)


def replace_elements(schema: Candidates, changes: dict[int, SchemaElement]) -> Candidates:
    elements = [changes.get(number, element) for number, element in enumerate(schema.elements)]
    return Candidates(elements, schema.schema_from, [], schema.pairs, schema.created_by)


def describe_changes(elements: Sequence[SchemaElement], changes: dict[int, SchemaElement]) -> list[str]:
    paths = {path[depth]: path[1 : depth + 1] for path in leaf_paths(elements) for depth in range(1, len(path))}
    notes = []
    for number, element in sorted(changes.items()):
        name = ".".join(elements[at].name for at in paths[number])
        own = elements[number]
        types = f"{describe_element(element)} instead of {describe_element(own)}"
        notes.append(f"column {name} was read as {types}, because its pages match")
    return notes


def find_swapped_decimals(
    source: Source, candidates: Candidates, limits: Limits
) -> tuple[dict[int, SchemaElement], list[str]]:
    """Return the decimals that are far smaller in the other byte order, and the paths of ambiguous decimals.

    Decimals are returned as changed elements by number. A decimal read in the wrong byte order is almost always a very
    large number, or exceeds its precision, unless the correct value is itself close to the maximum. A row group of
    zeros fits both orders, so all row groups are read.
    """
    swapped: dict[int, SchemaElement] = {}
    unsure: list[str] = []
    for leaf, path in enumerate(leaf_paths(candidates.elements)):
        own = candidates.elements[path[-1]]
        twins = [other for other in alternative_types(own) if _is_byte_swapped(own, other)]
        if not twins or own.logicalType is None or own.logicalType.DECIMAL is None:
            continue
        sizes = [
            (_largest_of_leaf(source, candidates, leaf, path, element, limits), element) for element in (own, *twins)
        ]
        own_size, ratio = sizes[0][0], _FAR[_byte_width(own) or 0]
        smaller = [
            (size, element)
            for size, element in sizes[1:]
            if size is not None and (own_size is None or size * ratio < own_size)
        ]
        if smaller:
            swapped[path[-1]] = min(smaller, key=lambda option: option[0])[1]
        elif own_size and any(size is not None and size <= own_size * ratio for size, _ in sizes[1:]):
            unsure.append(".".join(candidates.elements[at].name for at in path[1:]))
    return swapped, unsure


def _largest_of_leaf(
    source: Source, candidates: Candidates, leaf: int, path: Sequence[int], element: SchemaElement, limits: Limits
) -> int | None:
    groups = []
    for group in candidates.groups:
        chunk = copy(group.chunks[leaf])
        if chunk is not None:
            chunk.type = Type(element.type or 0)
            groups.append(CandidateGroup(group.rows, [chunk], "pages"))
    elements = [element if number == path[-1] else other for number, other in enumerate(candidates.elements)]
    return largest_magnitude(source, single_leaf_schema([elements[at] for at in path]), groups, limits)


def _is_byte_swapped(element: SchemaElement, other: SchemaElement) -> bool:
    """Return whether the values of both elements have the same size but different byte orders."""
    size = _byte_width(element)
    return (
        size is not None
        and size == _byte_width(other)
        and element.type != other.type
        and element.repetition_type == other.repetition_type
    )


def _byte_width(element: SchemaElement) -> int | None:
    return {Type.INT32: 4, Type.INT64: 8, Type.FIXED_LEN_BYTE_ARRAY: element.type_length}.get(Type(element.type or 0))


def undecided_columns(elements: Sequence[SchemaElement]) -> list[str]:
    """Return the top-level columns with lists whose pages do not show which groups are nullable."""
    names: list[str] = []
    for path in leaf_paths(elements):
        above = [elements[at].repetition_type for at in path[1:]]
        optional, required = FieldRepetitionType.OPTIONAL in above, FieldRepetitionType.REQUIRED in above
        name = elements[path[1]].name
        if FieldRepetitionType.REPEATED in above and optional and required and name not in names:
            names.append(name)
    return names
