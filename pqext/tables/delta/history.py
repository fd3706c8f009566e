"""Read the commits of a Delta table: the files that each version adds.

Spec: Delta Transaction Log Protocol, "Delta Log Entries", "Add File and Remove File", "Partition Value Serialization".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.io.sources.locations import open_source
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import source_name
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.backend import Append, changed_rows_error
from pqext.tables.delta.loading import load_table, options_of
from pqext.tables.delta.schemas import PHYSICAL_NAME, arrow_schema, mapped_fields
from pqext.tables.delta.snapshot import check_features, file_location, open_delta
from pqext.tables.renaming import Renaming
from pqext.tables.table_view import FileView

_BYTES = re.compile(r"(?:\\u00[0-9a-fA-F]{2})+")


class DeltaHistory:
    """Versions of a Delta table; see :class:`pqext.tables.backend.TableHistory`."""

    def __init__(self, source: Any, storage_options: Mapping[str, Any] | None) -> None:
        self._storage_options = options_of(source, storage_options)
        self._table = load_table(source, None, None, self._storage_options)
        self.name = f"delta:{redact_uri(self._table.table_uri)}"

    @property
    def version(self) -> int:
        return int(self._table.version())

    def previous_version(self, version: int) -> int:
        if not 0 <= version <= self.version:
            raise FileNotFoundError(f"{self.name} has no version {version}; its last version is {self.version}")
        return version - 1

    def open(self, version: int) -> TableSnapshot:
        return open_delta(self._table, None if version == self.version else version, None, self._storage_options)

    def appends(self, after: int, until: int, skip_change_commits: bool) -> Iterator[Append]:
        if after != -1:
            self.previous_version(after)
        self.previous_version(until)
        if after > until:
            raise ValueError(f"version {after} of {self.name} is later than version {until}; swap after and until")
        return self._appends(after, until, skip_change_commits)

    def _appends(self, after: int, until: int, skip_change_commits: bool) -> Iterator[Append]:
        for version in range(after + 1, until + 1):
            added, has_changes = [], False
            for entry in self._entries(version):
                add, remove = entry.get("add"), entry.get("remove")
                has_changes |= bool(remove and remove.get("dataChange", True))
                if add and add.get("dataChange", True):
                    added.append(add)
            if has_changes:
                if not skip_change_commits:
                    raise changed_rows_error(version, self.name)
                added = []
            vector = next((add["path"] for add in added if add.get("deletionVector")), None)
            if vector is not None:
                raise UnsupportedError(
                    f"version {version} adds {vector} with a deletion vector, which scans of appended rows do not "
                    "support; scan all rows with pqext.scan",
                    feature="deletion vectors of added files", path=self.name,
                )
            yield Append(version, tuple(added))

    def _entries(self, version: int) -> Iterator[dict[str, Any]]:
        """Yield the actions of a commit."""
        path = f"_delta_log/{version:020}.json"
        try:
            with open_source(file_location(self._table.table_uri, path, self._storage_options)) as source:
                lines = bytes(source.read(0, source.size)).splitlines()
            for line in lines:
                if line.strip():
                    yield _check_entry(json.loads(line))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"the log of {self.name} no longer contains the commit of version {version}; start from a later version"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(f"the log cannot be read: {error}", path=f"{self.name}/{path}") from None

    def snapshot(self, appends: Iterable[Append], until: int) -> TableSnapshot:
        table = self._table
        if until != self.version:
            table = load_table(table.table_uri, until, None, self._storage_options)
        check_features(table, self.name)
        struct = json.loads(table.schema().to_json())
        mode = table.metadata().configuration.get("delta.columnMapping.mode") or "none"
        schema = arrow_schema(struct)
        constants = pa.schema([schema.field(column) for column in table.metadata().partition_columns])
        physical = {member["name"]: member.get("metadata", {}).get(PHYSICAL_NAME) for member in struct["fields"]}
        keys = {name: name if mode == "none" else physical[name] or name for name in constants.names}
        adds = [add for append in appends for add in append.files]
        files = tuple(file_location(table.table_uri, add["path"], self._storage_options) for add in adds)
        values = {
            source_name(file): {
                field.name: _partition_value(add["partitionValues"].get(keys[field.name]), field.type)
                for field in constants
            }
            for file, add in zip(files, adds, strict=True)
        }
        fields = mapped_fields(struct, "name" if mode == "none" else mode)
        renaming = None if mode == "none" else Renaming(fields, by_id=mode == "id")
        return TableSnapshot(
            self.name, schema, files, constants, values, statistics=None, view=FileView(self.name, renaming, {})
        )


def _check_entry(entry: Any) -> dict[str, Any]:
    """Check one line of a commit and return it. Raises ``TypeError`` or ``KeyError`` if an action is malformed."""
    if not isinstance(entry, dict):
        raise TypeError("an action is not a JSON object")
    for action in ("add", "remove"):
        fields = entry.get(action)
        if fields is not None and not isinstance(fields, dict):
            raise TypeError(f"action {action} is not a JSON object")
        if fields is not None and not isinstance(fields["path"], str):
            raise TypeError(f"the path of action {action} is not text")
    add = entry.get("add")
    if add is not None and not isinstance(add["partitionValues"], dict):
        raise TypeError("partitionValues is not a JSON object")
    return entry


def _partition_value(text: str | None, type: pa.DataType) -> Any:
    """Convert the text of a partition value in the log to ``type``. Empty text represents null."""
    if not text:
        return None
    if pa.types.is_binary(type):
        return bytes.fromhex(text.replace("\\u00", "")) if _BYTES.fullmatch(text) else text.encode()
    if pa.types.is_timestamp(type):
        return pa.scalar(text.rstrip("Z")).cast(pa.timestamp(type.unit)).cast(type).as_py()
    return pa.scalar(text).cast(type).as_py()
