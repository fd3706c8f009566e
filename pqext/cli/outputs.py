"""Where commands write: a path that is new or may be replaced, or standard output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pqext.cli.declarations import Option
from pqext.cli.locations import Place
from pqext.cli.standard_input import STREAM, without_path
from pqext.core.base.text import escape_text

if TYPE_CHECKING:
    from pqext.core.io.sink import Sink

Force = Annotated[bool, Option("--force", "-f", help="Replace the output where it is there already.")]


def named(dest: Place) -> str:
    """A path or URL as messages show it."""
    from pqext.core.io.sources.secrets import shown

    return escape_text(shown(without_path(str(dest))))


def file_name(place: Place) -> str:
    """The name of a file, without the query of its URL, which may hold a signature."""
    from pqext.core.io.sources.secrets import shown

    return os.path.basename(shown(str(place)))


def check_new(dest: Place, force: bool, source: Place | None = None) -> None:
    """Raise ``ValueError`` for a path or URL where something is that may not be replaced: no file but ``source``."""
    from pqext.core.io.sources.locations import Location, are_same, locate

    if dest == STREAM:
        raise ValueError("this command writes a file, not standard output: name one")
    if force:
        return
    place = locate(dest)
    if isinstance(place, Location):
        is_there = place.is_file()
    else:
        # Nothing is lost with an empty file, as mktemp makes them; what is no file is refused with its own reason.
        is_there = os.path.isfile(place) and os.path.getsize(place) > 0
    if is_there and (source is None or not are_same(locate(source), place)):
        raise ValueError(f"{named(dest)} is there already: --force replaces it")


def binary_output(what: str) -> Any:
    """Standard output for bytes; ``ValueError`` where a terminal shows it."""
    if sys.stdout.isatty():
        raise ValueError(f"{what} is not text for a terminal: redirect standard output, or name a file")
    return sys.stdout.buffer


@contextmanager
def opened(dest: Place) -> Iterator[IntoSink]:
    """A binary file whose bytes appear at ``dest`` once all of them are there, and not at all after an error."""
    from pqext.core.io.sink import Sink

    with Sink(dest) as sink, IntoSink(sink) as file:
        yield file


class IntoSink(io.RawIOBase):
    """A binary file that appends to a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sink.offset

    def write(self, data: Any) -> int:
        """Append ``data``."""
        self._sink.write(data)
        return len(memoryview(data).cast("B"))
