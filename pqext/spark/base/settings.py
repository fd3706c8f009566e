"""Settings of a Spark session that apply to reading and writing Parquet.

Spark passes options to a Python data source, and no settings. Functions such as :func:`pqext.spark.write` read the
settings of the session. The tasks of a data source read them from the properties of their job, which hold every
setting that the session states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Setting = Callable[[str], str | None]
"""The value of a setting by its name; None if the session does not state it."""

_COMPRESSION = "spark.sql.parquet.compression.codec"
_MAX_RECORDS = "spark.sql.files.maxRecordsPerFile"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
CASE_SENSITIVE = "spark.sql.caseSensitive"
PARTITION_TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"
_OF_READS = {
    CASE_SENSITIVE: ("true", "case_sensitive", "true"),
    PARTITION_TYPES: ("false", "partition_types", '{"*": "string"}'),
    "spark.sql.files.ignoreCorruptFiles": ("true", "on_invalid", "skip"),
    "spark.sql.files.ignoreMissingFiles": ("true", "ignore_missing_files", "true"),
    "spark.sql.parquet.mergeSchema": ("true", "schema", "union"),
}
"""For a setting the value that is not its default, and the option of a read that it stands for."""


def session_setting(spark: SparkSession) -> Setting:
    """The settings of a session, Classic or Connect."""
    return lambda name: spark.conf.get(name, None)


def task_setting() -> Setting:
    """The settings of the session that the current task works for; none outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (lambda name: None) if context is None else context.getLocalProperty


def is_case_sensitive(setting: Setting) -> bool:
    """Whether names that differ in case only are different names."""
    return (setting(CASE_SENSITIVE) or "").lower() == "true"


def save_settings(setting: Setting) -> dict[str, str]:
    """The options of a save, by pqext's names, that the settings of a session stand for."""
    options: dict[str, str] = {}
    if codec := setting(_COMPRESSION):
        options["compression"] = codec
    if records := setting(_MAX_RECORDS):
        options["max_records_per_file"] = str(max(0, int(records)))  # Spark's numbers below 1 are no limit
    if mode := setting(_OVERWRITE_MODE):
        options["partition_overwrite"] = mode.lower()
    options["case_sensitive"] = str(is_case_sensitive(setting)).lower()
    return options


def read_settings(setting: Setting) -> dict[str, str]:
    """The options of a read, by pqext's names, that the settings of a session stand for."""
    return {
        option: value for name, (stated, option, value) in _OF_READS.items() if (setting(name) or "").lower() == stated
    }


def with_settings(options: Mapping[str, str], setting: Setting) -> dict[str, str]:
    """The ``options`` of a read, completed by the settings of a session."""
    found = read_settings(setting) | {"settings_known": "true"}
    if options.get("shredded") == "true":
        found.pop("schema", None)  # shredded columns, as each file stores them, have no union
    if "partition_types" in found and "partition_types" in options:
        types = json.loads(found["partition_types"]) | json.loads(options["partition_types"])
        return found | dict(options) | {"partition_types": json.dumps(types)}
    if options.get("partitioning") == "none":
        found.pop("partition_types", None)
    return found | dict(options)


def check_assumed(assumed: Iterable[tuple[str, str]]) -> None:
    """Raise ``ValueError`` in a task whose session has other settings than the plan assumed, which did not see them."""
    setting = task_setting()
    for name, value in assumed:
        found = (setting(name) or value).lower()
        if found != value:
            stated, option, text = _OF_READS[name]
            raise ValueError(
                f"{name}={stated} reaches the data source too late: pass option {option}={text}, or read by "
                "pqext.spark.read, which sees the settings of the session"
            )


def codec_of(name: str) -> str:
    """The value of option ``compression`` for Spark's name of a codec. Raises ``ValueError`` for LZO and LZ4."""
    codec = name.lower()
    if codec in ("lzo", "lz4"):
        instead = "zstd" if codec == "lzo" else "lz4_raw"
        raise ValueError(
            f"pqext does not write {codec}, which the Parquet format deprecates: pass compression={instead}, which "
            f"takes precedence over {_COMPRESSION}"
        )
    return "uncompressed" if codec == "none" else codec
