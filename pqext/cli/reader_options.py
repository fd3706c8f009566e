"""Options of all commands that read Parquet files: limits, INT96 timestamps, strictness and decryption keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pqext.cli.command import READING, Size, flag, option, option_group

if TYPE_CHECKING:
    from pqext.core.base.limits import Limits
    from pqext.core.options.encryption import FileDecryption
    from pqext.core.options.read_write import ReadOptions


@dataclass(frozen=True)
class ReaderOptions:
    """Values of the options that control how a command reads Parquet files."""

    memory_bytes: int | None = None
    max_depth: int | None = None
    int96: Any = "auto"
    invalid_utf8: Any = "raise"
    legacy_timezone: str | None = None
    strict: bool = False
    decryption_keys: str | None = None

    @property
    def limits(self) -> Limits:
        """Limits for untrusted files. Options of the command override these limits."""
        from pqext.core.base.limits import Limits

        limits = {"memory_bytes": self.memory_bytes, "schema_depth": self.max_depth}
        return Limits.untrusted(**{name: value for name, value in limits.items() if value is not None})

    @property
    def options(self) -> ReadOptions:
        """The options as :class:`pqext.ReadOptions`."""
        from pqext.core.options.read_write import ReadOptions

        return ReadOptions(
            strict=self.strict, int96=self.int96, decryption=self.decryption, **self.text_and_calendar
        )

    @property
    def text_and_calendar(self) -> dict[str, Any]:
        """Options for invalid UTF-8 and Spark's legacy calendar as keyword arguments."""
        return {"invalid_utf8": self.invalid_utf8, "legacy_timezone": self.legacy_timezone}

    @property
    def decryption(self) -> FileDecryption | None:
        """Keys of encrypted files. Raises ``ValueError`` if the key file is invalid; the message omits its content."""
        return None if self.decryption_keys is None else _decryption(self.decryption_keys)


reading_options = option_group(
    "reading",
    ReaderOptions,
    option(
        "--memory-bytes", type=Size(), metavar="SIZE", panel=READING,
        show_default="100 MiB, or 16 times the file's size if larger",
        help="Memory limit for decoded data, such as 500MB or 2GiB, for files of any size.",
    ),
    option(
        "--max-depth", type=click.IntRange(min=1), metavar="N", panel=READING,
        help="Maximum nesting depth of schemas (100 by default) and JSON documents (1,000, which is also the maximum).",
    ),
    option(
        "--int96", type=click.Choice(["auto", "s", "ms", "us", "ns"]), default="auto", panel=READING,
        help="Unit of INT96 timestamps; auto is us for files written by Spark, otherwise ns.",
    ),
    option(
        "--invalid-utf8", type=click.Choice(["raise", "replace", "binary"]), default="raise", panel=READING,
        help="Strings that are not UTF-8: raise an error, replace invalid bytes with U+FFFD, or return binary columns.",
    ),
    option(
        "--legacy-timezone", metavar="ZONE", panel=READING,
        help="Time zone of Spark 2 when it wrote the files, for timestamps before 1900; the files do not record it.",
    ),
    flag(
        "--strict", panel=READING,
        help="Reject faults that are otherwise tolerated: VARIANT columns with inconsistent value and typed_value, "
        "corrupt page indexes and Bloom filters.",
    ),
    option(
        "--decryption-keys", metavar="FILE", panel=READING,
        help='Keys of encrypted files, in hexadecimal: a JSON file with "footer", "columns" (keys by dotted column '
        'name), "ids" (keys by the key metadata in the file) and "aad_prefix" (text), all optional.',
    ),
)
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
                )
        except (ValueError, AttributeError, TypeError):
            raise ValueError(advice) from None
    raise ValueError(advice)
