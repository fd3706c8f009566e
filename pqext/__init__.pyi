# isort: skip_file
# Public names by subject.

# Packages
from . import encryption as encryption, extension as extension, filters as filters, geo as geo
from . import table_metrics as table_metrics
from . import skipping as skipping, spark as spark, tables as tables, variant as variant
from .core.base.version import __version__ as __version__

# Read
from .dataset.reading import read_table as read_table, scan as scan
from .dataset.scan import Scan as Scan
from .dataset.expressions import col as col
from .core.read.reader import ParquetFile as ParquetFile, open as open
from .core.read.footer_contents import read_metadata as read_metadata, read_schema as read_schema
from .core.options.read_write import ReadOptions as ReadOptions
from .core.base.limits import Limits as Limits
from .core.read.damage import Damage as Damage
from .dataset.execution.metrics import Metrics as Metrics
from .core.io.sources.cache import clear_cache as clear_cache, set_cache_bytes as set_cache_bytes

# Write
from .core.write.writer import ParquetWriter as ParquetWriter, write_table as write_table
from .dataset.writing.dataset import write_dataset as write_dataset
from .dataset.writing.dataset import SaveResult as SaveResult
from .core.options.read_write import WriteOptions as WriteOptions
from .core.options.layout import Checkpoint as Checkpoint
from .core.files.concatenate import concatenate as concatenate
from .core.files.summary import write_summary as write_summary
from .core.footer.writing import rewrite_footer as rewrite_footer

# Inspect, verify, repair
from .inspection import inspect as inspect
from .verification import verify as verify
from .variant.rewriting import repair as repair
from .recovery import recover as recover

# Extend
from .core.schema.annotations import Annotation as Annotation, register as register

# Errors
from .core.base.errors import ParquetError as ParquetError, SourceError as SourceError, LimitError as LimitError
from .core.base.errors import CorruptFileError as CorruptFileError, ChangedFileError as ChangedFileError
from .core.base.errors import UnsupportedError as UnsupportedError, EncryptionError as EncryptionError
from .core.base.errors import VariantError as VariantError, VariantLimitError as VariantLimitError
from .core.base.errors import GeometryError as GeometryError
from .core.encryption.reading import MissingKeyError as MissingKeyError

# Warnings
from .core.base.errors import AnnotationWarning as AnnotationWarning, CorruptDataWarning as CorruptDataWarning
from .core.footer.checkpoints import RecoveredFileWarning as RecoveredFileWarning
from .core.indexes.reading import DamagedIndexWarning as DamagedIndexWarning
