"""Write folders of Parquet files that partition rows spatially: by a k-d tree, or by the cells of a global grid."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Unpack, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.files.summary import write_summary
from pqext.core.options.keywords import WriteKeywords
from pqext.core.write.table_inputs import as_table
from pqext.core.write.writer import write_table
from pqext.dataset.files.sources import find_sources
from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.dataset.writing.dataset import SaveResult, WriteMode
from pqext.dataset.writing.dataset import write_dataset as write_partitions
from pqext.geo.cells import Grid, cells, centres
from pqext.geo.frames import from_geopandas, geometry_columns

Method = Literal["kdtree"] | Grid
TARGET_BYTES = 128 << 20
_SAMPLES = 1 << 18
"""Maximum number of sampled centres that the k-d tree is built from."""
_SAMPLE_ROWS = 1 << 14
"""Number of rows that are encoded to estimate the size of all rows."""
_MAX_LEAVES = 1 << 12
_BATCH_ROWS = 1 << 16


def write_dataset(
    rows: Any,
    folder: str | os.PathLike[str],
    partition_by: Method = "kdtree",
    *,
    column: str | None = None,
    resolution: int | None = None,
    target_file_bytes: int = TARGET_BYTES,
    order: Literal["hilbert", "zorder"] | None = "hilbert",
    summary: bool = True,
    mode: WriteMode = "error",
    **keywords: Unpack[WriteKeywords],
) -> SaveResult:
    """Write rows into a folder of files that each cover a region of space, in bounded memory.

    Args:
        rows: A table, a :class:`pqext.Scan`, a path to scan, a GeoDataFrame, or for grids a stream of batches. A k-d
            tree needs rows that can be read twice.
        folder: A local folder, or a URL as for :func:`pqext.write_dataset`.
        partition_by: ``"kdtree"`` halves the rows at medians of X and Y until each part has about
            ``target_file_bytes``; ``"quadkey"``, ``"geohash"``, ``"h3"``, ``"s2"`` and ``"a5"`` are the grids of
            :func:`cells`. The folders are named ``kdtree=0110`` or ``h3=8928308280fffff``; a scan adds this column.
        column: The geometry column; by default the only one.
        resolution: Resolution of the grid, required for grids. For a k-d tree the number of halvings, at most 12; by
            default as many as ``target_file_bytes`` requires.
        target_file_bytes: Approximate size in bytes of a file.
        order: Curve that orders the rows of each row group.
        summary: Whether a local folder gets ``_metadata``, so that scans open one footer instead of all.
        mode: As for :func:`pqext.write_dataset`.
        **keywords: The fields of :class:`pqext.WriteOptions`.

    Returns:
        The folder and its new files.

    Raises:
        ValueError: If the method or the column is unknown, or a grid has no resolution.
        TypeError: If a k-d tree should divide a stream.
        GeometryError: With the row, if WKB is invalid, or if coordinates for a grid are not longitudes and latitudes.
        FileExistsError: As for :func:`pqext.write_dataset`, which also lists further errors.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> import pqext
        >>> from pqext import geo
        >>> places = pa.table({"id": np.arange(100), "at": geo.from_points(np.arange(100.0), np.zeros(100))})
        >>> saved = geo.write_dataset(places, "places", "kdtree", resolution=2)
        >>> [(file.name.partition("/")[0], file.rows) for file in saved.files]
        [('kdtree=00', 25), ('kdtree=01', 25), ('kdtree=10', 25), ('kdtree=11', 25)]
        >>> pqext.scan("places").filter(pqext.col("at").intersects((10, -1, 12, 1))).to_table()["id"].to_pylist()
        [10, 11, 12]
    """
    methods = ("kdtree", *get_args(Grid))
    if partition_by not in methods:
        hint = did_you_mean(str(partition_by), methods)
        raise ValueError(f"partition_by must be one of {', '.join(methods)}, not {partition_by!r}{hint}")
    if isinstance(rows, str | os.PathLike):
        rows = scan(rows)
    elif type(rows).__module__.partition(".")[0] == "geopandas":
        rows = from_geopandas(rows)
    source = rows if isinstance(rows, pa.Table | Scan) else as_table(rows)
    name = geometry_name(source.schema, column)
    if partition_by in source.schema.names:
        raise ValueError(
            f"partition_by adds a partition column {partition_by!r}, but the rows already have this column; rename it"
        )
    if order is not None:
        types = keywords.get("geometry") or {}
        choice = types.get(name)
        choice = choice if isinstance(choice, Mapping) and "type" not in choice else {"crs": choice}
        keywords["geometry"] = {**types, name: {"order": order, **choice}}
    if partition_by == "kdtree":
        if isinstance(source, pa.RecordBatchReader):
            raise TypeError("a k-d tree requires rows that can be read twice; pass a table, a scan or a path")
        depth = _estimate_depth(source, keywords, target_file_bytes) if resolution is None else resolution
        tree = _build_tree(source, name, _check_depth(depth))

        def partition_names(batch: pa.RecordBatch) -> pa.Array:
            return _leaf_names(tree, *centres(batch.column(name)))
    else:
        if resolution is None:
            raise ValueError(f"partition_by={partition_by!r} requires an argument resolution=")
        grid, level, crs = partition_by, resolution, geometry_columns(source.schema)[name].crs

        def partition_names(batch: pa.RecordBatch) -> pa.Array:
            return cells(batch.column(name), grid, level, crs=crs)

    schema = source.schema.append(pa.field(partition_by, pa.string()))
    batches = (_append_column(batch, partition_names(batch), schema) for batch in _iter_batches(source))
    result = write_partitions(
        pa.RecordBatchReader.from_batches(schema, batches), folder, partition_by, mode=mode,
        target_file_bytes=target_file_bytes, **keywords,
    )
    if summary and "://" not in os.fspath(folder) and result.files:
        write_summary(find_sources(folder), folder)
    return result


def geometry_name(schema: pa.Schema, name: str | None) -> str:
    """Return ``name``; if None, the only geometry column. Raises ValueError if there is no geometry column."""
    types = geometry_columns(schema)
    if name is None and len(types) != 1:
        problem = f"several geometry columns, {join_names(types)}" if types else "no geometry column"
        raise ValueError(f"the rows have {problem}; select a column with column=")
    column = next(iter(types)) if name is None else name
    if column not in types:
        raise ValueError(f"the rows have no geometry column {column!r}{did_you_mean(column, [*types])}")
    return column


def _iter_batches(source: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.Table):
        yield from source.to_batches(_BATCH_ROWS)
    else:
        yield from source.to_batches() if isinstance(source, Scan) else source


def _append_column(batch: pa.RecordBatch, column: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def _check_depth(depth: int) -> int:
    highest = int(math.log2(_MAX_LEAVES))
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or not 0 <= depth <= highest:
        raise ValueError(
            f"the resolution of a k-d tree must be an integer from 0 to {highest}, not {depth!r}"
        )
    return int(depth)


def _estimate_depth(source: pa.Table | Scan, options: WriteKeywords, target: int) -> int:
    """Estimate the tree depth that results in files of ``target`` bytes, from the file size of the first rows."""
    if isinstance(target, bool) or not isinstance(target, int) or target < 1:
        raise ValueError(f"target_file_bytes must be a positive number of bytes, not {target!r}")
    sample = source.slice(0, _SAMPLE_ROWS) if isinstance(source, pa.Table) else source.limit(_SAMPLE_ROWS).to_table()
    count = source.num_rows if isinstance(source, pa.Table) else source.count()
    if not len(sample):
        return 0
    write_table(sample, sink := io.BytesIO(), **options)
    parts = sink.tell() / len(sample) * count / target
    return min(max(0, math.ceil(math.log2(parts))), int(math.log2(_MAX_LEAVES)))


Tree = list[NDArray[np.float64]]
"""Levels of a k-d tree: arrays of axis (0 for X) and median of each node, of shape (nodes, 2)."""


def _build_tree(source: pa.Table | Scan, name: str, depth: int) -> Tree:
    """Build a k-d tree with ``depth`` levels. Each level splits sampled centres at the median of the longer axis."""
    columns = source.select([name])
    count = source.num_rows if isinstance(source, pa.Table) else source.count()
    step = max(1, count // _SAMPLES)
    sampled, position = [np.empty((2, 0))], 0
    for batch in _iter_batches(columns) if depth else ():
        points = np.stack(centres(batch.column(0)))[:, -position % step :: step]
        sampled.append(points[:, ~np.isnan(points).any(axis=0)])
        position += batch.num_rows
    nodes = [np.concatenate(sampled, axis=1)]
    tree: Tree = []
    for _ in range(depth):
        level, halves = np.zeros((len(nodes), 2)), []
        for number, points in enumerate(nodes):
            axis, median = _split_points(points)
            level[number] = axis, median
            is_low = points[axis] < median
            halves += [points[:, is_low], points[:, ~is_low]]
        tree.append(level)
        nodes = halves
    return tree


def _split_points(points: NDArray[np.float64]) -> tuple[int, float]:
    """Return the axis with the greater extent, and a split value near the median, with points on both sides if any."""
    if not points.shape[1]:
        return 0, 0.0
    axis = int(np.argmax(points.max(axis=1) - points.min(axis=1)))
    values = np.sort(points[axis])
    median = values[len(values) // 2]
    if median == values[0]:  # equal values belong to the lower half
        median = values[min(int(np.searchsorted(values, median, side="right")), len(values) - 1)]
    return axis, float(median)


def _leaf_names(tree: Tree, x: NDArray[np.float64], y: NDArray[np.float64]) -> pa.Array:
    """Return the leaf name of each point: for each level, 0 for the lower or 1 for the upper half; null for NaN."""
    node = np.zeros(len(x), np.int64)
    for level in tree:
        axis, median = level[node].T
        node = 2 * node + (np.where(axis == 0, x, y) >= median)
    names = np.array([format(number, f"0{len(tree)}b") if tree else "0" for number in range(1 << len(tree))], object)
    return pa.array(names[node], pa.string(), mask=np.isnan(x) | np.isnan(y))
