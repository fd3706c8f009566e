"""pqext: write, read, prune and inspect Parquet with VARIANT and geospatial columns.

Public names are imported when they are first used, so that ``import pqext`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pqext import geo, spark, variant
    from pqext.core.encryption.identity import verify_file_set
    from pqext.core.encryption.keytools.factory import (
        CryptoFactory,
        DecryptionConfiguration,
        EncryptionConfiguration,
    )
    from pqext.core.encryption.keytools.kms import KmsClient, KmsConnectionConfig
    from pqext.core.encryption.properties import ColumnKey, FileDecryption, FileEncryption
    from pqext.core.encryption.reading import MissingKeyError
    from pqext.core.errors import (
        CorruptDataWarning,
        CorruptFileError,
        EncryptionError,
        GeometryError,
        LimitError,
        ParquetError,
        UnsupportedError,
        VariantError,
        VariantLimitError,
    )
    from pqext.core.extension.container import ExtensionContainer
    from pqext.core.extension.framed import find_framed
    from pqext.core.extension.structure import append_extension, set_extension
    from pqext.core.files.concatenate import concatenate
    from pqext.core.files.rewrite import rewrite_footer
    from pqext.core.files.summary import write_summary
    from pqext.core.limits import Limits
    from pqext.core.options import ReadOptions, WriteOptions
    from pqext.core.reader import ParquetFile
    from pqext.core.reader import ParquetFile as open
    from pqext.core.writer import ParquetWriter, write_table
    from pqext.dataset.expressions import col
    from pqext.dataset.scan import read_table, scan
    from pqext.inspection import inspect
    from pqext.verification import verify

_HOME = {
    "ColumnKey": "pqext.core.encryption.properties",
    "CorruptDataWarning": "pqext.core.errors",
    "CorruptFileError": "pqext.core.errors",
    "CryptoFactory": "pqext.core.encryption.keytools.factory",
    "DecryptionConfiguration": "pqext.core.encryption.keytools.factory",
    "EncryptionConfiguration": "pqext.core.encryption.keytools.factory",
    "EncryptionError": "pqext.core.errors",
    "ExtensionContainer": "pqext.core.extension.container",
    "FileDecryption": "pqext.core.encryption.properties",
    "FileEncryption": "pqext.core.encryption.properties",
    "GeometryError": "pqext.core.errors",
    "KmsClient": "pqext.core.encryption.keytools.kms",
    "KmsConnectionConfig": "pqext.core.encryption.keytools.kms",
    "LimitError": "pqext.core.errors",
    "Limits": "pqext.core.limits",
    "MissingKeyError": "pqext.core.encryption.reading",
    "ParquetError": "pqext.core.errors",
    "ParquetFile": "pqext.core.reader",
    "ParquetWriter": "pqext.core.writer",
    "ReadOptions": "pqext.core.options",
    "UnsupportedError": "pqext.core.errors",
    "VariantError": "pqext.core.errors",
    "VariantLimitError": "pqext.core.errors",
    "WriteOptions": "pqext.core.options",
    "append_extension": "pqext.core.extension.structure",
    "col": "pqext.dataset.expressions",
    "concatenate": "pqext.core.files.concatenate",
    "find_framed": "pqext.core.extension.framed",
    "inspect": "pqext.inspection",
    "open": "pqext.core.reader:ParquetFile",
    "read_table": "pqext.dataset.scan",
    "rewrite_footer": "pqext.core.files.rewrite",
    "scan": "pqext.dataset.scan",
    "set_extension": "pqext.core.extension.structure",
    "verify": "pqext.verification",
    "verify_file_set": "pqext.core.encryption.identity",
    "write_summary": "pqext.core.files.summary",
    "write_table": "pqext.core.writer",
}
_PACKAGES = ("geo", "spark", "variant")

__all__ = [
    "ColumnKey",
    "CorruptDataWarning",
    "CorruptFileError",
    "CryptoFactory",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "EncryptionError",
    "ExtensionContainer",
    "FileDecryption",
    "FileEncryption",
    "GeometryError",
    "KmsClient",
    "KmsConnectionConfig",
    "LimitError",
    "Limits",
    "MissingKeyError",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "ReadOptions",
    "UnsupportedError",
    "VariantError",
    "VariantLimitError",
    "WriteOptions",
    "append_extension",
    "col",
    "concatenate",
    "find_framed",
    "geo",
    "inspect",
    "open",
    "read_table",
    "rewrite_footer",
    "scan",
    "set_extension",
    "spark",
    "variant",
    "verify",
    "verify_file_set",
    "write_summary",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"pqext.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'pqext' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
