"""Layout of a file: offsets, page sizes, and suggestions that would reduce the file size, with trade-offs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.text import format_size, shorten, with_noun
from pqext.core.io.source import FileSource
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.stored_schema import KEY
from pqext.inspection.collect import describe
from pqext.inspection.model import Column, FileFacts, FileLayout, PageSizes, Part
from pqext.inspection.parts import find_parts

MAX_DESCRIBED = 4_000
"""Maximum number of column chunks with reported statistics."""
_SMALL_FILE = 4 << 10
"""Files with fewer bytes get no advice."""
_TINY_GROUP = 1 << 20
_TINY_PAGE = 1 << 10
_LARGE_DICTIONARY = 1 << 14
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Layout(FileLayout):
    """Layout of a file of ``facts.size`` bytes; :meth:`to_html` renders it as a page.

    ``parts`` are consecutive without gaps. ``page_sizes`` counts the data pages with known offsets by powers of two.
    ``savings`` suggests ways to make the file smaller, and ``notes`` lists data that could not be inspected.
    """

    def to_html(self) -> str:
        """Return an HTML page that draws the layout to scale. It loads no resources and runs no scripts."""
        from pqext.inspection.drawing import build_page
        from pqext.report.to_scale import render

        return render(build_page(self))

    def _repr_html_(self) -> str:
        """Return an iframe that contains the page, for notebooks."""
        from html import escape

        page = escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" sandbox title="Layout" style="width:100%;height:640px;border:0"></iframe>'


def layout(
    source: FileSource,
    *,
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Layout:
    """Determine the layout of a Parquet file from its footer, its indexes and the headers of its pages.

    Values are not read. If there are very many chunks, only the first ones are inspected, as recorded in ``notes``.

    Args:
        source: Path, URL, bytes or binary file, as for :func:`pqext.open`.
        limits: Limits of the reader.
        decryption: Keys of an encrypted file.
        filesystem: File system of the source, as for :func:`pqext.open`.
        storage_options: Options of the object store, as for :func:`pqext.open`.

    Returns:
        The parts of the file in order, the sizes of pages, possible savings and notes.

    Raises:
        CorruptFileError: If the footer is corrupt; other corruption is reported in ``notes``.

    Example:
        >>> import pqext
        >>> from pqext import inspection
        >>> pqext.write_table({"id": [1, 2, 3]}, "ids.parquet")
        >>> [part.kind for part in inspection.layout("ids.parquet").parts[:4]]
        ['frame', 'data', 'column index', 'offset index']
    """
    options = ReadOptions(decryption=decryption, geoparquet=False, arrow_schema=False)
    with ParquetFile(source, options, limits=limits, filesystem=filesystem, storage_options=storage_options) as file:
        try:
            facts = describe(file, MAX_DESCRIBED)
            parts = find_parts(file)
        except ParquetError as error:
            error.locate(path=file.path)
            raise
    sizes = _page_sizes(parts.found)
    advice = tuple(suggest_savings(facts, parts.found, parts.dictionary_values))
    return Layout(facts, parts.found, sizes, advice, (*_describe_omissions(facts), *parts.notes))


def _describe_omissions(facts: FileFacts) -> Iterator[str]:
    missing = sum(group.num_chunks - len(group.columns) for group in facts.row_groups)
    if missing:
        message = "Statistics, encodings and codecs are not shown, because there are so many"
        yield f"{message}: {with_noun(missing, 'column chunk')}"


def _page_sizes(parts: tuple[Part, ...]) -> tuple[PageSizes, ...]:
    counts: dict[int, tuple[int, int]] = {}
    for part in parts:
        if part.kind == "data":
            power = part.length.bit_length() - 1
            count, total = counts.get(power, (0, 0))
            counts[power] = count + 1, total + part.length
    if not counts:
        return ()
    powers = range(min(counts), max(counts) + 1)
    return tuple(PageSizes(1 << power, *counts.get(power, (0, 0))) for power in powers)


def suggest_savings(
    facts: FileFacts, parts: tuple[Part, ...], dictionary_values: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    """Yield a sentence for each possible saving, in descending order of certainty.

    ``dictionary_values`` contains the known numbers of values in dictionaries, by row group and column.
    """
    if facts.size < _SMALL_FILE:
        return
    columns = [column for group in facts.row_groups for column in group.columns if column.codec]
    sums: dict[str, int] = defaultdict(int)
    for part in parts:
        sums[part.kind] += part.length
    yield from _codec_advice(columns)
    yield from _dictionary_advice(facts, parts, dictionary_values)
    yield from _page_advice(parts)
    yield from _row_group_advice(facts, columns, parts, sums)
    yield from _footer_advice(facts, parts, sums)
    for kind, text in (
        ("checkpoint", "earlier footers, of checkpoints or of rows appended since; a rewritten file has none."),
        ("metadata copy", "copies of column metadata, which readers do not need; newer writers omit them."),
        ("other", "bytes that neither the footer nor the indexes describe."),
    ):
        if sums[kind] * 50 > facts.size:
            yield f"{format_size(sums[kind])} ({sums[kind] / facts.size:.0%} of the file) are {text}"


def _codec_advice(columns: list[Column]) -> Iterator[str]:
    plain: dict[str, int] = defaultdict(int)
    swollen: dict[str, int] = defaultdict(int)
    for column in columns:
        name = ".".join(column.path)
        if column.codec == "UNCOMPRESSED":
            plain[name] += column.compressed
        elif column.compressed > column.uncompressed >= 0 and not column.encrypted:  # encryption adds bytes
            swollen[name] += column.compressed - column.uncompressed
    if sum(plain.values()) > 1 << 16:
        yield (
            f"{format_size(sum(plain.values()))} are stored without compression: {_format_largest(plain)}. Compression "
            "shortens text "
            "and similar values, but not random numbers."
        )
    if sum(swollen.values()) > 1 << 10:
        yield (
            f"Compression adds {format_size(sum(swollen.values()))} where values do not compress: "
            f"{_format_largest(swollen)}. "
            "Without compression they would be smaller and faster to read."
        )


def _dictionary_advice(
    facts: FileFacts, parts: tuple[Part, ...], dictionary_values: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    """Yield advice on columns that would be smaller without dictionary encoding.

    All values of a column are assumed to have the same length.
    """
    sums: dict[tuple[int | None, int | None], list[int]] = defaultdict(lambda: [0, 0])
    for part in parts:
        if part.kind in ("dictionary", "data"):
            sums[part.row_group, part.column][part.kind == "data"] += part.length
    wasted: dict[str, int] = defaultdict(int)
    for group in facts.row_groups:
        for column in group.columns:
            different = dictionary_values.get((group.index, column.column), 0)
            own, data = sums[group.index, column.column]
            if different > 0 and own > _LARGE_DICTIONARY:
                values = column.num_values - (column.null_count or 0)
                plain = own * values // different
                if own + data > plain:
                    wasted[".".join(column.path)] += own + data - plain
    if wasted:
        yield (
            f"Dictionaries make columns larger if nearly every value is different. Without them about this much is "
            f"saved: {_format_largest(wasted)}."
        )


def _page_advice(parts: tuple[Part, ...]) -> Iterator[str]:
    counts: dict[tuple[int | None, int | None], int] = defaultdict(int)
    for part in parts:
        if part.kind == "data" and part.length < _TINY_PAGE:
            counts[part.row_group, part.column] += 1
    tiny = sum(count for count in counts.values() if count > 1)
    if tiny > 100:
        yield f"{tiny:,} data pages in chunks of several pages have less than 1 KiB: larger pages need fewer headers."


def _row_group_advice(
    facts: FileFacts, columns: list[Column], parts: tuple[Part, ...], sums: Mapping[str, int]
) -> Iterator[str]:
    """Yield advice on small row groups if their metadata exceeds 2 % of the file."""
    groups = facts.row_groups
    stored = sum(group.compressed for group in groups)
    about = sums["column index"] + sums["offset index"]
    about += sum(part.length for part in parts if part.kind == "footer" and part.name == "row groups")
    if len(groups) > 1 and stored < _TINY_GROUP * len(groups) and about * 50 > facts.size:
        price = " Larger dictionaries have longer references to their values, so compare the sizes."
        yield (
            f"{with_noun(len(groups), 'row group')} have {format_size(stored // len(groups))} on average, and "
            f"{format_size(about)} of "
            f"footer and indexes describe them ({about / facts.size:.0%} of the file). Fewer, larger row groups "
            f"need less.{price if any(column.dictionary for column in columns) else ''}"
        )


def _footer_advice(facts: FileFacts, parts: tuple[Part, ...], sums: Mapping[str, int]) -> Iterator[str]:
    footer = sums["footer"]
    if footer * 20 > facts.size:
        largest = max((part for part in parts if part.kind == "footer"), key=lambda part: part.length)
        message = ""
        if largest.length < footer:
            message = f". Its largest part, {largest.name}, has {format_size(largest.length)}"
        if largest.name == "row groups":
            chunks = facts.num_row_groups * facts.num_columns
            message += f" and grows with the number of column chunks ({chunks:,}), not of rows"
        yield f"The footer takes {footer / facts.size:.0%} of the file, {format_size(footer)}{message}."
    for key, value in facts.key_value_metadata:
        used = len((value or "").encode("utf-8", "surrogatepass"))
        if used * 50 > facts.size:
            if key == KEY:
                yield (
                    f"The Arrow schema takes {format_size(used)} of the footer. Files written with arrow_schema=False "
                    "(pyarrow: store_schema=False) omit it, and lose types that only Arrow has."
                )
            else:
                yield f"The text under {shorten(key, 60)!r} takes {format_size(used)} of the footer."


def _format_largest(sums: dict[str, int]) -> str:
    largest = sorted(sums, key=lambda name: -sums[name])
    message = ", ".join(f"{shorten(name, 60)} {format_size(sums[name])}" for name in largest[:_NAMED])
    more = len(largest) - _NAMED
    return f"{message} and {with_noun(more, 'other column')}" if more > 0 else message
