"""Open a version of a Delta table. Files and schema are read from the log with ``deltalake``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import join_names
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import source_name
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.delta.loading import load_table, options_of, table_error
from pqext.tables.delta.log_statistics import DeltaLogStatistics, VariantTexts
from pqext.tables.delta.schemas import arrow_schema, covering_columns, mapped_fields
from pqext.tables.log_statistics import LogStatistics
from pqext.tables.renaming import Renaming
from pqext.tables.table_view import FileView

if TYPE_CHECKING:
    from deltalake import DeltaTable

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
READER_FEATURES = frozenset({
    "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType",
    "variantType-preview", "variantShredding", "variantShredding-preview", "typeWidening", "typeWidening-preview",
})
"""Table features that a scan supports."""


def open_delta(
    source: Any, version: int | None, timestamp: datetime | None, storage_options: Mapping[str, Any] | None
) -> TableSnapshot:
    """Open a version of a Delta table. ``source`` is a path, a URL or a ``DeltaTable``.

    Raises the errors of :func:`load_table`, and ``UnsupportedError`` if the table requires a feature that is not
    supported.
    """
    storage_options = options_of(source, storage_options)
    table = load_table(source, version, timestamp, storage_options)
    name = f"delta:{redact_uri(table.table_uri)}"
    check_features(table, name)
    struct = json.loads(table.schema().to_json())
    mode = table.metadata().configuration.get("delta.columnMapping.mode") or "none"
    schema, fields = arrow_schema(struct), mapped_fields(struct, "name" if mode == "none" else mode)
    partition_columns = table.metadata().partition_columns
    actions, uri = pa.table(table.get_add_actions(flatten=False)).combine_chunks(), table.table_uri
    files = tuple(file_location(uri, path, storage_options) for path in actions["path"].to_pylist())
    names = [*map(source_name, files)]
    values = actions["partition"].to_pylist() if "partition" in actions.column_names else [{}] * len(names)
    has_widened_types = any(name.startswith("typeWidening") for name in table.protocol().reader_features or ())
    texts = VariantTexts(uri, table.version(), storage_options)
    statistics = DeltaLogStatistics.by_file(actions, names, mapped_fields(struct, "name"), texts, has_widened_types)
    deleted = _deleted_rows(table, storage_options)
    return TableSnapshot(
        name, schema, files,
        constants=pa.schema([schema.field(column) for column in partition_columns]),
        values=dict(zip(names, values, strict=True)),
        statistics=LogStatistics(schema, statistics, covering_columns(struct)),
        view=FileView(name, None if mode == "none" else Renaming(fields, by_id=mode == "id"), deleted),
    )


def check_features(table: DeltaTable, name: str) -> None:
    """Raise ``UnsupportedError`` if reading the table requires a feature that is not supported."""
    unknown = sorted(set(table.protocol().reader_features or ()) - READER_FEATURES)
    if unknown:
        raise UnsupportedError(
            f"the table requires reader features that pqext does not support: {join_names(unknown)}",
            feature="Delta table features", path=name,
        )


def file_location(table_uri: str, path: str, storage_options: Mapping[str, Any] | None) -> Any:
    """Return the location of a file. ``path`` is a percent-encoded URI, absolute or relative to ``table_uri``."""
    uri = urlsplit(table_uri)
    if path.startswith("/"):
        decoded = unquote(path)
    elif _SCHEME.match(path):
        uri = urlsplit(path)
        decoded = unquote(uri.path)
    else:
        decoded = unquote(f"{uri.path.rstrip('/')}/{path}")
    return decoded if uri.scheme == "file" else locate(f"{uri.scheme}://{uri.netloc}{decoded}", None, storage_options)


def _deleted_rows(table: DeltaTable, storage_options: Mapping[str, Any] | None) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the rows that deletion vectors delete, by file name."""
    from deltalake.exceptions import DeltaError

    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    try:
        batches = [*pa.RecordBatchReader.from_stream(table.deletion_vectors())]
    except (OSError, pa.ArrowException, DeltaError) as error:
        name = f"delta:{redact_uri(table.table_uri)}"
        raise table_error("a deletion vector cannot be read", error, name, storage_options) from None
    deleted = {}
    for batch in batches:
        for path, selection in zip(batch["filepath"], batch["selection_vector"], strict=True):
            location = file_location(table.table_uri, path.as_py(), storage_options)
            is_selected = selection.values.to_numpy(zero_copy_only=False)
            deleted[source_name(location)] = np.flatnonzero(~is_selected).astype(np.int64)
    return deleted
