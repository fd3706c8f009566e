from .columns import ColumnSummary as ColumnSummary
from .columns import summarize as summarize
from .delta_statistics import DeltaStatistics as DeltaStatistics
from .delta_statistics import delta as delta
from .iceberg_metrics import IcebergMetrics as IcebergMetrics
from .iceberg_metrics import iceberg as iceberg
from .variant_bounds import variant_bound as variant_bound
