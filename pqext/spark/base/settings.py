"""Settings of a Spark session that apply to reading and writing Parquet.

Spark passes options to a Python data source, but not settings. Functions such as :func:`pqext.spark.write` read the
settings of the session. The tasks of a data source read them from the properties of their job, which contain every
setting of the session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.notations.dnf import as_expression
from pqext.variant.timezones import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Setting = Callable[[str], str | None]
"""Function that returns the value of a setting by its name, or None if the session does not define it."""

_COMPRESSION = "spark.sql.parquet.compression.codec"
_MAX_RECORDS = "spark.sql.files.maxRecordsPerFile"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
CASE_SENSITIVE = "spark.sql.caseSensitive"
PARTITION_TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"
_REBASE_IN_WRITE = "spark.sql.parquet.datetimeRebaseModeInWrite"
_TIMEZONE = "spark.sql.session.timeZone"
_NO_PADDING = {
    "spark.sql.legacy.charVarcharAsString": "true", "spark.sql.legacy.noCharPaddingInPredicate": "true",
    "spark.sql.readSideCharPadding": "false",
}
"""Settings that change how Spark compares CHAR columns, with the value that does."""
REBASE_MODES = {
    "datetime_rebase_mode": "spark.sql.parquet.datetimeRebaseModeInRead",
    "int96_rebase_mode": "spark.sql.parquet.int96RebaseModeInRead",
}
"""Settings for the calendar of files that do not record it, by pqext's options."""
_OF_READS: dict[str, tuple[str, dict[str, str]]] = {
    CASE_SENSITIVE: ("case_sensitive", {"true": "true"}),
    PARTITION_TYPES: ("partition_types", {"false": '{"*": "string"}'}),
    "spark.sql.files.ignoreCorruptFiles": ("on_invalid", {"true": "skip"}),
    "spark.sql.files.ignoreMissingFiles": ("ignore_missing_files", {"true": "true"}),
    "spark.sql.parquet.mergeSchema": ("schema", {"true": "union"}),
} | {setting: (option, {mode: mode for mode in ("legacy", "exception")}) for option, setting in REBASE_MODES.items()}
"""The read option that each setting sets, and its values by the values of the setting that differ from the default."""

_JAVA_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "HST": "-10:00", "MST": "-07:00",
}  # fmt: skip
"""Time zones for Java's three-letter names."""


def session_setting(spark: SparkSession) -> Setting:
    """Return a function that looks up settings of a session, on Spark Classic or Connect."""
    return lambda name: spark.conf.get(name, None)


def task_setting() -> Setting:
    """Return a function that looks up settings of the current task's session. It returns None outside a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (lambda name: None) if context is None else context.getLocalProperty


def is_case_sensitive(setting: Setting) -> bool:
    """Return whether column names are case-sensitive."""
    return (setting(CASE_SENSITIVE) or "").lower() == "true"


def pads_char_literals(setting: Setting) -> bool:
    """Return whether Spark pads only the literal, not the column, when it compares a CHAR column with a literal."""
    return not any((setting(name) or "").lower() == value for name, value in _NO_PADDING.items())


def save_settings(setting: Setting) -> dict[str, str]:
    """Convert the settings of a session to pqext's save options."""
    options: dict[str, str] = {}
    if codec := setting(_COMPRESSION):
        options["compression"] = codec
    if records := setting(_MAX_RECORDS):
        options["max_records_per_file"] = str(max(0, int(records)))  # in Spark, values below 1 mean no limit
    if rebase := setting(_REBASE_IN_WRITE):
        options["datetime_rebase_mode"] = rebase.lower()
    if mode := setting(_OVERWRITE_MODE):
        options["partition_overwrite"] = mode.lower()
    options["case_sensitive"] = str(is_case_sensitive(setting)).lower()
    return options


def read_settings(setting: Setting) -> dict[str, str]:
    """Convert the settings of a session to pqext's read options."""
    return {
        option: values[state]
        for name, (option, values) in _OF_READS.items()
        if (state := (setting(name) or "").lower()) in values
    }


def add_settings(options: Mapping[str, str], setting: Setting) -> dict[str, str]:
    """Return the read ``options``, with defaults from the settings of a session."""
    implied = read_settings(setting) | {"settings_known": "true"}
    if options.get("shredded") == "true":
        implied.pop("schema", None)  # files may store shredded columns with different layouts
    if "partition_types" in implied and "partition_types" in options:
        types = json.loads(implied["partition_types"]) | json.loads(options["partition_types"])
        return implied | dict(options) | {"partition_types": json.dumps(types)}
    if options.get("partitioning") == "none":
        implied.pop("partition_types", None)
    return implied | dict(options)


def check_settings(assumed_settings: Iterable[tuple[str, str]]) -> None:
    """Raise ``ValueError`` in a task if a setting of its session differs from the value that the plan assumes.

    The process that plans the read of a data source cannot read the settings of the session.
    """
    setting = task_setting()
    for name, value in assumed_settings:
        if (state := (setting(name) or value).lower()) != value:
            option, values = _OF_READS[name]
            text = values.get(state, value)
            raise ValueError(
                f"the data source cannot see the session setting {name}={state} when it plans a read; pass option "
                f"{option}={text}, or use pqext.spark.read, which applies session settings"
            )


def parse_codec(name: str, is_setting: bool = False) -> str:
    """Convert Spark's name of a codec to a value of option ``compression``.

    Raises ``ValueError`` for LZO and LZ4. ``is_setting`` states that a setting of the session specifies the codec.
    """
    codec = name.lower()
    if codec in ("lzo", "lz4"):
        alternative = "zstd" if codec == "lzo" else "lz4_raw"
        suffix = f", which takes precedence over {_COMPRESSION}" if is_setting else ""
        raise ValueError(
            f"pqext does not write {codec}, which the Parquet format deprecates: pass compression={alternative}{suffix}"
        )
    return "uncompressed" if codec == "none" else codec


def session_timezone(spark: SparkSession) -> str:
    """Return the time zone of a session as an IANA name or an offset."""
    name = str(spark.conf.get(_TIMEZONE))
    return _JAVA_ZONES.get(name, name)


def active_timezone() -> str | None:
    """Return the time zone of the active session, on Spark Classic or Connect; None if no session is active."""
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    session: Any = SparkSession.getActiveSession()
    if session is None and is_remote():
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        session = RemoteSession.getActiveSession()
    return None if session is None else session_timezone(session)


def task_timezone(timezone: str | None = None) -> str:
    """Return ``timezone`` or, if it is None, the time zone of the current task's session."""
    from pyspark import TaskContext

    if timezone is not None:
        return timezone
    task = TaskContext.get()
    name = None if task is None else task.getLocalProperty(_TIMEZONE)
    return DEFAULT if name is None else _JAVA_ZONES.get(name, name)


def filter_in_timezone(where: Any, timezone: str) -> Any:
    """Set the time zone of all casts in a filter. Return the filter itself if no cast depends on a time zone."""
    expression = as_expression(where)
    bound = set_timezone(expression, timezone)
    return where if bound is expression else bound
