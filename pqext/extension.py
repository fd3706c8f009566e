"""Add, find and parse bytes in the field that the format reserves for extensions (field 32767)."""

from __future__ import annotations

from pqext.core.footer.thrift_footer import find_framed
from pqext.core.format.extension.framing import ExtensionContainer
from pqext.core.format.extension.structure import append_extension, set_extension

__all__ = ["ExtensionContainer", "append_extension", "find_framed", "set_extension"]
