"""Serialise the end of a file, from the footer to the magic number, in any of the footer formats."""

from __future__ import annotations

from copy import copy

from pqext.core.footer.flatbuffers.reading import FLATBUFFERS, build_file_end, tables_of, with_flat_footer
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, with_jump_table
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.io.source import Source
from pqext.core.options.footer import FooterFormat

_DERIVED_FORMATS = {JUMP_TABLE.bytes: "thrift+index", FLATBUFFERS.bytes: "thrift+flatbuffers"}
"""Footer formats by the UUID of the extension that they derive from the other fields of the footer."""


def tail(metadata: FileMetaData, footer_format: FooterFormat) -> tuple[bytes, str | None]:
    """Return the bytes that end a file, and a warning if a second footer was omitted, otherwise None.

    The caller issues the warning after writing. Raises ``ValueError`` if the format cannot represent the metadata.
    """
    plain = without_copies(metadata)
    if footer_format == "flatbuffers":
        return build_file_end(tables_of(encode(plain))), None
    if footer_format == "thrift":
        return serialise_footer(plain), None
    serialised, warning = with_jump_table(plain) if footer_format == "thrift+index" else with_flat_footer(plain)
    return serialise_footer(serialised), warning


def without_copies(metadata: FileMetaData) -> FileMetaData:
    """Return the footer. If it has an extension derived from its fields, which would become outdated, return a copy
    without this extension.
    """
    stored = extensions(metadata)
    if stored is None or stored[-16:] not in _DERIVED_FORMATS:
        return metadata
    plain = copy(metadata)
    set_extension(plain, None, replace=True)
    return plain


def footer_format_of(source: Source) -> FooterFormat:
    """Return the format of a file's footer according to its last bytes. The footer is not validated."""
    last = source.read(max(source.size - 25, 0), min(25, source.size)).tobytes()
    if last[-4:] == b"PAR3":
        return "flatbuffers"
    return _DERIVED_FORMATS.get(last[:16], "thrift")  # type: ignore[return-value]
