"""Options of all commands that read Parquet files: bounds, INT96 timestamps, strictness and keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pqext.cli.declarations import READING, Option, Size

if TYPE_CHECKING:
    from pqext.core.base.limits import Limits
    from pqext.core.options.encryption import FileDecryption
    from pqext.core.options.read_write import ReadOptions


class InvalidUtf8(StrEnum):
    """Result of strings that are not UTF-8."""

    stop = "raise"
    replacement = "replace"
    binary = "binary"


class Int96(StrEnum):
    """Unit in which INT96 timestamps are read."""

    auto = "auto"
    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"


@dataclass(frozen=True)
class Reading:
    """Reader's options, which the parameter of a command with this type declares."""

    memory_bytes: Annotated[
        Size | None,
        Option(
            "--memory-bytes", min=1, show_default="100 MiB, or 16 times the file's size if that is more", panel=READING,
            help="Maximum of bytes held decoded at a time, such as 500MB or 2GiB.",
        ),
    ] = None
    max_depth: Annotated[
        int | None,
        Option(
            "--max-depth", min=1, show_default=False, panel=READING,
            help="Maximum of levels of a schema, 100 by default, and of JSON documents, 1,000 by default and at most.",
        ),
    ] = None
    int96: Annotated[
        Int96,
        Option(
            "--int96", panel=READING,
            help="Unit in which INT96 timestamps are read; auto is us for files of Spark, else ns.",
        ),
    ] = Int96.auto
    invalid_utf8: Annotated[
        InvalidUtf8,
        Option(
            "--invalid-utf8", panel=READING,
            help="Result of strings that are not UTF-8: an error, U+FFFD for what is not UTF-8, or binary columns.",
        ),
    ] = InvalidUtf8.stop
    legacy_timezone: Annotated[
        str | None,
        Option(
            "--legacy-timezone", metavar="ZONE", show_default=False, panel=READING,
            help="Time zone of the writer of files of Spark 2, which do not state it, for timestamps before 1900.",
        ),
    ] = None
    strict: Annotated[
        bool,
        Option(
            "--strict", panel=READING,
            help="Reject what is otherwise read in spite of a fault: VARIANT columns whose parts contradict each "
            "other, corrupt page indexes and Bloom filters.",
        ),
    ] = False
    decryption_keys: Annotated[
        str | None,
        Option(
            "--decryption-keys", metavar="FILE", show_default=False, panel=READING,
            help='Keys of encrypted files, in hexadecimal: a JSON file with "footer", "columns" (keys by dotted '
            'names), "ids" (keys by their metadata in the file) and "aad_prefix" (text), of which all are optional.',
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Bounds for files of strangers, with those that the options name."""
        from pqext.core.base.limits import Limits

        chosen = {"memory_bytes": self.memory_bytes, "schema_depth": self.max_depth}
        return Limits.untrusted(**{name: value for name, value in chosen.items() if value is not None})

    @property
    def options(self) -> ReadOptions:
        """The options of the reader."""
        from pqext.core.options.read_write import ReadOptions

        return ReadOptions(
            strict=self.strict, int96=self.int96.value, decryption=self.decryption, **self.text_and_calendar
        )

    @property
    def text_and_calendar(self) -> dict[str, Any]:
        """The options of strings that are not UTF-8 and of Spark's legacy calendar, for functions that take both."""
        return {"invalid_utf8": self.invalid_utf8.value, "legacy_timezone": self.legacy_timezone}

    @property
    def decryption(self) -> FileDecryption | None:
        """The keys of encrypted files; ``ValueError`` for a file of keys that is not one, without its content."""
        return None if self.decryption_keys is None else _decryption(self.decryption_keys)


DEFAULTS = Reading()
_MEMBERS = ("footer", "columns", "ids", "aad_prefix")


def _decryption(path: str) -> FileDecryption:
    from pqext.core.options.encryption import FileDecryption

    advice = f"--decryption-keys: {path} is not a JSON object of {', '.join(_MEMBERS)} with keys in hexadecimal"
    with open(path, encoding="utf-8") as file:
        try:
            stated: dict[str, Any] = json.load(file)
            unknown = sorted(set(stated) - set(_MEMBERS))
            footer, prefix = stated.get("footer"), stated.get("aad_prefix")
            columns = {str(name): bytes.fromhex(key) for name, key in stated.get("columns", {}).items()}
            ids = {str(name).encode(): bytes.fromhex(key) for name, key in stated.get("ids", {}).items()}
            if not unknown and isinstance(prefix, str | None):
                retriever: Any = ids.get if ids else None
                return FileDecryption(
                    None if footer is None else bytes.fromhex(footer), columns, retriever, prefix,
                    plaintext_files_allowed=True,
                )  # fmt: skip
        except (ValueError, AttributeError, TypeError):
            raise ValueError(advice) from None
    raise ValueError(advice)
