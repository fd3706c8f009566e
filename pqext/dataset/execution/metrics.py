"""Metrics of a scan: numbers of requests, bytes, pages and rows, and the time spent in each phase."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, fields
from operator import add, attrgetter, sub
from time import perf_counter
from typing import Any, TypeVar

from pqext.core.base.text import html_summary
from pqext.core.base.usage import Usage
from pqext.core.io.source import Source
from pqext.core.read.reader import ParquetFile
from pqext.dataset.planning.plan import RowGroupPlan

T = TypeVar("T")
_COUNTS = (
    "requests", "bytes", "fetch_seconds", "pages", "rows_evaluated", "filter_seconds", "decompress_seconds",
    "assemble_seconds",
)
_FETCH_SECONDS = _COUNTS.index("fetch_seconds")
_of = attrgetter(*_COUNTS)
Counts = tuple[float, ...]
"""Usage of a source, in the order of ``_COUNTS``."""
_NOTHING: Counts = (0.0,) * len(_COUNTS)


@dataclass(frozen=True, slots=True, repr=False)
class Metrics:
    """Metrics of the most recent run of a scan, complete or in progress; see :attr:`pqext.Scan.metrics`.

    Times are in seconds and exclude the time spent in the consumer. The times of the phases can add up to more than the
    total if several threads run in parallel.
    """

    files: int = 0
    """Number of files opened."""
    row_groups: int = 0
    """Number of row groups that were read at least in part."""
    requests: int = 0
    """Number of reads from the sources, including footers and indexes."""
    bytes: int = 0
    """Number of bytes fetched by these requests."""
    pages: int = 0
    """Number of data pages decoded."""
    rows_evaluated: int = 0
    """Number of rows on which the filter was evaluated."""
    rows: int = 0
    """Number of rows returned or counted."""
    open_seconds: float = 0.0
    """Seconds spent opening files and reading footers, excluding time waiting for bytes."""
    plan_seconds: float = 0.0
    """Seconds spent planning what to read, excluding time waiting for bytes."""
    fetch_seconds: float = 0.0
    """Seconds spent waiting for bytes, summed over concurrent requests."""
    decompress_seconds: float = 0.0
    """Seconds spent decompressing pages, summed over threads."""
    decode_seconds: float = 0.0
    """Seconds spent decoding pages, and all time not counted elsewhere."""
    filter_seconds: float = 0.0
    """Seconds spent evaluating the filter, summed over threads."""
    assemble_seconds: float = 0.0
    """Seconds spent assembling Arrow arrays from decoded columns, summed over threads."""
    seconds: float = 0.0
    """Total seconds of the run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as a dictionary."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<pqext.Metrics {'; '.join(f'{name}: {text}' for name, text in self._facts())}>"

    def _repr_html_(self) -> str:
        return html_summary("pqext.Metrics", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return [
            (name.removesuffix("_seconds").replace("_", " ").replace("seconds", "in all"), _text(name, number))
            for name, number in numbers.items()
        ]


def _text(name: str, number: float) -> str:
    return f"{1000 * number:,.1f} ms" if name.endswith("seconds") else f"{number:,}"


class Run:
    """Collector of the metrics of one run of a scan."""

    def __init__(self) -> None:
        self.rows = 0
        self._seconds = 0.0
        self._phases = {"open_seconds": 0.0, "plan_seconds": 0.0}
        self._files = 0
        self._row_groups = 0
        self._done = _NOTHING
        self._open: dict[int, tuple[Usage, Counts]] = {}

    @property
    def metrics(self) -> Metrics:
        """Return the current metrics."""
        counts = self._counts()
        whole = {name: int(counts[name]) for name in ("requests", "bytes", "pages", "rows_evaluated")}
        phases: dict[str, Any] = {name: seconds for name, seconds in counts.items() if name.endswith("_seconds")}
        phases |= self._phases
        return Metrics(
            self._files, self._row_groups, **whole, rows=self.rows, **phases,
            decode_seconds=max(0.0, self._seconds - sum(phases.values())), seconds=self._seconds,
        )

    def track_file(self, file: ParquetFile, previous_counts: Counts) -> _FileTracker:
        """Return a context manager that counts the usage of a file's source.

        ``previous_counts`` is the usage before the run.
        """
        return _FileTracker(self, file.source, previous_counts)

    def start_source(self, source: Source, previous_counts: Counts) -> bool:
        """Start counting the usage of a source, and return whether the source is open."""
        self._open[id(source)] = source.usage, previous_counts
        self._files += source.is_opened
        return source.is_opened

    def stop_source(self, source: Source, previous_counts: Counts, is_open: bool) -> None:
        """Stop counting the usage of a source. ``is_open`` is the return value of :meth:`start_source`."""
        self._files += source.is_opened - is_open
        del self._open[id(source)]
        self._done = _sum(self._done, source.usage, previous_counts)

    def count_usages(self, usages: Iterable[Usage]) -> None:
        """Add the usage of sources other than the scanned files. Each source counts as an opened file."""
        for usage in usages:
            self._files += 1
            self._done = _sum(self._done, usage, _NOTHING)

    def count_opening(self, seconds: float, source: Source | None, previous_counts: Counts) -> None:
        """Add the ``seconds`` that opening ``source`` took, without the time spent fetching its bytes."""
        fetched = 0.0 if source is None else source.usage.fetch_seconds - previous_counts[_FETCH_SECONDS]
        self._phases["open_seconds"] += max(0.0, seconds - fetched)

    def planning(self) -> _Planning:
        """Return a context manager that adds its duration, without the time spent fetching bytes, to planning time."""
        return _Planning(self)

    def count_planning(self, seconds: float) -> None:
        """Add ``seconds`` to the time spent on planning."""
        self._phases["plan_seconds"] += seconds

    def count_plans(self, plans: Iterable[RowGroupPlan]) -> Generator[RowGroupPlan, None, None]:
        """Yield ``plans``. Measure the time until each plan is available, and count the row groups to read."""
        waiting = iter(plans)
        while True:
            with self.planning():
                plan = next(waiting, None)
            if plan is None:
                return
            self._row_groups += plan.prune_reason is None and plan.rows != []
            yield plan

    def time_batches(self, batches: Generator[T, None, None]) -> Generator[T, None, None]:
        """Yield ``batches``. Measure the time until each batch is available, without the time of the consumer."""
        try:
            while True:
                started = perf_counter()
                try:
                    item = next(batches)
                except StopIteration:
                    return
                finally:
                    self._seconds += perf_counter() - started
                yield item
        finally:
            batches.close()

    def fetch_seconds(self) -> float:
        """Return the time spent waiting for bytes since the start of the run, in seconds."""
        seconds = self._done[_FETCH_SECONDS]
        if self._open:
            for usage, before in [*self._open.values()]:
                seconds += usage.fetch_seconds - before[_FETCH_SECONDS]
        return seconds

    def _counts(self) -> dict[str, float]:
        counts = self._done
        for usage, before in [*self._open.values()]:
            counts = _sum(counts, usage, before)
        return dict(zip(_COUNTS, counts, strict=True))


class _Planning:
    """Context manager that measures planning time. It is entered for each file, so it must be fast."""

    __slots__ = ("_fetched", "_run", "_started")

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._started, self._fetched = perf_counter(), self._run.fetch_seconds()

    def __exit__(self, *_: object) -> None:
        fetched = self._run.fetch_seconds() - self._fetched
        self._run.count_planning(perf_counter() - self._started - fetched)


class _FileTracker:
    """Context manager that counts the usage of a file while it is open in a run."""

    __slots__ = ("_before", "_opened", "_run", "_source")

    def __init__(self, run: Run, source: Source, previous_counts: Counts) -> None:
        self._run, self._source, self._before = run, source, previous_counts

    def __enter__(self) -> None:
        self._opened = self._run.start_source(self._source, self._before)

    def __exit__(self, *_: object) -> None:
        self._run.stop_source(self._source, self._before, self._opened)


def _sum(counts: Counts, usage: Usage, previous_counts: Counts) -> Counts:
    """Return ``counts`` plus the usage of a source since ``previous_counts``."""
    now = _of(usage)
    if previous_counts is not _NOTHING:
        now = tuple(map(sub, now, previous_counts))
    return tuple(map(add, counts, now))


def counts_of(source: Any) -> Counts:
    """Return the usage of a source so far; all zero if the source is not open."""
    if type(source) is str:
        return _NOTHING
    return _of(source.usage) if isinstance(source, Source) else _NOTHING
