"""Spark's session time zone, in which casts between instants and local times are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.notations.dnf import as_expression
from pqext.variant.timezones import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.session.timeZone"

_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "HST": "-10:00", "MST": "-07:00",
}  # fmt: skip
"""Java's names of three letters."""


def session_timezone(spark: SparkSession) -> str:
    """The time zone of a session, by an IANA name or an offset."""
    name = str(spark.conf.get(SETTING))
    return _SHORT.get(name, name)


def active_timezone() -> str | None:
    """The time zone of the active session, Classic or Connect; None if there is none."""
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    session: Any = SparkSession.getActiveSession()
    if session is None and is_remote():
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        session = RemoteSession.getActiveSession()
    return None if session is None else session_timezone(session)


def task_timezone(known: str | None = None) -> str:
    """The ``known`` time zone, or that of the session whose query a task runs."""
    from pyspark import TaskContext

    if known is not None:
        return known
    task = TaskContext.get()
    name = None if task is None else task.getLocalProperty(SETTING)
    return DEFAULT if name is None else _SHORT.get(name, name)


def filter_in_timezone(where: Any, timezone: str) -> Any:
    """A filter with its casts in a time zone: as it was written, where no cast depends on that."""
    expression = as_expression(where)
    made = in_timezone(expression, timezone)
    return where if made is expression else made
