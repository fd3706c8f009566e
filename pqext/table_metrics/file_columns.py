"""Open a data file and summarise its columns, from the footer or from the data. All table formats use this module.

The file is opened with its Parquet schema only, without metadata of Arrow, Spark or GeoParquet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.usage import Budget
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import LeafShape
from pqext.geo.box import BoundingBox
from pqext.table_metrics import geo_bounds, variant_bounds
from pqext.table_metrics.columns import ColumnSummary, get_chunk, has_key, leaf_shapes, summarize_data, summarize_footer
from pqext.table_metrics.variant_bounds import PathBounds


def open_file(
    source: Any, limits: Limits | None, decryption: FileDecryption | None, filesystem: Any,
    storage_options: Mapping[str, Any] | None,
) -> ParquetFile:
    """Open a data file. GeoParquet metadata is ignored: only Parquet types define geometry columns.

    Raises ``CorruptFileError`` if rows are missing, and the errors of :func:`pqext.open`.
    """
    options = ReadOptions(decryption=decryption, arrow_schema=False, geoparquet=False)
    file = ParquetFile(
        source, options, limits=limits or DEFAULT_LIMITS, filesystem=filesystem, storage_options=storage_options
    )
    try:
        file.check_rows()
    except BaseException:
        file.close()
        raise
    return file


@dataclass(frozen=True)
class FileColumns:
    """Summaries of the columns of ``file``: from its footer, or from its values if ``exact``.

    A column whose key is missing is summarised from the footer, which has no statistics for it.
    """

    file: ParquetFile
    exact: bool
    _shapes: dict[int, LeafShape] = field(default_factory=dict)

    @cached_property
    def _budget(self) -> Budget:
        """Memory budget for all values that are read."""
        return self.file.budget()

    def summary(self, leaf: SchemaNode) -> ColumnSummary:
        """Return the counts, minimum and maximum of a leaf."""
        if self._reads_data([leaf]):
            return summarize_data(self.file, self._find_shape(leaf), self._budget)
        return summarize_footer(self.file, leaf)

    def box(self, leaf: SchemaNode) -> BoundingBox | None:
        """Return the bounding box of all values of a GEOMETRY or GEOGRAPHY column; None if it is unknown."""
        if self._reads_data([leaf]):
            return geo_bounds.compute_data_box(self.file, self._find_shape(leaf), self._budget)
        return geo_bounds.merge_footer_boxes(self.file, leaf)

    def paths(self, group: SchemaNode) -> list[PathBounds]:
        """Return the bounds of each path in a VARIANT group.

        If data is read, paths are included that are not shredded, or shredded with a different type.
        """
        bounds = variant_bounds.path_bounds(variant_bounds.find_typed_paths(group), self.summary)
        if self._reads_data(list(group.leaves())):
            paths = {each.path for each in bounds}
            found = variant_bounds.compute_path_bounds(self.file, group, self._budget)
            bounds += [each for each in found if each.path not in paths]
        return bounds

    def _reads_data(self, leaves: list[SchemaNode]) -> bool:
        chunks = (get_chunk(self.file, group, leaf) for group in self.file.row_groups for leaf in leaves)
        return self.exact and all(has_key(chunk) for chunk in chunks)

    def _find_shape(self, leaf: SchemaNode) -> LeafShape:
        if not self._shapes:
            self._shapes.update(leaf_shapes(self.file))
        return self._shapes[leaf.leaf_start]
