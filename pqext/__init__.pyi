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
from .core.annotations import Annotation as Annotation
from .core.annotations import register as register
from .core.checkpoint_choice import Checkpoint as Checkpoint
from .core.checkpoints import RecoveredFileWarning as RecoveredFileWarning
from .core.damage import Damage as Damage
from .core.encryption.reading import MissingKeyError as MissingKeyError
from .core.errors import (
    AnnotationWarning as AnnotationWarning,
)
from .core.errors import (
    ChangedFileError as ChangedFileError,
)
from .core.errors import (
    CorruptDataWarning as CorruptDataWarning,
)
from .core.errors import (
    CorruptFileError as CorruptFileError,
)
from .core.errors import (
    EncryptionError as EncryptionError,
)
from .core.errors import (
    GeometryError as GeometryError,
)
from .core.errors import (
    LimitError as LimitError,
)
from .core.errors import (
    ParquetError as ParquetError,
)
from .core.errors import (
    SourceError as SourceError,
)
from .core.errors import (
    UnsupportedError as UnsupportedError,
)
from .core.errors import (
    VariantError as VariantError,
)
from .core.errors import (
    VariantLimitError as VariantLimitError,
)
from .core.files.concatenate import concatenate as concatenate
from .core.files.rewrite import rewrite_footer as rewrite_footer
from .core.files.summary import write_summary as write_summary
from .core.indexes.reading import DamagedIndexWarning as DamagedIndexWarning
from .core.limits import Limits as Limits
from .core.options import ReadOptions as ReadOptions
from .core.options import WriteOptions as WriteOptions
from .core.reader import ParquetFile as ParquetFile
from .core.reader import open as open
from .core.sources.cache import clear_cache as clear_cache
from .core.sources.cache import set_cache_bytes as set_cache_bytes
from .core.version import __version__ as __version__
from .core.writer import ParquetWriter as ParquetWriter
from .core.writer import write_table as write_table
from .dataset.execution.metrics import Metrics as Metrics
from .dataset.expressions import col as col
from .dataset.reading import read_table as read_table
from .dataset.reading import scan as scan
from .dataset.scan import Scan as Scan
from .inspection import inspect as inspect
from .recovery import recover as recover
from .variant.rewriting import repair as repair
from .verification import verify as verify
