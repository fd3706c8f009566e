# isort: skip_file

from . import functions as functions
from .frames.aggregates import query as query
from .frames.json_text import read_json as read_json
from .frames.parquet import explain_read as explain_read, read as read, where as where
from .frames.saving import clean as clean, write as write
from .ingest.job import IngestResult as IngestResult, IngestedFile as IngestedFile, ingest_json as ingest_json
from .joins.spatial import knn_join as knn_join, spatial_join as spatial_join
from .options.save import Division as Division
from .pushdown.conditions import variant as variant
from .reading.planning import read_metrics as read_metrics
from .skipping.building import build_skipping as build_skipping, refresh_skipping as refresh_skipping
from .skipping.reading import read_with_skipping as read_with_skipping
from .sources.data_sources import register as register
from .sources.session import local_session as local_session
from .writing.layouts import layout as layout
from .writing.sink import SaveResult as SaveResult, WrittenFile as WrittenFile
from .writing.shredding import shred_variant as shred_variant, unshred_variant as unshred_variant
from .writing.write_plan import VariantPlan as VariantPlan, WritePlan as WritePlan, explain_write as explain_write
