"""Recovery of a file: evidence is gathered, claims are put to the test, what holds is written."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.footer.reading import looks_like, read_footer
from pqext.core.footer.rewrite import copy_bytes
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.format.metadata import CompressionCodec
from pqext.core.io.local_writers import mention_unfinished
from pqext.core.io.sink import Sink
from pqext.core.io.source import PathSource, Source
from pqext.core.io.sources.locations import open_source
from pqext.core.schema.lazy_tree import from_elements
from pqext.recovery.claims.chunk_locations import pages_of
from pqext.recovery.claims.claims import ClaimedGroup, ClaimedSource, Claims, file_metadata
from pqext.recovery.claims.inconsistencies import doubt
from pqext.recovery.claims.report import Loss, Recovered, Recovery, loss_of, losses_of, misstated, ordered
from pqext.recovery.claims.verdicts import Verdict, judge, quiet, without
from pqext.recovery.evidence import (
    Evidence,
    Hints,
    end_of_claims,
    likely_rows,
    measure,
    narrowed,
    of_footer,
    of_pages,
    worth,
)
from pqext.recovery.fragments import footers
from pqext.recovery.fragments.codecs import CODECS, Codecs
from pqext.recovery.output.files import TemporaryFiles, refuse_same, write
from pqext.recovery.output.nulls import Filling
from pqext.recovery.row_groups.search import AMBIGUOUS, GIVEN_UP, UNPLACED
from pqext.recovery.schemas import physical_forms, schema_sources
from pqext.recovery.schemas.mismatches import blame, explained
from pqext.variant.rewriting import repair
from pqext.verification import verify

_FOOTERS = 64
"""The last footers of the file, which are compared."""
_TRIED = 3
"""Footers of which every chunk is looked at, until one is right."""


def recover(
    source: Any,
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
) -> Recovery:
    """Write the rows of a file whose footer is missing or corrupt to ``dest``, a new file, and report what was lost.

    For a file that opens, :func:`pqext.repair` keeps the layout and is certain of columns and types.

    The best footer left is taken: at the end, inside the file, without length and magic number, or as far as it goes.
    What no footer reaches is found by the headers of its pages, which needs a schema: of a torn footer, or
    ``schema``. Every page that is kept was read, its checksum compared where it has one. Where pages have none,
    damage that decodes cannot be told from values: the report says so. Only a footer is certain of columns and types:
    where a schema assigned pages to columns, the report says that too.

    Args:
        source: Any source that :func:`pqext.open` takes. It is not touched.
        dest: A path, URL or binary file object; other than ``source``. It appears when it is whole.
        schema: A sibling with the same columns (any source that :func:`pqext.open` takes), an Arrow schema, or DDL like
            ``"id BIGINT, name STRING"``.
        codec: The codec of the pages, like ``"zstd"``; all are tried by default.
        drop_columns: Leave out top-level columns of which a chunk is lost, instead of the row groups that lost one.
        null_columns: Put nulls in the place of a lost chunk, so that it costs neither its row group nor its column.
            Only optional top-level columns can hold them; the report names each. Not together with ``drop_columns``.
        row_group_rows: Rows of a row group at most, where pages alone can be split in several ways. What the pages
            contradict is not believed.
        limits: What reading may take; ``Limits.untrusted()`` by default.
        filesystem: As for :func:`pqext.open`, of the source.
        storage_options: As for :func:`pqext.open`, of the source.

    Returns:
        What was recovered, by which evidence, and what was lost. Where nothing could be had, ``written`` is false and
        there is no new file.

    Raises:
        ValueError: For wrong arguments, and where ``dest`` is ``source``.
        UnsupportedError: For files with an encrypted footer.

    Example:
        >>> import pathlib, pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": range(100)}), "ids.parquet", row_group_rows=50)
        >>> data = pathlib.Path("ids.parquet").read_bytes()
        >>> pqext.recover(data[:-20], "rest.parquet", schema="id BIGINT").rows
        100
    """
    tried = CODECS if codec is None else (_codec(codec),)
    if row_group_rows is not None and operator.index(row_group_rows) < 1:
        raise ValueError(f"row_group_rows must be positive, not {row_group_rows}")
    if drop_columns and null_columns:
        raise ValueError("drop_columns leaves a column out and null_columns keeps it with nulls: give one of them")
    limits = limits or Limits.untrusted()
    with ExitStack() as opened:
        temporary = opened.enter_context(TemporaryFiles())
        read = _opened(source, filesystem, storage_options)
        if read is not source:
            opened.callback(read.close)
        refuse_same(source, dest, filesystem, storage_options)
        if footers.is_encrypted(read):
            raise UnsupportedError(
                "a file with an encrypted footer cannot be recovered",
                feature="recovering encrypted files",
                path=read.path,
            )
        told = None if schema is None else schema_sources.given(schema, limits)
        is_logical = told is not None and told[2]
        known = [] if told is None or codec is not None else told[1]
        if read.is_remote:
            read = temporary.fetched(read)
            opened.callback(read.close)
        hints = Hints(Codecs(read, tried), known, row_group_rows, is_logical, codec)
        recovery = _Recovery(read, temporary, limits, hints, None if told is None else told[0])
        return recovery.run(dest, drop_columns=drop_columns, null_columns=null_columns)


def _opened(source: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Source:
    try:
        return open_source(source, filesystem, storage_options)
    except FileNotFoundError as error:
        raise mention_unfinished(error, source) from None


def _codec(name: str) -> int:
    try:
        return int(CompressionCodec[name.upper()])
    except (KeyError, AttributeError):
        known = ", ".join(one.name.lower() for one in CompressionCodec)
        raise ValueError(f"codec must be one of {known}, not {name!r}") from None


class _Recovery:
    def __init__(
        self, source: Source, temporary: TemporaryFiles, limits: Limits, hints: Hints, schema: Claims | None
    ) -> None:
        self._source = source
        self._temporary = temporary
        self._size = source.size
        self._limits = limits
        self._hints = hints
        self._schema = schema
        self._footers: list[footers.FoundFooter] = []

    def run(self, dest: Any, *, drop_columns: bool, null_columns: bool) -> Recovery:
        """Recover to ``dest``."""
        evidence = self._gather()
        if evidence is None:
            head = self._source.read(0, min(4, self._source.size)).tobytes()
            told = "; the file is empty" if not head else "" if head == MAGIC else looks_like(head)
            left = "no footer is left" + " but those of files within this one" * bool(self._footers)
            loss = Loss(f"{left}, and without a schema pages tell too little{told or ': give schema='}")
            return self._report(Evidence(Claims([], "not known"), "none", [loss]), [], ())
        claims, losses = evidence.claims, evidence.losses
        verdicts = judge(self._source, claims, self._limits)
        if self._schema is not None and evidence.told != "pages" and not any(one.rows_left for one in verdicts):
            # Where nothing is as the footer says, the schema that was given may say it.
            pages = self._all_pages(replace(self._schema, groups=[]))
            judged = judge(self._source, pages.claims, self._limits)
            if any(one.rows_left for one in judged):
                evidence, verdicts = pages, judged
                claims, losses = evidence.claims, evidence.losses
        if evidence.told == "pages":
            evidence, verdicts = self._in_other_forms(evidence, verdicts)
            claims, losses = evidence.claims, evidence.losses
        if null_columns:
            self._fill(evidence, verdicts)
        dropped: list[str] = []
        if drop_columns:
            names = [node.name for node in from_elements(claims.elements, self._limits).root.children]
            lost = {name for one in verdicts if not one.rows_left for name in one.gone}
            everywhere = [one for one in verdicts if not one.rows_left and set(names) <= one.gone.keys()]
            lost -= {name for one in everywhere for name in one.gone} - {
                name for one in verdicts if one not in everywhere and not one.rows_left for name in one.gone
            }
            dropped = [name for name in names if name in lost]
            if dropped and len(dropped) < len(names) and len(set(names)) == len(names):
                losses = losses + [
                    loss_of(one.group, name, reason, one.group.rows)
                    for one in verdicts
                    if one not in everywhere
                    for name, reason in one.gone.items()
                ]
                claims = without(claims, dropped, self._limits)
                verdicts = judge(self._source, claims, self._limits)
                if evidence.metadata is not None:  # of row groups that were not complete nothing was doubted
                    rest = narrowed(evidence.metadata, claims.elements, dropped)
                    whole = [one.group for one in verdicts if one.is_whole and one.group.number is not None]
                    doubt(self._source, rest, whole, self._limits)
            else:
                dropped = []
        losses = losses + losses_of(verdicts)
        if not verdicts and not losses:
            losses = [Loss("no pages are recognised" if self._source.size else "the file is empty")]
        if self._schema is not None and evidence.metadata is not None:
            evidence.notes.append(f"{self._schema.schema_from} was not needed: {claims.schema_from} tells the columns")
        if self._hints.codec is not None and evidence.metadata is not None:
            evidence.notes.append(f"codec {self._hints.codec} was not needed: {claims.schema_from} tells the codecs")
        # What could not be read because the file was changed meanwhile would be taken for damage.
        self._source.read(0, min(1, self._source.size))
        kept = self._write(claims, [one for one in verdicts if one.rows_left], dest, losses)
        evidence.notes += misstated(kept)
        if not kept and self._schema is None and evidence.metadata is not None and evidence.metadata.num_rows > 0:
            evidence.notes.append("schema= reads the pages without this footer, whose bits may be wrong")
        losses = ordered(losses, evidence.claims, self._limits)
        groups = [_recovered(one.group, one.rows_left) for one in kept]
        return self._report(replace(evidence, losses=losses), groups, tuple(dropped))

    def _in_other_forms(self, evidence: Evidence, verdicts: list[Verdict]) -> tuple[Evidence, list[Verdict]]:
        """The evidence of pages, in other physical forms where these fit and the schema told logical types only.

        Where little can be had in any, losses tell where the schema fails.
        """
        claims, hints, rows = evidence.claims, self._hints, sum(one.rows_left for one in verdicts)
        if hints.is_logical:
            known = next((one.group.offset for one in verdicts if one.rows_left), None)
            likely = physical_forms.likely(
                self._source, evidence.segments, replace(claims, groups=[]), hints.codecs, self._limits, known,
                may_fit=bool(rows) or _is_ambiguous(evidence),
            )  # fmt: skip
            for varied, told in likely:
                other = self._all_pages(varied)
                judged = judge(self._source, other.claims, self._limits)
                if sum(one.rows_left for one in judged) >= max(rows, 1) or (not rows and _is_ambiguous(other)):
                    other.notes += told if any(one.rows_left for one in judged) else []
                    return self._settled(other, judged)
            if rows:
                evidence, verdicts = self._settled(evidence, verdicts)
        extents = [one.group.extent for one in verdicts if one.rows_left and one.group.extent is not None]
        every = sum(segment.stop - segment.start for segment in evidence.segments)
        is_whole = len(evidence.segments) == 1 and evidence.segments[0].at_start  # what is lost is no damage then
        if not rows or (is_whole and 2 * sum(stop - start for start, stop in extents) < every):
            return self._explained(evidence, verdicts)
        return evidence, verdicts

    def _settled(self, evidence: Evidence, verdicts: list[Verdict]) -> tuple[Evidence, list[Verdict]]:
        """The evidence with decimals in the byte order that fits those of all row groups, and with what is a guess."""
        claims, limits = evidence.claims, self._limits
        changed, unsure = physical_forms.decimals(self._source, claims, limits)
        if changed:
            other = self._all_pages(physical_forms.with_elements(replace(claims, groups=[]), changed))
            other.notes += evidence.notes + physical_forms.told(claims.elements, changed)
            evidence, verdicts = other, judge(self._source, other.claims, limits)
        evidence.notes += [
            f"column {name}: its values fit in either order of their bytes, and that of the schema was taken"
            for name in unsure
        ]
        evidence.notes += [
            f"column {name}: which of its levels may be null is a guess of several that fit, "
            "so that an empty list and NULL may stand for one another"
            for name in physical_forms.undecided(evidence.claims.elements)
        ]
        return evidence, verdicts

    def _explained(self, evidence: Evidence, verdicts: list[Verdict]) -> tuple[Evidence, list[Verdict]]:
        """The evidence with losses that tell where the schema fails."""
        claims, losses = evidence.claims, evidence.losses
        extents = [one.group.extent for one in verdicts if one.group.extent is not None]
        # Row groups by the headers of pages that are as they were written, and cannot be read: they are none.
        is_wrong = bool(extents) and all(one.group.intact and not one.rows_left for one in verdicts)
        if is_wrong:
            losses = [Loss(UNPLACED, extents[0][0], extents[-1][1]), *losses]
        told = explained(
            self._source, evidence.segments, losses, claims, self._hints.codecs, self._limits,
            vary=self._hints.is_logical, by_values=not is_wrong,
        )  # fmt: skip
        if self._hints.codec is not None and self._source.size and evidence.segments:
            evidence.notes.append(f"codec {self._hints.codec} was given: without it all are tried")
        if told == losses:
            if not any(one.rows_left for one in verdicts):
                blame(verdicts)
            return evidence, verdicts
        if is_wrong:
            return replace(evidence, claims=replace(claims, groups=[]), losses=told), []
        return replace(evidence, losses=told), verdicts

    def _fill(self, evidence: Evidence, verdicts: list[Verdict]) -> None:
        """Put nulls in the place of lost chunks, and judge the row groups again that have them."""
        claims, limits = evidence.claims, self._limits
        filling = Filling(self._source, claims, limits)
        waiting = list(range(len(verdicts)))
        while filled := {at: group for at in waiting if (group := filling.fill(verdicts[at])) is not None}:
            source = self._source = filling.source
            for at, verdict in zip(
                filled, judge(source, replace(claims, groups=[*filled.values()]), limits), strict=True
            ):
                group = verdict.group
                placed = [chunk for chunk in group.chunks if chunk is not None]
                # Chunks beside lost ones may be others' by chance: a reader passes over what is behind their values.
                for chunk in placed if verdict.is_whole else ():
                    if pages_of(source, chunk, limits) is None:
                        verdict.gone[chunk.path_in_schema[0]] = "its pages do not fill its chunk"
                if verdict.is_whole and verdict.gone:
                    verdict.damaged, verdict.rows_left = dict(verdict.gone), 0
                measure(source, [group], limits)
                if evidence.metadata is not None:
                    doubt(source, evidence.metadata, [group], limits)
                verdicts[at] = verdict
            waiting = list(filled)

    def _gather(self) -> Evidence | None:
        """What is claimed of the file."""
        self._footers = footers.find(self._source, self._limits)
        source, limits = self._source, self._limits
        known = [found for found in self._footers if found.is_own]
        likely = {found.offset: likely_rows(source, found, limits) for found in known[:_FOOTERS]}
        best = sorted(known[:_FOOTERS], key=lambda found: likely[found.offset], reverse=True)
        for found in best[:_TRIED]:
            if likely[found.offset] and worth(evidence := of_footer(source, found, limits)):
                return self._beyond(found, evidence)
        schema = self._schema or (of_footer(source, best[0], limits).claims if best else None)
        if schema is None:
            return None
        return self._all_pages(replace(schema, groups=[]))

    def _all_pages(self, schema: Claims) -> Evidence:
        """The evidence of all pages of the file."""
        source = self._source
        has_magic = source.size >= len(MAGIC) and source.read(0, len(MAGIC)).tobytes() == MAGIC
        return self._pages(len(MAGIC) if has_magic else 0, source.size, schema)

    def _beyond(self, found: footers.FoundFooter, evidence: Evidence) -> Evidence:
        """The evidence of a footer, and of pages that it does not reach."""
        end = found.offset + found.length
        places = [] if found.kind == "end" else [(end + 8 * (found.kind == "inside"), self._source.size)]
        if found.kind == "torn":
            places = [(end_of_claims(evidence), found.offset)]
        for start, stop in places:
            if stop - start < 8:
                continue
            more = self._pages(start, stop, replace(evidence.claims, groups=[]))
            if more.claims.groups or (found.kind == "torn" and more.segments):
                evidence.losses += more.losses
                evidence.notes += more.notes
            if more.claims.groups:
                evidence.claims.groups += more.claims.groups
                evidence.told += ", pages behind it" if found.kind == "inside" else ", pages beyond it"
        return evidence

    def _pages(self, start: int, stop: int, schema: Claims) -> Evidence:
        return of_pages(self._source, start, stop, schema, self._hints, self._limits)

    def _write(self, claims: Claims, verdicts: list[Verdict], dest: Any, losses: list[Loss]) -> list[Verdict]:
        """Write what holds; gives the verdicts on the row groups that were written."""
        anew = [one for one in verdicts if not one.can_be_copied]
        made: dict[int, tuple[Source, ClaimedGroup]] = {}
        if anew and (again := self._rewritten(claims, anew)) is not None:
            mended = _alike(again, claims, anew, self._limits)
            if not mended and (again := self._rewritten(claims, verdicts)) is not None:
                with PathSource(again) as source, Sink(dest) as sink:
                    copy_bytes(source, 0, source.size, sink)
                return verdicts
            made = {id(one): group for one, group in zip(anew, mended, strict=False)}
        for one in anew if len(anew) > 1 and not made else ():  # one that cannot be written costs no other
            if (again := self._rewritten(claims, [one])) is not None:
                made |= {id(one): group for group in _alike(again, claims, [one], self._limits)}
        for one in anew:
            if id(one) not in made:
                reason = "the rows outside its damaged pages cannot be told with certainty"
                losses.append(Loss(reason, source_row_group=one.group.number, rows=one.rows_left))
        kept = [one for one in verdicts if one.can_be_copied or id(one) in made]
        if kept:
            write(dest, claims, [made.get(id(one), (self._source, one.group)) for one in kept])
        return kept

    def _rewritten(self, claims: Claims, verdicts: list[Verdict]) -> str | None:
        """The rows of some row groups outside damaged pages, as a file; ``None`` where verification refuses it."""
        made = self._temporary.new()
        metadata = file_metadata(claims, [one.group for one in verdicts])
        try:
            with quiet():
                done = repair(ClaimedSource(self._source, metadata, self._limits), made, limits=self._limits)
        except (ParquetError, ValueError):
            return None
        expected = sum(one.rows_left for one in verdicts)
        return made if done.rows == expected and verify(made, limits=self._limits).ok else None

    def _report(self, evidence: Evidence, groups: list[Recovered], dropped: tuple[str, ...]) -> Recovery:
        return Recovery(
            self._source.path,
            self._size,
            bool(groups),
            evidence.told,
            evidence.claims.schema_from,
            tuple(map(str, self._footers)),
            tuple(groups),
            tuple(evidence.losses),
            dropped,
            tuple(evidence.notes),
        )


def _is_ambiguous(evidence: Evidence) -> bool:
    return any(loss.reason.startswith((AMBIGUOUS, GIVEN_UP)) for loss in evidence.losses)


def _alike(path: str, claims: Claims, verdicts: Sequence[Verdict], limits: Limits) -> list[tuple[Source, ClaimedGroup]]:
    """The row groups of a file written anew, for each verdict one; none where its schema or row groups are others."""
    source = PathSource(path)
    footer = read_footer(source, limits).metadata
    groups = footer.row_groups
    same = list(footer.schema) == list(claims.elements)
    if not same or [group.num_rows for group in groups] != [one.rows_left for one in verdicts]:
        return []
    return [
        (source, replace(one.group, rows=one.rows_left, chunks=[chunk.meta_data for chunk in group.columns]))
        for group, one in zip(groups, verdicts, strict=True)
    ]


def _recovered(group: ClaimedGroup, rows: int) -> Recovered:
    certified = group.checksums and group.assigned == "footer" and not group.nulls
    return Recovered(
        rows, group.offset, group.number, group.evidence, group.checksums, group.assigned, certified, tuple(group.nulls)
    )
