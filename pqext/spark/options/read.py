"""Parse the options of reads by data source ``pqext``, which are strings, and references to data-skipping stores."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.io.sources.locations import Location
from pqext.core.options.read_write import InvalidUtf8, ReadOptions, RebaseMode
from pqext.dataset.notations.dnf import from_text
from pqext.dataset.notations.json_text import value_of_tree
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.table.partitions import Partitioning
from pqext.skipping.store.store import OnForeign, Store, open_store
from pqext.spark.base.files import is_remote, local_path, option_paths
from pqext.spark.options.save import parse_storage_options
from pqext.variant.timezones import find_timezone

_NAMES = {"path", "on_foreign", "keys"}


@dataclass(frozen=True)
class StoreReference:
    """Location of a data-skipping store, and the arguments for opening the store."""

    path: str
    """Absolute path or URL."""
    on_foreign: str = "raise"
    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Keys of an encrypted store by label, in base 64."""

    @classmethod
    def from_argument(cls, skipping: Any) -> StoreReference:
        """Create a reference from argument ``skipping``: a path, a URL or an open store.

        Raises ``TypeError`` for other arguments, and ``UnsupportedError`` for a store that text cannot represent.
        """
        if isinstance(skipping, str | os.PathLike):
            return cls(_absolute_path(os.fspath(skipping)))
        if not isinstance(skipping, Store):
            raise TypeError(f"skipping must be a data-skipping store or its path, not {type(skipping).__name__}")
        if skipping.decryption is not None and not isinstance(skipping.decryption, Mapping):
            raise UnsupportedError(
                "Spark plans reads in another process, without access to a key retriever: open the store with "
                "decryption={label: key}",
                feature="stores with key retrievers",
            )
        if skipping.limits != DEFAULT_LIMITS:
            raise UnsupportedError(
                "Spark plans reads in another process, with default limits: open the store without limits=",
                feature="stores with custom limits",
            )
        location = skipping.location
        path = location.path if isinstance(location, Location) else os.fspath(location)
        keys = [(label, base64.b64encode(key).decode()) for label, key in (skipping.decryption or {}).items()]
        return cls(_absolute_path(path), skipping.on_foreign, tuple(sorted(keys)))

    def as_text(self) -> str:
        """Return the reference as an option: a path, or a JSON object."""
        if self.on_foreign == "raise" and not self.keys and not self.path.startswith("{"):
            return self.path
        return json.dumps({"path": self.path, "on_foreign": self.on_foreign, "keys": dict(self.keys)})

    @classmethod
    def from_text(cls, text: str) -> StoreReference:
        """Parse an option, written by :meth:`as_text` or by a user. Raises ``ValueError`` for other text."""
        if not text.lstrip().startswith("{"):
            if not text:
                raise ValueError("expected the path of a data-skipping store, not an empty string")
            return cls(_absolute_path(text))
        try:
            data = json.loads(text)
        except ValueError:
            data = {}
        path, foreign, keys = data.get("path"), data.get("on_foreign", "raise"), data.get("keys", {})
        if not data.keys() <= _NAMES or not isinstance(path, str) or not isinstance(keys, dict):
            raise ValueError('expected {"path": ..., "on_foreign": "raise" or "ignore", "keys": {label: base64}}')
        if foreign not in ("raise", "ignore") or not all(isinstance(key, str) for key in keys.values()):
            raise ValueError('on_foreign must be "raise" or "ignore", and keys must map labels to base64')
        return cls(_absolute_path(path), foreign, tuple(sorted(keys.items())))

    def open(self, storage_options: Mapping[str, Any] | None) -> Store:
        """Open the store. ``storage_options``, the options of the files, apply if the store has a URL."""
        keys = {label: base64.b64decode(key) for label, key in self.keys} or None
        return open_store(
            self.path, decryption=keys, on_foreign=cast(OnForeign, self.on_foreign),
            storage_options=storage_options if is_remote(self.path) else None,
        )  # fmt: skip


def _absolute_path(path: str) -> str:
    return path if is_remote(path) else local_path(path)


def _parse_columns(text: str) -> tuple[str | ComputedColumn, ...]:
    items = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    columns = tuple(
        ComputedColumn(item["name"], value_of_tree(item["value"]))
        if isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str) else item
        for item in items
    )
    names = [column.name if isinstance(column, ComputedColumn) else column for column in columns]
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise ValueError(f"expected distinct column names, not {text!r}")
    return columns


def _parse_bbox(text: str) -> tuple[float, float, float, float]:
    try:
        xmin, ymin, xmax, ymax = map(float, json.loads(text if text.lstrip().startswith("[") else f"[{text}]"))
    except (TypeError, ValueError):
        raise ValueError(
            f"option bbox must be four numbers (xmin, ymin, xmax, ymax), not {text}; name the column with bbox_column"
        ) from None
    return (xmin, ymin, xmax, ymax)


def parse_flag(text: str) -> bool:
    flags = {"true": True, "false": False}
    if text.lower() not in flags:
        raise ValueError(f"expected 'true' or 'false', not {text!r}")
    return flags[text.lower()]


def _parse_positive_integer(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"expected a positive integer, not {text!r}")
    return int(text)


def _parse_partitioning(text: str) -> Partitioning:
    values: dict[str, Partitioning] = {"hive": "hive", "none": None}
    if text.lower() not in values:
        raise ValueError(f"expected 'hive' or 'none', not {text!r}")
    return values[text.lower()]


def _parse_partition_types(text: str) -> dict[str, str]:
    types = json.loads(text)
    if not isinstance(types, dict) or not all(isinstance(type, str) for type in types.values()):
        raise ValueError(f'expected a JSON object of type names by column, such as {{"zip": "string"}}, not {text!r}')
    return types


def _parse_schema(text: str) -> str:
    if text.lower() != "union":
        raise ValueError(f"expected 'union', not {text!r}; omit the option if all files have the same schema")
    return "union"


def _parse_name(text: str) -> str:
    if not text:
        raise ValueError("expected the name of a column, not an empty string")
    return text


def _parse_timezone(text: str) -> str:
    find_timezone(text)
    return text


def _parse_on_invalid(text: str) -> str:
    if text.lower() not in ("raise", "skip"):
        raise ValueError(f"expected 'raise' or 'skip', not {text!r}")
    return text.lower()


def _parse_engine(text: str) -> None:
    """Check that the engine is ``python``, which is the data source, or ``auto``."""
    if text.lower() not in ("python", "auto"):
        raise ValueError(
            f"the data source supports only engine 'python', not {text!r}; to use another engine, call "
            "pqext.spark.read(spark, path, engine=...)"
        )


def _parse_invalid_utf8(text: str) -> InvalidUtf8:
    return ReadOptions(invalid_utf8=text).invalid_utf8  # type: ignore[arg-type]


def _parse_rebase_mode(text: str) -> RebaseMode:
    mode = str(text).lower()
    if mode not in get_args(RebaseMode):
        raise ValueError(f"a rebase mode must be one of {', '.join(get_args(RebaseMode))}, not {text!r}")
    return cast("RebaseMode", mode)


def _parse_file_pattern(text: str) -> str:
    if not isinstance(text, str) or not text or "/" in text:
        raise ValueError(f"expected a pattern of file names without folders, such as '*.parquet', not {text!r}")
    return text


PARSERS: dict[str, Any] = {
    "columns": _parse_columns,
    "aggregation": json.loads,
    "where": from_text,
    "bbox": _parse_bbox,
    "bbox_column": str,
    "shredded": parse_flag,
    "metrics_path": local_path,
    "partition_bytes": _parse_positive_integer,
    "memory_bytes": _parse_positive_integer,
    "partitioning": _parse_partitioning,
    "partition_types": _parse_partition_types,
    "trust_statistics": parse_flag,
    "storage_options": parse_storage_options,
    "schema": _parse_schema,
    "include_file_paths": _parse_name,
    "include_row_numbers": _parse_name,
    "path_glob_filter": _parse_file_pattern,
    "skipping": StoreReference.from_text,
    "timezone": _parse_timezone,
    "ignore_table_format": parse_flag,
    "version": int,
    "timestamp": str,
    "base_path": lambda text: option_paths({"path": text}, allow_urls=True)[0],
    "modified_after": str,
    "modified_before": str,
    "on_invalid": _parse_on_invalid,
    "ignore_missing_files": parse_flag,
    "case_sensitive": parse_flag,
    "engine": _parse_engine,
    "settings_known": parse_flag,
    "invalid_utf8": _parse_invalid_utf8,
    "legacy_timezone": str,
    "datetime_rebase_mode": _parse_rebase_mode,
    "int96_rebase_mode": _parse_rebase_mode,
    "interval_months": parse_flag,
    "names_only": parse_flag,
}
"""Functions that parse the options, by name."""
