"""Inconsistencies of a footer, and their corrections.

Its statistics do not bound the values, counts differ, or pages have bytes left over: the claim is doubted. A statement
that the rest of the footer contradicts, by one wrong bit, is corrected, and its rows are recovered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from warnings import catch_warnings, simplefilter

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import join_names
from pqext.core.footer.checkpoints import ask_schema
from pqext.core.footer.encoding_statistics import DATA_PAGES, are_as_counted
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnMetaData,
    Encoding,
    FileMetaData,
    RowGroup,
    SchemaElement,
    Type,
)
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.claims import chunk_locations
from pqext.recovery.claims.chunk_locations import lines, pages_of
from pqext.recovery.claims.claims import ClaimedGroup, ClaimedSource, Claims, file_metadata, first_of_each
from pqext.recovery.fragments.codecs import Codecs
from pqext.recovery.fragments.leaves import Chunks, tells_no_type
from pqext.recovery.fragments.pages import Page
from pqext.verification import Fault, verify

_FAULTS = 1 << 16
_OF_VALUES = chunk_locations.OF_VALUES | {"statistics.sizes"}
LOOKED_AT = 4
"""Row groups, and pages of a chunk in each, that are looked at to see whether they have the values of a leaf."""


def doubt(source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits) -> None:
    """Say of row groups that their values contradict the statistics, or leave bytes over in all pages of a column.

    Chunks may have changed places, and a column its type. Chunks of which all pages leave bytes over, although no
    levels stand before their values, are not taken.
    """
    _refuse_unfilled(source, metadata, groups, limits)
    complete = [group for group in groups if None not in group.chunks and group.number is not None]
    said = [metadata.row_groups[group.number or 0].columns for group in complete]
    with_statistics = [
        replace(group, chunks=[_with_bounds(group, *chunks) for chunks in zip(group.chunks, columns, strict=True)])
        for group, columns in zip(complete, said, strict=True)
    ]
    contradicted = _leaving_bytes(source, metadata, complete, limits)
    for number, columns in enumerate(said):
        group = complete[number]
        both = zip(group.chunks, columns, strict=True)
        odd = [one for chunk, one in both if _has_odd_pages(group, chunk, one)]
        if odd:
            names = [".".join(one.meta_data.path_in_schema) for one in odd if one.meta_data is not None]
            contradicted.setdefault(number, []).extend(names)
    chunks = (chunk for group in with_statistics for chunk in group.chunks if chunk is not None)
    said_of_values = (chunk.statistics or chunk.size_statistics for chunk in chunks)
    for fault in _faults(source, metadata, with_statistics, limits) if any(said_of_values) else ():
        if fault.rule in _OF_VALUES and fault.row_group is not None and fault.column is not None:
            names = contradicted.setdefault(fault.row_group, [])
            names += [fault.column] * (fault.column not in names)
    for number, first in enumerate(first_of_each(complete)):  # verification decodes shared bytes once
        if number != first and first in contradicted:
            contradicted.setdefault(number, contradicted[first])
    for number, names in contradicted.items():
        complete[number].evidence = f"footer, but values of {join_names(names)} contradict it"
        complete[number].assigned = "contradicted"


def _faults(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits
) -> Sequence[Fault]:
    """What verification finds in the chunks of ``groups``, with the statistics that they have."""
    claims = Claims(list(metadata.schema), "", created_by=metadata.created_by)
    made = file_metadata(claims, groups)
    made.column_orders = metadata.column_orders
    with catch_warnings():
        simplefilter("ignore")
        return verify(ClaimedSource(source, made, limits), checks=["chunks"], limit=_FAULTS, limits=limits).faults


def _with_bounds(group: ClaimedGroup, chunk: ColumnMetaData | None, said: ColumnChunk) -> ColumnMetaData | None:
    if chunk is None or said.meta_data is None or chunk.path_in_schema[0] in group.nulls:
        return chunk
    made = copy(chunk)
    made.statistics, made.size_statistics = said.meta_data.statistics, said.meta_data.size_statistics
    return made


def _has_odd_pages(group: ClaimedGroup, chunk: ColumnMetaData | None, said: ColumnChunk) -> bool:
    """Have pages, as they were measured, other encodings than the footer lists and counts? Made nulls do not count."""
    if chunk is None or said.meta_data is None or not chunk.encoding_stats or chunk.path_in_schema[0] in group.nulls:
        return False
    found = Counter({int(one.encoding): one.count for one in chunk.encoding_stats if one.page_type in DATA_PAGES})
    return not are_as_counted(said.meta_data, found)


def _refuse_unfilled(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits
) -> None:
    tree = from_elements(metadata.schema, limits)
    flat = [leaf for leaf in tree.leaves if not leaf.max_definition_level]
    for group in groups if flat else ():
        known = [None if chunk is None else int(chunk.codec) for chunk in group.chunks]
        chunks = Chunks(source, tree, Codecs(source), known, limits)
        for leaf in flat:
            chunk = group.chunks[leaf.leaf_start]
            pages = [] if chunk is None else pages_of(source, chunk, limits) or []
            plain = [page for page in pages if page.encoding == Encoding.PLAIN and not tells_no_type(page)]
            plain = [page for page in plain if not page.is_dictionary]
            if plain and all(_leaves_bytes(leaf, page, chunks) for page in plain[:LOOKED_AT]):
                group.chunks[leaf.leaf_start] = None
                group.refused[leaf.path[0]] = "its pages hold more bytes than its values take, which may be others"


def _leaves_bytes(leaf: SchemaNode, page: Page, chunks: Chunks) -> bool:
    """Does a page without levels hold more than its values? Where these have one width the header tells."""
    width = None if leaf.physical_type == Type.BOOLEAN else leaf.leaf_type.width
    return page.unpacked > page.count * width if width else (chunks.left_over(leaf, page) or 0) > 0


def _leaving_bytes(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits
) -> dict[int, list[str]]:
    """By the place of each row group in ``groups``, the leaves of which all pages have bytes behind their values."""
    looked = groups[:LOOKED_AT]
    if not looked:
        return {}
    tree = from_elements(metadata.schema, limits)
    known = [None if chunk is None else int(chunk.codec) for chunk in looked[0].chunks]
    chunks = Chunks(source, tree, Codecs(source), known, limits)
    names = []
    for number, leaf in enumerate(tree.leaves):
        of_leaf = (one for group in looked if (one := group.chunks[number]) is not None)
        if are_others(leaf, (pages_of(source, chunk, limits) or [] for chunk in of_leaf), chunks):
            names.append(leaf.dotted)
    return {number: [*names] for number in range(len(groups))} if names else {}


def are_others(leaf: SchemaNode, of_leaf: Iterable[Sequence[Page]], chunks: Chunks) -> bool:
    """Do all pages of a leaf that are looked at have values of another type? They leave bytes over."""
    found = False
    for pages in of_leaf:
        for page in [page for page in pages if not tells_no_type(page)][:LOOKED_AT]:
            over = chunks.left_over(leaf, page)
            if over == 0:
                return False
            found |= over is not None
    return found


def rows_of(group: RowGroup, leaves: Sequence[SchemaNode], more: int) -> int:
    """The rows of a row group: what all its columns without lists have, where it is said otherwise.

    A single column is believed where the rows of the file, of which there are so many ``more`` than in all row groups,
    say so too.
    """
    counts = [
        chunk.meta_data.num_values
        for leaf, chunk in zip(leaves, group.columns, strict=False)
        if not leaf.max_repetition_level and chunk.meta_data is not None
    ]
    if not counts or min(counts) != max(counts) or counts[0] <= 0:
        return group.num_rows
    return counts[0] if len(counts) > 1 or more == counts[0] - group.num_rows else group.num_rows


def correct_values(source: Source, group: ClaimedGroup, leaves: Sequence[SchemaNode], limits: Limits) -> list[str]:
    """Give chunks without lists as many values as there are rows, where their pages have so many; these leaves."""
    found = []
    for leaf, chunk in zip(leaves, group.chunks, strict=True):
        if chunk is None or leaf.max_repetition_level or chunk.num_values == group.rows:
            continue
        counted = copy(chunk)
        counted.num_values = group.rows
        if pages_of(source, counted, limits):
            chunk.num_values = group.rows
            found.append(leaf.dotted)
    return found


def correct_schema(metadata: FileMetaData, limits: Limits) -> list[str]:
    """Give schema elements names and physical types that all chunks of a column tell, of two row groups at least.

    Says which, and changes nothing where the schema would be none then.
    """
    schema = list(metadata.schema)
    told = list(_corrections(metadata, schema))
    try:
        ask_schema(from_elements(schema, limits))
    except ParquetError:
        return []
    metadata.schema = schema
    return told


def _corrections(metadata: FileMetaData, schema: list[SchemaElement]) -> Iterator[str]:
    of_leaves = lines(schema)
    groups = [group.columns for group in metadata.row_groups if len(group.columns) == len(of_leaves)]
    for leaf, line in enumerate(of_leaves) if len(groups) > 1 else ():
        abouts = [columns[leaf].meta_data for columns in groups]
        told = {None if about is None else (tuple(about.path_in_schema), about.type) for about in abouts}
        (found, *others) = told
        if found is None or others or len(found[0]) != len(line) - 1:
            continue
        element, kind = schema[line[-1]], found[1]
        if isinstance(kind, Type) and kind != element.type:
            said = getattr(element.type, "name", element.type)
            yield f"column {element.name}: the schema calls it {said}, and all its chunks {kind.name}"
            schema[line[-1]] = element = copy(element)
            element.type = kind
        for number, name in zip(line[1:], found[0], strict=True):
            if schema[number].name != name:
                yield f"column {schema[number].name}: all its chunks call it {name}"
                schema[number] = copy(schema[number])
                schema[number].name = name


def correct_path(group: ClaimedGroup, leaves: Sequence[SchemaNode]) -> str | None:
    """Give the only chunk of a row group that names another path than its column the path of that; this leaf.

    Where all chunks of a column do so, the schema is wrong: of a single row group nothing tells which it is.
    """
    others = [
        (leaf, chunk)
        for leaf, chunk in zip(leaves, group.chunks, strict=True)
        if chunk is not None and tuple(chunk.path_in_schema) != leaf.path
    ]
    if len(others) != 1 or len(leaves) == 1 or others[0][1].type != others[0][0].physical_type:
        return None
    ((leaf, chunk),) = others
    chunk.path_in_schema = list(leaf.path)
    return leaf.dotted
