# isort: skip_file

from .columns import ColumnSummary as ColumnSummary, summarize as summarize
from .delta_statistics import DeltaStatistics as DeltaStatistics, delta as delta
from .iceberg_metrics import IcebergMetrics as IcebergMetrics, iceberg as iceberg
from .variant_bounds import variant_bound as variant_bound
