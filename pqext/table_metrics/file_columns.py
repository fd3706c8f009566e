"""The columns of one data file and their metrics, from the footer or from the data, for every table format.

The file is opened as Parquet alone describes it: metadata of Arrow, Spark or GeoParquet adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import LeafShape
from pqext.geo.box import BoundingBox
from pqext.table_metrics import geo_bounds, variant_bounds
from pqext.table_metrics.columns import ColumnSummary, has_key, leaf_shapes, of_data, of_footer, own_chunk
from pqext.table_metrics.variant_bounds import PathBounds


def open_file(
    source: Any, limits: Limits | None, decryption: FileDecryption | None, filesystem: Any,
    storage_options: Mapping[str, Any] | None,
) -> ParquetFile:
    """The file. Columns that GeoParquet's metadata alone calls geometries are the binaries that they are stored as.

    Raises ``CorruptFileError`` where rows are missing, and what :func:`pqext.open` raises.
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


@dataclass(frozen=True, slots=True)
class Known:
    """The columns of ``file``: by its footer, or by its values where ``exact``.

    A column whose key is missing is known by the footer alone, which says nothing of it.
    """

    file: ParquetFile
    exact: bool
    _shapes: dict[int, LeafShape] = field(default_factory=dict)

    def summary(self, leaf: SchemaNode) -> ColumnSummary:
        """Counts, least and greatest value of a leaf."""
        return of_data(self.file, self._shape(leaf)) if self._reads([leaf]) else of_footer(self.file, leaf)

    def box(self, leaf: SchemaNode) -> BoundingBox | None:
        """The box around all values of a GEOMETRY or GEOGRAPHY column."""
        if self._reads([leaf]):
            return geo_bounds.of_data(self.file, self._shape(leaf))
        return geo_bounds.of_footer(self.file, leaf)

    def paths(self, group: SchemaNode) -> list[PathBounds]:
        """The bounds of the paths of a VARIANT group.

        The data also tell of paths that have no column of their own, or one of another type.
        """
        found = variant_bounds.bounds_of(variant_bounds.typed_paths(group), self.summary)
        if self._reads(list(group.leaves())):
            known = {one.path for one in found}
            found += [one for one in variant_bounds.bounds_of_values(self.file, group) if one.path not in known]
        return found

    def _reads(self, leaves: list[SchemaNode]) -> bool:
        chunks = (own_chunk(self.file, group, leaf) for group in self.file.row_groups for leaf in leaves)
        return self.exact and all(has_key(chunk) for chunk in chunks)

    def _shape(self, leaf: SchemaNode) -> LeafShape:
        if not self._shapes:
            self._shapes.update(leaf_shapes(self.file))
        return self._shapes[leaf.leaf_start]
