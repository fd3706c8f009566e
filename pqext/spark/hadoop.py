"""Storage options that Spark's Hadoop settings stand for, so that a cluster's credentials need not be given twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pqext.core.local_paths import scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3A = {
    "access.key": "access_key", "secret.key": "secret_key", "session.token": "session_token",
    "endpoint": "endpoint_override", "endpoint.region": "region",
}  # fmt: skip
_AZURE = re.compile(r"abfss?://[^@/]+@(([^./]+)\.[^/]+)", re.IGNORECASE)


def from_hadoop(spark: SparkSession, paths: str | Sequence[str]) -> dict[str, Any] | None:
    """What the session's settings ``fs.s3a.*`` and ``fs.azure.account.key.*`` say of the store of ``paths``.

    None where they say nothing, or paths lie in stores of several kinds. Settings of a bucket of its own
    (``fs.s3a.bucket.NAME.*``) go before those of all.
    """
    several = [paths] if isinstance(paths, str) else list(paths)
    schemes = {scheme_of(path) for path in several}
    found: dict[str, Any] = {}
    if schemes <= {"s3", "s3a"}:
        buckets = {path.split("/")[2] for path in several}
        for setting, name in _S3A.items():
            of_bucket = {_setting(spark, f"fs.s3a.bucket.{bucket}.{setting}") for bucket in buckets}
            value = (of_bucket.pop() if len(of_bucket) == 1 else None) or _setting(spark, f"fs.s3a.{setting}")
            if value:
                found[name] = value
        if _setting(spark, "fs.s3a.connection.ssl.enabled") == "false":
            found["scheme"] = "http"
    elif schemes <= {"abfs", "abfss"}:
        hosts = {match.groups() for match in map(_AZURE.match, several) if match is not None}
        for host, account in hosts if len(hosts) == 1 else ():
            key = _setting(spark, f"fs.azure.account.key.{host}")
            if key:
                found = {"account_name": account, "account_key": key}
    return found or None


def _setting(spark: SparkSession, name: str) -> str | None:
    value = spark.conf.get(f"spark.hadoop.{name}", None)
    return value or None
