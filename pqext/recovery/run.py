"""Recover a file: collect candidate row groups, check them, and write the readable row groups."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.base.progress import Progress
from pqext.core.footer.reading import describe_file_type
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.footer.writing import copy_bytes
from pqext.core.format.metadata import CompressionCodec
from pqext.core.io.local_writers import mention_unfinished
from pqext.core.io.sink import Sink
from pqext.core.io.source import FileSource, PathSource, Source
from pqext.core.io.sources.locations import open_source
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.candidates.assessments import Assessment, assess, remove_columns, suppress_warnings
from pqext.recovery.candidates.candidates import (
    CandidateGroup,
    Candidates,
    CandidateSource,
    file_metadata,
    remove_footer_columns,
)
from pqext.recovery.candidates.chunk_locations import pages_of
from pqext.recovery.candidates.inconsistencies import flag_contradictions
from pqext.recovery.candidates.report import (
    Loss,
    RecoveredRowGroup,
    Recovery,
    create_column_loss,
    describe_group,
    describe_wrong_headers,
    list_column_losses,
    sort_losses,
)
from pqext.recovery.detection import footers
from pqext.recovery.detection.codecs import CODECS, CodecDetector
from pqext.recovery.evidence import (
    Evidence,
    Hints,
    count_likely_rows,
    count_located_rows,
    end_of_candidates,
    footer_evidence,
    measure_chunks,
    page_evidence,
)
from pqext.recovery.output import NullFiller, TemporaryFiles, check_distinct, rewritten_groups, write
from pqext.recovery.row_groups.search import AMBIGUOUS, GIVEN_UP, UNPLACED
from pqext.recovery.schemas import physical_types, schema_sources
from pqext.recovery.schemas.mismatches import add_schema_hint, explain_losses
from pqext.variant.rewriting import repair
from pqext.verification import verify

_FOOTERS = 64
"""Maximum number of footers to compare, starting from the end of the file."""
_TRIED = 3
"""Maximum number of footers whose chunks are all checked until one matches."""


def recover(
    source: FileSource,
    dest: Any,
    *,
    schema: Any = None,
    codec: str | None = None,
    drop_columns: bool = False,
    null_columns: bool = False,
    row_group_rows: int | None = None,
    limits: Limits | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Write the rows of a file whose footer is missing or corrupt to ``dest``, a new file, and report the losses.

    If the file can be opened, use :func:`pqext.repair` instead, which preserves the layout, columns and types.

    The best remaining footer is used: at the end, inside the file, without length and magic number, or truncated. Pages
    that no footer covers are located by their headers, which requires a schema: from a truncated footer, or ``schema``.
    Every recovered page has been read, and its checksum compared if it has one. Corruption in pages without checksums
    cannot always be detected; the report states which row groups this concerns. Columns and types are certain only with
    a footer; the report states where a schema assigned the pages to columns.

    Args:
        source: Any source that :func:`pqext.open` accepts. It is never modified.
        dest: A path, URL or binary file object other than ``source``. It is written atomically.
        schema: A sibling with the same columns (any source that :func:`pqext.open` accepts), an Arrow schema, or DDL
            like ``"id BIGINT, name STRING"``.
        codec: The codec of the pages, like ``"zstd"``. By default, all codecs are tried.
        drop_columns: Omit top-level columns that lost a chunk, instead of the row groups of these chunks.
        null_columns: Replace a lost chunk with nulls, which preserves its row group and its column. Only optional
            top-level columns can be filled; the report lists each. Cannot be combined with ``drop_columns``.
        row_group_rows: Maximum number of rows per row group in the file; used only if the pages alone do not determine
            the row groups. Ignored if the pages contradict it.
        limits: Limits of the reader; ``Limits.untrusted()`` by default.
        filesystem: File system of the source, as for :func:`pqext.open`.
        storage_options: Options of the source's object store, as for :func:`pqext.open`.
        progress: Called with the number of candidate row groups that were read and with the number of all. The count
            starts again if the recovery must assess other candidates.

    Returns:
        A report of the recovered row groups, their basis, and the losses. If nothing can be recovered, ``written`` is
        false and no file is written.

    Raises:
        ValueError: If an argument is invalid, or ``dest`` is ``source``.
        UnsupportedError: For files with an encrypted footer.

    Example:
        >>> import pathlib, pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": range(100)}), "ids.parquet", row_group_rows=50)
        >>> data = pathlib.Path("ids.parquet").read_bytes()
        >>> pqext.recover(data[:-20], "rest.parquet", schema="id BIGINT").rows
        100
    """
    tried = CODECS if codec is None else (_parse_codec(codec),)
    if row_group_rows is not None and operator.index(row_group_rows) < 1:
        raise ValueError(f"row_group_rows must be positive, not {row_group_rows}")
    if drop_columns and null_columns:
        raise ValueError("drop_columns and null_columns are mutually exclusive; pass only one")
    limits = limits or Limits.untrusted()
    with ExitStack() as opened:
        temporary = opened.enter_context(TemporaryFiles())
        read = _open_source(source, filesystem, storage_options)
        if read is not source:
            opened.callback(read.close)
        check_distinct(source, dest, filesystem, storage_options)
        if footers.is_encrypted(read):
            raise UnsupportedError(
                "a file with an encrypted footer cannot be recovered",
                feature="recovering encrypted files",
                path=read.path,
            )
        provided = None if schema is None else schema_sources.resolve_schema(schema, limits)
        is_logical = provided is not None and provided[2]
        leaf_codecs = [] if provided is None or codec is not None else provided[1]
        if read.is_remote:
            read = temporary.download(read)
            opened.callback(read.close)
        hints = Hints(CodecDetector(read, tried), leaf_codecs, row_group_rows, is_logical, codec)
        recovery = _Recovery(read, temporary, limits, hints, None if provided is None else provided[0], progress)
        return recovery.run(dest, drop_columns=drop_columns, null_columns=null_columns)


def _open_source(source: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Source:
    try:
        return open_source(source, filesystem, storage_options)
    except FileNotFoundError as error:
        raise mention_unfinished(error, source) from None


def _parse_codec(name: str) -> int:
    try:
        return int(CompressionCodec[name.upper()])
    except (KeyError, AttributeError):
        names = ", ".join(codec.name.lower() for codec in CompressionCodec)
        raise ValueError(f"codec must be one of {names}, not {name!r}") from None


class _Recovery:
    def __init__(
        self, source: Source, temporary: TemporaryFiles, limits: Limits, hints: Hints, schema: Candidates | None,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._temporary = temporary
        self._size = source.size
        self._limits = limits
        self._hints = hints
        self._schema = schema
        self._progress = progress
        self._footers: list[footers.FooterCandidate] = []

    def run(self, dest: Any, *, drop_columns: bool, null_columns: bool) -> Recovery:
        """Recover the file to ``dest``, and return the report."""
        evidence = self._collect_evidence()
        if evidence is None:
            head = self._source.read(0, min(4, self._source.size)).tobytes()
            hint = "; the file is empty" if not head else "" if head == MAGIC else describe_file_type(head)
            problem = "no footer was found" + " except footers of files embedded in this one" * bool(self._footers)
            loss = Loss(f"{problem}, and pages alone do not identify columns{hint or '; pass schema='}")
            return self._report(Evidence(Candidates([], "unknown"), "none", [loss]), [], ())
        candidates, losses = evidence.candidates, evidence.losses
        assessments = self._assess(candidates)
        if self._schema is not None and evidence.origin != "pages" and not _has_recoverable_rows(assessments):
            # If nothing matches the footer, the schema argument may match.
            pages = self._all_pages(replace(self._schema, groups=[]))
            by_pages = self._assess(pages.candidates)
            if _has_recoverable_rows(by_pages):
                evidence, assessments = pages, by_pages
                candidates, losses = evidence.candidates, evidence.losses
        if evidence.origin == "pages":
            evidence, assessments = self._try_physical_types(evidence, assessments)
            candidates, losses = evidence.candidates, evidence.losses
        if null_columns:
            self._fill_with_nulls(evidence, assessments)
        dropped: list[str] = []
        if drop_columns:
            names = [node.name for node in from_elements(candidates.elements, self._limits).root.children]
            incomplete = [item for item in assessments if not item.recoverable_rows]
            lost = {name for item in incomplete for name in item.lost_columns}
            fully_lost = [item for item in incomplete if set(names) <= item.lost_columns.keys()]
            lost -= {name for item in fully_lost for name in item.lost_columns} - {
                name for item in incomplete if item not in fully_lost for name in item.lost_columns
            }
            dropped = [name for name in names if name in lost]
            if dropped and len(dropped) < len(names) and len(set(names)) == len(names):
                losses = losses + [
                    create_column_loss(item.group, name, reason, item.group.rows)
                    for item in assessments
                    if item not in fully_lost
                    for name, reason in item.lost_columns.items()
                ]
                candidates = remove_columns(candidates, dropped, self._limits)
                assessments = self._assess(candidates)
                if evidence.metadata is not None:  # incomplete row groups have not been compared with the footer
                    metadata = remove_footer_columns(evidence.metadata, candidates.elements, dropped)
                    complete = [
                        item.group for item in assessments if item.is_complete and item.group.number is not None
                    ]
                    flag_contradictions(self._source, metadata, complete, self._limits)
            else:
                dropped = []
        losses = losses + list_column_losses(assessments)
        if not assessments and not losses:
            losses = [Loss("no pages are recognised" if self._source.size else "the file is empty")]
        origin = candidates.schema_from
        if self._schema is not None and evidence.metadata is not None:
            evidence.notes.append(f"{self._schema.schema_from} was not needed: {origin} states the columns")
        if self._hints.codec is not None and evidence.metadata is not None:
            evidence.notes.append(f"codec {self._hints.codec} was not needed: {origin} states the codecs")
        # Raise an error if the file has changed, because unreadable data would be mistaken for damage.
        self._source.read(0, min(1, self._source.size))
        written = self._write(candidates, [item for item in assessments if item.recoverable_rows], dest, losses)
        evidence.notes += describe_wrong_headers(written)
        if not written and self._schema is None and evidence.metadata is not None and evidence.metadata.num_rows > 0:
            evidence.notes.append("pass schema= to read the pages without this footer, which may be corrupt")
        losses = sort_losses(losses, evidence.candidates, self._limits)
        groups = [describe_group(item.group, item.recoverable_rows) for item in written]
        return self._report(replace(evidence, losses=losses), groups, tuple(dropped))

    def _assess(self, candidates: Candidates) -> list[Assessment]:
        return assess(self._source, candidates, self._limits, self._progress)

    def _try_physical_types(
        self, evidence: Evidence, assessments: list[Assessment]
    ) -> tuple[Evidence, list[Assessment]]:
        """Try other physical types if the schema states only logical types, and return the best matching evidence."""
        candidates, hints = evidence.candidates, self._hints
        rows = sum(item.recoverable_rows for item in assessments)
        if hints.is_logical:
            readable_at = next((item.group.offset for item in assessments if item.recoverable_rows), None)
            likely = physical_types.iter_likely_schemas(
                self._source, evidence.segments, replace(candidates, groups=[]), hints.codecs, self._limits,
                readable_at, may_fit=bool(rows) or _is_ambiguous(evidence),
            )  # fmt: skip
            for varied, changes in likely:
                other = self._all_pages(varied)
                others = self._assess(other.candidates)
                other_rows = sum(item.recoverable_rows for item in others)
                if other_rows >= max(rows, 1) or (not rows and _is_ambiguous(other)):
                    other.notes += changes if _has_recoverable_rows(others) else []
                    return self._choose_byte_order(other, others)
            if rows:
                evidence, assessments = self._choose_byte_order(evidence, assessments)
        extents = [
            item.group.extent for item in assessments if item.recoverable_rows and item.group.extent is not None
        ]
        every = sum(segment.stop - segment.start for segment in evidence.segments)
        is_intact = len(evidence.segments) == 1 and evidence.segments[0].at_start  # damage does not explain the losses
        if not rows or (is_intact and 2 * sum(stop - start for start, stop in extents) < every):
            return self._explain_losses(evidence, assessments)
        return evidence, assessments

    def _choose_byte_order(
        self, evidence: Evidence, assessments: list[Assessment]
    ) -> tuple[Evidence, list[Assessment]]:
        """Choose the byte order of decimals that fits all row groups, and add a note for each guess."""
        candidates, limits = evidence.candidates, self._limits
        changed, unsure = physical_types.find_swapped_decimals(self._source, candidates, limits)
        if changed:
            other = self._all_pages(physical_types.replace_elements(replace(candidates, groups=[]), changed))
            other.notes += evidence.notes + physical_types.describe_changes(candidates.elements, changed)
            evidence, assessments = other, self._assess(other.candidates)
        evidence.notes += [
            f"column {name}: its values fit in both byte orders; the byte order of the schema was used"
            for name in unsure
        ]
        evidence.notes += [
            f"column {name}: several nullabilities of its levels fit and one was guessed, "
            "so an empty list may be NULL or vice versa"
            for name in physical_types.undecided_columns(evidence.candidates.elements)
        ]
        return evidence, assessments

    def _explain_losses(self, evidence: Evidence, assessments: list[Assessment]) -> tuple[Evidence, list[Assessment]]:
        """Add an explanation to the losses: the column and the first page that do not match the schema."""
        candidates, losses = evidence.candidates, evidence.losses
        extents = [item.group.extent for item in assessments if item.group.extent is not None]
        # Intact pages whose row groups cannot be read do not form these row groups.
        is_wrong = bool(extents) and all(item.group.intact and not item.recoverable_rows for item in assessments)
        if is_wrong:
            losses = [Loss(UNPLACED, extents[0][0], extents[-1][1]), *losses]
        described = explain_losses(
            self._source, evidence.segments, losses, candidates, self._hints.codecs, self._limits,
            vary_types=self._hints.is_logical, read_values=not is_wrong,
        )  # fmt: skip
        if self._hints.codec is not None and self._source.size and evidence.segments:
            evidence.notes.append(f"codec {self._hints.codec} was passed; omit codec= to try all codecs")
        if described == losses:
            if not _has_recoverable_rows(assessments):
                add_schema_hint(assessments)
            return evidence, assessments
        if is_wrong:
            return replace(evidence, candidates=replace(candidates, groups=[]), losses=described), []
        return replace(evidence, losses=described), assessments

    def _fill_with_nulls(self, evidence: Evidence, assessments: list[Assessment]) -> None:
        """Replace lost chunks with nulls, and assess the changed row groups again."""
        candidates, limits = evidence.candidates, self._limits
        filler = NullFiller(self._source, candidates, limits)
        pending = list(range(len(assessments)))
        while filled := {at: group for at in pending if (group := filler.fill(assessments[at])) is not None}:
            source = self._source = filler.source
            again = self._assess(replace(candidates, groups=[*filled.values()]))
            for at, assessment in zip(filled, again, strict=True):
                group = assessment.group
                located = [chunk for chunk in group.chunks if chunk is not None]
                # Chunks next to lost chunks may match other columns by chance: readers ignore bytes after the values.
                for chunk in located if assessment.is_complete else ():
                    if pages_of(source, chunk, limits) is None:
                        assessment.lost_columns["".join(chunk.path_in_schema[:1])] = "its pages do not fill its chunk"
                if assessment.is_complete and assessment.lost_columns:
                    assessment.damaged, assessment.recoverable_rows = dict(assessment.lost_columns), 0
                measure_chunks(source, [group], limits)
                if evidence.metadata is not None:
                    flag_contradictions(source, evidence.metadata, [group], limits)
                assessments[at] = assessment
            pending = list(filled)

    def _collect_evidence(self) -> Evidence | None:
        """Collect the evidence of the best footer, or of the pages; None if there is neither a footer nor a schema."""
        self._footers = footers.find_footers(self._source, self._limits)
        source, limits = self._source, self._limits
        own = [footer for footer in self._footers if footer.is_own]
        likely = {footer.offset: count_likely_rows(source, footer, limits) for footer in own[:_FOOTERS]}
        best = sorted(own[:_FOOTERS], key=lambda footer: likely[footer.offset], reverse=True)
        for footer in best[:_TRIED]:
            if likely[footer.offset] and count_located_rows(evidence := footer_evidence(source, footer, limits)):
                return self._add_uncovered_pages(footer, evidence)
        schema = self._schema or (footer_evidence(source, best[0], limits).candidates if best else None)
        if schema is None:
            return None
        return self._all_pages(replace(schema, groups=[]))

    def _all_pages(self, schema: Candidates) -> Evidence:
        """Collect the evidence of all pages of the file."""
        source = self._source
        has_magic = source.size >= len(MAGIC) and source.read(0, len(MAGIC)).tobytes() == MAGIC
        return self._pages(len(MAGIC) if has_magic else 0, source.size, schema)

    def _add_uncovered_pages(self, footer: footers.FooterCandidate, evidence: Evidence) -> Evidence:
        """Add the row groups in pages that the footer does not cover to its evidence."""
        end = footer.offset + footer.length
        ranges = [] if footer.type == "end" else [(end + 8 * (footer.type == "inside"), self._source.size)]
        if footer.type == "torn":
            ranges = [(end_of_candidates(evidence), footer.offset)]
        for start, stop in ranges:
            if stop - start < 8:
                continue
            more = self._pages(start, stop, replace(evidence.candidates, groups=[]))
            if more.candidates.groups or (footer.type == "torn" and more.segments):
                evidence.losses += more.losses
                evidence.notes += more.notes
            if more.candidates.groups:
                evidence.candidates.groups += more.candidates.groups
                evidence.origin += ", pages after it" if footer.type == "inside" else ", pages beyond it"
        return evidence

    def _pages(self, start: int, stop: int, schema: Candidates) -> Evidence:
        return page_evidence(self._source, start, stop, schema, self._hints, self._limits)

    def _write(
        self, candidates: Candidates, assessments: list[Assessment], dest: Any, losses: list[Loss]
    ) -> list[Assessment]:
        """Write the recoverable rows to ``dest``. Returns the assessments of the row groups that were written."""
        to_rewrite = [item for item in assessments if not item.can_be_copied]
        rewritten: dict[int, tuple[Source, CandidateGroup]] = {}
        if to_rewrite and (path := self._rewrite(candidates, to_rewrite)) is not None:
            groups = rewritten_groups(path, candidates, to_rewrite, self._limits)
            if not groups and (path := self._rewrite(candidates, assessments)) is not None:
                with PathSource(path) as source, Sink(dest) as sink:
                    copy_bytes(source, 0, source.size, sink)
                return assessments
            rewritten = {id(item): group for item, group in zip(to_rewrite, groups, strict=False)}
        for item in to_rewrite if len(to_rewrite) > 1 and not rewritten else ():  # a failure affects one row group only
            if (path := self._rewrite(candidates, [item])) is not None:
                rewritten |= {id(item): group for group in rewritten_groups(path, candidates, [item], self._limits)}
        for item in to_rewrite:
            if id(item) not in rewritten:
                reason = "the rows outside its damaged pages cannot be determined reliably"
                losses.append(Loss(reason, source_row_group=item.group.number, rows=item.recoverable_rows))
        written = [item for item in assessments if item.can_be_copied or id(item) in rewritten]
        if written:
            write(dest, candidates, [rewritten.get(id(item), (self._source, item.group)) for item in written])
        return written

    def _rewrite(self, candidates: Candidates, assessments: list[Assessment]) -> str | None:
        """Write the rows outside damaged pages to a temporary file. Returns its path; None if verification fails."""
        path = self._temporary.create_path()
        metadata = file_metadata(candidates, [item.group for item in assessments])
        try:
            with suppress_warnings():
                result = repair(CandidateSource(self._source, metadata, self._limits), path, limits=self._limits)
        except (ParquetError, ValueError):
            return None
        expected = sum(item.recoverable_rows for item in assessments)
        return path if result.rows == expected and verify(path, limits=self._limits).ok else None

    def _report(self, evidence: Evidence, groups: list[RecoveredRowGroup], lost_columns: tuple[str, ...]) -> Recovery:
        return Recovery(
            self._source.path,
            self._size,
            bool(groups),
            evidence.origin,
            evidence.candidates.schema_from,
            tuple(map(str, self._footers)),
            tuple(groups),
            tuple(evidence.losses),
            lost_columns,
            tuple(evidence.notes),
        )


def _has_recoverable_rows(assessments: Sequence[Assessment]) -> bool:
    return any(item.recoverable_rows for item in assessments)


def _is_ambiguous(evidence: Evidence) -> bool:
    return any(loss.reason.startswith((AMBIGUOUS, GIVEN_UP)) for loss in evidence.losses)
