"""Input and output locations of commands: paths, URLs and standard input or output."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from pqext.cli.command import STORES, flag, option, option_group
from pqext.core.base.text import escape_text

if TYPE_CHECKING:
    from pqext.core.io.sink import Sink
    from pqext.core.io.sources.store import Location

Place: TypeAlias = "str | Location"
"""A local path or an object-store location; its text is the path or URL in messages."""
STREAM = "-"
"""Path that denotes standard input or output."""
TABLES = ("delta:", "iceberg:")
"""Prefixes of the names of tables."""


@dataclass(frozen=True)
class Storage:
    """Object-store options of a command: ``--storage-option`` and ``--anonymous``."""

    settings: tuple[str, ...] = ()
    anonymous: bool = False

    def locate(self, texts: Sequence[str]) -> list[Place]:
        """Return ``texts`` with URLs resolved to object-store locations that use these options.

        Raises:
            ValueError: If an option is not ``KEY=VALUE``, applies to no URL, or is unknown to the store. The message
                contains no option values.
        """
        from pqext.core.base.local_paths import scheme_of
        from pqext.core.io.sources.locations import locate

        options = self.options()
        schemes = [None if text.startswith(TABLES) else scheme_of(text) for text in texts]
        has_table = any(text.startswith(TABLES) for text in texts)
        if options and not has_table and not any(scheme not in (None, "file") for scheme in schemes):
            name = "--anonymous" if self.anonymous and not self.settings else "--storage-option"
            raise ValueError(f"{name} applies to URLs only, such as s3://bucket/key")
        return [
            text if not options or scheme in (None, "file") else locate(text, storage_options=options)
            for text, scheme in zip(texts, schemes, strict=True)
        ]

    def options(self) -> dict[str, Any]:
        """Return the options by name. Raises ``ValueError`` if an option is not ``KEY=VALUE``."""
        options: dict[str, Any] = {"anonymous": True} if self.anonymous else {}
        for text in self.settings:
            key, equals, value = text.partition("=")
            key = key.strip()
            if not equals or not key:
                raise ValueError("--storage-option must be KEY=VALUE, as in region=eu-central-1")
            if key in options:
                raise ValueError(f"--storage-option: duplicate key {key!r}")
            options[key] = value.lower() == "true" if value.lower() in ("true", "false") else value
        return options


storage_options = option_group(
    "storage",
    Storage,
    option(
        "--storage-option", "settings", metavar="KEY=VALUE", multiple=True, panel=STORES,
        help="Object-store option, such as region=eu-central-1 or endpoint_url=http://host:9000; may be repeated. "
        "Other users can see command lines: pass keys and tokens through the environment.",
    ),
    flag("--anonymous", panel=STORES, help="Read public buckets without credentials; same as anonymous=true."),
)
force_option = flag("--force", "-f", help="Overwrite the output if it exists.")


class InputFile(click.ParamType):  # type: ignore[type-arg]
    """Parameter type for a file that requires random access. Standard input is stored in a temporary file."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return store_stdin() if value == STREAM else str(value)


@cache
def store_stdin() -> str:
    """Store standard input in a temporary file, which is removed when the process ends, and return its path."""
    import atexit
    import tempfile

    folder = tempfile.mkdtemp(prefix="pqext-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "standard-input")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def hide_temporary_path(text: str) -> str:
    """Replace the path of the temporary file for standard input with "standard input"."""
    return text.replace(store_stdin(), "standard input") if store_stdin.cache_info().currsize else text


def display_path(path: str | None) -> str | None:
    """Return ``path`` as shown in reports: "standard input" if it is the temporary file for standard input."""
    return None if path is None else hide_temporary_path(path)


def display_name(dest: Place) -> str:
    """Return a path or URL for messages. The query of a URL is omitted, and control characters are escaped."""
    from pqext.core.io.sources.store_errors import redact_uri

    return escape_text(redact_uri(hide_temporary_path(str(dest))))


def file_name(location: Place) -> str:
    """Return the base name of a file. The query of a URL is omitted, because it may contain a signature."""
    from pqext.core.io.sources.store_errors import redact_uri

    return os.path.basename(redact_uri(str(location)))


def check_overwrite(dest: Place, force: bool, source: Place | None = None) -> None:
    """Raise ``ValueError`` if ``dest`` is standard output, or if ``dest`` exists and must not be overwritten.

    An existing file may be overwritten with ``force``, or if it is ``source``.
    """
    from pqext.core.io.sources.locations import Location, is_same_file, locate

    if dest == STREAM:
        raise ValueError("this command cannot write to standard output; pass the path of a file")
    if force:
        return
    place = locate(dest)
    if isinstance(place, Location):
        exists = place.is_file()
    else:
        # mktemp creates empty files. Anything else that is not a regular file is rejected on opening.
        exists = os.path.isfile(place) and os.path.getsize(place) > 0
    if exists and (source is None or not is_same_file(locate(source), place)):
        raise ValueError(f"{display_name(dest)} already exists; use --force to overwrite it")


def binary_output(content: str) -> Any:
    """Return standard output as a binary stream. Raises ``ValueError`` if it is a terminal."""
    if sys.stdout.isatty():
        raise ValueError(
            f"{content} cannot be shown on a terminal; redirect standard output, or pass the path of a file"
        )
    return sys.stdout.buffer


@contextmanager
def open_output(dest: Place) -> Iterator[SinkWriter]:
    """Context manager that opens a binary file, which appears at ``dest`` on exit unless an error occurs."""
    from pqext.core.io.sink import Sink

    with Sink(dest) as sink, SinkWriter(sink) as file:
        yield file


class SinkWriter(io.RawIOBase):
    """Binary file object that writes to a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sink.offset

    def write(self, data: Any) -> int:
        """Append ``data`` to the sink and return its length."""
        self._sink.write(data)
        return len(memoryview(data).cast("B"))
