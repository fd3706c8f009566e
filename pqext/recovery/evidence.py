"""What is claimed of a file: by the best footer that is left, and by its pages where no footer reaches."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from warnings import catch_warnings, simplefilter

import pyarrow as pa

from pqext.core.arrow_schema.text import KEY as ARROW_SCHEMA
from pqext.core.checkpoints import follows_its_data, told_end
from pqext.core.errors import ParquetError
from pqext.core.limits import Limits
from pqext.core.metadata import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    FileMetaData,
    KeyValue,
    RowGroup,
    SchemaElement,
    Type,
)
from pqext.core.reader import ParquetFile
from pqext.core.schema import SchemaNode
from pqext.core.schema_tree import from_elements
from pqext.core.source import Source
from pqext.core.suggest import listed
from pqext.recovery import grouping, placing
from pqext.recovery.claims import ClaimedGroup, ClaimedSource, Claims, end_of, file_metadata, start_of
from pqext.recovery.codecs import CODECS, Codecs
from pqext.recovery.footers import FoundFooter
from pqext.recovery.leaves import Chunks, metadata_of, tells_no_type
from pqext.recovery.pages import Page, Segment, chain, page_at, walk
from pqext.recovery.report import Loss
from pqext.recovery.searching import AMBIGUOUS, GIVEN_UP, PageGroup
from pqext.recovery.writing import moved, true_pairs
from pqext.verification import Fault, verify
from pqext.verification.annotations import implausible, without_implausible

_FAULTS = 1 << 16
_FIRST = 8
"""Column chunks of a row group that are looked at to see whether a footer is that of the file."""
_WORD = 8
"""Bytes to which writers of single bits may fill up."""
_OF_VALUES = placing.OF_VALUES | {"statistics.sizes", "layout.chunk-encoding"}
_LOOKED_AT = 4
"""Row groups, and pages of a chunk in each, that are looked at to see whether they have the values of a leaf."""


@dataclass(slots=True)
class Evidence:
    """Claims, what told them, and what was found and could not be placed."""

    claims: Claims
    told: str
    losses: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    segments: Sequence[Segment] = ()
    metadata: FileMetaData | None = None


@dataclass(slots=True)
class Hints:
    """What the caller knows: codecs to be tried, those of each leaf, and how many rows a row group has."""

    codecs: Codecs
    known: Sequence[int | None] = ()
    row_group_rows: int | None = None
    is_logical: bool = False
    """Are physical types our own guess, as those of DDL and Arrow are?"""
    codec: str | None = None
    """The only one of ``codecs``, where it was given."""


def of_footer(source: Source, found: FoundFooter, limits: Limits) -> Evidence:
    """What a footer says, where pages lie as it says."""
    metadata = found.metadata
    distances = _distances(found)
    notes = [
        f"the schema element {element.name!r} has {what}, which is left out"
        for element in metadata.schema
        for what in implausible(element)
    ]
    claims = Claims(
        without_implausible(metadata.schema),
        f"the {found.name}",
        [],
        true_pairs(metadata.key_value_metadata),
        metadata.created_by,
    )
    claims.pairs = _readable(source, claims, limits)
    if len(claims.pairs or ()) < len(true_pairs(metadata.key_value_metadata) or ()):
        notes.append("the note of the Arrow schema cannot be read and is left out")
    leaves = len(from_elements(metadata.schema, limits).leaves)
    losses: list[Loss] = []
    for number, group in enumerate(metadata.row_groups):
        chunks = [_placed(source, chunk, distances, limits) for chunk in group.columns]
        held = max((chunk.meta_data.num_values for chunk in group.columns if chunk.meta_data is not None), default=0)
        if len(chunks) != leaves or group.num_rows < 0 or (group.num_rows == 0 and held > 0):
            reason = f"the footer gives it {group.num_rows} rows and {len(chunks)} column chunks for {leaves} columns"
            losses.append(Loss(reason, source_row_group=number))
        elif group.num_rows:
            claims.groups.append(ClaimedGroup(group.num_rows, chunks, "footer", number))
    if len(distances) > 1:
        _tell_apart(source, metadata, claims.groups, distances, limits)
    _refuse_overlaps(claims.groups, found.offset)
    is_in_place = found.begin is None or follows_its_data(source, metadata, found.begin)
    measure(source, claims.groups, limits)  # no byte is in two chunks now
    for claimed in claims.groups:
        claimed.assigned = "footer" if is_in_place else "moved"
    doubt(source, metadata, claims.groups, limits)
    return Evidence(claims, found.name, losses, notes, metadata=metadata)


def doubt(source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits) -> None:
    """Say of row groups that their values contradict the statistics, or leave bytes over in all pages of a column.

    Chunks may have changed places, and a column its type.
    """
    complete = [group for group in groups if None not in group.chunks and group.number is not None]
    said = [metadata.row_groups[group.number or 0].columns for group in complete]
    with_statistics = [
        replace(group, chunks=[_with_bounds(group, *chunks) for chunks in zip(group.chunks, columns, strict=True)])
        for group, columns in zip(complete, said, strict=True)
    ]
    contradicted = _leaving_bytes(source, metadata, complete, limits)
    chunks = (chunk for group in with_statistics for chunk in group.chunks if chunk is not None)
    said_of_values = (chunk.statistics or chunk.size_statistics or chunk.encoding_stats for chunk in chunks)
    for fault in _faults(source, metadata, with_statistics, limits) if any(said_of_values) else ():
        if fault.rule in _OF_VALUES and fault.row_group is not None and fault.column is not None:
            names = contradicted.setdefault(fault.row_group, [])
            names += [fault.column] * (fault.column not in names)
    for number, names in contradicted.items():
        complete[number].evidence = f"footer, but values of {listed(names)} contradict it"
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


def narrowed(metadata: FileMetaData, elements: Sequence[SchemaElement], dropped: Collection[str]) -> FileMetaData:
    """What a footer says of the columns that are left under a schema of these ``elements``."""
    tops = from_elements(metadata.schema).root.children
    kept = [leaf.leaf_start for top in tops if top.name not in dropped for leaf in top.leaves()]
    orders = metadata.column_orders
    groups = [
        RowGroup(columns=[group.columns[leaf] for leaf in kept], total_byte_size=0, num_rows=group.num_rows)
        for group in metadata.row_groups
    ]
    return FileMetaData(
        version=metadata.version,
        schema=list(elements),
        num_rows=metadata.num_rows,
        row_groups=groups,
        created_by=metadata.created_by,
        column_orders=[orders[leaf] for leaf in kept] if orders and max(kept, default=0) < len(orders) else None,
    )


def _with_bounds(group: ClaimedGroup, chunk: ColumnMetaData | None, said: ColumnChunk) -> ColumnMetaData | None:
    if chunk is None or said.meta_data is None or chunk.path_in_schema[0] in group.nulls:
        return chunk
    made = copy(chunk)
    made.statistics, made.size_statistics = said.meta_data.statistics, said.meta_data.size_statistics
    made.encoding_stats = said.meta_data.encoding_stats
    return made


def _leaving_bytes(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], limits: Limits
) -> dict[int, list[str]]:
    """By the place of each row group in ``groups``, the leaves of which all pages have bytes behind their values."""
    looked = groups[:_LOOKED_AT]
    if not looked:
        return {}
    tree = from_elements(metadata.schema, limits)
    known = [None if chunk is None else int(chunk.codec) for chunk in looked[0].chunks]
    chunks = Chunks(source, tree, Codecs(source), known, limits)
    names = []
    for number, leaf in enumerate(tree.leaves):
        of_leaf = (one for group in looked if (one := group.chunks[number]) is not None)
        if _are_others(leaf, (pages_of(source, chunk, limits) or [] for chunk in of_leaf), chunks):
            names.append(leaf.dotted)
    return {number: [*names] for number in range(len(groups))} if names else {}


def _tell_apart(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], distances: Sequence[int], limits: Limits
) -> None:
    """Give chunks their places in a file that lost bytes before its footer."""
    paths = placing.paths(metadata.schema)
    where, found = [], []
    for group in groups:
        assert group.number is not None
        for leaf, chunk in enumerate(metadata.row_groups[group.number].columns):
            places = {one: _placed(source, chunk, [one], limits) for one in distances}
            sound = {distance: place for distance, place in places.items() if place is not None}
            if sound:
                assert chunk.meta_data is not None
                where.append((group, leaf))
                found.append(placing.Moved(chunk.meta_data, group.rows, leaf, paths[leaf], sound))
    for (group, leaf), place in zip(where, placing.settle(source, metadata, found, limits), strict=True):
        group.chunks[leaf] = place


def likely_rows(source: Source, found: FoundFooter, limits: Limits) -> int:
    """Rows of row groups of which one of the first chunks begins with a page where the footer says."""
    distances = _distances(found)
    return sum(
        max(group.num_rows, 0)
        for group in found.metadata.row_groups
        if any(_placed(source, chunk, distances, limits) is not None for chunk in group.columns[:_FIRST])
    )


def _distances(found: FoundFooter) -> list[int]:
    """How far chunks may lie from where the footer says."""
    moved = 0 if found.kind == "torn" else found.offset - told_end(found.metadata)
    return [0, moved] if moved else [0]


def _readable(source: Source, claims: Claims, limits: Limits) -> Sequence[KeyValue] | None:
    """The key-value metadata, without a note of the Arrow schema that pqext or Arrow cannot read."""
    with catch_warnings():
        simplefilter("error")
        try:
            with ParquetFile(ClaimedSource(source, file_metadata(claims, []), limits), limits=limits) as file:
                _ = file.arrow_schema
            for pair in claims.pairs or ():
                if pair.key == ARROW_SCHEMA:
                    pa.ipc.read_schema(pa.py_buffer(b64decode(pair.value or "", validate=True)))
            return claims.pairs
        except (ParquetError, Warning, ValueError, OSError):  # Arrow's errors are such
            return [pair for pair in claims.pairs or () if pair.key != ARROW_SCHEMA]


def worth(evidence: Evidence) -> int:
    """Rows of row groups of which some chunk lies where it should."""
    return sum(group.rows for group in evidence.claims.groups if any(group.chunks))


def of_pages(source: Source, start: int, stop: int, schema: Claims, hints: Hints, limits: Limits) -> Evidence:
    """What the pages between two places tell, in the light of a schema."""
    tree = from_elements(schema.elements, limits)
    leaves = list(tree.leaves)
    # The hints are those of the schema that was given; a footer in the file may have another.
    known = hints.known if len(hints.known) == len(leaves) else [None] * len(leaves)
    chunks = Chunks(source, tree, hints.codecs, known, limits)
    segments = walk(source, start, stop, limits)
    losses: list[Loss] = []
    at = start
    for segment in segments:
        if segment.start > at:
            losses.append(Loss("no pages are recognised there", at, segment.start))
        at = segment.stop
    if at < stop and not (segments and segments[-1].at_end):
        losses.append(Loss("no pages are recognised there", at, stop))
    groups, unplaced = grouping.group(segments, leaves, chunks, hints.row_group_rows)
    losses += [Loss(_reason(one.reason, hints), one.start, one.stop) for one in unplaced]
    others = {
        number
        for number, leaf in enumerate(leaves)
        if _are_others(leaf, (group.chunks[number] for group in groups[:_LOOKED_AT]), chunks)
    }
    claims = replace(schema, groups=[_claimed(group, leaves, chunks, others) for group in groups])
    return Evidence(claims, "pages", losses, _notes(groups, hints), segments)


def _are_others(leaf: SchemaNode, of_leaf: Iterable[Sequence[Page]], chunks: Chunks) -> bool:
    """Do all pages of a leaf that are looked at have values of another type? They leave bytes over."""
    found = False
    for pages in of_leaf:
        for page in [page for page in pages if not tells_no_type(page)][:_LOOKED_AT]:
            over = chunks.left_over(leaf, page)
            is_padding = leaf.physical_type == Type.BOOLEAN and over is not None and over < _WORD
            if over == 0 or is_padding:
                return False
            found |= over is not None
    return found


def _reason(reason: str, hints: Hints) -> str:
    rows = hints.row_group_rows
    if reason == GIVEN_UP and rows is None:
        return f"{reason}; row_group_rows makes it shorter"
    if reason != AMBIGUOUS:
        return reason
    told = "row_group_rows may tell which is right" if rows is None else f"row_group_rows={rows} does not settle it"
    return f"{reason}; {told}"


def _notes(groups: Sequence[PageGroup], hints: Hints) -> list[str]:
    """Where the pages allow other row groups only than those that were told of."""
    wanted = hints.row_group_rows
    if wanted is None:
        return []
    others = {one.rows for one in groups if one.rows > wanted} | {one.rows for one in groups[:-1] if one.rows != wanted}
    if not others:
        return []
    found = listed(map(str, sorted(others)))
    return [f"row_group_rows={wanted} is not what the pages allow: row groups have {found} rows"]


def _claimed(
    group: PageGroup, leaves: Sequence[SchemaNode], chunks: Chunks, others: Collection[int]
) -> ClaimedGroup:
    """The row group, without chunks of the leaves ``others``."""
    made: list[ColumnMetaData | None] = []
    for number, (leaf, pages) in enumerate(zip(leaves, group.chunks, strict=True)):
        codec = None if number in others else chunks.codec(leaf.leaf_start, pages)
        made.append(None if codec is None else metadata_of(leaf, codec, pages))
    checked = {page.checked for pages in group.chunks for page in pages}
    return ClaimedGroup(
        group.rows,
        made,
        "pages",
        checksums=None not in checked,
        intact=checked <= {True},
        may_count_rows=any(_is_second(page) for pages in group.chunks for page in pages),
        assigned=group.way,
        extent=group.extent,
    )


def end_of_claims(evidence: Evidence) -> int:
    """Where the last chunk that has a place ends."""
    return max((end_of(chunk) for group in evidence.claims.groups for chunk in group.chunks if chunk), default=4)


def _placed(source: Source, chunk: ColumnChunk, distances: Sequence[int], limits: Limits) -> ColumnMetaData | None:
    """The chunk where a page begins at its start."""
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or chunk.crypto_metadata is not None:
        return None
    if about.total_compressed_size <= 0 or about.num_values < 0:
        return None
    for distance in distances:
        made = moved(about, distance)
        start, stop = start_of(made), end_of(made)
        if start >= 0 and stop <= source.size and page_at(source, start, limits) is not None:
            return made
    return None


def pages_of(source: Source, chunk: ColumnMetaData, limits: Limits) -> list[Page] | None:
    """The pages of a chunk, ``None`` where they do not fill it or have other values than it says."""
    try:
        pages = chain(source, start_of(chunk), end_of(chunk), limits)
    except ParquetError:
        return None
    if pages is None or sum(page.count for page in pages if not page.is_dictionary) != chunk.num_values:
        return None
    return pages


def measure(source: Source, groups: Iterable[ClaimedGroup], limits: Limits) -> None:
    """Give chunks the sizes and encodings that their pages have, and say of row groups what all their pages have."""
    for group in groups:
        group.checksums, group.may_count_rows = True, False
        for chunk in group.chunks:
            pages = None if chunk is None else _measured(source, chunk, limits)
            if chunk is not None:
                group.checksums &= pages is not None and all(page.checked is not None for page in pages)
                group.may_count_rows |= pages is None or any(map(_is_second, pages))


def _measured(source: Source, chunk: ColumnMetaData, limits: Limits) -> list[Page] | None:
    pages = pages_of(source, chunk, limits)
    if pages is None:
        _leave_out_the_rest(source, chunk, limits)
        return None
    if chunk.codec not in CODECS and not any(_is_compressed(page) for page in pages):
        chunk.codec = CompressionCodec.UNCOMPRESSED
    chunk.encodings = sorted({page.encoding for page in pages} | {int(one) for one in chunk.encodings if one in (3, 4)})
    chunk.total_uncompressed_size = sum(page.head + page.unpacked for page in pages)
    return pages


def _is_second(page: Page) -> bool:
    return page.header.data_page_header_v2 is not None


def _is_compressed(page: Page) -> bool:
    second = page.header.data_page_header_v2
    return second is None or second.is_compressed is not False


def _leave_out_the_rest(source: Source, chunk: ColumnMetaData, limits: Limits) -> None:
    """End the chunk with the page that has its last value: readers would pass over what is behind that.

    Where that is pages too, one of them counts wrongly.
    """
    at, left = start_of(chunk), chunk.num_values
    while left > 0 and at < end_of(chunk):
        page = page_at(source, at, limits)
        if page is None:
            return
        at = page.end
        left -= 0 if page.is_dictionary else page.count
    if left == 0 and at < end_of(chunk) and page_at(source, at, limits) is None:
        chunk.total_compressed_size = at - start_of(chunk)


def _refuse_overlaps(groups: Sequence[ClaimedGroup], end: int) -> None:
    """Take their places from chunks into which the next one, or the footer, reaches: bytes are missing from them."""
    placed = sorted(
        (start_of(chunk), group_index, leaf)
        for group_index, group in enumerate(groups)
        for leaf, chunk in enumerate(group.chunks)
        if chunk is not None
    )
    reached = -1
    previous: tuple[int, int] | None = None
    for start, group_index, leaf in placed:
        chunk = groups[group_index].chunks[leaf]
        assert chunk is not None
        if previous is not None and start < reached:
            groups[previous[0]].chunks[previous[1]] = None
        reached, previous = end_of(chunk), (group_index, leaf)
        if start < end < reached:
            groups[group_index].chunks[leaf] = None
