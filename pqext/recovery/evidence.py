"""Collect candidate row groups from the best remaining footer, and from pages that no footer covers."""

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
from pqext.core.footer.checkpoints import follows_data, structures_end
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    Encoding,
    FileMetaData,
    KeyValue,
    PageEncodingStats,
)
from pqext.core.io.source import Source
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.stored_schema import KEY as ARROW_SCHEMA
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.candidates import chunk_locations
from pqext.recovery.candidates.candidates import (
    CandidateGroup,
    Candidates,
    CandidateSource,
    end_of,
    file_metadata,
    first_equal_groups,
    remove_value_metadata,
    shift_chunk,
)
from pqext.recovery.candidates.chunk_locations import pages_of
from pqext.recovery.candidates.inconsistencies import (
    SAMPLE,
    contradicts_type,
    correct_path,
    correct_schema,
    correct_value_counts,
    flag_contradictions,
    resolve_row_count,
)
from pqext.recovery.candidates.report import Loss
from pqext.recovery.detection.codecs import CODECS, CodecDetector
from pqext.recovery.detection.footers import FooterCandidate
from pqext.recovery.detection.page_matching import PageMatcher, chunk_metadata
from pqext.recovery.detection.pages import Page, Segment, find_segments, page_at
from pqext.recovery.row_groups import assignment
from pqext.recovery.row_groups.search import AMBIGUOUS, GIVEN_UP, PageGroup, UnplacedPages
from pqext.verification.metadata_checks import drop_implausible_annotations, find_implausible_annotations

_FIRST = 8
"""Number of column chunks in a row group that are checked to determine whether a footer belongs to the file."""
_REPEATS = 1_000
"""Maximum number of row groups that repeat the bytes of others and are recovered."""


@dataclass(slots=True)
class Evidence:
    """Candidate row groups, their origin, losses and notes.

    ``segments`` contains the pages that were located by their headers, and ``metadata`` the footer, if one was used.
    """

    candidates: Candidates
    origin: str
    losses: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    segments: Sequence[Segment] = ()
    metadata: FileMetaData | None = None


@dataclass(slots=True)
class Hints:
    """Hints of the caller: codecs to try, the codec of each leaf, and the number of rows of a row group."""

    codecs: CodecDetector
    leaf_codecs: Sequence[int | None] = ()
    row_group_rows: int | None = None
    is_logical: bool = False
    """Whether physical types are guessed by pqext, as for DDL and Arrow schemas."""
    codec: str | None = None
    """Name of the only codec in ``codecs``, if one was passed."""


def footer_evidence(source: Source, footer: FooterCandidate, limits: Limits) -> Evidence:
    """Collect the row groups of a footer, at the offsets that the footer states or shifted by a constant distance.

    Bytes that no chunk of the footer covers may be abandoned row groups, or not be pages at all. If they are other
    pages, or if chunks are not at the stated offsets, bytes may have been inserted before the chunks.
    """
    corrected = correct_schema(footer.metadata, limits)
    evidence = _choose_distances(source, footer, limits)
    evidence.notes[:0] = corrected
    return evidence


def _choose_distances(source: Source, footer: FooterCandidate, limits: Limits) -> Evidence:
    """Collect the row groups of a footer, shifted by the distances that agree best with the pages."""
    distances = _possible_distances(footer)
    if max(distances) == 0:
        return _evidence_at_distances(source, footer, distances, limits)
    evidence = _evidence_at_distances(source, footer, [0], limits)
    groups = evidence.candidates.groups
    if not all(None not in group.chunks and group.assigned != "contradicted" for group in groups):
        return max(evidence, _evidence_at_distances(source, footer, distances, limits), key=_count_supported_rows)
    sizes = {sum(chunk.total_compressed_size for chunk in group.chunks if chunk is not None) for group in groups}
    are_groups = not all(max(distances) % size for size in sizes if size)
    is_stated = are_groups or page_at(source, structures_end(footer.metadata), limits) is None
    return evidence if is_stated else _evidence_at_distances(source, footer, distances, limits)


def _count_supported_rows(evidence: Evidence) -> int:
    """Count the rows of complete row groups whose values do not contradict the footer."""
    groups = evidence.candidates.groups
    return sum(group.rows for group in groups if None not in group.chunks and group.assigned != "contradicted")


def _evidence_at_distances(
    source: Source, footer: FooterCandidate, distances: Sequence[int], limits: Limits
) -> Evidence:
    """Collect the row groups of a footer, with each chunk moved by one of ``distances``."""
    metadata = footer.metadata
    notes = [
        f"the schema element {element.name!r} has {problem}, which is ignored"
        for element in metadata.schema
        for problem in find_implausible_annotations(element)
    ]
    candidates = Candidates(
        drop_implausible_annotations(metadata.schema),
        f"the {footer.name}",
        [],
        remove_value_metadata(metadata.key_value_metadata),
        metadata.created_by,
    )
    candidates.pairs = _readable_pairs(source, candidates, limits)
    if len(candidates.pairs or ()) < len(remove_value_metadata(metadata.key_value_metadata) or ()):
        notes.append("the ARROW:schema metadata entry cannot be read and is ignored")
    leaves = list(from_elements(metadata.schema, limits).leaves)
    losses: list[Loss] = []
    more = metadata.num_rows - sum(group.num_rows for group in metadata.row_groups)
    for number, group in enumerate(metadata.row_groups):
        chunks = [_locate(source, chunk, distances, limits) for chunk in group.columns]
        values = max((chunk.meta_data.num_values for chunk in group.columns if chunk.meta_data is not None), default=0)
        rows = resolve_row_count(group, leaves, more)
        if rows != group.num_rows:
            notes.append(f"row group {number}: the footer states {group.num_rows:,} rows, its columns {rows:,}")
        if len(chunks) != len(leaves) or rows < 0 or (rows == 0 and values > 0):
            reason = f"the footer states {rows} rows and {len(chunks)} column chunks for {len(leaves)} columns"
            losses.append(Loss(reason, source_row_group=number))
        elif rows:
            candidates.groups.append(CandidateGroup(rows, chunks, "footer", number))
    if len(distances) > 1:
        _resolve_locations(source, metadata, candidates.groups, distances, limits)
    candidates.groups, repeated = _limit_repeats(candidates.groups, limits.max_memory_bytes(source.size))
    losses += repeated
    _drop_overlaps(candidates.groups, footer.offset)
    is_in_place = footer.begin is None or follows_data(source, metadata, footer.begin)
    for candidate in candidates.groups:
        if len(metadata.row_groups) > 1 and (path := correct_path(candidate, leaves)) is not None:
            notes.append(f"column {path} in row group {candidate.number}: the footer has another path for its chunk")
        for name in correct_value_counts(source, candidate, leaves, limits):
            note = "the footer's value count contradicts rows and pages"
            notes.append(f"column {name} in row group {candidate.number}: {note}")
    measure_chunks(source, candidates.groups, limits)  # chunks no longer overlap
    for candidate in candidates.groups:
        candidate.assigned = "footer" if is_in_place else "moved"
    flag_contradictions(source, metadata, candidates.groups, limits)
    return Evidence(candidates, footer.name, losses, notes, metadata=metadata)


def _resolve_locations(
    source: Source, metadata: FileMetaData, groups: Sequence[CandidateGroup], distances: Sequence[int], limits: Limits
) -> None:
    """Set the locations of chunks in a file that lost bytes before its footer."""
    paths = chunk_locations.leaf_schemas(metadata.schema)
    targets, moved_chunks = [], []
    for group in groups:
        assert group.number is not None
        for leaf, chunk in enumerate(metadata.row_groups[group.number].columns):
            by_distance = {distance: _locate(source, chunk, [distance], limits) for distance in distances}
            located = {distance: moved for distance, moved in by_distance.items() if moved is not None}
            if located:
                assert chunk.meta_data is not None
                targets.append((group, leaf))
                moved_chunks.append(
                    chunk_locations.MovedChunk(chunk.meta_data, group.rows, leaf, paths[leaf], located)
                )
    resolved = chunk_locations.resolve(source, metadata, moved_chunks, limits)
    for (group, leaf), location in zip(targets, resolved, strict=True):
        group.chunks[leaf] = location


def count_likely_rows(source: Source, footer: FooterCandidate, limits: Limits) -> int:
    """Count the rows of row groups with a page header at the start of one of the first ``_FIRST`` chunks."""
    distances = _possible_distances(footer)
    return sum(
        max(group.num_rows, 0)
        for group in footer.metadata.row_groups
        if any(_locate(source, chunk, distances, limits) is not None for chunk in group.columns[:_FIRST])
    )


def _possible_distances(footer: FooterCandidate) -> list[int]:
    """Return the possible distances between the chunks and their offsets in the footer."""
    moved = 0 if footer.type == "torn" else footer.offset - structures_end(footer.metadata)
    return [0, moved] if moved else [0]


def _readable_pairs(source: Source, candidates: Candidates, limits: Limits) -> Sequence[KeyValue] | None:
    """Return the key-value metadata. An ARROW:schema entry that pqext or Arrow cannot read is omitted."""
    with catch_warnings():
        simplefilter("error")
        try:
            with ParquetFile(CandidateSource(source, file_metadata(candidates, []), limits), limits=limits) as file:
                _ = file.arrow_schema
            for pair in candidates.pairs or ():
                if pair.key == ARROW_SCHEMA:
                    pa.ipc.read_schema(pa.py_buffer(b64decode(pair.value or "", validate=True)))
            return candidates.pairs
        except (ParquetError, Warning, ValueError, OSError):  # Arrow raises ValueError and OSError
            return [pair for pair in candidates.pairs or () if pair.key != ARROW_SCHEMA]


def count_located_rows(evidence: Evidence) -> int:
    """Count the rows of row groups with at least one located chunk."""
    return sum(group.rows for group in evidence.candidates.groups if any(group.chunks))


def page_evidence(source: Source, start: int, stop: int, schema: Candidates, hints: Hints, limits: Limits) -> Evidence:
    """Collect row groups from the pages in a byte range, and assign the pages to the columns of ``schema``."""
    tree = from_elements(schema.elements, limits)
    leaves = list(tree.leaves)
    # The hints apply to the schema argument; a footer in the file may have a different schema.
    codecs = hints.leaf_codecs if len(hints.leaf_codecs) == len(leaves) else [None] * len(leaves)
    matcher = PageMatcher(source, tree, hints.codecs, codecs, limits)
    segments = find_segments(source, start, stop, limits)
    losses: list[Loss] = []
    at = start
    for segment in segments:
        if segment.start > at:
            losses.append(Loss("no pages are recognised in these bytes", at, segment.start))
        at = segment.stop
    if at < stop and not (segments and segments[-1].at_end):
        losses.append(Loss("no pages are recognised in these bytes", at, stop))
    groups, unplaced = assignment.group_pages(segments, leaves, matcher, hints.row_group_rows)
    losses += [Loss(_loss_reason(pages.reason, hints), pages.start, pages.stop) for pages in unplaced]
    mismatched = {
        number
        for number, leaf in enumerate(leaves)
        if contradicts_type(leaf, (group.chunks[number] for group in groups[:SAMPLE]), matcher)
    }
    candidates = replace(schema, groups=[_candidate(group, leaves, matcher, mismatched) for group in groups])
    notes = [*_size_notes(groups, hints), *_schema_warnings(groups, unplaced, matcher)]
    return Evidence(candidates, "pages", losses, notes, segments)


def _loss_reason(reason: str, hints: Hints) -> str:
    """Return the reason of a loss, with advice on ``row_group_rows`` if it may help."""
    rows = hints.row_group_rows
    if reason == GIVEN_UP and rows is None:
        return f"{reason}; pass row_group_rows to shorten it"
    if reason != AMBIGUOUS:
        return reason
    hint = "row_group_rows may resolve it" if rows is None else f"row_group_rows={rows} does not resolve it"
    return f"{reason}; {hint}"


def _size_notes(groups: Sequence[PageGroup], hints: Hints) -> list[str]:
    """Return a note if the sizes of the row groups differ from ``row_group_rows``."""
    expected = hints.row_group_rows
    if expected is None:
        return []
    sizes = {group.rows for group in groups if group.rows > expected}
    sizes |= {group.rows for group in groups[:-1] if group.rows != expected}
    if not sizes:
        return []
    rows = join_names(map(str, sorted(sizes)))
    return [f"row_group_rows={expected} does not match the pages: row groups have {rows} rows"]


def _schema_warnings(
    groups: Sequence[PageGroup], unplaced_pages: Sequence[UnplacedPages], matcher: PageMatcher
) -> list[str]:
    """Return warnings if pages match the schema, but the schema may not list the columns of the file."""
    if len(groups) < 2:
        return []
    if len({*matcher.types}) == 1:
        return ["all columns of the schema have the same type: if columns are missing or extra, values are mixed up"]
    if sum(pages.reason == assignment.MISMATCH for pages in unplaced_pages) >= len(groups):
        return ["as many pages fit no column as there are row groups: if the schema lacks columns, values are mixed up"]
    return []


def _candidate(
    group: PageGroup, leaves: Sequence[SchemaNode], matcher: PageMatcher, mismatched_leaves: Collection[int]
) -> CandidateGroup:
    """Convert a row group that was assembled from pages to a candidate. Chunks of ``mismatched_leaves`` are omitted."""
    columns: list[ColumnMetaData | None] = []
    for number, (leaf, pages) in enumerate(zip(leaves, group.chunks, strict=True)):
        codec = None if number in mismatched_leaves else matcher.detect_codec(leaf.leaf_start, pages)
        columns.append(None if codec is None else chunk_metadata(leaf, codec, pages))
    checked = {page.checked for pages in group.chunks for page in pages}
    return CandidateGroup(
        group.rows,
        columns,
        "pages",
        checksums=None not in checked,
        intact=checked <= {True},
        may_count_rows=any(_is_v2(page) for pages in group.chunks for page in pages),
        assigned=group.split_reason,
        extent=group.extent,
    )


def end_of_candidates(evidence: Evidence) -> int:
    """Return the end offset of the last located chunk; without located chunks, the length of the magic number."""
    return max((end_of(chunk) for group in evidence.candidates.groups for chunk in group.chunks if chunk), default=4)


def _locate(source: Source, chunk: ColumnChunk, distances: Sequence[int], limits: Limits) -> ColumnMetaData | None:
    """Return the metadata of a chunk, moved by the first of ``distances`` at which a page header starts.

    Returns None if there is no such distance, or if the chunk is encrypted, in another file, or of invalid size.
    """
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or chunk.crypto_metadata is not None:
        return None
    if about.total_compressed_size <= 0 or about.num_values < 0:
        return None
    for distance in distances:
        candidate = shift_chunk(about, distance)
        start, stop = start_of(candidate), end_of(candidate)
        if start >= 0 and stop <= source.size and page_at(source, start, limits) is not None:
            return candidate
    return None


def measure_chunks(source: Source, groups: Iterable[CandidateGroup], limits: Limits) -> None:
    """Set sizes and encodings of chunks from their pages, and whether row groups have checksums and V2 pages."""
    for group in groups:
        group.checksums, group.may_count_rows = True, False
        for chunk in group.chunks:
            pages = None if chunk is None else _read_page_sizes(source, chunk, limits)
            if chunk is not None:
                group.checksums &= pages is not None and all(page.checked is not None for page in pages)
                group.may_count_rows |= pages is None or any(map(_is_v2, pages))


def _read_page_sizes(source: Source, chunk: ColumnMetaData, limits: Limits) -> list[Page] | None:
    """Set the sizes and encodings of a chunk from its pages. Returns the pages; None if they do not match the chunk."""
    pages = pages_of(source, chunk, limits)
    if pages is None:
        _truncate_chunk(source, chunk, limits)
        return None
    if chunk.codec not in CODECS and not any(_is_compressed(page) for page in pages):
        chunk.codec = CompressionCodec.UNCOMPRESSED
    levels = {int(encoding) for encoding in chunk.encodings if encoding in (3, 4)}
    chunk.encodings = sorted({page.encoding for page in pages} | levels)
    counts = Counter((page.header.type, page.encoding) for page in pages)
    chunk.encoding_stats = [
        PageEncodingStats(page_type=type, encoding=Encoding(encoding), count=count)
        for (type, encoding), count in counts.items()
    ]
    chunk.total_uncompressed_size = sum(page.head + page.uncompressed_bytes for page in pages)
    return pages


def _is_v2(page: Page) -> bool:
    return page.header.data_page_header_v2 is not None


def _is_compressed(page: Page) -> bool:
    second = page.header.data_page_header_v2
    return second is None or second.is_compressed is not False


def _truncate_chunk(source: Source, chunk: ColumnMetaData, limits: Limits) -> None:
    """End the chunk after the page that contains its last value, because readers ignore the bytes after it.

    If a page follows, the count in a page header is wrong, and the chunk is left unchanged.
    """
    at, remaining = start_of(chunk), chunk.num_values
    while remaining > 0 and at < end_of(chunk):
        page = page_at(source, at, limits)
        if page is None:
            return
        at = page.end
        remaining -= 0 if page.is_dictionary else page.count
    if remaining == 0 and at < end_of(chunk) and page_at(source, at, limits) is None:
        chunk.total_compressed_size = at - start_of(chunk)


def _limit_repeats(groups: list[CandidateGroup], max_bytes: int) -> tuple[list[CandidateGroup], list[Loss]]:
    """Remove row groups that repeat the bytes of other row groups, if there are too many repetitions.

    Returns the remaining row groups and the losses.

    Each repetition is written with its own copy of the bytes. Legitimate files have few repetitions, so their number is
    limited to ``_REPEATS``, and the size of their bytes or values to ``max_bytes``.
    """
    firsts = first_equal_groups(groups)
    numbers = [number for number, first in enumerate(firsts) if number != first and any(groups[number].chunks)]
    repeats = [groups[number] for number in numbers]
    size = sum(
        max(chunk.num_values, chunk.total_compressed_size) for group in repeats for chunk in group.chunks if chunk
    )
    if len(repeats) <= _REPEATS and size <= max_bytes:
        return groups, []
    removed = set(numbers)
    message = f"{len(repeats)} row groups repeat the bytes of other row groups, which are written once"
    losses = [Loss(message, rows=sum(group.rows for group in repeats))]
    return [group for number, group in enumerate(groups) if number not in removed], losses


def _drop_overlaps(groups: Sequence[CandidateGroup], end: int) -> None:
    """Drop each chunk that extends into the next chunk or the footer, unless both are the same chunk."""
    named: dict[int, list[CandidateGroup]] = {}
    for group, first in zip(groups, first_equal_groups(groups), strict=True):
        named.setdefault(first, []).append(group)
    located = sorted(
        (start_of(chunk), end_of(chunk), number, leaf)
        for number, repeats in named.items()
        for leaf, chunk in enumerate(repeats[0].chunks)
        if chunk is not None
    )

    def drop(number: int, leaf: int) -> None:
        for group in named[number]:
            group.chunks[leaf] = None

    reached = -1
    previous: tuple[int, int] | None = None
    for start, stop, number, leaf in located:
        if previous is not None and start < reached:
            drop(*previous)
        reached, previous = stop, (number, leaf)
        if start < end < reached:
            drop(number, leaf)
