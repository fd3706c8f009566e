"""Use summary files (``_metadata``) instead of the footers of a scan's files.

A summary file that is named explicitly is trusted: it represents the files that it lists, as in
``pyarrow.dataset.parquet_dataset``, unless it records another size for one of them. For a summary file found in a
scanned folder, only entries whose recorded size and modification time are still valid are used
(:mod:`pqext.core.files.summary_files`); all other files are read by their own footers. A stale summary file therefore
cannot hide a file or a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.pickling import PickledByFields
from pqext.core.base.text import escape_text, with_noun
from pqext.core.base.usage import Usage
from pqext.core.files.summary_files import METADATA, SummarisedSource, Summary, UnusableSummaryError
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.files.folders import join_path

_WORTH_BYTES = 16 << 10
"""Maximum size of a summary file, per file of the scan. Reading the footers costs less than a larger summary."""
_NOT_NOTED = "it lacks the sizes and times of its files; pqext.write_summary records them"


@dataclass(eq=False)
class Summaries(PickledByFields):
    """Summary files of a scan.

    ``named`` maps the path of each data file in an explicitly passed summary to the summary and the name of the file in
    it. ``folders`` are scanned folders that contain a summary file.
    """

    named: Mapping[str, tuple[Summary, str]] = field(default_factory=dict)
    folders: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self.usages: list[Usage] = [item.usage for item in self._iter_summaries()]
        """Usage of summary files that is not yet reported."""
        self._found: dict[str, tuple[Summary, str]] = {}
        self._refused: dict[str, str] = {}
        self._used: dict[str, list[int]] = {}
        self._is_checked = False
        self._waiting = dict.fromkeys(self.folders)

    def prepare(self, paths: Sequence[Any], options: ReadOptions) -> None:
        """Read each summary file that is expected to be smaller than the footers of the files at ``paths``.

        Raises ``CorruptFileError`` if a summary file that was named explicitly is inconsistent.
        """
        self._used = {}
        if self.named and not self._is_checked:
            for summary in self._iter_summaries():
                error = summary.contradiction()
                if error is not None:
                    options.report_corrupt(error)
            self._is_checked = True
        for folder in [*self._waiting] if options.decryption is None else ():
            path, start = os.path.join(folder, METADATA), os.path.join(folder, "")
            count = sum(isinstance(item, str) and item.startswith(start) for item in paths)
            try:
                if count > 1 and os.stat(path).st_size <= count * _WORTH_BYTES:
                    self._waiting.pop(folder, None)
                    self._read(path, folder)
            except OSError:
                self._waiting.pop(folder, None)

    @property
    def has_metadata(self) -> bool:
        """Whether the summary files contain metadata of any file."""
        return bool(self.named or self._found)

    def source(self, path: Any) -> SummarisedSource | None:
        """Return a source with the summarised metadata of the file at ``path``; None if the footer must be read."""
        if not self.has_metadata:
            return None
        if path in self.named:
            summary, name = self.named[path]
            source: SummarisedSource | None = summary.trusted_source(name, path)
        elif path in self._found:
            summary, name = self._found[path]
            source = summary.unchanged_source(name, path)
        else:
            return None
        counts = self._used.setdefault(summary.path, [0, 0])
        counts[source is None] += 1
        return source

    def pop_usages(self) -> list[Usage]:
        """Return the usage of the summary files since the last call, and reset the counters."""
        result, self.usages = self.usages, []
        return result

    def usage_lines(self) -> list[str]:
        """Return a line of text for each summary file.

        The lines describe how the summary files were used when files were last opened.
        """
        lines = []
        for path, (used, changed) in [*self._used.items()]:
            others = f", and not {with_noun(changed, 'file')} changed since" if changed else ""
            lines.append(f"plans {with_noun(used, 'file')} from {escape_text(path)}{others}")
        return lines + [f"ignores {escape_text(path)}: {reason}" for path, reason in [*self._refused.items()]]

    def _read(self, path: str, folder: str) -> None:
        try:
            summary = Summary(path, self.limits)
            self.usages.append(summary.usage)
            error = summary.contradiction()
            if error is not None:
                raise error
        except UnusableSummaryError as error:
            self._refused[path] = str(error)
            return
        except ParquetError as error:
            self._refused[path] = f"it is damaged: {error.message}"
            return
        if summary.records is None:
            self._refused[path] = _NOT_NOTED
            return
        self._found.update((join_path(folder, name), (summary, name)) for name in summary.records)

    def _iter_summaries(self) -> Iterable[Summary]:
        return {id(summary): summary for summary, _ in self.named.values()}.values()


def expand_summaries(
    sources: Sequence[Any], files: tuple[Any, ...], options: ReadOptions, limits: Limits
) -> tuple[tuple[Any, ...], Summaries | None]:
    """Replace summary files in ``files`` with the files that they list. Return all files and the summaries.

    The summaries are None if no summary file is named or stored in a scanned folder.

    A summary file remains a single file, whose column chunks are stored in other files, if it does not list one file
    for each row group or if it lists files in other folders.
    """
    named: dict[str, tuple[Summary, str]] = {}
    several: list[Any] = []
    for file in files:
        summary = _open_summary(file, limits) if options.external_files == "folder" else None
        if summary is None:
            several.append(file)
            continue
        folder = os.path.dirname(file)
        for name in summary.groups:
            place = join_path(folder, name)
            named[place] = summary, name
            several.append(place)
    paths = [source for source in sources if isinstance(source, str)]
    folders = [path for path in paths if os.path.isfile(os.path.join(path, METADATA))]
    if not named and not folders:
        return files, None
    return tuple(several), Summaries(named, folders, limits)


def _open_summary(file: Any, limits: Limits) -> Summary | None:
    """Read a summary file. Return None if ``file`` is not a summary file, or does not list complete files."""
    if not isinstance(file, str) or not file.endswith(METADATA) or os.path.basename(file) != METADATA:
        return None
    try:
        summary = Summary(file, limits)
    except (OSError, ValueError, UnusableSummaryError):  # the error is raised when the file is read
        return None
    return summary if summary.groups else None


