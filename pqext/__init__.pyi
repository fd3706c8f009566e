# isort: skip_file
# Public names by subject.

# Packages
from . import (
    encryption as encryption,
    extension as extension,
    filters as filters,
    geo as geo,
    metrics as metrics,
    skipping as skipping,
    spark as spark,
    variant as variant,
)

# Errors
# Warnings
from .core.base.errors import (
    AnnotationWarning as AnnotationWarning,
    ChangedFileError as ChangedFileError,
    CorruptDataWarning as CorruptDataWarning,
    CorruptFileError as CorruptFileError,
    EncryptionError as EncryptionError,
    GeometryError as GeometryError,
    LimitError as LimitError,
    ParquetError as ParquetError,
    SourceError as SourceError,
    UnsupportedError as UnsupportedError,
    VariantError as VariantError,
    VariantLimitError as VariantLimitError,
)
from .core.base.limits import Limits as Limits
from .core.base.version import __version__ as __version__
from .core.encryption.reading import MissingKeyError as MissingKeyError
from .core.files.concatenate import concatenate as concatenate
from .core.files.summary import write_summary as write_summary
from .core.footer.checkpoints import RecoveredFileWarning as RecoveredFileWarning
from .core.footer.rewrite import rewrite_footer as rewrite_footer
from .core.indexes.reading import DamagedIndexWarning as DamagedIndexWarning
from .core.io.sources.cache import clear_cache as clear_cache, set_cache_bytes as set_cache_bytes
from .core.options.footer import Checkpoint as Checkpoint
from .core.options.read_write import ReadOptions as ReadOptions, WriteOptions as WriteOptions
from .core.read.damage import Damage as Damage
from .core.read.footer_contents import read_metadata as read_metadata, read_schema as read_schema
from .core.read.reader import ParquetFile as ParquetFile, open as open

# Extend
from .core.schema.annotations import Annotation as Annotation, register as register

# Write
from .core.write.writer import ParquetWriter as ParquetWriter, write_table as write_table
from .dataset.execution.metrics import Metrics as Metrics
from .dataset.expressions import col as col

# Read
from .dataset.reading import read_table as read_table, scan as scan
from .dataset.scan import Scan as Scan

# Inspect, verify, repair
from .inspection import inspect as inspect
from .recovery import recover as recover
from .variant.rewriting import repair as repair
from .verification import verify as verify
