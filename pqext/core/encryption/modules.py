"""Modules of encrypted files, and the AAD that binds each module to its position.

Spec: "Parquet Modular Encryption", sections 4.4 (additional authenticated data) and 5.1 (serialisation).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pqext.core.base.errors import EncryptionError

ORDINAL_MAX = (1 << 15) - 1
"""Maximum ordinal. Ordinals are signed 16-bit numbers.

Writers also use it as the maximum *count* of row groups, columns and pages.
"""

LENGTH_BYTES = 4
NONCE_BYTES = 12
TAG_BYTES = 16
SIGNATURE_BYTES = NONCE_BYTES + TAG_BYTES


class Module(IntEnum):
    """Module types, with the values that the AAD contains."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

    @property
    def is_page(self) -> bool:
        """Whether the module is the body of a page, which AES_GCM_CTR_V1 encrypts without authentication."""
        return self in (Module.DATA_PAGE, Module.DICTIONARY_PAGE)

    @property
    def has_page_ordinal(self) -> bool:
        """Whether the AAD contains the ordinal of the page."""
        return self in (Module.DATA_PAGE, Module.DATA_PAGE_HEADER)

    @property
    def text(self) -> str:
        """Name of the module type in messages."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class FileAad:
    """Part of the AAD that all modules of a file share."""

    prefix: bytes
    file_unique: bytes

    def footer(self) -> bytes:
        """Return the AAD of the footer."""
        return self.prefix + self.file_unique + bytes([Module.FOOTER])

    def chunk(self, module: Module, row_group: int, column: int, page: int | None) -> bytes:
        """Return the AAD of one module of a column chunk. ``page`` is the index of its data page, if any."""
        ordinals = _ordinal(row_group, "row groups") + _ordinal(column, "columns")
        if module.has_page_ordinal:
            if page is None:
                raise ValueError(f"a {module.text} needs the ordinal of its page")
            ordinals += _ordinal(page, "pages in a column chunk")
        return self.prefix + self.file_unique + bytes([module]) + ordinals


def _ordinal(value: int, parts: str) -> bytes:
    if not 0 <= value <= ORDINAL_MAX:
        raise EncryptionError(f"ordinal {value}: an encrypted file can have at most {ORDINAL_MAX} {parts}, because "
                              "ordinals have 16 bits")
    return value.to_bytes(2, "little")
