"""pqext: write, read, prune and inspect Parquet with VARIANT and geospatial columns.

Public names are imported when they are first used, so that ``import pqext`` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pqext.core.lazy import attach

if TYPE_CHECKING:
    from pqext import encryption, extension, filters, geo, spark, variant
    from pqext.core.annotations import Annotation, register
    from pqext.core.damage import Damage
    from pqext.core.encryption.reading import MissingKeyError
    from pqext.core.errors import (
        AnnotationWarning,
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
    from pqext.core.files.concatenate import concatenate
    from pqext.core.files.rewrite import rewrite_footer
    from pqext.core.files.summary import write_summary
    from pqext.core.indexes.reading import DamagedIndexWarning
    from pqext.core.limits import Limits
    from pqext.core.options import ReadOptions, WriteOptions
    from pqext.core.reader import ParquetFile
    from pqext.core.reader import ParquetFile as open
    from pqext.core.version import __version__
    from pqext.core.writer import ParquetWriter, write_table
    from pqext.dataset.expressions import col
    from pqext.dataset.scan import Scan, read_table, scan
    from pqext.inspection import inspect
    from pqext.verification import verify

_HOMES = {
    "__version__": "pqext.core.version",
    "Annotation": "pqext.core.annotations",
    "AnnotationWarning": "pqext.core.errors",
    "CorruptDataWarning": "pqext.core.errors",
    "CorruptFileError": "pqext.core.errors",
    "Damage": "pqext.core.damage",
    "DamagedIndexWarning": "pqext.core.indexes.reading",
    "EncryptionError": "pqext.core.errors",
    "GeometryError": "pqext.core.errors",
    "LimitError": "pqext.core.errors",
    "Limits": "pqext.core.limits",
    "MissingKeyError": "pqext.core.encryption.reading",
    "ParquetError": "pqext.core.errors",
    "ParquetFile": "pqext.core.reader",
    "ParquetWriter": "pqext.core.writer",
    "ReadOptions": "pqext.core.options",
    "Scan": "pqext.dataset.scan",
    "UnsupportedError": "pqext.core.errors",
    "VariantError": "pqext.core.errors",
    "VariantLimitError": "pqext.core.errors",
    "WriteOptions": "pqext.core.options",
    "col": "pqext.dataset.expressions",
    "concatenate": "pqext.core.files.concatenate",
    "encryption": "pqext.encryption:",
    "extension": "pqext.extension:",
    "filters": "pqext.filters:",
    "geo": "pqext.geo:",
    "inspect": "pqext.inspection",
    "open": "pqext.core.reader:ParquetFile",
    "read_table": "pqext.dataset.scan",
    "register": "pqext.core.annotations",
    "rewrite_footer": "pqext.core.files.rewrite",
    "scan": "pqext.dataset.scan",
    "spark": "pqext.spark:",
    "variant": "pqext.variant:",
    "verify": "pqext.verification",
    "write_summary": "pqext.core.files.summary",
    "write_table": "pqext.core.writer",
}
__all__ = [
    "Annotation",
    "AnnotationWarning",
    "CorruptDataWarning",
    "CorruptFileError",
    "Damage",
    "DamagedIndexWarning",
    "EncryptionError",
    "GeometryError",
    "LimitError",
    "Limits",
    "MissingKeyError",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "ReadOptions",
    "Scan",
    "UnsupportedError",
    "VariantError",
    "VariantLimitError",
    "WriteOptions",
    "__version__",
    "col",
    "concatenate",
    "encryption",
    "extension",
    "filters",
    "geo",
    "inspect",
    "open",
    "read_table",
    "register",
    "rewrite_footer",
    "scan",
    "spark",
    "variant",
    "verify",
    "write_summary",
    "write_table",
]

_READ = "pqext.read_table reads files, pqext.scan plans to"
_OF_OTHERS = {
    "dataset": _READ,
    "parse_json": "it is pqext.variant.parse_json",
    "read_json": "it is pqext.variant.read_json",
    "read_metadata": "pqext.open(path).metadata has it",
    "read_pandas": "pqext.read_table(...).to_pandas() gives a frame",
    "read_parquet": _READ,
    "read_schema": "pqext.open(path).arrow_schema has it",
    "scan_parquet": "it is pqext.scan",
    "variant_get": "it is pqext.variant.get",
    "write_dataset": "pqext.write_table writes one file; PySpark writes folders",
    "write_parquet": "it is pqext.write_table",
}

if not TYPE_CHECKING:  # a name that is not there is an error to type checkers
    __getattr__, __dir__ = attach(__name__, _HOMES, _OF_OTHERS)
