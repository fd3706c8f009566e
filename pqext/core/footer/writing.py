"""The end of a file in each form of footer."""

from __future__ import annotations

from copy import copy

from pqext.core.footer.flatbuffers.framing import FLATBUFFERS, alone, tables_of, with_flat_footer
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, with_jump_table
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.io.source import Source
from pqext.core.options.footer import FooterForm

_MADE_FROM_IT = {JUMP_TABLE.bytes: "thrift+index", FLATBUFFERS.bytes: "thrift+flatbuffers"}
"""Extensions of the footer that are made from its other fields."""


def tail(metadata: FileMetaData, form: FooterForm) -> tuple[bytes, str | None]:
    """The bytes that end a file of this metadata, and a warning for when it is whole: what was left out, and why.

    Raises ``ValueError`` for metadata that the form has no place for.
    """
    plain = without_copies(metadata)
    if form == "flatbuffers":
        return alone(tables_of(encode(plain))), None
    if form == "thrift":
        return serialise_footer(plain), None
    serialised, told = with_jump_table(plain) if form == "thrift+index" else with_flat_footer(plain)
    return serialise_footer(serialised), told


def without_copies(metadata: FileMetaData) -> FileMetaData:
    """The footer, or a copy without what was made from it: nothing of that may outlive a change of the footer."""
    stored = extensions(metadata)
    if stored is None or stored[-16:] not in _MADE_FROM_IT:
        return metadata
    plain = copy(metadata)
    set_extension(plain, None, replace=True)
    return plain


def form_of(source: Source) -> FooterForm:
    """The form of a file's footer, by its last bytes; nothing is checked."""
    last = source.read(max(source.size - 25, 0), min(25, source.size)).tobytes()
    if last[-4:] == b"PAR3":
        return "flatbuffers"
    return _MADE_FROM_IT.get(last[:16], "thrift")  # type: ignore[return-value]
