"""Detect inconsistencies between a footer and the data, and correct them if possible.

Row groups are marked as contradicted if statistics do not bound their values, counts are wrong, or pages are too long.
A field that the rest of the footer contradicts, for example after a bit flip, is corrected, and its rows are recovered.
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
from pqext.core.footer.checkpoints import resolve_columns
from pqext.core.footer.encoding_statistics import DATA_PAGES, has_matching_counts
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
from pqext.recovery.candidates import chunk_locations
from pqext.recovery.candidates.candidates import (
    CandidateGroup,
    Candidates,
    CandidateSource,
    file_metadata,
    first_equal_groups,
)
from pqext.recovery.candidates.chunk_locations import leaf_paths, pages_of
from pqext.recovery.detection.codecs import CodecDetector
from pqext.recovery.detection.page_matching import PageMatcher, is_type_unknown
from pqext.recovery.detection.pages import Page
from pqext.verification import Fault, verify

_FAULTS = 1 << 16
_VALUE_RULES = chunk_locations.STATISTICS_RULES | {"statistics.sizes"}
SAMPLE = 4
"""Number of row groups, and of pages per chunk, that are sampled to check whether they have the values of a leaf."""


def flag_contradictions(
    source: Source, metadata: FileMetaData, groups: Sequence[CandidateGroup], limits: Limits
) -> None:
    """Mark row groups that contradict the footer: its statistics, page counts by encoding, or column types.

    Bytes after the values of sampled pages contradict the column's type: chunks may have been swapped, or the column
    may have another type. Chunks of required columns without lists are rejected if all their sampled pages have such
    bytes.
    """
    _reject_oversized_chunks(source, metadata, groups, limits)
    complete = [group for group in groups if None not in group.chunks and group.number is not None]
    stated = [metadata.row_groups[group.number or 0].columns for group in complete]
    with_statistics = [
        replace(group, chunks=[_add_statistics(group, *chunks) for chunks in zip(group.chunks, columns, strict=True)])
        for group, columns in zip(complete, stated, strict=True)
    ]
    contradicted = _find_extra_bytes(source, metadata, complete, limits)
    for number, columns in enumerate(stated):
        group = complete[number]
        both = zip(group.chunks, columns, strict=True)
        odd = [column for chunk, column in both if _has_other_page_counts(group, chunk, column)]
        if odd:
            names = [".".join(column.meta_data.path_in_schema) for column in odd if column.meta_data is not None]
            contradicted.setdefault(number, []).extend(names)
    chunks = (chunk for group in with_statistics for chunk in group.chunks if chunk is not None)
    has_statistics = any(chunk.statistics or chunk.size_statistics for chunk in chunks)
    for fault in _verify_chunks(source, metadata, with_statistics, limits) if has_statistics else ():
        if fault.rule in _VALUE_RULES and fault.row_group is not None and fault.column is not None:
            names = contradicted.setdefault(fault.row_group, [])
            names += [fault.column] * (fault.column not in names)
    for number, first in enumerate(first_equal_groups(complete)):  # verification decodes shared bytes once
        if number != first and first in contradicted:
            contradicted.setdefault(number, contradicted[first])
    for number, names in contradicted.items():
        complete[number].evidence = f"footer, but values of {join_names(names)} contradict it"
        complete[number].assigned = "contradicted"


def _verify_chunks(
    source: Source, metadata: FileMetaData, groups: Sequence[CandidateGroup], limits: Limits
) -> Sequence[Fault]:
    """Verify the chunks of ``groups`` against the statistics of the footer, and return the faults."""
    candidates = Candidates(list(metadata.schema), "", created_by=metadata.created_by)
    footer = file_metadata(candidates, groups)
    footer.column_orders = metadata.column_orders
    with catch_warnings():
        simplefilter("ignore")
        return verify(CandidateSource(source, footer, limits), checks=["chunks"], limit=_FAULTS, limits=limits).faults


def _is_generated(group: CandidateGroup, chunk: ColumnMetaData) -> bool:
    """Return whether recovery created the chunk, to replace a lost column with nulls."""
    return any(name in group.nulls for name in chunk.path_in_schema[:1])  # a damaged footer may state an empty path


def _add_statistics(
    group: CandidateGroup, chunk: ColumnMetaData | None, metadata_chunk: ColumnChunk
) -> ColumnMetaData | None:
    """Return a copy of the chunk's metadata with the statistics of the footer.

    Chunks of generated nulls are unchanged.
    """
    if chunk is None or metadata_chunk.meta_data is None or _is_generated(group, chunk):
        return chunk
    result = copy(chunk)
    metadata = metadata_chunk.meta_data
    result.statistics, result.size_statistics = metadata.statistics, metadata.size_statistics
    return result


def _has_other_page_counts(group: CandidateGroup, chunk: ColumnMetaData | None, metadata_chunk: ColumnChunk) -> bool:
    """Return whether the page counts by encoding in the footer differ from the pages. False for generated nulls."""
    if chunk is None or metadata_chunk.meta_data is None or not chunk.encoding_stats or _is_generated(group, chunk):
        return False
    counts = Counter({int(stat.encoding): stat.count for stat in chunk.encoding_stats if stat.page_type in DATA_PAGES})
    return not has_matching_counts(metadata_chunk.meta_data, counts)


def _reject_oversized_chunks(
    source: Source, metadata: FileMetaData, groups: Sequence[CandidateGroup], limits: Limits
) -> None:
    """Reject chunks of required columns without lists if all their sampled pages have bytes after the values."""
    tree = from_elements(metadata.schema, limits)
    flat = [leaf for leaf in tree.leaves if not leaf.max_definition_level]
    for group in groups if flat else ():
        codecs = [None if chunk is None else int(chunk.codec) for chunk in group.chunks]
        matcher = PageMatcher(source, tree, CodecDetector(source), codecs, limits)
        for leaf in flat:
            chunk = group.chunks[leaf.leaf_start]
            pages = [] if chunk is None else pages_of(source, chunk, limits) or []
            plain = [page for page in pages if page.encoding == Encoding.PLAIN and not is_type_unknown(page)]
            plain = [page for page in plain if not page.is_dictionary]
            if plain and all(_has_extra_bytes(leaf, page, matcher) for page in plain[:SAMPLE]):
                group.chunks[leaf.leaf_start] = None
                reason = "its pages contain more bytes than its values need; they may be other values"
                group.rejected[leaf.path[0]] = reason


def _has_extra_bytes(leaf: SchemaNode, page: Page, matcher: PageMatcher) -> bool:
    """Return whether a page without levels has bytes after its values.

    Pages of fixed-size values are checked by their headers alone.
    """
    width = None if leaf.physical_type == Type.BOOLEAN else leaf.leaf_type.width
    if width:
        return page.uncompressed_bytes > page.count * width
    return (matcher.count_trailing_bytes(leaf, page) or 0) > 0


def _find_extra_bytes(
    source: Source, metadata: FileMetaData, groups: Sequence[CandidateGroup], limits: Limits
) -> dict[int, list[str]]:
    """Map each position in ``groups`` to the leaves whose sampled pages have extra bytes."""
    sample = groups[:SAMPLE]
    if not sample:
        return {}
    tree = from_elements(metadata.schema, limits)
    codecs = [None if chunk is None else int(chunk.codec) for chunk in sample[0].chunks]
    matcher = PageMatcher(source, tree, CodecDetector(source), codecs, limits)
    names = []
    for number, leaf in enumerate(tree.leaves):
        leaf_chunks = (chunk for group in sample if (chunk := group.chunks[number]) is not None)
        if contradicts_type(leaf, (pages_of(source, chunk, limits) or [] for chunk in leaf_chunks), matcher):
            names.append(leaf.dotted_path)
    return {number: [*names] for number in range(len(groups))} if names else {}


def contradicts_type(leaf: SchemaNode, leaf_pages: Iterable[Sequence[Page]], matcher: PageMatcher) -> bool:
    """Return whether sampled pages show that the values of a leaf have another type.

    At least one page must have bytes after its values, and all other pages must have such bytes or be unreadable.
    """
    is_mismatch = False
    for pages in leaf_pages:
        for page in [page for page in pages if not is_type_unknown(page)][:SAMPLE]:
            extra = matcher.count_trailing_bytes(leaf, page)
            if extra == 0:
                return False
            is_mismatch |= extra is not None
    return is_mismatch


def resolve_row_count(group: RowGroup, leaves: Sequence[SchemaNode], extra_rows: int) -> int:
    """Return the row count of a row group: the value count that all columns without lists share, or the stated count.

    The value count of a single column is used only if the row count of the file confirms it. ``extra_rows`` is the row
    count of the file minus the row counts of its row groups.
    """
    counts = [
        chunk.meta_data.num_values
        for leaf, chunk in zip(leaves, group.columns, strict=False)
        if not leaf.max_repetition_level and chunk.meta_data is not None
    ]
    if not counts or min(counts) != max(counts) or counts[0] <= 0:
        return group.num_rows
    return counts[0] if len(counts) > 1 or extra_rows == counts[0] - group.num_rows else group.num_rows


def correct_value_counts(
    source: Source, group: CandidateGroup, leaves: Sequence[SchemaNode], limits: Limits
) -> list[str]:
    """Correct value counts of chunks without lists if pages confirm the row count. Returns the corrected paths."""
    corrected = []
    for leaf, chunk in zip(leaves, group.chunks, strict=True):
        if chunk is None or leaf.max_repetition_level or chunk.num_values == group.rows:
            continue
        adjusted = copy(chunk)
        adjusted.num_values = group.rows
        if pages_of(source, adjusted, limits):
            chunk.num_values = group.rows
            corrected.append(leaf.dotted_path)
    return corrected


def correct_schema(metadata: FileMetaData, limits: Limits) -> list[str]:
    """Correct the name or physical type of a schema element if every chunk of its column contradicts it.

    At least two row groups must agree on the correction. Returns descriptions of the corrections. Nothing is changed
    if the schema would become invalid.
    """
    schema = list(metadata.schema)
    corrections = list(_iter_corrections(metadata, schema))
    try:
        resolve_columns(from_elements(schema, limits))
    except ParquetError:
        return []
    metadata.schema = schema
    return corrections


def _iter_corrections(metadata: FileMetaData, schema: list[SchemaElement]) -> Iterator[str]:
    """Correct each element of ``schema`` that all chunks of its column contradict, and yield descriptions."""
    paths = leaf_paths(schema)
    groups = [group.columns for group in metadata.row_groups if len(group.columns) == len(paths)]
    for leaf, path in enumerate(paths) if len(groups) > 1 else ():
        abouts = [columns[leaf].meta_data for columns in groups]
        stated = {None if about is None else (tuple(about.path_in_schema), about.type) for about in abouts}
        (common, *others) = stated
        if common is None or others or len(common[0]) != len(path) - 1:
            continue
        element, type = schema[path[-1]], common[1]
        if isinstance(type, Type) and type != element.type:
            name = getattr(element.type, "name", element.type)
            yield f"column {element.name}: the schema states {name}, all its chunks {type.name}"
            schema[path[-1]] = element = copy(element)
            element.type = type
        for number, name in zip(path[1:], common[0], strict=True):
            if schema[number].name != name:
                yield f"column {schema[number].name}: all its chunks name it {name}"
                schema[number] = copy(schema[number])
                schema[number].name = name

def correct_path(group: CandidateGroup, leaves: Sequence[SchemaNode]) -> str | None:
    """Correct the path of the only chunk in a row group whose path differs from its column, and return the new path.

    Returns None if nothing is corrected: no path or several paths differ, the type differs too, or the schema has a
    single column.
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
    return leaf.dotted_path
