"""Methods that return the result of a scan as batches, streams, tables and frames."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import pyarrow as pa

from pqext.core.base.suggestions import suggest_arguments
from pqext.core.base.usage import Budget
from pqext.dataset.ordering import executor_of
from pqext.dataset.presentation.columns import Formats, GeometryFormat, VariantFormat
from pqext.dataset.scan_executor import ScanExecutor
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest

if TYPE_CHECKING:
    import pandas
    import polars
    from geopandas import GeoDataFrame

    from pqext.dataset.engines.arrow_dataset import ScanDataset
from typing import TYPE_CHECKING, NoReturn


class TableUseGuard:
    """Mixin that raises errors with a remedy if a scan is used like a table, a frame or an array."""

    def __bool__(self) -> bool:
        return True

    if not TYPE_CHECKING:  # so that type checkers reject these operations

        def __array__(self, *_: Any, **__: Any) -> NoReturn:
            # pandas and numpy call this. Without it, they would treat the batches as rows.
            raise TypeError(
                "a scan is not an array; call scan.to_pandas() for a pandas DataFrame, or scan.to_table() for a table"
            )

        def __len__(self) -> NoReturn:
            raise TypeError(
                "a scan has no length; call scan.count() for the number of matching rows, or scan.to_pandas() or "
                "scan.to_table() to read the rows"
            )

        def __getitem__(self, key: Any) -> NoReturn:
            if isinstance(key, str):
                advice = f"scan.select({key!r}) chooses a column, and scan.to_table()[{key!r}] reads it"
            elif isinstance(key, (list, tuple)):
                advice = "scan.select(...) chooses columns"
            elif isinstance(key, (int, slice)):
                advice = "scan.limit(rows, offset) chooses rows, and scan.head(rows) reads the first ones"
            else:
                advice = "scan.filter(condition) chooses rows"
            raise TypeError(f"a scan has no items: {advice}")


BATCH_ROWS = 65_536
_TABLE_ROWS = 1 << 19
"""Maximum batch size if all batches are combined into a table."""


class Results:
    """Result formats of a scan: batches, tables, streams and frames."""

    _request: ScanRequest
    _planner: ScanPlanner
    _latest: ScanExecutor | None

    def _run(self) -> ScanExecutor:
        """Start a new run of the request, which ``metrics`` reports from now on."""
        self._latest = executor = executor_of(self._planner)
        return executor

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, from the first file read. All fields are nullable if there are more files."""
        return self._planner.schema

    @suggest_arguments
    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows in the order of the files, in non-empty batches of at most ``batch_rows`` rows.

        Memory use is bounded by a few batches and pages. Closing or dropping the iterator frees its resources.
        """
        return self._batches(batch_rows)

    def _batches(self, batch_rows: int) -> Generator[pa.RecordBatch, None, None]:
        if operator.index(batch_rows) < 1:
            raise ValueError(f"batch_rows must be positive, not {batch_rows}")
        return (batch for batch, _ in self._run().batches(batch_rows))

    @suggest_arguments
    async def to_async_batches(self, batch_rows: int = BATCH_ROWS) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of :meth:`to_batches` asynchronously, for ``async for``. A separate thread reads them.

        Args:
            batch_rows: Maximum number of rows in a batch.

        Example:
            >>> import asyncio, pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
            >>> async def rows():
            ...     return [batch.num_rows async for batch in pqext.scan("ids.parquet").to_async_batches(2)]
            >>> asyncio.run(rows())
            [2, 1]
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        loop = asyncio.get_running_loop()
        result = self._batches(batch_rows)
        # One thread, so that a batch that is being read when the loop exits is finished before resources are freed.
        reader = ThreadPoolExecutor(1, "pqext")
        try:
            while (batch := await loop.run_in_executor(reader, next, result, None)) is not None:
                yield batch
        finally:
            closed = reader.submit(result.close)
            reader.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(closed))

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self.to_async_batches()

    @suggest_arguments
    def to_reader(self, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """Return the matching rows as a stream, for DuckDB, DataFusion and other users of ``RecordBatchReader``.

        Args:
            batch_rows: Maximum number of rows in a batch.

        Returns:
            A ``pyarrow.RecordBatchReader``, which can be read once. Closing it, also by ``with``, or dropping it frees
            its resources. Corrupt files raise ``ValueError`` (``pyarrow.ArrowInvalid``) with pqext's message. Arrow
            does not propagate ``KeyboardInterrupt``: Ctrl-C while rows are read raises an ``OSError`` with that
            message.

        Example:
            >>> import duckdb, pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
            >>> reader = pqext.scan("ids.parquet").to_reader()
            >>> duckdb.sql("SELECT sum(id) FROM reader").fetchall()
            [(6,)]
        """
        # pyarrow's reader of an iterator retains it after closing; its reader of a stream does not.
        return pa.RecordBatchReader.from_stream(self._reader(batch_rows))

    def _reader(self, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, _convert_interrupts(self._batches(batch_rows)))

    @suggest_arguments
    def to_table(
        self, *, variants: Literal["binary", "json"] = "binary", geometry: Literal["wkb", "wkt"] = "wkb"
    ) -> pa.Table:
        """Return the matching rows as one table.

        Args:
            variants: ``"binary"`` returns VARIANT columns in their Arrow type; ``"json"`` as JSON text, as
                :func:`pqext.variant.to_json` writes it, also within structs, lists and maps.
            geometry: ``"wkb"`` returns geometry columns as WKB; ``"wkt"`` as text, as :func:`pqext.geo.to_wkt` writes
                it.

        Returns:
            A table of all columns of the result.

        Raises:
            LimitError: If the table takes more than ``limits`` allow.
            ValueError: For a format that Arrow cannot represent.

        Example:
            >>> import pqext, pyarrow
            >>> table = pyarrow.table({"event": pqext.variant.parse_json(['{"n": 1}'])})
            >>> pqext.write_table(table, "events.parquet")
            >>> pqext.scan("events.parquet").to_table(variants="json").to_pylist()
            [{'event': '{"n":1}'}]
        """
        formats = Formats(variants, geometry)
        formats.check_arrow("to_pandas and to_polars return them")
        return formats.convert_table(self._table())

    def _table(self) -> pa.Table:
        batches, held, request = [], 0, self._request
        # Without a filter, row groups are read in few large batches.
        for batch, opened in self._run().batches(_TABLE_ROWS if request.filter is not None else 1 << 62):
            held += batch.get_total_buffer_size()
            Budget(request.limits, opened).add(held)
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=self.schema)

    def to_pandas(
        self, *, variants: VariantFormat = "binary", geometry: GeometryFormat = "wkb", **options: Any
    ) -> pandas.DataFrame:
        """Return the matching rows as a pandas DataFrame.

        Args:
            variants: ``"json"`` returns VARIANT columns as JSON text, ``"python"`` as the objects of
                :func:`pqext.variant.to_python`, also within structs, lists and maps.
            geometry: ``"wkt"`` returns geometry columns as text, ``"shapely"`` as shapely geometries.
            **options: Options of ``pyarrow.Table.to_pandas``.

        Returns:
            A DataFrame; columns of Python objects have the dtype ``object``.

        Raises:
            LimitError: If the table takes more than ``limits`` allow.
            UnsupportedError: If pandas has no type for a column.

        Example:
            >>> import pqext, pyarrow
            >>> table = pyarrow.table({"event": pqext.variant.parse_json(['{"n": 1}'])})
            >>> pqext.write_table(table, "events.parquet")
            >>> pqext.scan("events.parquet").to_pandas(variants="python")["event"][0]
            {'n': 1}
        """
        from pqext.dataset.presentation.frames import to_pandas

        return to_pandas(self._table(), Formats(variants, geometry), options)

    @overload
    def to_polars(
        self, lazy: Literal[False] = False, *, variants: VariantFormat = ..., geometry: GeometryFormat = ...
    ) -> polars.DataFrame: ...

    @overload
    def to_polars(
        self, lazy: Literal[True], *, variants: VariantFormat = ..., geometry: GeometryFormat = ...
    ) -> polars.LazyFrame: ...

    def to_polars(
        self, lazy: bool = False, *, variants: VariantFormat = "binary", geometry: GeometryFormat = "wkb"
    ) -> polars.DataFrame | polars.LazyFrame:
        """Return the matching rows as a polars DataFrame, or as a LazyFrame that reads the rows on ``collect()``.

        Args:
            lazy: Return a LazyFrame, whose query reads only the columns that it uses, and skips row groups, pages and
                rows by the conditions that pqext understands; polars evaluates all conditions on the remaining rows.
            variants: ``"json"`` returns VARIANT columns as JSON text, ``"python"`` as columns of ``polars.Object``.
            geometry: ``"wkt"`` returns geometry columns as text, ``"shapely"`` as columns of ``polars.Object``.

        Returns:
            A frame of all columns of the result.

        Raises:
            LimitError: If the table takes more than ``limits`` allow.
            UnsupportedError: If polars has no type for a column.
            ValueError: For Python objects in a LazyFrame, and for columns that share a name.

        Example:
            >>> import polars, pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3], "name": ["Suva", "Nome", "Apia"]}), "cities.parquet")
            >>> frame = pqext.scan("cities.parquet").to_polars(lazy=True)
            >>> frame.filter(polars.col("id") >= 2).select("name").collect()["name"].to_list()
            ['Nome', 'Apia']
        """
        if lazy:
            from pqext.dataset.engines.polars_source import lazy_frame

            return lazy_frame(cast(Any, self), Formats(variants, geometry))  # all scans can be sliced
        from pqext.dataset.presentation.frames import to_polars

        return to_polars(self._table(), Formats(variants, geometry))

    def to_dataset(self) -> ScanDataset:
        """Return the scan as a pyarrow dataset, for DuckDB and other engines that push columns and conditions down.

        Returns:
            A ``pyarrow.dataset.Dataset`` that supports ``scanner``, ``to_table``, ``to_batches``, ``to_reader``,
            ``head``, ``take`` and ``count_rows``; each call reads the rows again.

        Example:
            >>> import duckdb, pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3], "name": ["Suva", "Nome", "Apia"]}), "cities.parquet")
            >>> cities = pqext.scan("cities.parquet").to_dataset()
            >>> duckdb.sql("SELECT name FROM cities WHERE id >= 2").fetchall()
            [('Nome',), ('Apia',)]
        """
        from pqext.dataset.engines.arrow_dataset import ScanDataset

        return ScanDataset(cast(Any, self))

    def to_geopandas(self, geometry: str | None = None) -> GeoDataFrame:
        """Return the matching rows as a GeoDataFrame.

        Args:
            geometry: Active geometry column; by default the primary column of GeoParquet metadata, or the first one.

        Returns:
            A GeoDataFrame with the CRS of the columns; see :func:`pqext.geo.to_geopandas`.

        Raises:
            ImportError: If geopandas is missing (``pip install 'pqext[geopandas]'``).
            ValueError: If the result has no geometry column, or no column with this name.

        Example:
            >>> import pqext, pyarrow
            >>> table = pyarrow.table({"at": pqext.geo.from_points([2.5], [48.5])})
            >>> pqext.write_table(table, "at.parquet", geometry={"at": "OGC:CRS84"})
            >>> pqext.scan("at.parquet").to_geopandas().crs.name
            'WGS 84 (CRS84)'
        """
        from pqext.geo.frames import active_geometry, require_geopandas, to_geopandas

        require_geopandas()
        return to_geopandas(self._table(), geometry or active_geometry(self.schema))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the matching rows as an Arrow stream, for ``pyarrow.table`` or ``polars.DataFrame``."""
        return self._reader().__arrow_c_stream__(requested_schema)


def _convert_interrupts(batches: Generator[pa.RecordBatch, None, None]) -> Generator[pa.RecordBatch, None, None]:
    """Yield ``batches`` for an Arrow stream. Convert ``KeyboardInterrupt`` to ``InterruptedError``.

    Arrow converts all errors but system errors to ``ValueError``, which would make an interrupt look like an invalid
    file.
    """
    with closing(batches):
        try:
            yield from batches
        except KeyboardInterrupt:
            raise InterruptedError("reading was interrupted from the keyboard") from None
