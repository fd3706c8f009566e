"""What is claimed of a file: by the best footer that is left, and by its pages where no footer reaches."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from warnings import catch_warnings, simplefilter

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import join_names
from pqext.core.footer.checkpoints import follows_its_data, structures_end
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    Encoding,
    FileMetaData,
    KeyValue,
    PageEncodingStats,
    RowGroup,
    SchemaElement,
)
from pqext.core.io.source import Source
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.serialization import KEY as ARROW_SCHEMA
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.claims import chunk_locations
from pqext.recovery.claims.chunk_locations import pages_of
from pqext.recovery.claims.claims import (
    ClaimedGroup,
    ClaimedSource,
    Claims,
    end_of,
    file_metadata,
    first_of_each,
    moved,
    true_pairs,
)
from pqext.recovery.claims.inconsistencies import (
    LOOKED_AT,
    are_others,
    correct_path,
    correct_schema,
    correct_values,
    doubt,
    rows_of,
)
from pqext.recovery.claims.report import Loss
from pqext.recovery.fragments.codecs import CODECS, Codecs
from pqext.recovery.fragments.footers import FoundFooter
from pqext.recovery.fragments.leaves import Chunks, metadata_of
from pqext.recovery.fragments.pages import Page, Segment, page_at, walk
from pqext.recovery.row_groups import assignment
from pqext.recovery.row_groups.search import AMBIGUOUS, GIVEN_UP, PageGroup, Unplaced
from pqext.verification.annotations import implausible, without_implausible

_FIRST = 8
"""Column chunks of a row group that are looked at to see whether a footer is that of the file."""
_REPEATS = 1_000
"""Row groups that repeat the bytes of others and are recovered."""


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
    """What a footer says, where pages lie as it says, or less the bytes that are missing before it.

    Bytes before it of which it says nothing may be row groups that were given up, or no pages at all. Where they are
    other ones, or chunks are not where it says, they may have been added elsewhere.
    """
    corrected = correct_schema(found.metadata, limits)
    evidence = _of_footer(source, found, limits)
    evidence.notes[:0] = corrected
    return evidence


def _of_footer(source: Source, found: FoundFooter, limits: Limits) -> Evidence:
    distances = _distances(found)
    if max(distances) == 0:
        return _at(source, found, distances, limits)
    evidence = _at(source, found, [0], limits)
    groups = evidence.claims.groups
    if not all(None not in group.chunks and group.assigned != "contradicted" for group in groups):
        return max(evidence, _at(source, found, distances, limits), key=_uncontradicted)
    sizes = {sum(chunk.total_compressed_size for chunk in group.chunks if chunk is not None) for group in groups}
    are_groups = not all(max(distances) % size for size in sizes if size)
    is_told = are_groups or page_at(source, structures_end(found.metadata), limits) is None
    return evidence if is_told else _at(source, found, distances, limits)


def _uncontradicted(evidence: Evidence) -> int:
    """Rows of complete row groups that no values contradict."""
    groups = evidence.claims.groups
    return sum(one.rows for one in groups if None not in one.chunks and one.assigned != "contradicted")


def _at(source: Source, found: FoundFooter, distances: Sequence[int], limits: Limits) -> Evidence:
    metadata = found.metadata
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
    leaves = list(from_elements(metadata.schema, limits).leaves)
    losses: list[Loss] = []
    more = metadata.num_rows - sum(group.num_rows for group in metadata.row_groups)
    for number, group in enumerate(metadata.row_groups):
        chunks = [_placed(source, chunk, distances, limits) for chunk in group.columns]
        held = max((chunk.meta_data.num_values for chunk in group.columns if chunk.meta_data is not None), default=0)
        rows = rows_of(group, leaves, more)
        if rows != group.num_rows:
            notes.append(f"row group {number}: the footer gives it {group.num_rows:,} rows, and its columns {rows:,}")
        if len(chunks) != len(leaves) or rows < 0 or (rows == 0 and held > 0):
            reason = f"the footer gives it {rows} rows and {len(chunks)} column chunks for {len(leaves)} columns"
            losses.append(Loss(reason, source_row_group=number))
        elif rows:
            claims.groups.append(ClaimedGroup(rows, chunks, "footer", number))
    if len(distances) > 1:
        _tell_apart(source, metadata, claims.groups, distances, limits)
    claims.groups, repeated = _without_repeats(claims.groups, limits.memory_for(source.size))
    losses += repeated
    _refuse_overlaps(claims.groups, found.offset)
    is_in_place = found.begin is None or follows_its_data(source, metadata, found.begin)
    for one in claims.groups:
        if len(metadata.row_groups) > 1 and (path := correct_path(one, leaves)) is not None:
            notes.append(f"column {path} in row group {one.number}: the footer calls its chunk otherwise")
        for name in correct_values(source, one, leaves, limits):
            notes.append(f"column {name} in row group {one.number}: the footer counts other values than rows and pages")
    measure(source, claims.groups, limits)  # no byte is in two chunks now
    for claimed in claims.groups:
        claimed.assigned = "footer" if is_in_place else "moved"
    doubt(source, metadata, claims.groups, limits)
    return Evidence(claims, found.name, losses, notes, metadata=metadata)


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


def _tell_apart(
    source: Source, metadata: FileMetaData, groups: Sequence[ClaimedGroup], distances: Sequence[int], limits: Limits
) -> None:
    """Give chunks their places in a file that lost bytes before its footer."""
    paths = chunk_locations.paths(metadata.schema)
    where, found = [], []
    for group in groups:
        assert group.number is not None
        for leaf, chunk in enumerate(metadata.row_groups[group.number].columns):
            places = {one: _placed(source, chunk, [one], limits) for one in distances}
            sound = {distance: place for distance, place in places.items() if place is not None}
            if sound:
                assert chunk.meta_data is not None
                where.append((group, leaf))
                found.append(chunk_locations.Moved(chunk.meta_data, group.rows, leaf, paths[leaf], sound))
    for (group, leaf), place in zip(where, chunk_locations.settle(source, metadata, found, limits), strict=True):
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
    moved = 0 if found.kind == "torn" else found.offset - structures_end(found.metadata)
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
    groups, unplaced = assignment.group(segments, leaves, chunks, hints.row_group_rows)
    losses += [Loss(_reason(one.reason, hints), one.start, one.stop) for one in unplaced]
    others = {
        number
        for number, leaf in enumerate(leaves)
        if are_others(leaf, (group.chunks[number] for group in groups[:LOOKED_AT]), chunks)
    }
    claims = replace(schema, groups=[_claimed(group, leaves, chunks, others) for group in groups])
    notes = [*_notes(groups, hints), *_doubts(groups, unplaced, chunks)]
    return Evidence(claims, "pages", losses, notes, segments)


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
    found = join_names(map(str, sorted(others)))
    return [f"row_group_rows={wanted} is not what the pages allow: row groups have {found} rows"]


def _doubts(groups: Sequence[PageGroup], unplaced: Sequence[Unplaced], chunks: Chunks) -> list[str]:
    """Why the schema may be that of other columns although pages fit it."""
    if len(groups) < 2:
        return []
    if len({*chunks.kinds}) == 1:
        return ["all columns of the schema are of one type: where it has too many or too few, values are mixed"]
    if sum(one.reason == assignment.MISFIT for one in unplaced) >= len(groups):
        return ["as many pages fit no column as there are row groups: where the schema lacks columns, values are mixed"]
    return []


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
    kinds = Counter((page.header.type, page.encoding) for page in pages)
    chunk.encoding_stats = [
        PageEncodingStats(page_type=kind, encoding=Encoding(encoding), count=count)
        for (kind, encoding), count in kinds.items()
    ]
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


def _without_repeats(groups: list[ClaimedGroup], most: int) -> tuple[list[ClaimedGroup], list[Loss]]:
    """The row groups without those that repeat the bytes of another, if they are very many, and what is lost.

    Row groups that repeat another one are written again, bytes and all: few are honest, and their copies and values
    are bounded by ``most`` together.
    """
    firsts = first_of_each(groups)
    numbers = [number for number, first in enumerate(firsts) if number != first and any(groups[number].chunks)]
    repeats = [groups[number] for number in numbers]
    size = sum(max(chunk.num_values, chunk.total_compressed_size) for one in repeats for chunk in one.chunks if chunk)
    if len(repeats) <= _REPEATS and size <= most:
        return groups, []
    left_out = set(numbers)
    message = f"{len(repeats)} row groups lie where others do, which are written once"
    lost = [Loss(message, rows=sum(group.rows for group in repeats))]
    return [group for number, group in enumerate(groups) if number not in left_out], lost


def _refuse_overlaps(groups: Sequence[ClaimedGroup], end: int) -> None:
    """Take their places from chunks into which the next one, or the footer, reaches: bytes are missing from them.

    A row group that a footer names several times is none that reaches into itself.
    """
    named: dict[int, list[ClaimedGroup]] = {}
    for group, first in zip(groups, first_of_each(groups), strict=True):
        named.setdefault(first, []).append(group)
    placed = sorted(
        (start_of(chunk), end_of(chunk), number, leaf)
        for number, alike in named.items()
        for leaf, chunk in enumerate(alike[0].chunks)
        if chunk is not None
    )

    def lose(number: int, leaf: int) -> None:
        for group in named[number]:
            group.chunks[leaf] = None

    reached = -1
    previous: tuple[int, int] | None = None
    for start, stop, number, leaf in placed:
        if previous is not None and start < reached:
            lose(*previous)
        reached, previous = stop, (number, leaf)
        if start < end < reached:
            lose(number, leaf)
