"""Draw a file's layout to scale: offsets, page sizes, and structures that could be smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.text import with_noun
from pqext.core.io.source import FileSource
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.inspection.advice import savings
from pqext.inspection.collect import describe
from pqext.inspection.model import FileFacts, FileLayout, PageSizes, Part
from pqext.inspection.parts import find_parts

MAX_DESCRIBED = 4_000
"""Maximum number of column chunks with reported statistics."""


@dataclass(frozen=True, slots=True)
class Layout(FileLayout):
    """Layout of a file of ``facts.size`` bytes; :meth:`to_html` renders it as a page.

    ``parts`` are consecutive without gaps. ``page_sizes`` counts the data pages with known offsets by powers of two.
    ``savings`` suggests ways to make the file smaller, and ``notes`` lists data that could not be inspected.
    """

    def to_html(self) -> str:
        """Return an HTML page that draws the layout to scale. It loads no resources and runs no scripts."""
        from pqext.inspection.drawing import page
        from pqext.report.to_scale import render

        return render(page(self))

    def _repr_html_(self) -> str:
        """Return a frame with the page, for notebooks."""
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
    advice = tuple(savings(facts, parts.found, parts.dictionary_values))
    return Layout(facts, parts.found, sizes, advice, (*_undescribed_bytes(facts), *parts.notes))


def _undescribed_bytes(facts: FileFacts) -> Iterator[str]:
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
