"""What planning will ask of the indexes of a file, noted before it is fetched, so that one request brings all of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pqext.core.io.external_files import read_many
from pqext.core.io.source import Range, Source

Wanted = list[tuple[Source, Range]]

_NOBODY: tuple[Gathering | None, Wanted | None] = None, None
_local = threading.local()
"""What each thread notes now, and for which file."""


class Gathering:
    """Says whether the indexes of a file are only noted on this thread, and holds where those lie that were noted."""

    @property
    def wanted(self) -> Wanted | None:
        """Where indexes that are asked for are to be noted; nothing is known of them then. None: they are read."""
        owner, wanted = getattr(_local, "noting", _NOBODY)
        return wanted if owner is self else None

    def fetch(self, source: Source, ask: Callable[[], object]) -> None:
        """Fetch at once what ``ask`` asks of indexes of a file, or of those of others that it names."""
        with self.noting() as wanted:
            ask()
        if wanted:
            read_many(wanted, keep=True)
            source.learn_of(wanted)

    @contextmanager
    def noting(self) -> Iterator[Wanted]:
        """Within, this thread reads no index of the file: those that are asked for are noted."""
        wanted: Wanted = []
        before = getattr(_local, "noting", _NOBODY)
        _local.noting = self, wanted
        try:
            yield wanted
        finally:
            _local.noting = before
