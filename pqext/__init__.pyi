from . import (
    encryption as encryption,
)
from . import (
    extension as extension,
)
from . import (
    filters as filters,
)
from . import (
    geo as geo,
)
from . import (
    metrics as metrics,
)
from . import (
    skipping as skipping,
)
from . import (
    spark as spark,
)
from . import (
    variant as variant,
)
from .core.base.errors import (
    AnnotationWarning as AnnotationWarning,
)
from .core.base.errors import (
    ChangedFileError as ChangedFileError,
)
from .core.base.errors import (
    CorruptDataWarning as CorruptDataWarning,
)
from .core.base.errors import (
    CorruptFileError as CorruptFileError,
)
from .core.base.errors import (
    EncryptionError as EncryptionError,
)
from .core.base.errors import (
    GeometryError as GeometryError,
)
from .core.base.errors import (
    LimitError as LimitError,
)
from .core.base.errors import (
    ParquetError as ParquetError,
)
from .core.base.errors import (
    SourceError as SourceError,
)
from .core.base.errors import (
    UnsupportedError as UnsupportedError,
)
from .core.base.errors import (
    VariantError as VariantError,
)
from .core.base.errors import (
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
from .core.io.sources.cache import clear_cache as clear_cache
from .core.io.sources.cache import set_cache_bytes as set_cache_bytes
from .core.options.checkpoints import Checkpoint as Checkpoint
from .core.options.read_write import ReadOptions as ReadOptions
from .core.options.read_write import WriteOptions as WriteOptions
from .core.read.damage import Damage as Damage
from .core.read.reader import ParquetFile as ParquetFile
from .core.read.reader import open as open
from .core.schema.annotations import Annotation as Annotation
from .core.schema.annotations import register as register
from .core.write.writer import ParquetWriter as ParquetWriter
from .core.write.writer import write_table as write_table
from .dataset.execution.metrics import Metrics as Metrics
from .dataset.expressions import col as col
from .dataset.reading import read_table as read_table
from .dataset.reading import scan as scan
from .dataset.scan import Scan as Scan
from .inspection import inspect as inspect
from .recovery import recover as recover
from .variant.rewriting import repair as repair
from .verification import verify as verify
