"""Lazy queries over files. Each method that refines a query returns a new query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from pqext.core.base.suggestions import SuggestionMixin, excerpt, join_names, suggest_arguments
from pqext.core.base.text import escape_text, html_details, html_summary, html_table, with_noun
from pqext.dataset.aggregates import Aggregates
from pqext.dataset.column_names import expand_columns, order_keys, restrict_columns
from pqext.dataset.execution.metrics import Metrics, Run
from pqext.dataset.expressions import all_of
from pqext.dataset.files.sources import source_name
from pqext.dataset.notations.dnf import Filter, as_expression
from pqext.dataset.planning.explanation import SHOWN, format_plan, format_summary, to_data
from pqext.dataset.planning.plan import Task
from pqext.dataset.planning.projection import parse_columns
from pqext.dataset.presentation.columns import Formats
from pqext.dataset.results import Results, TableUseGuard
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.dataset.spatial_methods import SpatialMethods

_SHOWN_FIELDS = 50
_SHOWN_TYPE = 200
"""Columns displayed in a notebook, and characters of each type."""
_PREVIEW_ROWS = 5
_PREVIEW_SOURCE_ROWS = 1 << 20
"""Rows displayed in a notebook, and maximum number of rows read to find matching ones."""


class Scan(SuggestionMixin, TableUseGuard, SpatialMethods, Aggregates, Results):
    """A lazy query over files with a common schema; see :func:`scan`.

    A scan is immutable: ``select``, ``filter`` and ``limit`` return new scans. Nothing is read before rows, a count,
    the plan or the schema are requested.

    Libraries that support Arrow's C stream accept a scan as a table: ``pyarrow.table(scan)``,
    ``polars.DataFrame(scan)`` and ``duckdb.sql("FROM scan")``. ``for`` and ``async for`` loops iterate over its
    batches.

    A scan can be pickled at any time unless its sources are open files. The copy has no ``metrics`` yet.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._planner = ScanPlanner(request)
        self._latest = None

    def _replace(self, **changes: Any) -> Scan:
        """Return a scan with ``changes`` to its request."""
        return Scan(replace(self._request, **changes))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._request,)

    @property
    def metrics(self) -> Metrics | None:
        """Metrics of this scan's last or current run; None before the first run.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
            >>> scan = pqext.scan("ids.parquet").filter(pqext.col("id") > 1)
            >>> scan.count()
            2
            >>> scan.metrics.rows_evaluated, scan.metrics.pages
            (3, 1)
        """
        return None if self._latest is None else self._latest.metrics

    def select(self, *columns: Any) -> Scan:
        """Return a scan with only ``columns`` in the result, in the given order.

        Args:
            columns: Names, dotted paths of struct fields, and values within VARIANT columns
                (``col("event").variant("$.n", "int64")``, or a pair of a name and a value), or one list of them; or a
                mapping of names of the result to columns and values. Text that is not the name of a column is parsed
                as by ``--select`` of the command line, which reads the schema: ``"event:$.n::int as n"``, ``"price *
                2 as twice"``, ``"a, b"``, ``"* exclude (a)"``.

        Returns:
            A new scan; this one is unchanged.

        Raises:
            ValueError: If an earlier ``select`` has excluded a name. A name that does not exist in any file is an error
                once the scan runs.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2], "name": ["Suva", "Nome"]}), "cities.parquet")
            >>> pqext.scan("cities.parquet").select("name").to_table().to_pylist()
            [{'name': 'Suva'}, {'name': 'Nome'}]
        """
        arguments = columns[0] if len(columns) == 1 and isinstance(columns[0], list | Mapping) else list(columns)
        selected = expand_columns(parse_columns(arguments), lambda: self.schema)
        request = self._request
        result = restrict_columns(request.result, selected, self._planner.resolve, self._planner.name_resolver)
        return self._replace(result=result, earlier=request.computed_columns)

    def filter(self, *conditions: Filter) -> Scan:
        """Return a scan of the rows that match all ``conditions`` and all earlier filters.

        Args:
            conditions: Expressions of :func:`pqext.col`, or any other filter that :func:`scan` accepts. They may use
                columns that are not selected. A name that ``select`` or ``to_crs`` has given to a value refers to that
                value.

        Returns:
            A new scan; this one is unchanged.

        Raises:
            ValueError: If there is no condition, or after :meth:`limit`, which would count excluded rows.
            TypeError: If an argument is not a filter.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
            >>> pqext.scan("ids.parquet").filter(pqext.col("id") > 1).to_table().to_pylist()
            [{'id': 2}, {'id': 3}]
        """
        request = self._request
        expressions = [as_expression(condition) for condition in conditions]
        results = [self._planner.resolve(expression) for expression in expressions if expression is not None]
        if not results or len(results) < len(expressions):
            raise TypeError("filter requires conditions, such as pqext.col('a') > 5")
        self._check_unlimited("filter")
        before = [] if request.filter is None else [request.filter]
        return self._replace(filter=all_of([*before, *results]))

    @property
    def _is_limited(self) -> bool:
        """Whether a limit or an offset restricts the result, after all filters."""
        return self._request.limit is not None or bool(self._request.offset)

    def _check_unlimited(self, method: str) -> None:
        """Raise ``ValueError`` for ``method`` if a limit or an offset restricts the result."""
        if self._is_limited:
            limit_method = self._request.limit_method
            advice = f": call {method}() first" if method != limit_method else ", because it limits the rows"
            raise ValueError(f"{method}() after {limit_method}() is not supported{advice}")

    @suggest_arguments
    def order_by(
        self, *columns: Any, descending: bool | Sequence[bool] = False, nulls_first: bool | Sequence[bool] = False
    ) -> Scan:
        """Return a scan with rows sorted by the first column, then by the following columns.

        With :meth:`limit` or :meth:`head`, row groups and pages that cannot contain any of the first rows are skipped
        by their bounds, and memory is bounded by the rows of the limit. Without a limit all rows are sorted in memory.

        Args:
            columns: Names, dotted paths of struct fields, and values such as ``col("price") * 2`` or
                ``col("event").variant("$.n", "int64")``, or one list of them. Their columns need not be selected, and
                may be partition columns.
            descending: Whether the greatest values come first, for all columns or for each.
            nulls_first: Whether nulls come before all values, for all columns or for each; last by default.

        Returns:
            A new scan; this one is unchanged. The order replaces an earlier order. Rows with equal keys stay in
            the order of files and rows. NaN is greater than all other numbers.

        Raises:
            ValueError: After :meth:`limit`, or if the numbers of flags and columns differ. A column that no
                file has is an error once the scan runs.
            TypeError: If an argument is not a column or a value or, once the scan runs, if the values have no order.
            LimitError: Once the scan runs, if the rows take more memory than ``limits`` allow.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3], "mag": [4.5, None, 6.1]}), "quakes.parquet")
            >>> pqext.scan("quakes.parquet").order_by("mag", descending=True).limit(2).to_table().to_pylist()
            [{'id': 3, 'mag': 6.1}, {'id': 1, 'mag': 4.5}]
        """
        keys = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns
        self._check_unlimited("order_by")
        return self._replace(order=order_keys(keys, descending, nulls_first, self._planner.resolve))

    def limit(self, rows: int | None, offset: int = 0) -> Scan:
        """Return a scan that skips the first ``offset`` rows and returns at most ``rows`` rows.

        Args:
            rows: Maximum number of rows; None for all.
            offset: Number of result rows to skip.

        Returns:
            A new scan; this one is unchanged. Reading stops once the limit is reached.

        Raises:
            ValueError: If an argument is negative.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
            >>> pqext.scan("ids.parquet").limit(1, offset=1).to_table().to_pylist()
            [{'id': 2}]
        """
        for name, number in (("rows", rows), ("offset", offset)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
                raise TypeError(f"{name} must be a number of rows, not {type(number).__name__}")
            if number is not None and number < 0:
                raise ValueError(f"{name} must not be negative, but is {number}")
        request = self._request
        left = None if request.limit is None else max(0, request.limit - offset)
        most = min(item for item in (left, rows) if item is not None) if (left, rows) != (None, None) else None
        return self._replace(offset=request.offset + offset, limit=most)

    def plan(self, pages: bool = False) -> list[Task]:
        """Return a plan for each file, based only on footers and Bloom filters.

        With ``pages``, the page indexes are read too, as when the scan runs. The ``rows`` of each row group are then
        the rows in pages that may contain a match.
        """
        return self._planner.plan(pages)

    @suggest_arguments
    def explain(self, format: Literal["text", "json"] = "text", max_entries: int | None = SHOWN) -> str:
        """Describe the plan: the data to read, and the data to skip with the evidence. Page indexes are evaluated.

        Args:
            format: ``"text"`` for reading, or ``"json"`` for one JSON object.
            max_entries: Maximum number of files, and of row groups of each file, that are listed; None for all. Totals
                always cover all of them.

        Returns:
            Text of several lines, without a final newline.

        Example:
            >>> import pqext, pyarrow
            >>> pqext.write_table(pyarrow.table({"id": range(100)}), "ids.parquet", row_group_rows=50)
            >>> print(pqext.scan("ids.parquet").filter(pqext.col("id") > 70).explain())
            scan of 1 file
              columns: id
              filter: id > 70
              reads 1 of 2 row groups, 50 of 100 rows, 248 of 495 bytes
              skips by statistics: 1 row group, 50 rows
            ids.parquet: 1 of 2 row groups, 50 of 100 rows, 248 of 495 bytes
              row group 0 skipped: id > 70 is true for no row: values lie between 0 and 49
        """
        if format not in ("text", "json"):
            raise ValueError(f"format must be 'text' or 'json', not {format!r}")
        request = self._request
        warnings = self._planner.mistake_warnings()
        tasks = self.plan(pages=True)
        filter = None if request.filter is None else str(request.filter)
        usage = [] if request.files.summaries is None else request.files.summaries.usage_lines()
        if format == "json":
            facts = {
                "columns": self.schema.names, "filter": filter, "order": [*map(str, self._request.order)],
                "limit": request.limit, "offset": request.offset, "summaries": usage, "warnings": warnings,
            }
            return json.dumps(to_data(facts, tasks, max_entries))
        limit = [f"  {name}: {text}" for name, text in self._facts() if name in ("order", "limit")]
        lines = [
            f"scan of {with_noun(len(tasks), 'file')}",
            f"  columns: {', '.join(map(escape_text, self.schema.names)) or 'none'}",
            f"  filter: {filter if filter is not None else 'none'}",
            *limit,
            *format_plan(tasks, (*usage, *warnings), max_entries, is_limited=request.limit is not None),
        ]
        return "\n".join(map(escape_text, lines))

    @suggest_arguments
    def count(self) -> int:
        """Return the number of matching rows. Without a filter, only the footers are read."""
        return self._run().count()

    @suggest_arguments
    def head(
        self, rows: int = 5, *, variants: Literal["binary", "json"] = "json", geometry: Literal["wkb", "wkt"] = "wkt"
    ) -> pa.Table:
        """Return the first matching rows, as a preview. Only the data of these rows is read.

        Args:
            rows: Maximum number of rows.
            variants: ``"json"`` returns VARIANT columns as JSON text, ``"binary"`` in stored format.
            geometry: ``"wkt"`` returns geometry columns as text, ``"wkb"`` in stored format.

        Returns:
            A table. For a table with the stored types, use ``scan.limit(rows).to_table()``.

        Raises:
            ValueError: For a format that Arrow cannot represent.

        Example:
            >>> import pqext, pyarrow
            >>> table = pyarrow.table({"at": pqext.geo.from_points([2.5], [48.5])})
            >>> pqext.write_table(table, "at.parquet", geometry={"at": "OGC:CRS84"})
            >>> pqext.scan("at.parquet").head().to_pylist()
            [{'at': 'POINT (2.5 48.5)'}]
        """
        formats = Formats(variants, geometry)
        formats.check_arrow("limit(rows).to_pandas and to_polars return them")
        first = self.limit(rows)
        return formats.convert_table(pa.Table.from_batches(first.to_batches(), schema=first.schema))

    def _facts(self) -> list[tuple[str, str]]:
        """Return labels and texts that describe the request. No file is opened."""
        request = self._request
        sources = request.sources
        names = [column if isinstance(column, str) else column.name for column in request.result or ()]
        facts = [
            ("files", f"{len(sources):,}, {source_name(sources[0])} first" if sources else "none"),
            ("columns", join_names(names) if request.result is not None else "all"),
            ("filter", str(request.filter) if request.filter is not None else "none"),
        ]
        if self._request.order:
            facts.append(("order", "; ".join(map(str, self._request.order))))
        if request.limit is not None or request.offset:
            rows = "all rows" if request.limit is None else with_noun(request.limit, "row")
            facts.append(("limit", rows + (f" after {with_noun(request.offset, 'row')}" if request.offset else "")))
        return facts

    def __repr__(self) -> str:
        return escape_text(f"<pqext.Scan {'; '.join(f'{name}: {text}' for name, text in self._facts())}>")

    def _repr_html_(self) -> str:
        """Return a summary as HTML: the request, its columns and the amount of data read.

        The columns are shown if they are known, or for a single local file, with a map of the row groups if there is a
        geometry column. The first rows of such a file are shown if
        only few rows must be read for them.
        """
        request, plan, schema, rows, maps = self._request, [], self._planner.known_schema, [], []
        if request.is_local_file:
            with suppress(OSError, TypeError, ValueError):  # the error is raised again when the scan runs
                tasks = self._planner.plan()
                plan, schema = [("reads", format_summary(tasks))], self._planner.schema
                maps = self._html_maps(tasks[0].kept_row_groups if tasks else (), schema)
                is_short = sum(task.rows_kept for task in tasks) <= _PREVIEW_SOURCE_ROWS
                if is_short or (request.filter is None and not self._request.order):
                    rows = self._preview(schema)
        fields = [] if schema is None else [
            (field.name, excerpt(_display_type(field), 0, _SHOWN_TYPE)) for field in list(schema)[:_SHOWN_FIELDS]
        ]
        if schema is not None and len(schema) > _SHOWN_FIELDS:
            fields.append(("...", f"{len(schema) - _SHOWN_FIELDS:,} more"))
        columns = [] if schema is None else [html_details(with_noun(len(schema), "column"), ("column", "type"), fields)]
        return html_summary("pqext.Scan", [*self._facts(), *plan], *maps, *rows, *columns)

    def _html_maps(self, read: tuple[int, ...], schema: pa.Schema) -> list[str]:
        """Return an HTML map with the row group boxes of the first geometry column, for a scan of a single file."""
        from pqext.geo.layout.map_content import row_group_map
        from pqext.geo.types import type_of

        for name in (field.name for field in schema if type_of(field) is not None):
            for _, file in self._planner.open_files(Run(), [0]):
                return [row_group_map(file, name, read)] if name in file.arrow_schema.names else []
        return []

    def _preview(self, schema: pa.Schema) -> list[str]:
        """Return HTML lines with the first rows, with VARIANT values as JSON and geometries as WKT; empty if none."""
        from pqext.dataset.presentation.row_text import texts

        limit = self._request.limit
        first = self._replace(limit=_PREVIEW_ROWS if limit is None else min(limit, _PREVIEW_ROWS))
        batches = [*first.to_batches(_PREVIEW_ROWS)]
        if not batches or not schema.names:
            return []
        heads = schema.names[:_SHOWN_FIELDS]
        columns = [
            [_cell(text) for batch in batches for text in texts(batch.column(place), schema.field(place)).to_pylist()]
            for place in range(len(heads))
        ]
        return [html_table(heads, zip(*columns, strict=True))]


def _cell(text: str | None) -> str:
    return "null" if text is None else excerpt(text, 0, _SHOWN_TYPE)


def _display_type(field: pa.Field) -> str:
    """Format the type of a column for display: the logical type for VARIANT and geometry columns, else Arrow's."""
    from pqext.geo.types import type_of
    from pqext.variant.types import is_shredded_type, is_variant_type, storage_type

    spatial = type_of(field)
    if spatial is not None:
        return f"{'GEOMETRY' if spatial.planar else 'GEOGRAPHY'}({spatial.crs or 'OGC:CRS84'})"
    kind = storage_type(field.type)
    return "VARIANT" if is_variant_type(kind) or is_shredded_type(kind) else str(field.type)
