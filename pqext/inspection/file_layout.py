"""A file's layout to scale: what lies where, how large pages are, and what could be smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.text import with_noun
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.inspection.advice import savings
from pqext.inspection.collect import describe
from pqext.inspection.model import FileFacts, FileLayout, PageSizes, Part
from pqext.inspection.parts import find_parts

MAX_DESCRIBED = 4_000
"""Column chunks whose statistics are told."""


@dataclass(frozen=True, slots=True)
class Layout(FileLayout):
    """What lies where in a file of ``facts.size`` bytes, for people as HTML (:meth:`to_html`).

    ``parts`` follow one another without a hole. ``page_sizes`` are those of the data pages whose places are told, by
    powers of two. ``savings`` says what could be smaller, ``notes`` what could not be looked at.
    """

    def to_html(self) -> str:
        """One page of HTML that draws the layout to scale. It loads nothing and runs no script."""
        from pqext.inspection.drawing import page
        from pqext.report.to_scale import render

        return render(page(self))

    def _repr_html_(self) -> str:
        """A frame with the page, for notebooks."""
        from html import escape

        page = escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" sandbox title="Layout" style="width:100%;height:640px;border:0"></iframe>'


def layout(
    source: Any,
    *,
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Layout:
    """Tell what lies where in a Parquet file, by its footer, its indexes and the headers of its pages.

    ``source``, ``filesystem`` and ``storage_options`` are as for :func:`pqext.open`, ``decryption`` holds the keys of
    an encrypted file. Values are not read. Of very many chunks only the first are looked at, which ``notes`` then
    says. Raises ``CorruptFileError`` for a damaged footer; other damage is told in ``notes``.
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
    return Layout(facts, parts.found, sizes, advice, (*_undescribed(facts), *parts.notes))


def _undescribed(facts: FileFacts) -> Iterator[str]:
    missing = sum(group.num_chunks - len(group.columns) for group in facts.row_groups)
    if missing:
        told = "Statistics, encodings and codecs are not shown, because there are so many"
        yield f"{told}: {with_noun(missing, 'column chunk')}"


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
