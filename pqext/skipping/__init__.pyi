# isort: skip_file

from .maintenance.construction import Summary as Summary, build as build, refresh as refresh
from .data_skipping import DataSkipping as DataSkipping, IndexBuilder as IndexBuilder
from .description import (
    IndexDescription as IndexDescription,
    StoreDescription as StoreDescription,
    describe as describe,
    list_stores as list_stores,
)
from .indexes.box import Box as Box
from .indexes.index import Collector as Collector, Index as Index, register_index as register_index
from .indexes.statistics import MinMax as MinMax, NullCount as NullCount, RowCount as RowCount
from .indexes.values import BloomFilter as BloomFilter, Prefix as Prefix, ValueList as ValueList
from .indexes.variant_paths import VariantPaths as VariantPaths, variant_indexes as variant_indexes
from .store.keys import StoreKeys as StoreKeys
from .store.objects import SkippingStatistics as SkippingStatistics
from .store.store import Store as Store, open_store as open_store
from .maintenance.compaction import compact as compact, drop as drop, is_indexed as is_indexed
